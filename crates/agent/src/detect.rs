//! Detecting processes: by kernel events, or by scanning `/proc`.

use std::io;

use futures::future::OptionFuture;
use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::connector::{Connector, EventBatch, SubscribeError};
use crate::event::Event;
use crate::proc::Proc;
use crate::scan::{ProcessMatch, Trigger, check, scan};

/// How processes are detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DetectionMode {
    /// Kernel process events if available, else scans of /proc
    #[default]
    Auto,
    /// Kernel process events only
    Events,
    /// Scans of /proc only
    Scan,
}

/// A watch for processes, from its beginning.
#[derive(Debug)]
pub struct Detection {
    proc: Proc,
    source: Source,
    /// Whether all of `/proc` must be scanned next.
    scan_due: bool,
}

#[derive(Debug)]
enum Source {
    Events(Connector),
    Scans { next: Instant },
}

impl Detection {
    /// Begins to watch: by events if `mode` allows it and they are available, and with one initial
    /// scan, which finds processes that already run.
    ///
    /// # Errors
    /// Process events are not available, and `mode` does not allow scans.
    pub async fn begin(proc: Proc, mode: DetectionMode) -> Result<Self, SubscribeError> {
        let scans = Source::Scans {
            next: Instant::now(),
        };
        // Subscribed first: a process that starts during the scan is in the events.
        let source = match mode {
            DetectionMode::Scan => scans,
            DetectionMode::Events => Source::Events(Connector::subscribe().await?),
            DetectionMode::Auto => match Connector::subscribe().await {
                Ok(connector) => Source::Events(connector),
                Err(error) => {
                    let why = with_causes(&error);
                    tracing::warn!(%why, "process events are not available, scanning /proc");
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

    /// Whether detection is by kernel events.
    pub fn is_by_events(&self) -> bool {
        matches!(self.source, Source::Events(_))
    }

    /// Scans all of `/proc` again, because the patterns have changed.
    pub fn rescan(&mut self) {
        self.scan_due = true;
    }

    /// Waits for a process that matches `config`.
    ///
    /// A process may be returned more than once. No event is lost if the future is dropped before
    /// it completes.
    ///
    /// # Errors
    /// `/proc` cannot be read, or the subscription has ended.
    pub async fn next(&mut self, config: &Config) -> io::Result<ProcessMatch> {
        loop {
            if self.scan_due {
                let found = scan(&self.proc, &config.patterns)?.next();
                if let Some(process) = found {
                    return Ok(process);
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
                    let received = connector.receive().await?;
                    if let Some(process) = self.match_events(&received, config) {
                        return Ok(process);
                    }
                }
            }
        }
    }

    /// The first of these events whose process matches.
    fn match_events(
        &mut self,
        received: &EventBatch,
        config: &Config,
    ) -> Option<ProcessMatch> {
        if received.overrun {
            tracing::warn!("process events were lost, scanning /proc");
            self.scan_due = true;
        }
        let subjects = received.events.iter().filter_map(|event| match event {
            Event::Named(pid) => Some(*pid),
            Event::Answered { .. } => None,
        });
        let mut last = None;
        for pid in subjects {
            // A shell forks and the child execs: by now, checking once covers both events.
            if last.replace(pid) == Some(pid) {
                continue;
            }
            let seen = check(&self.proc, &config.patterns, pid, Trigger::Event);
            if seen.is_some() {
                // The remaining events are covered by a scan.
                self.scan_due = true;
                return seen;
            }
        }
        None
    }
}

/// Waits for a process that matches the configuration, as [`Detection::next`], if there are both.
pub(crate) fn process(
    detection: &mut Option<Detection>,
    config: Option<&Config>,
) -> OptionFuture<impl Future<Output = io::Result<ProcessMatch>>> {
    let both = detection.as_mut().zip(config);
    both.map(|(detection, config)| detection.next(config))
        .into()
}

/// An error with its causes, as one line; a cause that is already in the text is not repeated.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let cause_text = error.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        cause = error.source();
    }
    text
}
