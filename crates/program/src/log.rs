//! The log of a long-running command, on standard error.

use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use tracing_subscriber::EnvFilter;

/// The filter for messages of libraries, unless RUST_LOG is set.
const LIBRARIES: &str = "info,kube=warn,hyper=warn,tower=warn";

/// How much is logged, and in which form.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Settings {
    /// Format of the log on standard error: json, or anything else for text
    #[arg(
        long,
        env = "RUST_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "json",
        value_parser = format,
        global = true
    )]
    log_format: Format,
    /// How much is logged; RUST_LOG, if set, is used instead
    #[arg(long, env = "LOG_LEVEL", value_enum, default_value_t, global = true)]
    log_level: Level,
    /// Log more: the same as --log-level debug
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// The least severe messages that are logged. Those of libraries never go beyond information.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum,
)]
enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl Settings {
    fn level(self) -> Level {
        if self.verbose {
            self.log_level.max(Level::Debug)
        } else {
            self.log_level
        }
    }

    /// The log filter, unless RUST_LOG is set.
    fn filter(self) -> String {
        let own = match self.level() {
            Level::Error => return "error".to_owned(),
            Level::Warn => return "warn".to_owned(),
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        };
        format!("{LIBRARIES},fivespot={own},kubemu={own}")
    }
}

/// The log format.
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

/// Starts logging. Called once in a process.
pub fn start(settings: Settings) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(settings.filter()));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match settings.log_format {
        Format::Json => log.json().init(),
        Format::Text => log.with_ansi(is_colored(&io::stderr())).init(),
    }
}

/// Whether a stream shows colours: a terminal that is not dumb, unless `NO_COLOR`, `CLICOLOR` or
/// `CLICOLOR_FORCE` overrides this.
pub fn is_colored(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_logged_of_5spot_than_of_its_libraries() {
        let filter = |log_level: Level, verbose: bool| {
            let log_format = Format::Json;
            Settings {
                log_format,
                log_level,
                verbose,
            }
            .filter()
        };
        let libraries = "info,kube=warn,hyper=warn,tower=warn";
        assert_eq!(filter(Level::Warn, false), "warn");
        assert_eq!(
            filter(Level::Info, false),
            format!("{libraries},fivespot=info,kubemu=info")
        );
        for (level, own) in [(Level::Warn, "debug"), (Level::Trace, "trace")] {
            let expected = format!("{libraries},fivespot={own},kubemu={own}");
            assert_eq!(filter(level, true), expected);
        }
    }
}
