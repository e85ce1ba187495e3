//! The command line of `5spot-reclaim-agent`.

mod argument;
mod connection;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use argument::{Args, Command};
use fivespot_program::cluster::block_on;
use fivespot_program::signals::Signals;
pub(crate) use fivespot_program::{Failure, Outcome};
use fivespot_program::{clap_error, exit, log};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::bus::socket;
use crate::detect::with_causes;
use crate::notify::Desktop;
use crate::policy_check::PolicyRequirement;
use crate::proc::Proc;
use crate::run::{Agent, run};
use crate::run_directory::{DEFAULT, RunDirectory};
use crate::switch::{self, End};
use crate::{doctor, once, service};

/// A failure because of an error, with its causes.
pub(crate) fn failed(
    what: impl fmt::Display,
    why: &dyn std::error::Error,
    remedy: &str,
) -> Failure {
    refused(what, with_causes(why), remedy)
}

/// A failure because of something that is given, or found, with what to do.
pub(crate) fn refused(
    what: impl fmt::Display,
    why: impl fmt::Display,
    remedy: &str,
) -> Failure {
    Failure::new(what, why).remedy(remedy)
}

/// Runs `5spot-reclaim-agent`. Exit code 0 for success, 1 for a negative result, 2 for a failure.
pub fn main() -> ExitCode {
    let args = match Args::read(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => return clap_error(&error),
    };
    log::start(args.log);
    exit(block_on(perform(&args, &mut io::stdout().lock())))
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
    Err(failed("using the session bus", &error, remedy))
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
            failed(what, &error, "give a reclaim.toml with --config")
        })?;
        let config = once::parse(&text)?;
        return once::print((&proc, args.signals()), &config, now(), out).await;
    }
    let node = args.own_node(args.named()?).await?;
    if args.dry_run {
        let config = once::read(&node).await?;
        return once::print((&proc, args.signals()), &config, now(), out).await;
    }
    let requirement = if args.skip_policy_check {
        PolicyRequirement::NotRequired
    } else {
        PolicyRequirement::Required
    };
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
    let mut signals = Signals::listen()?;
    let stop = async move { signals.received().await };
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, node = agent.node.name, "agent started");
    run(agent, stop).await.map_err(|error| {
        let remedy = "5spot-reclaim-agent doctor shows what is available on this host";
        failed("watching this node", &error, remedy)
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
