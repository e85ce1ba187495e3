//! Leader election: the rules of one candidate, as values.
//!
//! The clocks of two replicas are never compared. A candidate records when, by its own clock, it
//! last observed a change of the record, and takes over once that is as long ago as the duration
//! of the Lease. If two try at the same time, the server's resourceVersion decides.

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use super::record::{LeaseTiming, Record, StoredLease, micro_time};

/// One candidate's view of the Lease.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    timing: LeaseTiming,
    view: View,
    term: Option<Term>,
    /// When the last write was tried.
    last_try: Option<Timestamp>,
}

/// The observed state of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum View {
    /// Nothing; the watch will show it.
    Unobserved,
    /// Another client has changed it: it must be read.
    Outdated,
    /// It does not exist, and may be created from that instant on: its holder may not have
    /// noticed that it was deleted.
    Absent { free: Timestamp },
    /// It exists, and has not changed since that instant.
    Present {
        stored: StoredLease,
        since: Timestamp,
    },
}

/// Our own term as the holder.
#[derive(Clone, Debug)]
struct Term {
    stored: StoredLease,
    /// When the last successful renewal was sent.
    sent: Timestamp,
}

/// The next action of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do nothing until then, or until the Lease changes.
    Wait(Option<Timestamp>),
    /// Read the Lease.
    Read,
    /// Create the Lease.
    Create(Record),
    /// Replace its content, if it still has this version.
    Replace {
        /// The new content.
        record: Record,
        /// The version.
        version: String,
    },
}

impl Election {
    /// A candidate that has not observed the Lease.
    pub fn new(identity: String, timing: LeaseTiming) -> Self {
        Self {
            identity,
            timing,
            view: View::Unobserved,
            term: None,
            last_try: None,
        }
    }

    /// Returns the next action.
    pub fn next(&self, now: Timestamp) -> Action {
        let pause = self.last_try.map(|last_try| self.timing.next_try(last_try));
        if let Some(pause) = pause.filter(|pause| *pause > now) {
            return Action::Wait(Some(pause));
        }
        match (&self.term, &self.view) {
            (_, View::Outdated) => Action::Read,
            (Some(term), _) => Action::Replace {
                record: Record {
                    renewed: micro_time(now),
                    ..term.stored.record.clone()
                },
                version: term.stored.version.clone(),
            },
            (None, View::Unobserved) => Action::Wait(None),
            (None, View::Absent { free }) if *free > now => Action::Wait(Some(*free)),
            (None, View::Absent { .. }) => Action::Create(self.record(now, 0)),
            (None, View::Present { stored, since }) => {
                let free = self.free_at(stored, *since);
                if free > now {
                    return Action::Wait(Some(free));
                }
                Action::Replace {
                    record: self.record(now, stored.record.transitions.saturating_add(1)),
                    version: stored.version.clone(),
                }
            }
        }
    }

    /// When other candidates may take a Lease that has not changed since `since`.
    fn free_at(&self, stored: &StoredLease, since: Timestamp) -> Timestamp {
        if stored.record.holder.is_empty() {
            return since;
        }
        after(
            since,
            stored.record.duration.unwrap_or(self.timing.duration()),
        )
    }

    fn record(&self, now: Timestamp, transitions: i64) -> Record {
        Record {
            holder: self.identity.clone(),
            duration: Some(self.timing.duration()),
            acquired: micro_time(now),
            renewed: micro_time(now),
            transitions,
        }
    }

    /// The watch shows the Lease, or that there is none. A holder uses only its own renewals: the
    /// watch may be behind them.
    pub fn observe(&mut self, lease: Option<StoredLease>, now: Timestamp) {
        if self.term.is_none() && self.view != View::Outdated {
            self.note(lease, now);
        }
    }

    /// The Lease was read.
    pub fn read_succeeded(&mut self, lease: Option<StoredLease>, now: Timestamp) {
        self.last_try = None;
        let is_same_term = |term: &Term, found: &StoredLease| {
            let (term, found) = (&term.stored, found);
            term.uid == found.uid
                && term.record.holder == found.record.holder
                && term.record.acquired == found.record.acquired
                && term.record.transitions == found.record.transitions
        };
        let before = self.term.take();
        if let (Some(term), Some(found)) = (&before, &lease)
            && is_same_term(term, found)
        {
            self.term = Some(Term {
                stored: found.clone(),
                ..term.clone()
            });
        }
        self.view = before.map_or(View::Unobserved, |term| View::Present {
            stored: term.stored,
            since: term.sent,
        });
        self.note(lease, now);
    }

    fn note(&mut self, lease: Option<StoredLease>, now: Timestamp) {
        let Some(stored) = lease else {
            let free = match &self.view {
                View::Present { stored, since } => self.free_at(stored, *since),
                View::Absent { free } => *free,
                View::Unobserved | View::Outdated => now,
            };
            self.view = View::Absent { free };
            return;
        };
        let since = match &self.view {
            View::Present { stored: old, since }
                if old.record == stored.record && old.uid == stored.uid =>
            {
                *since
            }
            _ => now,
        };
        self.view = View::Present { stored, since };
    }

    /// A write that was sent at `sent` succeeded.
    pub fn write_succeeded(&mut self, stored: StoredLease, sent: Timestamp) {
        self.last_try = Some(sent);
        self.view = View::Present {
            stored: stored.clone(),
            since: sent,
        };
        self.term = Some(Term { stored, sent });
    }

    /// A write failed because the Lease has changed or is gone.
    pub fn write_conflicted(&mut self) {
        self.last_try = None;
        self.view = View::Outdated;
    }

    /// A write or a read failed, and no response gives the state of the Lease.
    pub fn request_failed(&mut self, sent: Timestamp) {
        self.last_try = Some(sent);
    }

    /// Until when this candidate may write; `None` if it does not hold the Lease.
    pub fn fence(&self) -> Option<Timestamp> {
        self.term.as_ref().map(|term| self.timing.fence(term.sent))
    }

    /// The write that releases the Lease; `None` if it is not held.
    pub fn release(&mut self, now: Timestamp) -> Option<(Record, String)> {
        let term = self.term.take()?;
        let record = Record {
            holder: String::new(),
            duration: Some(SignedDuration::from_secs(1)),
            renewed: micro_time(now),
            ..term.stored.record
        };
        Some((record, term.stored.version))
    }

    /// The holder of the Lease, as last observed.
    pub fn holder(&self) -> Option<&str> {
        match &self.view {
            View::Present { stored, .. } => Some(stored.record.holder.as_str()),
            View::Unobserved | View::Outdated | View::Absent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
