//! The invariants: what must never happen, and what must eventually happen.

use strum::{IntoStaticStr, VariantArray};

/// A law (invariant) of the operator, with its text. Safety is checked at each write, when it reaches
/// the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
pub(crate) enum Invariant {
    #[strum(to_string = "S1 only objects of ours are deleted, with a uid precondition")]
    S1,
    #[strum(
        to_string = "S2, S3 one Machine, under one name, with one object of each role"
    )]
    S2,
    #[strum(
        to_string = "S4 only our Machine's Node is changed, and drained after the shutdown record"
    )]
    S4,
    #[strum(to_string = "S5 a Node is uncordoned only if we cordoned it")]
    S5,
    #[strum(to_string = "S6 pods are evicted, or deleted for a reclaim")]
    S6,
    #[strum(to_string = "S7 foreign taints are kept, and ours are in both records")]
    S7,
    #[strum(to_string = "S8 a Machine is deleted before its objects, the finalizer last")]
    S8,
    #[strum(to_string = "S9 foreign finalizers, labels and annotations are not changed")]
    S9,
    #[strum(to_string = "S10 no Machine with pods is deleted before the deadline")]
    S10,
    #[strum(to_string = "S11 the kill switch creates nothing that could run")]
    S11,
    #[strum(to_string = "S16 the status never reverts to an older one")]
    S16,
    #[strum(to_string = "every shutdown begins with the shutdown record")]
    ShutdownRecord,
    #[strum(
        to_string = "no object is created while it is not wanted, or for a Cluster being deleted"
    )]
    Idle,
    #[strum(to_string = "a paused object is not changed")]
    Paused,
    #[strum(to_string = "a disabled or invalid schedule removes nothing")]
    Untouched,
    #[strum(to_string = "a machine that is wanted again is not removed")]
    Reopened,
    #[strum(to_string = "a phase is reported when it is true")]
    Reported,
    #[strum(
        to_string = "a machine is replaced ten minutes after it was created, not before"
    )]
    Patience,
    #[strum(to_string = "every change is guarded by uid and version")]
    Guarded,
    #[strum(to_string = "S13 no write leaves an object unchanged")]
    Idempotent,
    #[strum(
        to_string = "an action is planned from the current ScheduledMachine, not from a cache"
    )]
    Confirmed,
    #[strum(to_string = "what is created is recorded first")]
    Recorded,
    #[strum(to_string = "no shutdown takes more than a day")]
    Bounded,
    #[strum(to_string = "a reclaim request that a Node joined with is ignored")]
    Joined,
    #[strum(to_string = "a host that was reclaimed is not used again")]
    Returned,
    #[strum(
        to_string = "a created object has our labels and owner, and Cluster API can adopt it"
    )]
    Marked,
    #[strum(to_string = "a replacement that has begun is not cancelled")]
    Condemned,
    #[strum(
        to_string = "a permanent failure of an independent step delays no other step"
    )]
    Undelayed,
    #[strum(
        to_string = "nothing is created from a spec that violates a rule, and a Machine created for a removal has nothing of the template"
    )]
    Admitted,
    #[strum(to_string = "a Machine that was moved gets our uid before any other write")]
    Moved,
    #[strum(
        to_string = "Cluster API has limited time to adopt the objects that are deleted with a Machine"
    )]
    Adopted,
    #[strum(to_string = "the record is kept while one of the three objects exists")]
    Rewritten,
    #[strum(
        to_string = "a hold creates and deletes nothing, and starts and cancels no shutdown"
    )]
    Held,
    #[strum(to_string = "an override is not in force after its end")]
    Expired,
    #[strum(to_string = "a machine is not shut down while it is needed")]
    EarlyEnd,
    #[strum(
        to_string = "a shutdown by the end of the window records that end and has no later deadline"
    )]
    WindowEnd,
    #[strum(
        to_string = "the next activation is when a machine is needed, its lead time included"
    )]
    Announced,
    #[strum(
        to_string = "nothing is written in audit mode but the status and the end of our finalizer"
    )]
    Audited,
    #[strum(
        to_string = "a reclaimed machine returns only to a host that confirms that it has been free for long enough, as often as it may, once that is recorded, and ends no override of another"
    )]
    Freed,
}
