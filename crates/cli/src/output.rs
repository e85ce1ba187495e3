//! Output formats.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::Failure;

/// The output formats of commands without additional ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// Prints `value` as one indented JSON document.
pub(crate) fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new("printing JSON", error))?;
    Ok(writeln!(out, "{text}")?)
}

/// Prints `value` as one YAML document.
pub(crate) fn yaml(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| Failure::new("printing YAML", error))?;
    Ok(write!(out, "{text}")?)
}
