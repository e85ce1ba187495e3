//! What the program forecasts from manifests is what the whole operator then does.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod desks;
mod fleet;
mod replay;
