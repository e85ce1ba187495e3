//! The command line of `5spot-reclaim-agent`.

mod argument;
mod connection;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use argument::{Args, Command, LogFormat};
use clap::Parser as _;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::bus::socket;
use crate::detect::with_causes;
use crate::notify::Desktop;
use crate::once::Host;
use crate::policy_check::PolicyRequirement;
use crate::proc::Proc;
use crate::run::{Agent, run};
use crate::run_directory::{DEFAULT, RunDirectory};
use crate::switch::{self, End};
use crate::{doctor, once, service};

const USUAL_LOG: &str = "info,kube=warn,hyper=warn,tower=warn";

/// Why a command failed: the action, the reason and the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    why: String,
    remedy: &'static str,
}

impl Failure {
    pub(crate) fn new(
        what: impl Into<String>,
        why: &dyn std::error::Error,
        remedy: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            why: with_causes(why),
            remedy,
        }
    }

    /// The error message, without the prefix `error: `.
    pub(crate) fn message(&self) -> String {
        format!("{}: {}; {}", self.what, self.why, self.remedy)
    }
}

/// A failure because of something that is given, or found, with what to do.
pub(crate) fn refused(
    what: impl Into<String>,
    why: impl Into<String>,
    remedy: &'static str,
) -> Failure {
    Failure {
        what: what.into(),
        why: why.into(),
        remedy,
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new("writing", &error, "check that standard output is writable")
    }
}

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Yes,
    No,
}

/// Runs `5spot-reclaim-agent`. Exit code 0 for success, 1 for a negative result, 2 for a failure.
pub fn main() -> ExitCode {
    let args = Args::parse();
    start_log(args.log_format);
    // The agent is one task; a second thread would be idle.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(perform(&args, &mut io::stdout().lock())),
        Err(error) => Err(Failure::new("starting", &error, "try again")),
    };
    match outcome {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Err(failure) => {
            let _ = writeln!(io::stderr(), "error: {}", failure.message());
            ExitCode::from(2)
        }
    }
}

fn start_log(format: LogFormat) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL_LOG));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let colours = io::stderr().is_terminal();
    match format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.with_ansi(colours).init(),
    }
}

async fn perform(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let directory = args.run_directory.clone();
    let directory = RunDirectory::new(directory.unwrap_or_else(|| DEFAULT.into()));
    match &args.command {
        None => watch(args, out).await,
        Some(Command::Doctor) => {
            let node = match &args.node_name {
                None => None,
                Some(name) => Some(args.own_node(name).await),
            };
            Ok(doctor::examine(&args.proc()?, &args.signals(), node, now(), out).await?)
        }
        Some(Command::Reclaim { length, until }) => {
            let end = match (length, until) {
                (Some(length), _) => End::After(*length),
                (None, Some(until)) => End::At(*until),
                (None, None) => End::Never,
            };
            switch::reclaim(&directory, &args.proc()?, end, now(), out)
        }
        Some(Command::Return) => switch::take_back(&directory, out),
        Some(Command::Status) => {
            let service = service::installed(Path::new("/"))?;
            switch::status(&directory, &args.proc()?, service, now(), out)
        }
        Some(Command::Notify { before }) => {
            notify(directory, args.proc()?, (*before).into()).await
        }
        Some(Command::Install {
            only_shown,
            desktop,
            root,
            program,
        }) => {
            let service = args.service(program.clone(), *desktop)?;
            if *only_shown {
                service::show(&service, out)
            } else {
                service::install(&service, root, out)
            }
        }
        Some(Command::Uninstall { only_shown, root }) => {
            service::uninstall(root, *only_shown, out)
        }
    }
}

/// Notifies the user of this session until it ends.
async fn notify(
    directory: RunDirectory,
    proc: Proc,
    before: SignedDuration,
) -> Result<Outcome, Failure> {
    let desktop = Desktop {
        bus: session_bus()?,
        directory,
        proc,
        before,
        zone: local_zone(),
        now,
    };
    let Err(error) = desktop.watch().await;
    let remedy = "log in to a desktop again, which starts it";
    Err(Failure::new("using the session bus", &error, remedy))
}

/// The time zone of this host. UTC if it is not known: what the user reads then is UTC.
fn local_zone() -> TimeZone {
    let bytes = std::fs::read("/etc/localtime").ok();
    let zone = bytes.and_then(|bytes| TimeZone::tzif("local", &bytes).ok());
    zone.unwrap_or(TimeZone::UTC)
}

/// The socket of the bus of this session.
fn session_bus() -> Result<PathBuf, Failure> {
    const ADDRESS: &str = "DBUS_SESSION_BUS_ADDRESS";
    let addresses = std::env::var(ADDRESS).unwrap_or_default();
    let why = match socket(&addresses) {
        Some(path) => return Ok(path),
        None if addresses.is_empty() => format!("{ADDRESS} is not set"),
        None => format!("{ADDRESS} names no socket of this host"),
    };
    let remedy = "run this in the session of a desktop";
    Err(refused("finding the session bus", why, remedy))
}

/// Watches this host, or looks at it once.
async fn watch(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let proc = args.proc()?;
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("reading {}", path.display());
            Failure::new(what, &error, "give a reclaim.toml with --config")
        })?;
        let config = once::parse(&text)?;
        let host = Host::new(&proc, args.signals(), &config);
        return once::print(host, &config, now(), out).await;
    }
    let node = args.own_node(args.named()?).await?;
    if args.dry_run {
        let config = once::read(&node).await?;
        let host = Host::new(&proc, args.signals(), &config);
        return once::print(host, &config, now(), out).await;
    }
    let requirement = if args.skip_policy_check {
        PolicyRequirement::NotRequired
    } else {
        PolicyRequirement::Required
    };
    if args.oneshot {
        once::check_policy(&node, requirement).await?;
        return once::request(&node, &proc, args.signals(), now(), out).await;
    }
    let agent = Agent {
        signals: args.signals().sources(proc.root()),
        run_directory: args.run_directory.clone().map(RunDirectory::new),
        machine: args.own_machine(&node).await?,
        node,
        proc,
        mode: args.detection,
        hold: args.hold(),
        requirement,
        now,
    };
    work(agent).await
}

async fn work(agent: Agent) -> Result<Outcome, Failure> {
    let listening = |kind| {
        signal(kind)
            .map_err(|error| Failure::new("listening for signals", &error, "try again"))
    };
    let (mut terminate, mut interrupt) = (
        listening(SignalKind::terminate())?,
        listening(SignalKind::interrupt())?,
    );
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, node = agent.node.name, "agent started");
    run(agent, stop).await.map_err(|error| {
        let remedy = "5spot-reclaim-agent doctor shows what is available on this host";
        Failure::new("watching this node", &error, remedy)
    })?;
    tracing::info!("agent stopped");
    Ok(Outcome::Yes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the agent that reads the clock; everything else is given the instant"
)]
fn now() -> Timestamp {
    Timestamp::now()
}
