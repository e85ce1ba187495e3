//! The agent's configuration: `reclaim.toml`.

use std::time::Duration;

use fivespot_api::reclaim::{POLL_INTERVAL_MS, Report, config_hash};
use serde::Deserialize;

use crate::pattern::Patterns;

/// How many bytes of a configuration are read; what the operator writes is far less.
const LONGEST: usize = 256 * 1024;
/// How many patterns a list may have.
const MOST_PATTERNS: usize = 1000;
/// How many bytes a pattern may have: 256 characters of four.
const LONGEST_PATTERN: usize = 1024;
/// The bounds of `poll_interval_ms`.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 1..=60_000;

/// What the agent looks for, and how often where the kernel does not report them.
#[derive(Clone, Debug)]
pub struct Config {
    /// The SHA-256 of the text.
    pub hash: String,
    /// The processes that are meant.
    pub patterns: Patterns,
    /// The time between two scans.
    pub interval: Duration,
}

/// Why a text is no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Rejected {
    /// The SHA-256 of the text.
    pub hash: String,
    /// The reason, in one line.
    pub why: String,
}

impl Rejected {
    /// What the agent says of it on its Node.
    pub fn report(&self) -> Report {
        Report::rejected(&self.hash, &self.why)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    match_commands: Vec<String>,
    #[serde(default)]
    match_argv_substrings: Vec<String>,
    #[serde(default = "usual_interval")]
    poll_interval_ms: u64,
}

fn usual_interval() -> u64 {
    POLL_INTERVAL_MS
}

impl Config {
    /// Reads `reclaim.toml`.
    ///
    /// # Example
    /// ```
    /// use fivespot_agent::config::Config;
    /// let config = Config::parse("match_commands = [\"steam\"]").unwrap();
    /// assert_eq!(config.patterns.texts(), ["steam"]);
    /// assert_eq!(config.interval.as_millis(), 250);
    /// let rejected = Config::parse("poll_interval_ms = 0").unwrap_err();
    /// assert_eq!(rejected.why, "poll_interval_ms: must be between 1 and 60000, not 0");
    /// ```
    ///
    /// # Errors
    /// The text is not TOML, has a key that is not known, or a value out of bounds. A pattern
    /// that is empty would match every process, and is refused.
    pub fn parse(text: &str) -> Result<Self, Rejected> {
        let hash = config_hash(text);
        match read(text) {
            Ok(file) => Ok(Self {
                hash,
                interval: Duration::from_millis(file.poll_interval_ms),
                patterns: Patterns::new(file.match_commands, file.match_argv_substrings),
            }),
            Err(why) => Err(Rejected { hash, why }),
        }
    }

    /// What the agent says of it on its Node.
    pub fn report(&self) -> Report {
        Report::accepted(&self.hash)
    }
}

fn read(text: &str) -> Result<File, String> {
    if text.len() > LONGEST {
        return Err(format!(
            "must be at most {LONGEST} bytes, not {}",
            text.len()
        ));
    }
    let file: File = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
    let lists = [
        ("match_commands", &file.match_commands),
        ("match_argv_substrings", &file.match_argv_substrings),
    ];
    for (key, list) in lists {
        if list.len() > MOST_PATTERNS {
            let number = list.len();
            return Err(format!(
                "{key}: must be at most {MOST_PATTERNS} patterns, not {number}"
            ));
        }
        for (index, pattern) in list.iter().enumerate() {
            if pattern.is_empty() {
                return Err(format!("{key}[{index}]: must not be empty"));
            }
            if pattern.len() > LONGEST_PATTERN {
                return Err(format!(
                    "{key}[{index}]: must be at most {LONGEST_PATTERN} bytes"
                ));
            }
        }
    }
    if !INTERVAL_MS.contains(&file.poll_interval_ms) {
        return Err(format!(
            "poll_interval_ms: must be between {} and {}, not {}",
            INTERVAL_MS.start(),
            INTERVAL_MS.end(),
            file.poll_interval_ms
        ));
    }
    Ok(file)
}

/// A TOML error in one line, with the line it is about.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn what_the_operator_writes_is_what_the_agent_reads() {
        let commands = ["steam", "a \"b\" \\ c\td", "日本"].map(str::to_owned);
        let text = fivespot_api::reclaim::agent_config(&commands);
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.patterns.texts(), commands);
        assert_eq!(config.hash, fivespot_api::reclaim::config_hash(&text));
        assert_eq!(config.report().to_string(), format!("{} ok", config.hash));
    }

    #[test]
    fn an_empty_configuration_means_that_nothing_is_looked_for() {
        let config = Config::parse("").unwrap();
        assert!(config.patterns.is_empty());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_place_and_the_reason() {
        let long = format!("match_commands = [\"{}\"]", "x".repeat(1025));
        let many = format!("match_commands = [{}]", "\"x\",".repeat(1001));
        let huge = "#".repeat(256 * 1024 + 1);
        let rows = [
            (
                "match_commands = [\"\"]",
                "match_commands[0]: must not be empty",
            ),
            (
                "match_argv_substrings = [\"a\", \"\"]",
                "match_argv_substrings[1]: must not be empty",
            ),
            (
                long.as_str(),
                "match_commands[0]: must be at most 1024 bytes",
            ),
            (
                many.as_str(),
                "match_commands: must be at most 1000 patterns, not 1001",
            ),
            (huge.as_str(), "must be at most 262144 bytes, not 262145"),
            (
                "poll_interval_ms = 60001",
                "poll_interval_ms: must be between 1 and 60000, not 60001",
            ),
            (
                "\nmatch_comands = []",
                "line 2: unknown field `match_comands`, expected one of `match_commands`, \
                 `match_argv_substrings`, `poll_interval_ms`",
            ),
            (
                "match_commands = \"steam\"",
                "line 1: invalid type: string \"steam\", expected a sequence",
            ),
            (
                "poll_interval_ms = -1",
                "line 1: invalid value: integer `-1`, expected u64",
            ),
            ("match_commands = [", "line 1: unclosed array, expected `]`"),
        ];
        for (text, why) in rows {
            assert_eq!(Config::parse(text).unwrap_err().why, why);
        }
    }
}
