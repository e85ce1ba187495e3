//! What must never happen, and what must happen in the end.

/// A law of the operator. Safety is judged at each write, where it reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Law {
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
    Claimed,
    Rewritten,
    Held,
    Expired,
    EarlyEnd,
    WindowEnd,
    Announced,
}

impl Law {
    pub(crate) const ALL: [Self; 37] = [
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
        Self::Claimed,
        Self::Rewritten,
        Self::Held,
        Self::Expired,
        Self::EarlyEnd,
        Self::WindowEnd,
        Self::Announced,
    ];

    /// The law in words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::S1 => "S1 nothing is deleted but what is ours, by its uid",
            Self::S2 => {
                "S2, S3 one Machine, under one name, with one object of each role"
            }
            Self::S4 => {
                "S4 a Node is touched only if it is our Machine's, after the shutdown record"
            }
            Self::S5 => "S5 a Node is uncordoned only if we cordoned it",
            Self::S6 => "S6 pods leave by eviction, or because the owner takes the host",
            Self::S7 => "S7 the taints of others stay, and ours are on both records",
            Self::S8 => "S8 what a Machine needs outlives it, the finalizer outlives all",
            Self::S9 => "S9 finalizers, labels and annotations of others are left alone",
            Self::S10 => "S10 no Machine is deleted over its pods before the deadline",
            Self::S11 => "S11 the kill switch creates nothing that could run",
            Self::S16 => "S16 the status never goes back",
            Self::ShutdownRecord => "every shutdown begins with the shutdown record",
            Self::Idle => {
                "nothing is created while it is not wanted, or for a Cluster that is going"
            }
            Self::Paused => "what is paused is not touched",
            Self::Untouched => {
                "a schedule that is switched off or invalid removes nothing"
            }
            Self::Reopened => "a machine that is wanted again is not driven out",
            Self::Reported => "a phase is reported when it is true",
            Self::Patience => {
                "a machine is replaced ten minutes after it was made, not before"
            }
            Self::Guarded => "every change is guarded by uid and version",
            Self::Idempotent => "S13 nothing is written that changes nothing",
            Self::Confirmed => {
                "what is done follows from what is wanted now, not from a cache"
            }
            Self::Recorded => "what is created is on record first",
            Self::Rewritten => "the record stays while one of the three objects exists",
            Self::Bounded => "nobody is given more than a day to leave",
            Self::Joined => "a request that a Node has brought along is not obeyed",
            Self::Returned => "a host that is given back is not taken again",
            Self::Admitted => {
                "nothing is created from a spec that breaks a rule, and what is made to be deleted has nothing of the template"
            }
            Self::Moved => {
                "a Machine that was moved has our uid before anything else is written"
            }
            Self::Claimed => {
                "Cluster API is given time to claim what leaves with a Machine, and no more than that"
            }
            Self::Held => {
                "a hold creates and ends nothing, and neither begins nor cancels a shutdown"
            }
            Self::Expired => "an override ends at its end",
            Self::EarlyEnd => "a machine is not shut down while it is needed",
            Self::WindowEnd => {
                "a shutdown by the end of the window has that end on record and no later deadline"
            }
            Self::Announced => {
                "the next activation is when a machine is needed, its lead time included"
            }
            Self::Condemned => "a replacement that has begun is not taken back",
            Self::Undelayed => {
                "a permanent failure beside the machine's life delays nothing of it"
            }
            Self::Marked => {
                "what is created is known again, goes with its owner and is Cluster API's to take"
            }
        }
    }
}
