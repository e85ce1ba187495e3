//! What a change of an object enqueues.

use fivespot_runtime::Key;

/// The keys that an object enqueues.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// One ScheduledMachine.
    One(Key),
    /// The ScheduledMachine of that name, if there is one.
    Named(Key),
    /// The ScheduledMachine that has a host, also if it is gone: then it is to give the host back.
    Holder(Key),
    /// Every ScheduledMachine that this index term finds.
    Machines(String),
    /// The ScheduledMachine of each Machine that these index terms find.
    Machine(Vec<String>),
    /// The host of a class that a ScheduledMachine has, by the name of its Lease.
    Host(String),
    /// A ScheduledCapacity.
    Capacity(Key),
    /// Every ScheduledCapacity that this index term finds.
    Capacities(String),
    /// The object itself, of a kind that has a queue of its own or is read for others.
    Own(Key),
}
