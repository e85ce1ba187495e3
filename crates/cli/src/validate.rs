//! `5spot validate`.

use std::io::Write;

use crate::{Failure, Outcome};

/// Arguments of `5spot validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args, _out: &mut dyn Write) -> Result<Outcome, Failure> {
    Err(Failure::new("validate", "is being written"))
}
