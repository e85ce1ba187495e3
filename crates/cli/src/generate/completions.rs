//! `5spot generate completions`.

use std::io::Write;

use clap_complete::{Shell, generate};

use crate::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    // The generator panics where its output fails; memory does not fail.
    let mut script = Vec::new();
    generate(args.shell, &mut crate::command(), "5spot", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Yes)
}
