//! Output formats.

use std::io::{self, Write};
use std::os::fd::AsFd as _;

use clap::ValueEnum;
use kubemu_terminal::Failure;
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// The output formats of commands without additional ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// Prints `value` as one indented JSON document.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new("printing JSON", error))?;
    Ok(writeln!(out, "{text}")?)
}

/// Prints `value` as one YAML document.
pub fn yaml(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| Failure::new("printing YAML", error))?;
    Ok(write!(out, "{text}")?)
}

/// Waits until the reader of standard output has closed it, as `head` does after its last line.
/// Waits forever if standard output is a file or cannot be watched.
pub async fn closed() {
    // Unchecked, because the check would make the pipe non-blocking for all who write to it.
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    if let Ok(stdout) = stdout.and_then(Sender::from_owned_fd_unchecked)
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
