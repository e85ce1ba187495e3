//! Signals beside processes: other ways in which a host says that its owner wants it back. Each is
//! a [`Source`], read once a second.

mod file;
mod load;
mod owner;
mod session;
mod setting;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::time::Duration;

pub use file::SignalFile;
use jiff::Timestamp;
pub use load::Load;
pub use owner::OwnerSwitch;
pub use session::{Counted, Sessions};
pub use setting::{CountedSessions, InvalidSetting, LoadLimit, Settings};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::detect::with_causes;

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// The instant of a reading, on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time of day, which people set.
    pub time: Timestamp,
    /// The clock that only goes forward.
    pub instant: Instant,
}

/// That the owner wants the host back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Why, for the annotation on the Node: one line, without names of users.
    pub reason: String,
    /// Since when, if the source knows it.
    pub since: Option<Timestamp>,
    /// Until when, if it ends by itself.
    pub until: Option<Timestamp>,
}

/// One kind of signal.
pub trait Source: fmt::Debug + Send {
    /// What it reads, for people.
    fn name(&self) -> String;

    /// The signal that stands now, if any.
    ///
    /// # Errors
    /// It is not known whether one stands. This never counts as a signal: a reclaim ends the pods
    /// of the host.
    fn read(&mut self, now: Now) -> io::Result<Option<Signal>>;
}

/// The last reading of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It has not been read yet.
    NotYet,
    /// No signal stands.
    Absent,
    /// A signal stands; it has a `since`.
    Stands(Signal),
    /// It could not be read, and why.
    Unreadable(String),
}

#[derive(Debug)]
struct Observed {
    source: Box<dyn Source>,
    reading: Reading,
}

/// The sources of a host, with their last readings.
#[derive(Debug)]
pub struct Signals {
    /// Those of the command line.
    own: Vec<Observed>,
    /// Those of the configuration.
    configured: Vec<Observed>,
    /// What `configured` is made of.
    settings: Settings,
    next: Instant,
    are_absent: watch::Sender<bool>,
}

fn observed(sources: Vec<Box<dyn Source>>) -> Vec<Observed> {
    let unread = |source| Observed {
        source,
        reading: Reading::NotYet,
    };
    sources.into_iter().map(unread).collect()
}

impl Signals {
    /// Reads these sources, from now on.
    pub fn new(own: Vec<Box<dyn Source>>) -> Self {
        Self {
            are_absent: watch::Sender::new(own.is_empty()),
            own: observed(own),
            configured: Vec::new(),
            settings: Settings::default(),
            next: Instant::now(),
        }
    }

    /// Reads the sources of these settings too, instead of those of earlier settings. Equal
    /// settings change nothing.
    pub fn configure(&mut self, settings: &Settings, proc: &Path) {
        if self.settings != *settings {
            self.settings = settings.clone();
            self.configured = observed(settings.sources(proc));
            self.next = Instant::now();
            self.compare();
        }
    }

    /// Waits until the sources are to be read; forever if there are none.
    pub fn due(&self) -> impl Future<Output = ()> + Send + use<> {
        let is_empty = self.own.is_empty() && self.configured.is_empty();
        let next = (!is_empty).then_some(self.next);
        async move {
            match next {
                Some(next) => sleep_until(next).await,
                None => pending().await,
            }
        }
    }

    /// Reads every source.
    pub fn read(&mut self, now: Now) {
        for Observed { source, reading } in
            self.own.iter_mut().chain(&mut self.configured)
        {
            let next = match source.read(now) {
                Ok(None) => Reading::Absent,
                Ok(Some(signal)) => Reading::Stands(Signal {
                    since: signal.since.or(match reading {
                        Reading::Stands(earlier) => earlier.since,
                        Reading::NotYet | Reading::Absent | Reading::Unreadable(_) => {
                            Some(now.time)
                        }
                    }),
                    ..signal
                }),
                Err(error) => Reading::Unreadable(with_causes(&error)),
            };
            if next != *reading {
                log(&source.name(), reading, &next);
                *reading = next;
            }
        }
        self.next = now.instant + INTERVAL;
        self.compare();
    }

    /// The first signal that stands: those of the command line before those of the configuration.
    pub fn standing(&self) -> Option<&Signal> {
        self.readings().find_map(|(_, reading)| match reading {
            Reading::Stands(signal) => Some(signal),
            Reading::NotYet | Reading::Absent | Reading::Unreadable(_) => None,
        })
    }

    /// Whether every source could be read and no signal stands, from now on.
    pub fn are_absent(&self) -> watch::Receiver<bool> {
        self.are_absent.subscribe()
    }

    fn compare(&self) {
        let mut readings = self.readings();
        let are_absent = readings.all(|(_, reading)| *reading == Reading::Absent);
        self.are_absent.send_if_modified(|before| {
            std::mem::replace(before, are_absent) != are_absent
        });
    }

    /// What the sources read, and their last readings.
    pub fn readings(&self) -> impl Iterator<Item = (String, &Reading)> {
        let all = self.own.iter().chain(&self.configured);
        all.map(|observed| (observed.source.name(), &observed.reading))
    }
}

fn log(signal: &str, earlier: &Reading, now: &Reading) {
    match now {
        Reading::Stands(Signal { reason, .. }) => {
            tracing::warn!(signal, reason, "signal stands");
        }
        Reading::Unreadable(error) => {
            tracing::error!(signal, error, "signal cannot be read, and does not count");
        }
        Reading::NotYet | Reading::Absent => {
            if *earlier != Reading::NotYet {
                tracing::info!(signal, "signal does not stand any more");
            }
        }
    }
}
