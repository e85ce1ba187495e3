//! The `kubemu` program.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kubemu::validate::{Extension, Program};
use kubemu::{cel, diff, serve, test, validate};
use kubemu_terminal::{clap_error, exit};

/// Kubernetes' API server and admission in a process.
#[derive(Debug, Parser)]
#[command(name = "kubemu", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Validate(validate::Args),
    Cel(cel::Args),
    Diff(diff::Args),
    Test(test::Args),
}

/// Kubernetes' own kinds, and the CRDs that are given.
struct Kubernetes;

impl Extension for Kubernetes {
    fn program(&self) -> Program {
        Program {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            repository: env!("CARGO_PKG_REPOSITORY"),
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return clap_error(&error),
    };
    let mut out = io::stdout().lock();
    let ended = match cli.command {
        Command::Serve(args) => serve::run(args, &mut out),
        Command::Validate(args) => validate::run(&args, &Kubernetes, &mut out),
        Command::Cel(args) => cel::run(&args, &mut out),
        Command::Diff(args) => diff::run(&args, &Kubernetes, &mut out),
        Command::Test(args) => test::run(&args, &Kubernetes, &mut out),
    };
    exit(ended.and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    }))
}
