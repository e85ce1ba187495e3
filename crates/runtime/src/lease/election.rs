//! Leader election: the rules of one candidate, as values.
//!
//! The clocks of two replicas are never compared. A candidate records when, by its own clock, it
//! last observed a change of the record, and takes over once that is as long ago as the duration
//! of the Lease. If two try at the same time, the server's resourceVersion decides.

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};

use super::record::{Record, Stored, Terms, micro_time};

/// One candidate's view of the Lease.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    terms: Terms,
    view: View,
    held: Option<Held>,
    /// When the last write was tried.
    tried: Option<Timestamp>,
}

/// The observed state of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum View {
    /// Nothing; the watch will show it.
    Unseen,
    /// Another client has changed it: it must be read.
    Doubtful,
    /// It does not exist, and may be created from that instant on: its holder may not have
    /// noticed that it was deleted.
    Absent { free: Timestamp },
    /// It exists, and has not changed since that instant.
    Present { stored: Stored, since: Timestamp },
}

/// Our own term as the holder.
#[derive(Clone, Debug)]
struct Held {
    stored: Stored,
    /// When the last successful renewal was sent.
    asked: Timestamp,
}

/// The next action of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
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
    pub fn new(identity: String, terms: Terms) -> Self {
        Self {
            identity,
            terms,
            view: View::Unseen,
            held: None,
            tried: None,
        }
    }

    /// Returns the next action.
    pub fn next(&self, now: Timestamp) -> Move {
        let pause = self.tried.map(|tried| self.terms.next_try(tried));
        if let Some(pause) = pause.filter(|pause| *pause > now) {
            return Move::Wait(Some(pause));
        }
        match (&self.held, &self.view) {
            (_, View::Doubtful) => Move::Read,
            (Some(held), _) => Move::Replace {
                record: Record {
                    renewed: micro_time(now),
                    ..held.stored.record.clone()
                },
                version: held.stored.version.clone(),
            },
            (None, View::Unseen) => Move::Wait(None),
            (None, View::Absent { free }) if *free > now => Move::Wait(Some(*free)),
            (None, View::Absent { .. }) => Move::Create(self.record(now, 0)),
            (None, View::Present { stored, since }) => {
                let free = self.free_at(stored, *since);
                if free > now {
                    return Move::Wait(Some(free));
                }
                Move::Replace {
                    record: self.record(now, stored.record.transitions.saturating_add(1)),
                    version: stored.version.clone(),
                }
            }
        }
    }

    /// When other candidates may take a Lease that has not changed since `since`.
    fn free_at(&self, stored: &Stored, since: Timestamp) -> Timestamp {
        if stored.record.holder.is_empty() {
            return since;
        }
        after(
            since,
            stored.record.duration.unwrap_or(self.terms.duration()),
        )
    }

    fn record(&self, now: Timestamp, transitions: i64) -> Record {
        Record {
            holder: self.identity.clone(),
            duration: Some(self.terms.duration()),
            acquired: micro_time(now),
            renewed: micro_time(now),
            transitions,
        }
    }

    /// The watch shows the Lease, or that there is none. A holder uses only its own renewals: the
    /// watch may be behind them.
    pub fn shown(&mut self, lease: Option<Stored>, now: Timestamp) {
        if self.held.is_none() && self.view != View::Doubtful {
            self.note(lease, now);
        }
    }

    /// The Lease was read.
    pub fn read(&mut self, lease: Option<Stored>, now: Timestamp) {
        self.tried = None;
        let is_same_term = |held: &Held, found: &Stored| {
            let (held, found) = (&held.stored, found);
            held.uid == found.uid
                && held.record.holder == found.record.holder
                && held.record.acquired == found.record.acquired
                && held.record.transitions == found.record.transitions
        };
        let before = self.held.take();
        if let (Some(held), Some(found)) = (&before, &lease)
            && is_same_term(held, found)
        {
            self.held = Some(Held {
                stored: found.clone(),
                ..held.clone()
            });
        }
        self.view = before.map_or(View::Unseen, |held| View::Present {
            stored: held.stored,
            since: held.asked,
        });
        self.note(lease, now);
    }

    fn note(&mut self, lease: Option<Stored>, now: Timestamp) {
        let Some(stored) = lease else {
            let free = match &self.view {
                View::Present { stored, since } => self.free_at(stored, *since),
                View::Absent { free } => *free,
                View::Unseen | View::Doubtful => now,
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

    /// A write that was sent at `asked` succeeded.
    pub fn wrote(&mut self, stored: Stored, asked: Timestamp) {
        self.tried = Some(asked);
        self.view = View::Present {
            stored: stored.clone(),
            since: asked,
        };
        self.held = Some(Held { stored, asked });
    }

    /// A write failed because the Lease has changed or is gone.
    pub fn was_overtaken(&mut self) {
        self.tried = None;
        self.view = View::Doubtful;
    }

    /// A write or a read failed, and no response gives the state of the Lease.
    pub fn failed(&mut self, asked: Timestamp) {
        self.tried = Some(asked);
    }

    /// Until when this candidate may write; `None` if it does not hold the Lease.
    pub fn fence(&self) -> Option<Timestamp> {
        self.held.as_ref().map(|held| self.terms.fence(held.asked))
    }

    /// The write that releases the Lease; `None` if it is not held.
    pub fn release(&mut self, now: Timestamp) -> Option<(Record, String)> {
        let held = self.held.take()?;
        let record = Record {
            holder: String::new(),
            duration: Some(SignedDuration::from_secs(1)),
            renewed: micro_time(now),
            ..held.stored.record
        };
        Some((record, held.stored.version))
    }

    /// The holder of the Lease, as last observed.
    pub fn holder(&self) -> Option<&str> {
        match &self.view {
            View::Present { stored, .. } => Some(stored.record.holder.as_str()),
            View::Unseen | View::Doubtful | View::Absent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
