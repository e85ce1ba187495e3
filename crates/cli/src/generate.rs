//! `5spot generate`.

use std::io::Write;

use crate::{Failure, Outcome};

/// Arguments of `5spot generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args, _out: &mut dyn Write) -> Result<Outcome, Failure> {
    Err(Failure::new("generate", "is being written"))
}
