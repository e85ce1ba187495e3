//! What the operator and the agent on a node exchange about reclaim: the agent's
//! configuration, and its report.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use fivespot_capi::one_line_within;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// How often the agent scans for processes where the kernel does not report them, in milliseconds.
pub const POLL_INTERVAL_MS: u64 = 250;

/// The value of [`crate::name::RECLAIM_REQUESTED_ANNOTATION`] that requests a reclaim. No other
/// value does.
pub const REQUESTED: &str = "true";

/// How many characters of the agent's reason for rejecting a configuration are passed on.
const MAX_REASON_LENGTH: usize = 256;

/// The agent's configuration for `killIfCommands`, as stored in the ConfigMap under
/// [`crate::name::RECLAIM_CONFIG_KEY`]: TOML with the keys `match_commands` (a process name or
/// the base name of its first argument, exactly), `match_argv_substrings` (a part of the
/// command line) and `poll_interval_ms`. Every command is in both lists. Cannot fail.
///
/// # Example
/// ```
/// let text = fivespot_api::reclaim::agent_config(&["steam".to_owned()]);
/// assert!(text.ends_with(
///     "match_commands = [\n  \"steam\",\n]\n\
///      match_argv_substrings = [\n  \"steam\",\n]\n\
///      poll_interval_ms = 250\n"
/// ));
/// ```
pub fn agent_config(commands: &[String]) -> String {
    let mut text =
        "# Written by 5-Spot from spec.killIfCommands; edits are overwritten.\n\
                    # A matching process triggers the return of this machine to its owner.\n"
            .to_owned();
    for key in ["match_commands", "match_argv_substrings"] {
        let _ = writeln!(text, "{key} = [");
        for command in commands {
            let _ = writeln!(text, "  {},", Quoted(command));
        }
        text.push_str("]\n");
    }
    let _ = writeln!(text, "poll_interval_ms = {POLL_INTERVAL_MS}");
    text
}

/// A TOML basic string.
struct Quoted<'s>(&'s str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(formatter, "\\{letter}")?,
                letter if letter.is_control() => {
                    write!(formatter, "\\u{:04X}", u32::from(letter))?;
                }
                letter => formatter.write_char(letter)?,
            }
        }
        formatter.write_char('"')
    }
}

/// The SHA-256 of a configuration's text in lower-case hex. The agent reports it for the
/// configuration that it has read. Cannot fail.
pub fn config_hash(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

/// What the agent reports about its configuration: the value of the annotation
/// [`crate::name::RECLAIM_AGENT_KEY`] on its Node, `<hash> ok` or `<hash> rejected: <why>`.
///
/// # Example
/// ```
/// use fivespot_api::reclaim::Report;
/// let report = Report::rejected("c0ffee", "unknown field `poll`\nat line 3");
/// assert_eq!(report.to_string(), "c0ffee rejected: unknown field `poll` at line 3");
/// assert_eq!(Report::parse(&report.to_string()), Some(report));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The [`config_hash`] of the configuration that the agent read last.
    pub config: String,
    /// Why the agent cannot use it; `None` if it can. One line of at most 256 characters.
    pub rejection: Option<String>,
}

impl Report {
    /// A report that the agent uses the configuration with this hash.
    pub fn accepted(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            rejection: None,
        }
    }

    /// A report that the agent cannot use the configuration with this hash, and why.
    pub fn rejected(config: impl Into<String>, why: &str) -> Self {
        Self {
            config: config.into(),
            rejection: Some(one_line_within(why, MAX_REASON_LENGTH)),
        }
    }

    /// Parses the annotation. `None` if it is not a report.
    pub fn parse(annotation: &str) -> Option<Self> {
        let (config, verdict) = annotation.split_once(' ')?;
        if verdict == "ok" {
            return Some(Self::accepted(config));
        }
        let why = verdict.strip_prefix("rejected: ")?;
        Some(Self::rejected(config, why))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rejection {
            None => write!(formatter, "{} ok", self.config),
            Some(why) => write!(formatter, "{} rejected: {why}", self.config),
        }
    }
}

/// That no signal of its owner stands on a host: the value of the annotation
/// [`crate::name::HOST_FREE_ANNOTATION`], `<since> <confirmed>`. The annotation is absent while one
/// stands.
///
/// # Example
/// ```
/// use fivespot_api::reclaim::FreeHost;
/// let text = "2026-03-06T13:00:00Z 2026-03-06T13:30:00Z";
/// let free: FreeHost = text.parse().unwrap();
/// assert_eq!(free.to_string(), text);
/// assert!("yesterday".parse::<FreeHost>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeHost {
    /// Since when it has been free without interruption, by its clock.
    pub since: Timestamp,
    /// When that was last confirmed, by the same clock.
    pub confirmed: Timestamp,
}

/// The error for a text that is not a [`FreeHost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be two times such as 2026-03-06T13:00:00Z, separated by a space")]
pub struct ParseFreeHostError;

impl FromStr for FreeHost {
    type Err = ParseFreeHostError;

    fn from_str(text: &str) -> Result<Self, ParseFreeHostError> {
        let (since, confirmed) = text.split_once(' ').ok_or(ParseFreeHostError)?;
        let time = |text: &str| text.parse().map_err(|_| ParseFreeHostError);
        Ok(Self {
            since: time(since)?,
            confirmed: time(confirmed)?,
        })
    }
}

impl fmt::Display for FreeHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.since, self.confirmed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses the basic strings of a TOML text, with TOML's own escapes only.
    fn strings(text: &str) -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("  \""));
        let bodies = lines.map(|line| line.strip_suffix("\",").unwrap());
        bodies
            .map(|body| {
                let (mut read, mut rest) = (String::new(), body.chars());
                while let Some(letter) = rest.next() {
                    read.push(match letter {
                        '\\' => match rest.next().unwrap() {
                            'u' => {
                                let code: String = rest.by_ref().take(4).collect();
                                let code = u32::from_str_radix(&code, 16).unwrap();
                                char::from_u32(code).unwrap()
                            }
                            escaped => escaped,
                        },
                        letter => {
                            assert!(letter != '"' && !letter.is_control());
                            letter
                        }
                    });
                }
                read
            })
            .collect()
    }

    #[test]
    fn no_command_means_empty_lists() {
        let text = agent_config(&[]);
        assert!(text.contains("match_commands = [\n]\n"), "{text}");
    }

    #[test]
    fn only_equal_commands_have_equal_hashes() {
        let hash = |command: &str| config_hash(&agent_config(&[command.to_owned()]));
        assert_eq!(hash("steam").len(), 64);
        assert_eq!(hash("steam"), hash("steam"));
        assert_ne!(hash("steam"), hash("stea"));
    }

    #[test]
    fn a_text_that_is_not_a_report_does_not_parse() {
        for annotation in ["", "ok", "abc", "abc fine", "abc rejected", "abc ok "] {
            assert_eq!(Report::parse(annotation), None, "{annotation:?}");
        }
        let long = Report::rejected("a", &"x".repeat(1_000));
        assert_eq!(long.rejection.unwrap().chars().count(), MAX_REASON_LENGTH);
    }

    #[test]
    fn a_reason_changes_neither_the_lines_nor_the_direction_of_the_text_around_it() {
        let why = "\u{202e}no\u{2028}such\u{61c} key\u{7f}";
        let report = Report::rejected("c0ffee", why);
        assert_eq!(report.to_string(), "c0ffee rejected: no such key");
    }

    proptest! {
        #[test]
        fn every_command_parses_back_from_the_configuration(
            commands in prop::collection::vec("\\PC{0,20}|[\\x00-\\x7f\\u{80}-\\u{9f}\"\\\\]{0,20}", 0..5),
        ) {
            let read = strings(&agent_config(&commands));
            prop_assert_eq!(read, [commands.clone(), commands].concat());
        }

        #[test]
        fn every_report_parses_back(why in "\\PC{0,300}") {
            let report = Report::rejected("c0ffee", &why);
            prop_assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
    }
}
