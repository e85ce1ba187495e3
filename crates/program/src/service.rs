//! A program that serves in a cluster until a signal: flags of its own and `--zoneinfo`, no
//! subcommands.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};

use crate::{Failure, Outcome, clap_error, exit, warn, zoneinfo};

/// The flags of a service with the arguments `A`.
pub fn command<A: Args>(name: &'static str) -> Command {
    A::augment_args(Command::new(name).version(env!("CARGO_PKG_VERSION")))
        .arg(zoneinfo::flag())
}

/// Runs a service with the arguments of this process, and returns its exit code.
///
/// Never panics on invalid arguments: they are reported, with exit code 2.
pub fn main<A: Args>(
    name: &'static str,
    run: impl FnOnce(&A) -> Result<Outcome, Failure>,
) -> ExitCode {
    let parsed = command::<A>(name)
        .try_get_matches()
        .and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    let (args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return clap_error(&error),
    };
    let named = matches.get_one::<PathBuf>(zoneinfo::FLAG);
    let started = zoneinfo::start(named.map(PathBuf::as_path));
    exit(started.and_then(|warning| {
        warning.as_deref().into_iter().for_each(warn);
        run(&args)
    }))
}
