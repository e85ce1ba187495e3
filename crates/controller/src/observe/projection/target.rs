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
    /// A ScheduleOverride.
    Override(Key),
    /// Every ScheduledMachine with an exception that names this ScheduleCalendar.
    Calendar(Key),
    /// A schedule that ScheduledMachines follow.
    SpotSchedule(Key),
    /// A ScheduledMachineSet.
    Set(Key),
    /// A ScheduledCapacity.
    Capacity(Key),
    /// Every ScheduledCapacity of a target: those that these index terms find.
    Capacities(Vec<String>),
    /// Every ScheduledMachine that names this Cluster.
    Cluster(Key),
    /// Every ScheduledMachine that this index term finds.
    Machines(String),
    /// A host of a class, by the name of its Lease.
    Host(String),
    /// The ScheduledMachine of the Machine, in the Cluster, that the Node belongs to: the first of
    /// these index terms that finds a Machine.
    Machine(Vec<String>),
}
