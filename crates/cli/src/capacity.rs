//! What a ScheduledCapacity says, for the commands that show it.

pub(crate) mod reason;
