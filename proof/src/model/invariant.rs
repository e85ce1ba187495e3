//! The invariants: what must never happen, and what must eventually happen.

/// A law (invariant) of the operator. Safety is checked at each write, when it reaches the
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Invariant {
    S1,
    S2,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
    S10,
    S11,
    S16,
    ShutdownRecord,
    Idle,
    Paused,
    Untouched,
    Reopened,
    Reported,
    Patience,
    Guarded,
    Idempotent,
    Confirmed,
    Recorded,
    Bounded,
    Joined,
    Returned,
    Marked,
    Condemned,
    Undelayed,
    Admitted,
    Moved,
    Adopted,
    Rewritten,
    Held,
    Expired,
    EarlyEnd,
    WindowEnd,
    Announced,
    Audited,
    Freed,
}

impl Invariant {
    pub(crate) const ALL: [Self; 39] = [
        Self::S1,
        Self::S2,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::S10,
        Self::S11,
        Self::S16,
        Self::ShutdownRecord,
        Self::Idle,
        Self::Paused,
        Self::Untouched,
        Self::Reopened,
        Self::Reported,
        Self::Patience,
        Self::Guarded,
        Self::Idempotent,
        Self::Confirmed,
        Self::Recorded,
        Self::Bounded,
        Self::Joined,
        Self::Returned,
        Self::Marked,
        Self::Condemned,
        Self::Undelayed,
        Self::Admitted,
        Self::Moved,
        Self::Adopted,
        Self::Rewritten,
        Self::Held,
        Self::Expired,
        Self::EarlyEnd,
        Self::WindowEnd,
        Self::Announced,
        Self::Audited,
        Self::Freed,
    ];

    /// The text of the law.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::S1 => "S1 only objects of ours are deleted, with a uid precondition",
            Self::S2 => {
                "S2, S3 one Machine, under one name, with one object of each role"
            }
            Self::S4 => {
                "S4 only our Machine's Node is changed, and drained after the shutdown record"
            }
            Self::S5 => "S5 a Node is uncordoned only if we cordoned it",
            Self::S6 => "S6 pods are evicted, or deleted for a reclaim",
            Self::S7 => "S7 foreign taints are kept, and ours are in both records",
            Self::S8 => "S8 a Machine is deleted before its objects, the finalizer last",
            Self::S9 => "S9 foreign finalizers, labels and annotations are not changed",
            Self::S10 => "S10 no Machine with pods is deleted before the deadline",
            Self::S11 => "S11 the kill switch creates nothing that could run",
            Self::S16 => "S16 the status never reverts to an older one",
            Self::ShutdownRecord => "every shutdown begins with the shutdown record",
            Self::Idle => {
                "no object is created while it is not wanted, or for a Cluster being deleted"
            }
            Self::Paused => "a paused object is not changed",
            Self::Untouched => "a disabled or invalid schedule removes nothing",
            Self::Reopened => "a machine that is wanted again is not removed",
            Self::Reported => "a phase is reported when it is true",
            Self::Patience => {
                "a machine is replaced ten minutes after it was created, not before"
            }
            Self::Guarded => "every change is guarded by uid and version",
            Self::Idempotent => "S13 no write leaves an object unchanged",
            Self::Confirmed => {
                "an action is planned from the current ScheduledMachine, not from a cache"
            }
            Self::Recorded => "what is created is recorded first",
            Self::Rewritten => "the record is kept while one of the three objects exists",
            Self::Bounded => "no shutdown takes more than a day",
            Self::Joined => "a reclaim request that a Node joined with is ignored",
            Self::Returned => "a host that was reclaimed is not used again",
            Self::Admitted => {
                "nothing is created from a spec that violates a rule, and a Machine created for a removal has nothing of the template"
            }
            Self::Moved => "a Machine that was moved gets our uid before any other write",
            Self::Adopted => {
                "Cluster API has limited time to adopt the objects that are deleted with a Machine"
            }
            Self::Audited => {
                "nothing is written in audit mode but the status and the end of our finalizer"
            }
            Self::Freed => {
                "a reclaimed machine returns only to a host that confirms that it has been free for long enough, as often as it may, once that is recorded, and ends no override of another"
            }
            Self::Held => {
                "a hold creates and deletes nothing, and starts and cancels no shutdown"
            }
            Self::Expired => "an override is not in force after its end",
            Self::EarlyEnd => "a machine is not shut down while it is needed",
            Self::WindowEnd => {
                "a shutdown by the end of the window records that end and has no later deadline"
            }
            Self::Announced => {
                "the next activation is when a machine is needed, its lead time included"
            }
            Self::Condemned => "a replacement that has begun is not cancelled",
            Self::Undelayed => {
                "a permanent failure of an independent step delays no other step"
            }
            Self::Marked => {
                "a created object has our labels and owner, and Cluster API can adopt it"
            }
        }
    }
}
