//! What happens to the pods of this host while something asks for it and no API server answers: they
//! are frozen at once, and ended after a grace.
//!
//! [`Hold`] decides, without I/O; [`Holder`] acts, and keeps a record of what it did.

mod pods;
mod record;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
pub(crate) use pods::ALL_PODS;
pub use pods::PodGroups;
pub(crate) use record::ACCOUNT;
use record::Record;
use tokio::time::Instant;

use crate::detect::with_causes;

/// How long an API server may take before pods are frozen: more than one that is far away needs for the
/// two requests of a reclaim, and no more than pods of a reclaim have to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for one that is known to be slow: as long as a request may take at all.
const LONG_PATIENCE: Duration = Duration::from_secs(5);
/// The time between two decisions while pods are held, or should be.
const INTERVAL: Duration = Duration::from_secs(1);

/// What to do with pods while no API server answers.
#[derive(Clone, Debug)]
pub struct HoldSettings {
    /// The pods of this host.
    pub pods: PodGroups,
    /// How long they are frozen before they are ended.
    pub grace: Duration,
    /// The directory in which the record outlives the agent.
    pub state: Option<PathBuf>,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// An API server has answered.
    Answered,
    /// None has.
    Failed,
    /// It was not waited for any longer. The server may be slow, or this connection dead.
    GivenUp,
}

/// Whether the API server answers, by the requests of the agent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// When the request that has not ended yet was sent.
    sent: Option<Instant>,
    /// When the first of the last requests ended that have no answer.
    unanswered: Option<Instant>,
    /// One of those has failed.
    has_failed: bool,
    /// How long the last answer took.
    took: Duration,
}

impl Reach {
    /// A request is sent. A failure of long ago says nothing about it, unless pods are held for that.
    pub(crate) fn send(&mut self, now: Instant, is_held: bool) {
        self.sent = Some(now);
        if !is_held {
            self.unanswered = None;
            self.has_failed = false;
        }
    }

    /// The request that was sent has ended.
    pub(crate) fn end(&mut self, now: Instant, ended: Ended) {
        let sent = self.sent.take();
        match ended {
            Ended::Answered => {
                self.unanswered = None;
                self.has_failed = false;
                self.took = sent.map_or(self.took, |sent| now.duration_since(sent));
            }
            Ended::Failed | Ended::GivenUp => {
                self.unanswered = self.unanswered.or(Some(now));
                self.has_failed |= ended == Ended::Failed;
            }
        }
    }

    /// How long an answer may take. A server that has just needed longer than usual does so again.
    pub(crate) fn patience(self) -> Duration {
        (self.took * 2).clamp(PATIENCE, LONG_PATIENCE)
    }

    /// From when on the server counts as silent.
    pub(crate) fn silent_from(self) -> Option<Instant> {
        let waited = self.sent.map(|sent| sent + self.patience());
        self.unanswered.into_iter().chain(waited).min()
    }
}

/// What is done with pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing.
    #[default]
    Free,
    /// They are frozen.
    Frozen { since: Instant },
    /// They are ended. What the kubelet starts again is frozen.
    Ended,
}

impl Hold {
    /// What it has to be now.
    fn next(self, is_wanted: bool, now: Instant, grace: Duration) -> Self {
        match self {
            _ if !is_wanted => Self::Free,
            Self::Free => Self::Frozen { since: now },
            Self::Frozen { since } if now.duration_since(since) >= grace => Self::Ended,
            held => held,
        }
    }
}

/// Holds the pods of this host.
#[derive(Debug)]
pub(crate) struct Holder {
    settings: HoldSettings,
    hold: Hold,
    /// What was done while no request has failed. It is forgotten if an answer comes after all.
    unsure: Option<Record>,
    /// What was done and has not been reported.
    record: Option<Record>,
    /// The last error, so that it is logged once.
    error: Option<String>,
    /// When to decide again.
    next: Option<Instant>,
}

impl Holder {
    /// Goes on with what an earlier agent of this host has done. Frozen pods of which there is no record
    /// count as frozen now: that agent may have ended before it was kept, and nobody else would let them
    /// go on.
    pub(crate) fn start(settings: HoldSettings, now: Timestamp) -> Self {
        let record = record::read(settings.state.as_deref());
        let mut unsure = None;
        let hold = match &record {
            _ if !settings.pods.are_frozen() => Hold::Free,
            None => {
                tracing::warn!("pods are frozen, and no record says since when");
                unsure = Some(Record {
                    frozen: now,
                    ended: None,
                    reason: String::new(),
                });
                Hold::Frozen {
                    since: Instant::now(),
                }
            }
            Some(record) => {
                let passed = Duration::try_from(now.duration_since(record.frozen));
                let since = Instant::now().checked_sub(passed.unwrap_or_default());
                match record.ended {
                    Some(_) => Hold::Ended,
                    None => Hold::Frozen {
                        since: since.unwrap_or_else(Instant::now),
                    },
                }
            }
        };
        Self {
            settings,
            hold,
            unsure,
            record,
            error: None,
            next: None,
        }
    }

    /// Whether pods are held.
    pub(crate) fn is_holding(&self) -> bool {
        self.hold != Hold::Free
    }

    /// What was done and has not been reported, for the annotation on the Node and for people.
    pub(crate) fn account(&self) -> Option<String> {
        self.record.as_ref().map(Record::text)
    }

    /// When to decide again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Decides and acts. `asks` is why somebody asks for the host.
    pub(crate) fn update(
        &mut self,
        asks: Option<&str>,
        reach: Reach,
        instant: Instant,
        time: Timestamp,
    ) {
        let silent = asks.and(reach.silent_from());
        let is_wanted = silent.is_some_and(|from| from <= instant);
        let next = self.hold.next(is_wanted, instant, self.settings.grace);
        match self.act(next, asks, time) {
            Ok(held) => {
                self.hold = held;
                self.error = None;
                if reach.has_failed {
                    self.keep();
                }
            }
            Err(error) => {
                let error = with_causes(&error);
                if self.error.as_ref() != Some(&error) {
                    tracing::error!(error, "pods of this host cannot be held");
                }
                self.error = Some(error);
            }
        }
        self.next = match self.hold {
            Hold::Free if self.error.is_none() && !is_wanted => silent,
            Hold::Frozen { since } => {
                let end = Some(since + self.settings.grace);
                let end = end.filter(|end| *end > instant);
                Some(end.unwrap_or(instant + INTERVAL).min(instant + INTERVAL))
            }
            Hold::Free | Hold::Ended => Some(instant + INTERVAL),
        };
    }

    /// Does what leads to `next`. Returns what holds afterwards.
    fn act(
        &mut self,
        next: Hold,
        asks: Option<&str>,
        time: Timestamp,
    ) -> std::io::Result<Hold> {
        match (self.hold, next) {
            (Hold::Free, Hold::Free) => {}
            (Hold::Free, _) => {
                match self.settings.pods.freeze() {
                    Ok(true) => {}
                    // A host without pods.
                    Ok(false) => return Ok(Hold::Free),
                    Err(error) => {
                        // What is not held as a whole is not held, and would stay frozen.
                        let _ = self.settings.pods.thaw();
                        return Err(error);
                    }
                }
                let reason = asks.unwrap_or_default().to_owned();
                tracing::warn!(reason, "no API server answers: pods are frozen");
                self.unsure = Some(Record {
                    frozen: time,
                    ended: None,
                    reason,
                });
            }
            (_, Hold::Free) => self.thaw(asks)?,
            // What the kubelet has started again since the last time, too.
            (_, Hold::Ended) => {
                self.settings.pods.end()?;
                self.keep();
                if let Some(record) = &mut self.record
                    && record.ended.is_none()
                {
                    record.ended = Some(time);
                    tracing::warn!("no API server answers: pods are ended");
                    self.save();
                }
            }
            (_, Hold::Frozen { .. }) => {}
        }
        Ok(next)
    }

    fn thaw(&mut self, asks: Option<&str>) -> std::io::Result<()> {
        self.settings.pods.thaw()?;
        tracing::warn!(account = self.account(), "pods are thawed");
        self.unsure = None;
        if asks.is_none() {
            // Nobody asks any more, and no request will tell of it.
            self.forget();
        }
        Ok(())
    }

    /// The agent stops: nobody would thaw what it has frozen.
    pub(crate) fn stop(&mut self) {
        if self.is_holding()
            && let Err(error) = self.settings.pods.thaw()
        {
            let error = with_causes(&error);
            tracing::error!(error, "pods of this host stay frozen");
        }
    }

    /// The account is on the Node.
    pub(crate) fn reported(&mut self, reason: &str) {
        let is_told = self
            .account()
            .is_some_and(|account| reason.ends_with(&account));
        if is_told && !self.is_holding() {
            self.forget();
        }
    }

    /// What was done is to be reported.
    fn keep(&mut self) {
        if let Some(record) = self.unsure.take() {
            self.record = Some(record);
            self.save();
        }
    }

    fn forget(&mut self) {
        self.record = None;
        self.save();
    }

    fn save(&self) {
        let state = self.settings.state.as_deref();
        if let Err(error) = record::write(state, self.record.as_ref()) {
            let error = with_causes(&error);
            tracing::error!(error, "the record of what was done is not kept");
        }
    }
}
