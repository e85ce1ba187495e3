//! The `5spot` command line, also `kubectl 5spot`. Connects the other crates.
//!
//! Each command is a module with its `Args` and a `run` function that writes the results to the
//! given output and returns the outcome. Data goes to standard output; errors go to standard error
//! as `error: <what>: <why>; <what to do>`.
//!
//! Exit codes: 0 success or valid, 1 invalid or goal not reached, 2 error (wrong arguments, an
//! unreadable file, an unreachable cluster).

mod apiserver;
mod calendar;
mod cel;
mod check;
mod cluster;
mod columns;
mod completion;
mod conformance;
mod controller;
mod convert;
mod dashboard;
mod dev;
mod document;
mod explain;
mod failure;
mod generate;
mod log;
mod output;
mod overriding;
mod parallel;
mod plain;
mod port;
mod preview;
mod reader;
mod report;
mod server_flag;
mod signals;
mod status;
#[cfg(test)]
mod tests;
mod time;
mod uninstall;
mod validate;
mod version;
mod webhook;
mod zoneinfo;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use failure::{Failure, Outcome};
pub(crate) use output::Format;

/// Adds machines to Cluster API clusters and removes them again, on a schedule.
#[derive(Debug, Parser)]
#[command(name = "5spot", version)]
struct Cli {
    /// Directory of compiled time zones [default: $TZDIR, then the newer of the system's and the
    /// embedded ones]
    #[arg(long, value_name = "DIR", global = true)]
    zoneinfo: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Args),
    Apiserver(apiserver::Args),
    Controller(controller::Args),
    Webhook(webhook::Args),
    Preview(preview::Args),
    Explain(explain::Args),
    Status(status::Args),
    Check(check::Args),
    Conformance(conformance::Args),
    Dashboard(dashboard::Args),
    Report(report::Args),
    Run(overriding::RunArgs),
    Stop(overriding::StopArgs),
    Hold(overriding::HoldArgs),
    Skip(overriding::SkipArgs),
    Overrides(overriding::ListArgs),
    Calendar(calendar::Args),
    Validate(validate::Args),
    Convert(convert::Args),
    Cel(cel::Args),
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
    let parsed = Cli::command()
        .bin_name(called_as(std::env::args_os().next()))
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return report_clap_error(&error),
    };
    let mut out = io::stdout().lock();
    let ended = zoneinfo::start(cli.zoneinfo.as_deref())
        .map(warn)
        .and_then(|()| run(cli.command, &mut out))
        .and_then(|outcome| out.flush().map(|()| outcome).map_err(Failure::from));
    match ended {
        Ok(outcome) => outcome.into(),
        // A reader that closes the pipe, such as `head`, is not an error.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            let _ = writeln!(io::stderr(), "error: {}", plain::lines(&text));
            Outcome::NoResult.into()
        }
    }
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

/// Prints a warning before any other output.
fn warn(warning: Option<String>) {
    if let Some(warning) = warning {
        let _ = writeln!(io::stderr(), "warning: {}", plain::lines(&warning));
    }
}

fn run(command: Command, out: &mut dyn Write) -> Result<Outcome, Failure> {
    match command {
        Command::Dev(args) => dev::run(args, out),
        Command::Apiserver(args) => apiserver::run(args, out),
        Command::Controller(args) => controller::run(&args),
        Command::Webhook(args) => webhook::run(&args),
        Command::Preview(args) => preview::run(args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Status(args) => status::run(&args, out),
        Command::Check(args) => check::run(&args, out),
        Command::Conformance(args) => conformance::run(&args, out),
        Command::Dashboard(args) => dashboard::run(&args, out),
        Command::Report(args) => report::run(&args, out),
        Command::Run(args) => overriding::run(&args, out),
        Command::Stop(args) => overriding::stop(&args, out),
        Command::Hold(args) => overriding::hold(&args, out),
        Command::Skip(args) => overriding::skip(&args, out),
        Command::Overrides(args) => overriding::overrides(&args, out),
        Command::Calendar(args) => calendar::run(&args, out),
        Command::Validate(args) => validate::run(args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Cel(args) => cel::run(&args, out),
        Command::Generate(args) => generate::run(args, out),
        Command::Uninstall(args) => uninstall::run(&args, out),
        Command::Version(args) => version::run(args, out),
        Command::Complete(args) => completion::run(args, out),
    }
}

/// The clap command, for generated pages and completions.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Prints a clap error: help and version to standard output, errors to standard error.
fn report_clap_error(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() {
        Outcome::NoResult.into()
    } else {
        ExitCode::SUCCESS
    }
}
