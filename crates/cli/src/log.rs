//! The log of a long-running command, on standard error.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// The filter unless RUST_LOG is set.
const DEFAULT_FILTER: &str = "info,kube=warn,hyper=warn,tower=warn";
/// The filter with --verbose: debug for our own crates, not for libraries.
const VERBOSE_FILTER: &str = "info,kube=warn,hyper=warn,tower=warn,fivespot=debug";

/// How much is logged, and in which form.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Settings {
    /// Format of the log on standard error: json, or anything else for text
    #[arg(
        long,
        env = "RUST_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "json",
        value_parser = format
    )]
    log_format: Format,
    /// Log more
    #[arg(short, long)]
    verbose: bool,
}

/// The form of the log.
#[derive(Clone, Copy, Debug)]
enum Format {
    /// One JSON object per line
    Json,
    /// Plain text.
    Text,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "clap asks for a parser that may refuse"
)]
fn format(text: &str) -> Result<Format, String> {
    Ok(match text {
        "json" => Format::Json,
        _ => Format::Text,
    })
}

/// Starts it, once in a process.
pub(crate) fn start(settings: Settings) {
    let default = if settings.verbose {
        VERBOSE_FILTER
    } else {
        DEFAULT_FILTER
    };
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let colours = io::stderr().is_terminal();
    match settings.log_format {
        Format::Json => log.json().init(),
        Format::Text => log.with_ansi(colours).init(),
    }
}
