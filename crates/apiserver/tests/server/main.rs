//! What the embedded server promises, asked through its own doors.

mod budgets;
mod clock;
mod collection;
mod definitions;
mod fixture;
mod namespaces;
mod objects;
mod socket;
mod watching;
mod wire;
