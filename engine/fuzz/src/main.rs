//! `cargo run --release --bin kubemu-fuzz -- TARGET --seconds N`: the fuzz targets of the engine.

use std::process::ExitCode;

use kubemu_fuzz::{TARGETS, program};

fn main() -> ExitCode {
    program::run(TARGETS)
}
