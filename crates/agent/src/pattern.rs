//! Matches processes against patterns: no I/O, on bytes.

use std::collections::HashSet;
use std::fmt;

use memchr::memmem::Finder;

/// The maximum size of a process's `comm` in the kernel, in bytes.
const COMM_BYTES: usize = 15;

/// How many arguments may contain the program's name: the program itself, or the script after an
/// interpreter with one option.
const NAMING_ARGUMENTS: usize = 3;

/// The names of a process, as bytes from the kernel.
///
/// # Example
/// ```
/// use fivespot_agent::pattern::Names;
/// let names = Names::new(b"java\n", b"/usr/bin/java\0-jar\0idea.jar\0");
/// assert_eq!(names.comm(), b"java");
/// assert_eq!(names.program(), b"java");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    comm: Vec<u8>,
    /// The arguments, separated by NUL.
    arguments: Vec<u8>,
}

impl Names {
    /// Parses `/proc/<pid>/comm` and `/proc/<pid>/cmdline`. Cannot fail.
    pub fn new(comm: &[u8], cmdline: &[u8]) -> Self {
        let end = cmdline
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        Self {
            comm: comm.strip_suffix(b"\n").unwrap_or(comm).to_vec(),
            arguments: cmdline.get(..end).unwrap_or_default().to_vec(),
        }
    }

    /// The kernel's name of the process: at most 15 bytes, and the process may change it.
    pub fn comm(&self) -> &[u8] {
        &self.comm
    }

    /// The last part of the path in `argv[0]`; empty without arguments.
    pub fn program(&self) -> &[u8] {
        self.arguments().next().map_or(&[], base)
    }

    /// Whether there is no command line: a kernel thread, or a process that has ended.
    pub fn is_bare(&self) -> bool {
        self.arguments.is_empty()
    }

    fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        self.arguments.split(|byte| *byte == 0)
    }

    /// The arguments, joined by spaces.
    fn line(&self) -> Vec<u8> {
        self.arguments
            .iter()
            .map(|byte| if *byte == 0 { b' ' } else { *byte })
            .collect()
    }

    /// Whether `command` equals `comm`, or the name that `comm` is a truncation of.
    ///
    /// If an argument contains the full name, that decides: two long names may have the same first
    /// 15 bytes.
    fn is_called(&self, command: &[u8]) -> bool {
        if self.comm == command {
            return command.len() < COMM_BYTES
                || self.full_name().is_none_or(|name| name == command);
        }
        self.comm.len() == COMM_BYTES
            && command.starts_with(&self.comm)
            && self.full_name().is_none_or(|name| name == command)
    }

    /// The name that `comm` is a truncation of, if one of the first arguments contains it.
    fn full_name(&self) -> Option<&[u8]> {
        self.arguments()
            .take(NAMING_ARGUMENTS)
            .map(base)
            .find(|name| name.starts_with(&self.comm))
    }
}

impl fmt::Display for Names {
    /// `comm`, and the program if it differs. No arguments, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable =
            |name: &[u8]| String::from_utf8_lossy(name).escape_debug().to_string();
        write!(f, "{}", readable(&self.comm))?;
        match self.program() {
            [] => Ok(()),
            program if program == self.comm => Ok(()),
            program => write!(f, " ({})", readable(program)),
        }
    }
}

/// The last part of a path.
fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// A pattern that a process matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'a> {
    /// The pattern, as it was written.
    pub pattern: &'a str,
    /// What of the process matched, for logs and output: `comm`, `argv[0]` or `command line`.
    pub by: &'static str,
}

/// The patterns of one configuration.
///
/// # Example
/// ```
/// use fivespot_agent::pattern::{Names, Patterns};
/// let patterns = Patterns::new(vec!["steam".into()], vec!["idea.jar".into()]);
/// let steam = Names::new(b"steam\n", b"/usr/games/steam\0-silent\0");
/// assert_eq!(patterns.find(&steam).map(|found| found.by), Some("comm"));
/// let editor = Names::new(b"java\n", b"java\0-jar\0/opt/idea.jar\0");
/// assert_eq!(patterns.find(&editor).map(|found| found.pattern), Some("idea.jar"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    commands: Vec<String>,
    substrings: Vec<(String, Finder<'static>)>,
}

impl Patterns {
    /// Patterns for full names and for parts of command lines. Empty patterns are dropped.
    pub fn new(commands: Vec<String>, substrings: Vec<String>) -> Self {
        let finder = |text: String| {
            let finder = Finder::new(text.as_bytes()).into_owned();
            (text, finder)
        };
        Self {
            commands: commands
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect(),
            substrings: substrings
                .into_iter()
                .filter(|text| !text.is_empty())
                .map(finder)
                .collect(),
        }
    }

    /// Whether no process can match.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.substrings.is_empty()
    }

    /// The patterns in the order in which they are tried, without duplicates.
    pub fn texts(&self) -> Vec<&str> {
        let substrings = self.substrings.iter().map(|(text, _)| text);
        let all = self.commands.iter().chain(substrings).map(String::as_str);
        let mut seen = HashSet::new();
        all.filter(|text| seen.insert(*text)).collect()
    }

    /// The first pattern that matches a process with these names: full names before parts, each in
    /// the order of the configuration.
    pub fn find(&self, names: &Names) -> Option<Match<'_>> {
        let program = names.program();
        for pattern in &self.commands {
            let by = if names.is_called(pattern.as_bytes()) {
                "comm"
            } else if program == pattern.as_bytes() {
                "argv[0]"
            } else {
                continue;
            };
            return Some(Match { pattern, by });
        }
        if self.substrings.is_empty() || names.is_bare() {
            return None;
        }
        let line = names.line();
        let found = self
            .substrings
            .iter()
            .find(|(_, finder)| finder.find(&line).is_some());
        found.map(|(pattern, _)| Match {
            pattern,
            by: "command line",
        })
    }
}

#[cfg(test)]
mod tests;
