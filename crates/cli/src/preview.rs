//! `5spot preview`.

use std::io::Write;

use crate::{Failure, Outcome};

/// Arguments of `5spot preview`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args, _out: &mut dyn Write) -> Result<Outcome, Failure> {
    Err(Failure::new("preview", "is being written"))
}
