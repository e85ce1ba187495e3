//! How processes come to be seen: the kernel tells, or `/proc` is scanned.

use std::io;

use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::connector::{Connector, Heard, Refused};
use crate::event::Event;
use crate::proc::Proc;
use crate::sight::{Occasion, Sighting, look, scan};

/// By what means processes may be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Means {
    /// The kernel's events where it tells them, else scans.
    #[default]
    Auto,
    /// The kernel's events, or nothing.
    Events,
    /// Scans of /proc.
    Scan,
}

/// A watch over processes, from the moment it was begun.
#[derive(Debug)]
pub struct Detection {
    proc: Proc,
    source: Source,
    /// Whether all of `/proc` is to be looked at before anything else.
    scan_due: bool,
}

#[derive(Debug)]
enum Source {
    Events(Connector),
    Scans { next: Instant },
}

impl Detection {
    /// Begins to watch: by events where `means` allows it and the kernel tells them, and then
    /// with one scan, so that what runs already is seen too.
    ///
    /// # Errors
    /// The kernel does not tell, and `means` leaves nothing else.
    pub async fn begin(proc: Proc, means: Means) -> Result<Self, Refused> {
        let scans = Source::Scans {
            next: Instant::now(),
        };
        // Subscribed first: what starts during the scan is in the events.
        let source = match means {
            Means::Scan => scans,
            Means::Events => Source::Events(Connector::subscribe().await?),
            Means::Auto => match Connector::subscribe().await {
                Ok(connector) => Source::Events(connector),
                Err(refused) => {
                    let why = told(&refused);
                    tracing::warn!(%why, "scanning /proc: no process events");
                    scans
                }
            },
        };
        Ok(Self {
            proc,
            source,
            scan_due: true,
        })
    }

    /// Whether the kernel tells.
    pub fn is_by_events(&self) -> bool {
        matches!(self.source, Source::Events(_))
    }

    /// Has all of `/proc` looked at again: what is meant has changed.
    pub fn rescan(&mut self) {
        self.scan_due = true;
    }

    /// Waits for a process that `config` means.
    ///
    /// A process may be returned more than once. Nothing is lost when the future is dropped
    /// before it is done.
    ///
    /// # Errors
    /// `/proc` cannot be read, or the subscription has ended.
    pub async fn next(&mut self, config: &Config) -> io::Result<Sighting> {
        loop {
            if self.scan_due {
                let found = scan(&self.proc, &config.patterns)?.next();
                if let Some(sighting) = found {
                    return Ok(sighting);
                }
                self.scan_due = false;
                if let Source::Scans { next } = &mut self.source {
                    *next = Instant::now() + config.interval;
                }
            }
            match &mut self.source {
                Source::Scans { next } => {
                    sleep_until(*next).await;
                    self.scan_due = true;
                }
                Source::Events(connector) => {
                    let heard = connector.hear().await?;
                    if let Some(sighting) = self.hear(&heard, config) {
                        return Ok(sighting);
                    }
                }
            }
        }
    }

    /// The first of these events that is about a process that is meant.
    fn hear(&mut self, heard: &Heard, config: &Config) -> Option<Sighting> {
        if heard.overrun {
            tracing::warn!("process events were lost, scanning /proc");
            self.scan_due = true;
        }
        let subjects = heard.events.iter().filter_map(|event| match event {
            Event::Started(pid) | Event::Renamed(pid) | Event::Forked(pid) => Some(*pid),
            Event::Ended(_) | Event::Answered { .. } | Event::Other => None,
        });
        let mut last = None;
        for pid in subjects {
            // A shell forks, and the child execs: by now both are the same look.
            if last.replace(pid) == Some(pid) {
                continue;
            }
            let seen = look(&self.proc, &config.patterns, pid, Occasion::Event);
            if seen.is_some() {
                // What else was heard is found by looking again.
                self.scan_due = true;
                return seen;
            }
        }
        None
    }
}

/// An error with its causes, in one line; a cause that is told already is not repeated.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
