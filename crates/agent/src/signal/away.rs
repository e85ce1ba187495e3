//! Which sessions nobody sits at, according to systemd-logind: those that are locked, or idle.
//!
//! A desktop tells logind, which tells everybody on the bus of the system. Its files do not have it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{PAUSE, PAUSE_IN_READINGS, SELDOM};
use crate::bus::{Bus, CallError, Service, Value, WAIT};
use crate::detect::with_causes;

/// The socket of the bus of the system.
pub(crate) const SYSTEM_BUS: &str = "/run/dbus/system_bus_socket";
/// How many sessions are asked about; the others count as present.
const MAX_SESSIONS: usize = 256;
/// The pause between two attempts to reach logind: it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

const NAME: &str = "org.freedesktop.login1";
const MANAGER: Service<'_> = Service {
    name: NAME,
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
};
/// What changes: a session, the sessions, and that there is a logind.
const RULES: [&str; 2] = [
    "type='signal',sender='org.freedesktop.login1',path_namespace='/org/freedesktop/login1'",
    "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',\
     arg0='org.freedesktop.login1'",
];

/// At which sessions nobody sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Away {
    /// Those whose screen is locked
    Locked,
    /// Those, and those that nobody has used for as long as the desktop waits before it says so
    Idle,
}

impl Away {
    /// The sessions that it leaves out, for people.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Idle => "locked or idle",
        }
    }

    /// Whether nobody sits at a session with these properties.
    fn is(self, properties: &Value) -> bool {
        let hint = |name: &str| properties.of(name) == Some(&Value::Flag(true));
        hint("LockedHint") || (self == Self::Idle && hint("IdleHint"))
    }
}

/// What is known of the sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet: the first answer is awaited.
    #[default]
    NotYet,
    /// Nothing: logind cannot be asked.
    Nothing,
    /// At the sessions with these names nobody sits.
    Away(BTreeSet<String>),
}

/// A task that asks logind, until this is dropped.
#[derive(Debug)]
pub(super) struct Logind {
    pub(super) known: watch::Receiver<Known>,
    pub(super) away: Away,
    task: JoinHandle<()>,
}

impl Drop for Logind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Logind {
    /// Asks the logind of a bus from now on. Must be called in a runtime.
    pub(super) fn ask(bus: &Path, away: Away) -> Self {
        let (sender, known) = watch::channel(Known::NotYet);
        Self {
            known,
            away,
            task: tokio::spawn(follow(bus.to_owned(), away, sender)),
        }
    }
}

async fn follow(path: PathBuf, away: Away, known: watch::Sender<Known>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let Err(error) = listen(&path, away, &known).await;
        if matches!(known.send_replace(Known::Nothing), Known::Away(_)) {
            pause = FIRST_PAUSE;
        }
        let error = with_causes(&error);
        tracing::warn!(error, "logind cannot be asked: every session counts");
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Reads the sessions when logind says that something has changed, and now and then: it does not say when
/// a terminal becomes idle.
async fn listen(
    path: &Path,
    away: Away,
    known: &watch::Sender<Known>,
) -> io::Result<std::convert::Infallible> {
    let mut bus = Bus::connect(path).await?;
    for rule in RULES {
        bus.subscribe(rule).await?;
    }
    loop {
        bus.drop_signals()?;
        let began = Instant::now();
        let read = timeout(WAIT, sessions(&mut bus, away)).await;
        let read = read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        known.send_if_modified(|before| {
            let now = Known::Away(read);
            let is_new = *before != now;
            *before = now;
            is_new
        });
        // Any user of the host can cause signals.
        sleep_until(Instant::now() + PAUSE.max(began.elapsed() * PAUSE_IN_READINGS))
            .await;
        if let Ok(signal) = timeout(SELDOM, bus.signal()).await {
            signal?;
        }
    }
}

/// The names of the sessions at which nobody sits.
async fn sessions(bus: &mut Bus, away: Away) -> io::Result<BTreeSet<String>> {
    let listed = bus.call(MANAGER, "ListSessions", "", vec![]).await?;
    let listed = listed.first().map(Value::elements).unwrap_or_default();
    let mut found = BTreeSet::new();
    for session in listed.iter().take(MAX_SESSIONS) {
        let [Value::Text(name), _, _, _, Value::Text(path)] = session.elements() else {
            let why = "logind lists sessions in an unknown form";
            return Err(io::Error::other(why));
        };
        let service = Service {
            name: NAME,
            path,
            interface: "org.freedesktop.DBus.Properties",
        };
        let body = vec![Value::text("org.freedesktop.login1.Session")];
        match bus.call(service, "GetAll", "s", body).await {
            Ok(properties) if properties.first().is_some_and(|it| away.is(it)) => {
                found.insert(name.clone());
            }
            // It has ended meanwhile, or may not be asked about.
            Ok(_) | Err(CallError::Refused { .. }) => {}
            Err(CallError::Broken(error)) => return Err(error),
        }
    }
    Ok(found)
}
