//! The `5spot` command line, also `kubectl 5spot`. Connects the other crates.
//!
//! Each command is a module with its `Args` and a `run` function that writes the results to the
//! given output and returns the outcome. Data goes to standard output; errors go to standard error
//! as `error: <what>: <why>; <what to do>`.
//!
//! Exit codes: 0 success or valid, 1 invalid or goal not reached, 2 error (wrong arguments, an
//! unreadable file, an unreachable cluster).

mod calendar;
mod check;
mod cluster;
mod columns;
mod completion;
mod conformance;
mod convert;
mod dashboard;
mod dev;
mod explain;
mod generate;
mod input;
mod named;
mod output;
mod overriding;
mod plan;
mod preview;
mod reader;
mod report;
mod requests;
mod set;
mod status;
#[cfg(test)]
mod tests;
mod time;
mod uninstall;
mod validate;
mod version;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fivespot_api::OverrideMode;
use fivespot_program::{clap_error, exit, warn, zoneinfo};

pub(crate) use fivespot_program::{Failure, Outcome, plain, signals};
pub(crate) use kubemu::{document, server_flag};
pub(crate) use output::Format;

/// Adds machines to Cluster API clusters and removes them again, on a schedule.
#[derive(Debug, Parser)]
#[command(name = "5spot", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Args),
    #[command(
        mut_arg("kubeconfig", |flag| flag.default_value(".5spot/kubeconfig")),
        after_help = kubemu::serve::EXAMPLES.replace("kubemu serve", "5spot apiserver")
    )]
    Apiserver(kubemu::serve::Args),
    #[command(hide = true)]
    Controller(fivespot_controller::program::Args),
    #[command(hide = true)]
    Webhook(fivespot_webhook::program::Args),
    Preview(preview::Args),
    Plan(plan::Args),
    Explain(explain::Args),
    Status(status::Args),
    Check(check::Args),
    Conformance(conformance::Args),
    Dashboard(dashboard::Args),
    Report(report::Args),
    #[command(
        about = "Run a machine for a limited time, regardless of its schedule",
        after_help = overriding::RUN
    )]
    Run(overriding::SpanArgs),
    #[command(
        about = "Stop a machine for a limited time, regardless of its schedule",
        after_help = overriding::STOP
    )]
    Stop(overriding::SpanArgs),
    #[command(
        about = "Keep a machine as it is for a limited time: nothing is created or shut down",
        after_help = overriding::HOLD
    )]
    Hold(overriding::SpanArgs),
    Skip(overriding::SkipArgs),
    Overrides(overriding::ListArgs),
    Calendar(calendar::Args),
    Validate(validate::Args),
    Convert(convert::Args),
    #[command(after_help = kubemu::cel::EXAMPLES.replace("kubemu cel", "5spot cel"))]
    Cel(kubemu::cel::Args),
    Generate(generate::Args),
    Uninstall(uninstall::Args),
    Version(version::Args),
    #[command(name = completion::COMMAND)]
    Complete(completion::Args),
}

/// Runs the command line of this process and returns its exit code.
///
/// Never panics on invalid arguments: they are reported, with exit code 2.
pub fn main() -> ExitCode {
    completion::answer_shell();
    let parsed = command()
        .bin_name(called_as(std::env::args_os().next()))
        .try_get_matches()
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return clap_error(&error),
    };
    let named = matches.get_one::<PathBuf>(zoneinfo::FLAG);
    let started = zoneinfo::start(named.map(PathBuf::as_path));
    let mut out = io::stdout().lock();
    exit(started.and_then(|warning| {
        warning.as_deref().into_iter().for_each(warn);
        let outcome = run(cli.command, &mut out)?;
        out.flush()?;
        Ok(outcome)
    }))
}

/// The name of the command line in its help, by the name of the program: kubectl runs a plugin as
/// `kubectl-5spot`, and users type `kubectl 5spot`.
fn called_as(program: Option<OsString>) -> &'static str {
    let program = PathBuf::from(program.unwrap_or_default());
    match program.file_stem() {
        Some(name) if name == "kubectl-5spot" => "kubectl 5spot",
        _ => "5spot",
    }
}

/// Says which program replaces a command.
///
/// Deployments of older manifests run `5spot controller` and `5spot webhook`.
fn moved(command: &str, program: &str) {
    warn(&format!(
        "`5spot {command}` will be removed; run `{program}`, with the same flags, in the image \
         {program}"
    ));
}

fn run(command: Command, out: &mut dyn Write) -> Result<Outcome, Failure> {
    match command {
        Command::Dev(args) => dev::run(args, out),
        Command::Apiserver(args) => kubemu::serve::run(args, out),
        Command::Controller(args) => {
            moved("controller", fivespot_controller::program::NAME);
            fivespot_controller::program::run(&args)
        }
        Command::Webhook(args) => {
            moved("webhook", fivespot_webhook::program::NAME);
            fivespot_webhook::program::run(&args)
        }
        Command::Preview(args) => preview::run(args, out),
        Command::Plan(args) => plan::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Status(args) => status::run(&args, out),
        Command::Check(args) => check::run(&args, out),
        Command::Conformance(args) => conformance::run(&args, out),
        Command::Dashboard(args) => dashboard::run(&args, out),
        Command::Report(args) => report::run(&args, out),
        Command::Run(args) => overriding::override_now(OverrideMode::Run, &args, out),
        Command::Stop(args) => overriding::override_now(OverrideMode::Stop, &args, out),
        Command::Hold(args) => overriding::override_now(OverrideMode::Hold, &args, out),
        Command::Skip(args) => overriding::skip(&args, out),
        Command::Overrides(args) => overriding::overrides(&args, out),
        Command::Calendar(args) => calendar::run(&args, out),
        Command::Validate(args) => validate::run(args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Cel(args) => kubemu::cel::run(&args, out),
        Command::Generate(args) => generate::run(args, out),
        Command::Uninstall(args) => uninstall::run(&args, out),
        Command::Version(args) => version::run(args, out),
        Command::Complete(args) => completion::run(args, out),
    }
}

/// A failure to decode an object of 5-Spot, which is named by `what`.
pub(crate) fn undecodable(what: impl fmt::Display, error: serde_json::Error) -> Failure {
    Failure::new(what, error).remedy(
        "correct it; `5spot validate` reports everything that a server would reject",
    )
}

/// The clap command, for generated pages and completions.
pub(crate) fn command() -> clap::Command {
    Cli::command().arg(zoneinfo::flag().global(true))
}
