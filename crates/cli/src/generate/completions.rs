//! `5spot generate completions`: a script with which a shell calls this program for completions.

use std::io::Write;

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::{Failure, Outcome, completion};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
    /// Name by which the shell calls this program
    #[arg(long, value_name = "NAME", default_value = "5spot")]
    program: String,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&shell) else {
        return Err(Failure::new(shell, "no completions for this shell")
            .remedy("choose bash, elvish, fish, powershell or zsh"));
    };
    let mut script = Vec::new();
    shell.write_registration(
        completion::VARIABLE,
        "5spot",
        &args.program,
        &args.program,
        &mut script,
    )?;
    out.write_all(&script)?;
    Ok(Outcome::Yes)
}
