//! How much the processor is used outside pods.
//!
//! The load average of the kernel includes what pods do, so that the cluster's own work would
//! reclaim the host. What pods have used is in the control group above all of them.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LoadLimit, Now, Signal, Source};
use crate::bounded::{self, is_missing};
use crate::hold::ALL_PODS;
use tokio::time::Instant;

/// The maximum size in bytes of the files that are read; `/proc/stat` grows with the processors.
const MAX_BYTES: u64 = 1024 * 1024;

/// How many control groups are looked at for those of pods; a host has a dozen at its root.
const MAX_GROUPS: usize = 256;

/// How many samples the time of the limit is divided into.
const PARTS: u32 = 12;

/// Where control groups are, below their mount: version 2, then version 1.
const HIERARCHIES: [(&str, &str); 3] = [
    ("", "cpu.stat"),
    ("cpu,cpuacct", "cpuacct.usage"),
    ("cpuacct", "cpuacct.usage"),
];

/// Stands while processes outside pods use more than a number of processors, on average over a
/// time.
#[derive(Clone, Debug)]
pub struct Load {
    limit: LoadLimit,
    stat: PathBuf,
    groups: PathBuf,
    ticks_per_second: u64,
    /// The oldest is as old as the time of the limit, once it has passed.
    samples: VecDeque<Sample>,
    /// Whether the time of the limit has passed since the oldest.
    is_known: bool,
}

/// Time of processors since boot.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    whole: Duration,
    pods: Duration,
}

impl Load {
    /// Reads `stat` of a mounted `/proc`, and the control groups below a mounted `/sys/fs/cgroup`.
    pub fn new(limit: LoadLimit, proc: &Path, groups: &Path) -> Self {
        Self {
            limit,
            stat: proc.join("stat"),
            groups: groups.to_owned(),
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
            samples: VecDeque::new(),
            is_known: false,
        }
    }

    fn sample(&self, at: Instant) -> io::Result<Sample> {
        let (text, _) = bounded::read(&self.stat, MAX_BYTES)?;
        let whole = busy_ticks(&text).ok_or_else(|| {
            io::Error::other(format!("{}: has no line `cpu`", self.stat.display()))
        })?;
        let whole = whole.saturating_mul(1_000_000) / self.ticks_per_second;
        Ok(Sample {
            at,
            whole: Duration::from_micros(whole),
            pods: self.pods()?,
        })
    }

    /// What all pods together have used.
    fn pods(&self) -> io::Result<Duration> {
        for (hierarchy, file) in HIERARCHIES {
            for group in ALL_PODS {
                let path = self.groups.join(hierarchy).join(group).join(file);
                let text = match bounded::read(&path, MAX_BYTES) {
                    Ok((text, _)) => text,
                    Err(error) if is_missing(&error) => continue,
                    Err(error) => return Err(error),
                };
                return used(&text).ok_or_else(|| {
                    io::Error::other(format!("{}: has no usage", path.display()))
                });
            }
        }
        if self.has_no_pods() {
            return Ok(Duration::ZERO);
        }
        let groups = self.groups.display();
        Err(io::Error::other(format!(
            "{groups} has no control group of pods: what they use cannot be subtracted"
        )))
    }

    /// Whether the host has no pods at all, as while it is not in a cluster: this is the root of all
    /// control groups of version 2, and none of pods is below one of another name. Only the root has no
    /// `cgroup.events`; a container that sees no more than its own groups sees one.
    fn has_no_pods(&self) -> bool {
        let has = |file: &str| self.groups.join(file).exists();
        if !has("cgroup.controllers") || has("cgroup.events") {
            return false;
        }
        let Ok(entries) = fs::read_dir(&self.groups) else {
            return false;
        };
        let entries: Vec<_> = entries.take(MAX_GROUPS + 1).collect();
        let has_pods = |path: &Path| ALL_PODS.iter().any(|pods| path.join(pods).exists());
        entries.len() <= MAX_GROUPS
            && entries
                .into_iter()
                .all(|entry| entry.is_ok_and(|entry| !has_pods(&entry.path())))
    }
}

impl Source for Load {
    fn name(&self) -> String {
        "load".to_owned()
    }

    fn note(&self) -> Option<String> {
        let time = self.limit.time;
        let is_on_the_way = !self.is_known && !self.samples.is_empty();
        is_on_the_way.then(|| format!("not known before {time} of readings"))
    }

    fn read(&mut self, now: Now) -> io::Result<Option<Signal>> {
        let time = Duration::try_from(jiff::SignedDuration::from(self.limit.time))
            .unwrap_or_default();
        let next = match self.sample(now.instant) {
            Ok(next) => next,
            Err(error) => {
                self.samples.clear();
                self.is_known = false;
                return Err(error);
            }
        };
        // The kubelet has made the group anew: a difference would count what pods used before.
        let is_before = |last: &Sample| next.pods < last.pods || next.whole < last.whole;
        if self.samples.back().is_some_and(is_before) {
            self.samples.clear();
        }
        let age = |sample: &Sample| next.at.saturating_duration_since(sample.at);
        let is_due = |last: &Sample| age(last) >= time / PARTS;
        if self.samples.back().is_none_or(is_due) {
            self.samples.push_back(next);
        }
        while self
            .samples
            .get(1)
            .is_some_and(|second| age(second) >= time)
        {
            self.samples.pop_front();
        }
        let first = self.samples.front().filter(|first| age(first) >= time);
        self.is_known = first.is_some();
        let Some(first) = first else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let whole = next.whole.saturating_sub(first.whole);
        let pods = next.pods.saturating_sub(first.pods);
        let used = whole.saturating_sub(pods).as_secs_f64() / age(first).as_secs_f64();
        let LoadLimit { above, time } = self.limit;
        let reason = || format!("load: above {above} for {time}");
        Ok((used > above).then(reason).map(Signal::of))
    }
}

/// The ticks that processors were busy, from `/proc/stat`. Waiting for disks is not, nor what a
/// hypervisor took.
fn busy_ticks(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq; guests are in user.
    let [user, nice, system, _, _, irq, softirq, ..] = fields[..] else {
        return None;
    };
    [user, nice, system, irq, softirq]
        .into_iter()
        .try_fold(0_u64, u64::checked_add)
}

/// What a control group has used: `usage_usec` of version 2, or nanoseconds of version 1.
fn used(text: &str) -> Option<Duration> {
    let micros = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    match micros {
        Some(micros) => micros.trim().parse().ok().map(Duration::from_micros),
        None => text.trim().parse().ok().map(Duration::from_nanos),
    }
}
