//! The words users write: the ScheduledMachine resource, its rules, its names and its conditions.
