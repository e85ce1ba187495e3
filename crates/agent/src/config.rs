//! The agent's configuration: `reclaim.toml`.

use std::time::Duration;

use fivespot_api::reclaim::{POLL_INTERVAL_MS, Report, config_hash};
use serde::Deserialize;

use crate::pattern::Patterns;
use crate::signal::{Away, Counted, LoadLimit, Settings};

/// The maximum size of a configuration in bytes; the operator writes far less.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of patterns in a list.
const MAX_PATTERNS: usize = 1000;
/// The maximum size of a pattern in bytes: 256 characters of four bytes.
const MAX_PATTERN_BYTES: usize = 1024;
/// The range of `poll_interval_ms`.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 1..=60_000;

/// The patterns that the agent detects, and the scan interval if process events are not available.
#[derive(Clone, Debug)]
pub struct Config {
    /// The SHA-256 of the text.
    pub hash: String,
    /// The patterns of the processes to detect.
    pub patterns: Patterns,
    /// The time between two scans.
    pub interval: Duration,
    /// The signals to read beside processes. There are no files among them: who writes the
    /// configuration would learn which files the host has. Nor are graphics cards, which an agent may
    /// read only if it was installed for that.
    pub signals: Settings,
}

/// Why a text is not a valid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Rejected {
    /// The SHA-256 of the text.
    pub hash: String,
    /// The reason, in one line.
    pub why: String,
}

impl Rejected {
    /// The report for the annotation on the Node.
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
    #[serde(default)]
    login_sessions: Counted,
    session_away: Option<Away>,
    load_above: Option<f64>,
    load_for: Option<String>,
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
    /// The text is not TOML, has an unknown key, or a value out of range. An empty pattern would
    /// match every process, and is rejected.
    pub fn parse(text: &str) -> Result<Self, Rejected> {
        let hash = config_hash(text);
        match read(text).and_then(|file| Ok((signals(&file)?, file))) {
            Ok((signals, file)) => Ok(Self {
                hash,
                interval: Duration::from_millis(file.poll_interval_ms),
                patterns: Patterns::new(file.match_commands, file.match_argv_substrings),
                signals,
            }),
            Err(why) => Err(Rejected { hash, why }),
        }
    }

    /// The report for the annotation on the Node.
    pub fn report(&self) -> Report {
        Report::accepted(&self.hash)
    }
}

fn read(text: &str) -> Result<File, String> {
    if text.len() > MAX_BYTES {
        return Err(format!(
            "must be at most {MAX_BYTES} bytes, not {}",
            text.len()
        ));
    }
    let file: File = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
    let lists = [
        ("match_commands", &file.match_commands),
        ("match_argv_substrings", &file.match_argv_substrings),
    ];
    for (key, list) in lists {
        if list.len() > MAX_PATTERNS {
            let number = list.len();
            return Err(format!(
                "{key}: must be at most {MAX_PATTERNS} patterns, not {number}"
            ));
        }
        for (index, pattern) in list.iter().enumerate() {
            if pattern.is_empty() {
                return Err(format!("{key}[{index}]: must not be empty"));
            }
            if pattern.len() > MAX_PATTERN_BYTES {
                return Err(format!(
                    "{key}[{index}]: must be at most {MAX_PATTERN_BYTES} bytes"
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

fn signals(file: &File) -> Result<Settings, String> {
    if file.session_away.is_some() && file.login_sessions == Counted::Off {
        return Err("session_away: has no effect without login_sessions".to_owned());
    }
    if file.load_for.is_some() && file.load_above.is_none() {
        return Err("load_for: has no effect without load_above".to_owned());
    }
    let time = file.load_for.as_deref().map(LoadLimit::parse_time);
    let time = time
        .transpose()
        .map_err(|error| format!("load_for: {error}"))?;
    let above = file
        .load_above
        .map(|it| LoadLimit::parse_above(&it.to_string()));
    let above = above
        .transpose()
        .map_err(|error| format!("load_above: {error}"))?;
    Ok(Settings {
        files: Vec::new(),
        sessions: file.login_sessions,
        away: file.session_away,
        load: above.map(|above| LoadLimit {
            above,
            time: time.unwrap_or(LoadLimit::TIME),
        }),
        graphics: None,
    })
}

/// A TOML error as one line, with the line number.
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
    use super::{Config, LoadLimit, Settings};
    use crate::signal::{Away, Counted};

    #[test]
    fn the_agent_parses_the_configuration_of_the_operator() {
        let commands = ["steam", "a \"b\" \\ c\td", "日本"].map(str::to_owned);
        let text = fivespot_api::reclaim::agent_config(&commands);
        let config = Config::parse(&text).unwrap();
        assert_eq!(config.patterns.texts(), commands);
        assert_eq!(config.hash, fivespot_api::reclaim::config_hash(&text));
        assert_eq!(config.report().to_string(), format!("{} ok", config.hash));
    }

    #[test]
    fn an_empty_configuration_has_no_patterns() {
        let config = Config::parse("").unwrap();
        assert!(config.patterns.is_empty());
    }

    #[test]
    fn a_configuration_names_signals_beside_processes() {
        let text = "login_sessions = \"local\"\nload_above = 2\nload_for = \"90s\"\n";
        let signals = Config::parse(text).unwrap().signals;
        assert_eq!(signals.sessions, Counted::Local);
        let load = signals.load.unwrap();
        assert_eq!((load.above, load.time.to_string().as_str()), (2.0, "90s"));
        let signals = Config::parse("load_above = 0.5").unwrap().signals;
        assert_eq!(signals.load.unwrap().time, LoadLimit::TIME);
        assert_eq!(Config::parse("").unwrap().signals, Settings::default());
        for (text, away) in [("locked", Away::Locked), ("idle", Away::Idle)] {
            let text = format!("login_sessions = \"all\"\nsession_away = \"{text}\"");
            let signals = Config::parse(&text).unwrap().signals;
            assert_eq!(signals.sessions, Counted::All);
            assert_eq!(signals.away, Some(away));
        }
    }

    #[test]
    fn an_invalid_configuration_is_rejected_with_place_and_reason() {
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
                 `match_argv_substrings`, `poll_interval_ms`, `login_sessions`, `session_away`, \
                 `load_above`, `load_for`",
            ),
            (
                "login_sessions = \"remote\"",
                "line 1: unknown variant `remote`, expected one of `off`, `local`, `all`",
            ),
            (
                "login_sessions = \"local\"\nsession_away = \"asleep\"",
                "line 2: unknown variant `asleep`, expected `locked` or `idle`",
            ),
            (
                "login_sessions = \"off\"\nsession_away = \"idle\"",
                "session_away: has no effect without login_sessions",
            ),
            (
                "load_above = 0",
                "load_above: must be a number of processors from 0.1 to 4096, not 0",
            ),
            (
                "load_above = nan",
                "load_above: must be a number of processors from 0.1 to 4096, not NaN",
            ),
            (
                "load_above = 2\nload_for = \"1d\"",
                "load_for: expected digits and a unit of s, m or h, such as '5m', found '1d'",
            ),
            (
                "load_above = 2\nload_for = \"5s\"",
                "load_for: must be from 10s to 24h, not 5s",
            ),
            (
                "load_for = \"5m\"",
                "load_for: has no effect without load_above",
            ),
            (
                "signal_file = \"/etc/shadow\"",
                "line 1: unknown field `signal_file`, expected one of `match_commands`, \
                 `match_argv_substrings`, `poll_interval_ms`, `login_sessions`, `session_away`, \
                 `load_above`, `load_for`",
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
