//! The directory by which the agent and the users of its host exchange what they want and see:
//! `owner/`, where users ask for the host, and `agent/state.json`, which the agent writes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bounded::{self, is_missing};
use crate::detect::with_causes;
use crate::opening::Opening;
use crate::proc::{Pid, Proc};
use crate::signal::{OwnerSwitch, Reading, Signals, Source};

/// Its default path.
pub const DEFAULT: &str = "/run/5spot";

/// Everybody may create files, and remove their own.
const SHARED: u32 = 0o1777;
/// The maximum size of the agent's state in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The directory.
#[derive(Clone, Debug)]
pub struct RunDirectory(PathBuf);

/// What an agent sees, for the users of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The process of the agent, and when it started in clock ticks since boot.
    pub(crate) pid: Pid,
    pub(crate) started: u64,
    pub(crate) node: String,
    /// The request on the Node.
    pub(crate) requested: Option<Requested>,
    /// What was done with pods while no API server answered.
    #[serde(default)]
    pub(crate) pods: Option<String>,
    /// When this host is lent next.
    #[serde(default)]
    pub(crate) opening: Option<Opening>,
    pub(crate) signals: Vec<SignalState>,
}

/// A reclaim that is requested on the Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requested {
    pub(crate) reason: String,
    /// As it is in the annotation.
    pub(crate) at: String,
}

/// The last reading of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignalState {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) note: Option<String>,
    #[serde(flatten)]
    pub(crate) reading: Reading,
}

impl RunDirectory {
    /// The directory at this path.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The switch of the host's users.
    pub fn switch(&self) -> OwnerSwitch {
        OwnerSwitch::new(self.owner())
    }

    /// Where the switch has its files.
    pub(crate) fn owner(&self) -> PathBuf {
        self.0.join("owner")
    }

    /// Creates what is missing of it, where this process may.
    ///
    /// # Errors
    /// It is missing, and cannot be created.
    pub fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(self.0.join("agent"))?;
        match fs::create_dir(self.owner()) {
            Ok(()) => {
                fs::set_permissions(self.owner(), fs::Permissions::from_mode(SHARED))
            }
            // What an administrator has made of it, such as for a group, stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn state(&self) -> PathBuf {
        self.0.join("agent/state.json")
    }

    /// Replaces the state.
    pub(crate) fn write(&self, state: &State) -> io::Result<()> {
        let new = self.0.join("agent/.new");
        fs::write(&new, serde_json::to_vec(state)?)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644))?;
        fs::rename(new, self.state())
    }

    /// The state of the agent that runs. `None` if none does.
    ///
    /// # Errors
    /// There is a state that cannot be read.
    pub(crate) fn read(&self, proc: &Proc) -> io::Result<Option<State>> {
        let (text, _) = match bounded::read(&self.state(), MAX_BYTES) {
            Ok(read) => read,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let state: State = serde_json::from_str(&text)?;
        let stat = proc.process(state.pid).and_then(|process| process.stat());
        let runs =
            stat.is_some_and(|stat| !stat.has_ended && stat.started == state.started);
        Ok(runs.then_some(state))
    }
}

/// An agent that tells the users of its host what it sees.
#[derive(Debug)]
pub(crate) struct Publisher {
    /// `None` if there is none, or nothing can be written to it.
    directory: Option<RunDirectory>,
    last: State,
}

impl Publisher {
    /// Creates what is missing of the directory. Cannot fail: an agent works without users.
    pub(crate) fn start(
        directory: Option<&RunDirectory>,
        proc: &Proc,
        node: &str,
    ) -> Self {
        let directory = directory.filter(|directory| match directory.prepare() {
            Ok(()) => true,
            Err(error) => {
                let (path, error) = (directory.path().display(), with_causes(&error));
                tracing::error!(%path, error, "users of this host cannot ask for it");
                false
            }
        });
        let (pid, started) = proc.own().unwrap_or_default();
        Self {
            directory: directory.cloned(),
            last: State {
                pid,
                started,
                node: node.to_owned(),
                ..State::default()
            },
        }
    }

    /// Writes the state if it has changed.
    pub(crate) fn publish(
        &mut self,
        requested: Option<Requested>,
        pods: Option<String>,
        opening: Option<Opening>,
        signals: &Signals,
    ) {
        let Some(directory) = &self.directory else {
            return;
        };
        let signals = states(signals);
        let next = State {
            requested,
            pods,
            opening,
            signals,
            ..self.last.clone()
        };
        if self.last == next {
            return;
        }
        self.last = next;
        if let Err(error) = directory.write(&self.last) {
            let (path, error) = (directory.path().display(), with_causes(&error));
            tracing::error!(%path, error, "users of this host do not see what stands");
        }
    }
}

/// What signals read, in the form in which it is written.
pub(crate) fn states(signals: &Signals) -> Vec<SignalState> {
    let state = |(source, reading): (&dyn Source, &Reading)| {
        let reading = match reading {
            Reading::NotYet => Reading::Absent,
            known => known.clone(),
        };
        SignalState {
            name: source.name(),
            note: source.note(),
            reading,
        }
    };
    signals.sources().map(state).collect()
}
