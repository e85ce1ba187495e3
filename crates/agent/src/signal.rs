//! Signals beside processes: other ways in which a host says that its owner wants it back. Each is
//! a [`Source`], read when its files change, and now and then.

mod away;
mod change;
mod file;
mod graphics;
mod load;
mod owner;
mod session;
mod setting;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

pub use away::Away;
#[cfg(test)]
pub(crate) use away::SYSTEM_BUS;
use change::Changes;
pub use file::SignalFile;
use futures::FutureExt as _;
use futures::future::{BoxFuture, pending, ready, select_all};
pub use graphics::Graphics;
pub(crate) use graphics::parse_share;
use jiff::Timestamp;
pub use load::Load;
pub use owner::OwnerSwitch;
use serde::{Deserialize, Serialize};
pub use session::Sessions;
pub(crate) use setting::duration;
pub use setting::{Counted, InvalidSetting, LoadLimit, Settings};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::detect::with_causes;

/// The time between two readings if only time tells, or the kernel cannot tell of changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time between two readings if the kernel tells of every change. It tells nothing about the files
/// of another host, as in a network filesystem, and about links that lead elsewhere.
const SELDOM: Duration = Duration::from_secs(5);
/// The minimum time between two readings, and in readings: users of the host cause changes.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_IN_READINGS: u32 = 20;

/// The instant of a reading, on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time of day, which people set.
    pub time: Timestamp,
    /// The clock that only goes forward.
    pub instant: Instant,
}

/// That the owner wants the host back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Why, for the annotation on the Node: one line, without names of users.
    pub reason: String,
    /// Since when, if the source knows it.
    pub since: Option<Timestamp>,
    /// Until when, if it ends by itself.
    pub until: Option<Timestamp>,
}

impl Signal {
    /// One of which the source knows neither beginning nor end.
    fn of(reason: String) -> Self {
        Self {
            reason,
            since: None,
            until: None,
        }
    }
}

/// One kind of signal.
pub trait Source: fmt::Debug + Send {
    /// What it reads, for people.
    fn name(&self) -> String;

    /// What counts for it, and whether those answer whom it asks, for people.
    fn note(&self) -> Option<String> {
        None
    }

    /// The directory whose entries decide what it reads. `None`: there is none, so that it has to be
    /// read once a second.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Waits until something has changed that its directory does not show. Nothing is lost if the future
    /// is dropped.
    fn told(&mut self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }

    /// Waits until a first answer of whom it asks has come, or none will.
    fn settled(&mut self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// The signal that stands now, if any.
    ///
    /// # Errors
    /// It is not known whether one stands. This never counts as a signal: a reclaim ends the pods
    /// of the host. With the kind `WouldBlock` it will be known, and until then the host does not count
    /// as free.
    fn read(&mut self, now: Now) -> io::Result<Option<Signal>>;
}

/// The last reading of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "reading")]
pub enum Reading {
    /// It is not known yet, or not any more.
    #[serde(skip)]
    NotYet,
    /// No signal stands.
    Absent,
    /// A signal stands; it has a `since`.
    Stands(Signal),
    /// It could not be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

impl Reading {
    /// The signal, if one stands.
    pub(crate) fn standing(&self) -> Option<&Signal> {
        match self {
            Self::Stands(signal) => Some(signal),
            Self::NotYet | Self::Absent | Self::Unreadable { .. } => None,
        }
    }
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
    changes: Option<Changes>,
    next: Instant,
    /// When a change leads to a reading at the earliest.
    earliest: Instant,
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
            changes: None,
            next: Instant::now(),
            earliest: Instant::now(),
        }
    }

    /// Reads the sources when their files change, too. Must be called in a runtime.
    pub fn watch(&mut self) {
        match Changes::new() {
            Ok(changes) => self.changes = Some(changes),
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(error, "signals are read once a second");
            }
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
    pub async fn due(&mut self) {
        if self.own.is_empty() && self.configured.is_empty() {
            pending::<()>().await;
        }
        let (next, earliest) = (self.next, self.earliest);
        let sources = self.own.iter_mut().chain(&mut self.configured);
        let told = select_all(sources.map(|observed| observed.source.told()));
        let told = async {
            // First, so that nothing is lost if this is dropped.
            sleep_until(earliest).await;
            told.await;
        };
        let changed = async {
            match &self.changes {
                None => pending().await,
                Some(changes) => changes.next(earliest).await,
            }
        };
        tokio::select! {
            () = sleep_until(next) => {}
            () = changed => {}
            () = told => {}
        }
    }

    /// Waits until every source knows what it asks others.
    pub async fn settle(&mut self) {
        for observed in self.own.iter_mut().chain(&mut self.configured) {
            observed.source.settled().await;
        }
    }

    /// The sources are to be read now.
    pub fn hasten(&mut self) {
        self.next = Instant::now();
    }

    /// Reads every source.
    pub fn read(&mut self, now: Now) {
        let is_told = self.watch_directories();
        for Observed { source, reading } in
            self.own.iter_mut().chain(&mut self.configured)
        {
            let next = match source.read(now) {
                Ok(None) => Reading::Absent,
                Ok(Some(signal)) => Reading::Stands(Signal {
                    since: signal.since.or(match reading.standing() {
                        Some(earlier) => earlier.since,
                        None => Some(now.time),
                    }),
                    ..signal
                }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Reading::NotYet
                }
                Err(error) => Reading::Unreadable {
                    why: with_causes(&error),
                },
            };
            if next != *reading {
                log(&source.name(), reading, &next);
                *reading = next;
            }
        }
        let ends = self.readings().filter_map(|(_, reading)| {
            let until = reading.standing()?.until?;
            Duration::try_from(until.duration_since(now.time)).ok()
        });
        let interval = if is_told { SELDOM } else { INTERVAL };
        self.next = now.instant + ends.fold(interval, Duration::min);
        let took = now.instant.elapsed();
        self.earliest = now.instant + PAUSE.max(took * PAUSE_IN_READINGS);
        self.compare();
    }

    /// Whether the kernel tells of every change from now on.
    fn watch_directories(&mut self) -> bool {
        let Some(changes) = &mut self.changes else {
            return false;
        };
        let sources = self.own.iter().chain(&self.configured);
        let mut directories = Vec::new();
        let mut are_all_named = true;
        for observed in sources {
            match observed.source.directory() {
                Some(directory) => directories.push(directory),
                None => are_all_named = false,
            }
        }
        changes.watch(directories.into_iter()) && are_all_named
    }

    /// The first signal that stands: those of the command line before those of the configuration.
    pub fn standing(&self) -> Option<&Signal> {
        self.readings().find_map(|(_, reading)| reading.standing())
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
        self.sources()
            .map(|(source, reading)| (source.name(), reading))
    }

    /// The sources, and their last readings.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&dyn Source, &Reading)> {
        let all = self.own.iter().chain(&self.configured);
        all.map(|observed| (&*observed.source, &observed.reading))
    }
}

fn log(signal: &str, earlier: &Reading, now: &Reading) {
    match now {
        Reading::Stands(Signal { reason, .. }) => {
            tracing::warn!(signal, reason, "signal stands");
        }
        Reading::Unreadable { why: error } => {
            tracing::error!(signal, error, "signal cannot be read, and does not count");
        }
        Reading::NotYet | Reading::Absent => {
            if !matches!(earlier, Reading::NotYet | Reading::Absent) {
                tracing::info!(signal, "signal does not stand any more");
            }
        }
    }
}
