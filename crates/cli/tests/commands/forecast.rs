//! What the program forecasts from manifests is what the whole operator then does.

mod desks;
mod fleet;
mod replay;
