//! How much graphics cards are used outside pods, where their drivers say so.
//!
//! A driver of the kernel's DRM tells of each file by which a process uses a card how long the engines
//! of the card have worked for it: Documentation/gpu/drm-usage-stats.rst. Drivers for computing tell no
//! more than that their device is open.
//!
//! All files of all processes are looked at, a part at a time: the agent does nothing else meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::vec;

use tokio::time::Instant;

use super::setting::number;
use super::{InvalidSetting, Now, Signal, Source};
use crate::detect::with_causes;
use crate::proc::{Pid, Proc, Scope};

/// The minimum time from one look at all processes to the next, over which use is averaged.
const ROUND: Duration = Duration::from_secs(15);
/// The minimum time between two parts of a round.
const PAUSE: Duration = Duration::from_secs(1);
/// How many files are looked at in a part, up to those of the last process.
const PART: usize = 1024;
/// The same in the first round, so that a reading alone shows which devices are open.
const FIRST_PART: usize = 16_384;
/// How many files of a process are looked at: a program opens a card before most others.
const MAX_FILES: usize = 1024;
/// How many clients of drivers are remembered.
const MAX_CLIENTS: usize = 1024;
/// How many engines of a client are; a card has a handful.
const MAX_ENGINES: usize = 64;

/// Where the devices of DRM are.
const CARDS: &[u8] = b"/dev/dri/";
/// The devices of drivers for computing. The X server and compositors have `/dev/nvidia0` and its like
/// open, too, so that those say nothing.
const COMPUTING: [&str; 2] = ["/dev/nvidia-uvm", "/dev/kfd"];

/// The range of a [`share`](parse_share).
const SHARE: std::ops::RangeInclusive<f64> = 0.01..=16.0;

/// Parses a share of the time of an engine.
///
/// # Errors
/// It is not a number from 0.01 to 16.
pub(crate) fn parse_share(text: &str) -> Result<f64, InvalidSetting> {
    number(text, &SHARE, "a share of an engine")
}

/// Stands while processes outside pods use an engine of a graphics card for more than a share of the
/// time, or have a device for computing open.
#[derive(Debug)]
pub struct Graphics {
    above: f64,
    proc: PathBuf,
    /// The round that is not over.
    round: Option<Round>,
    /// What clients had used in the last round.
    last: Option<BTreeMap<Client, Sample>>,
    verdict: Verdict,
    next: Option<Instant>,
}

#[derive(Debug)]
enum Verdict {
    /// Use is a difference between two rounds.
    NotYet,
    /// The reason of the signal, if it stands.
    Known(Option<String>),
    Failed(String),
}

/// One look at all processes.
#[derive(Debug)]
struct Round {
    proc: Proc,
    pids: vec::IntoIter<Pid>,
    began: Instant,
    clients: BTreeMap<Client, Sample>,
    /// A device for computing that is open.
    computing: Option<&'static str>,
    /// The processes that may not be looked into: the first one, and how many there are.
    denied: Option<(Pid, usize)>,
}

/// A client of a driver: the card, or its driver, and the number of the client there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Client {
    card: String,
    number: u64,
}

/// What the engines of a card have done for a client.
#[derive(Debug)]
struct Sample {
    at: Instant,
    engines: BTreeMap<String, Work>,
}

/// What an engine has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Nanoseconds(u64),
    /// The cycles for the client, and all that have passed.
    Cycles(u64, u64),
}

impl Work {
    /// The share of the time since an earlier sample.
    fn share_since(self, before: Self, elapsed: Duration) -> f64 {
        let (busy, all) = match (self, before) {
            (Self::Nanoseconds(now), Self::Nanoseconds(before)) => {
                (Duration::from_nanos(now.saturating_sub(before)), elapsed)
            }
            (Self::Cycles(now, all), Self::Cycles(before, all_before)) => (
                Duration::from_nanos(now.saturating_sub(before)),
                Duration::from_nanos(all.saturating_sub(all_before)),
            ),
            (Self::Nanoseconds(_) | Self::Cycles(..), _) => return 0.0,
        };
        if all.is_zero() {
            0.0
        } else {
            busy.as_secs_f64() / all.as_secs_f64()
        }
    }
}

impl Graphics {
    /// The share if none is given: above that of a compositor, and below that of a game.
    pub(crate) const SHARE: &str = "0.3";

    /// Reads the processes of a mounted `/proc`.
    pub fn new(above: f64, proc: &Path) -> Self {
        Self {
            above,
            proc: proc.to_owned(),
            round: None,
            last: None,
            verdict: Verdict::NotYet,
            next: None,
        }
    }

    /// Whether what clients use could be read, as far as it is known.
    pub(crate) fn can_be_read(&self) -> bool {
        !matches!(self.verdict, Verdict::Failed(_))
    }

    /// Goes on with a round, or begins one.
    fn look(&mut self, at: Instant) -> io::Result<()> {
        self.next = Some(at + PAUSE);
        let mut round = match self.round.take() {
            Some(round) => round,
            None => Round::new(&self.proc, at)?,
        };
        let part = if self.last.is_some() {
            PART
        } else {
            FIRST_PART
        };
        if !round.go_on(at, part) {
            self.round = Some(round);
            return Ok(());
        }
        self.next = Some((round.began + ROUND).max(at + PAUSE));
        self.verdict = self.judge(&round);
        self.last = Some(round.clients);
        Ok(())
    }

    /// What is seen counts, although more may be hidden.
    fn judge(&self, round: &Round) -> Verdict {
        if let Some(device) = round.computing {
            return Verdict::Known(Some(format!("graphics: {device} is open")));
        }
        let shares = self.last.as_ref().map(|last| shares(last, &round.clients));
        let above = self.above;
        let is_used = |shares: &Vec<f64>| shares.iter().any(|share| *share > above);
        if shares.as_ref().is_some_and(is_used) {
            let reason = format!("graphics: above {above} of an engine");
            return Verdict::Known(Some(reason));
        }
        if let Some((pid, number)) = round.denied {
            let others = match number {
                1 => String::new(),
                _ => format!(" and {} more", number - 1),
            };
            return Verdict::Failed(format!(
                "may not look into process {pid}{others}: needs the capabilities SYS_PTRACE and \
                 DAC_READ_SEARCH, which install gives to the service"
            ));
        }
        shares.map_or(Verdict::NotYet, |_| Verdict::Known(None))
    }
}

/// For which share of the time each engine has worked for clients that were there before.
fn shares(
    last: &BTreeMap<Client, Sample>,
    clients: &BTreeMap<Client, Sample>,
) -> Vec<f64> {
    let mut shares = BTreeMap::new();
    for (client, now) in clients {
        let Some(before) = last.get(client) else {
            continue;
        };
        let elapsed = now.at.saturating_duration_since(before.at);
        for (engine, work) in &now.engines {
            if let Some(earlier) = before.engines.get(engine) {
                let share = shares.entry((&client.card, engine)).or_insert(0.0);
                *share += work.share_since(*earlier, elapsed);
            }
        }
    }
    shares.into_values().collect()
}

impl Source for Graphics {
    fn name(&self) -> String {
        "graphics".to_owned()
    }

    fn note(&self) -> Option<String> {
        Some(match self.last.as_ref()?.len() {
            0 => "no graphics driver says what its clients use".to_owned(),
            1 => "1 client of a graphics driver counts".to_owned(),
            clients => format!("{clients} clients of graphics drivers count"),
        })
    }

    fn read(&mut self, now: Now) -> io::Result<Option<Signal>> {
        if self.next.is_none_or(|next| next <= now.instant)
            && let Err(error) = self.look(now.instant)
        {
            self.last = None;
            self.verdict = Verdict::Failed(with_causes(&error));
        }
        match &self.verdict {
            Verdict::NotYet => Err(io::ErrorKind::WouldBlock.into()),
            Verdict::Failed(why) => Err(io::Error::other(why.clone())),
            Verdict::Known(reason) => Ok(reason.clone().map(Signal::of)),
        }
    }
}

impl Round {
    fn new(proc: &Path, began: Instant) -> io::Result<Self> {
        // Work of pods would reclaim the host for itself.
        let proc = Proc::open(proc)?.within(Scope::OutsideContainers);
        let pids: Vec<Pid> = proc.pids()?.collect();
        Ok(Self {
            proc,
            pids: pids.into_iter(),
            began,
            clients: BTreeMap::new(),
            computing: None,
            denied: None,
        })
    }

    /// Looks at so many more files. Returns whether all are done.
    fn go_on(&mut self, at: Instant, part: usize) -> bool {
        let mut looked_at = 0;
        while looked_at < part {
            let Some(pid) = self.pids.next() else {
                return true;
            };
            looked_at += self.look_into(pid, at);
        }
        self.pids.as_slice().is_empty()
    }

    /// Returns how much it took, in files.
    fn look_into(&mut self, pid: Pid, at: Instant) -> usize {
        let Some(process) = self.proc.process(pid) else {
            return 1;
        };
        if !self.proc.may_match(&process) {
            return 1;
        }
        let mut looked_at = 1;
        let seen = process.each_file(MAX_FILES, |file, target| {
            looked_at += 1;
            let device = COMPUTING.iter().find(|it| target == it.as_bytes());
            self.computing = self.computing.or(device.copied());
            if !target.starts_with(CARDS) || self.clients.len() >= MAX_CLIENTS {
                return;
            }
            let told = process.file_information(file);
            if let Some((client, engines)) = told.as_deref().and_then(client) {
                self.clients.insert(client, Sample { at, engines });
            }
        });
        let is_denied =
            |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        if seen.is_err_and(is_denied) {
            let (first, others) = self.denied.unwrap_or((pid, 0));
            self.denied = Some((first, others + 1));
        }
        looked_at
    }
}

/// The client that a file of a card belongs to, and what engines have done for it. `None` if the driver
/// does not say.
fn client(text: &str) -> Option<(Client, BTreeMap<String, Work>)> {
    let fields: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key, value.trim()))
        .collect();
    let card = fields.get("drm-pdev").or(fields.get("drm-driver"))?;
    let number = fields.get("drm-client-id")?.parse().ok()?;
    let nanoseconds = fields.iter().filter_map(|(key, value)| {
        let engine = key.strip_prefix("drm-engine-")?;
        let work = value.strip_suffix("ns")?.trim().parse().ok()?;
        Some((engine, Work::Nanoseconds(work)))
    });
    let cycles = fields.iter().filter_map(|(key, value)| {
        let engine = key.strip_prefix("drm-cycles-")?;
        let all = fields.get(format!("drm-total-cycles-{engine}").as_str())?;
        let work = Work::Cycles(value.parse().ok()?, all.parse().ok()?);
        Some((engine, work))
    });
    let engines: BTreeMap<String, Work> = cycles
        .chain(nanoseconds)
        .take(MAX_ENGINES)
        .map(|(engine, work)| (engine.to_owned(), work))
        .collect();
    let client = Client {
        card: (*card).to_owned(),
        number,
    };
    (!engines.is_empty()).then_some((client, engines))
}
