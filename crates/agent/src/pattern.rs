//! Which processes are meant: pure, on bytes.

use std::fmt;

use memchr::memmem::Finder;

/// How many bytes of a program's name the kernel keeps as a process's `comm`.
const COMM_BYTES: usize = 15;

/// How many arguments may name the program: itself, and behind an interpreter with one option
/// the script.
const NAMING_ARGUMENTS: usize = 3;

/// What a process is called, in the kernel's own bytes.
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
    /// The arguments, each but the last followed by a NUL.
    arguments: Vec<u8>,
}

impl Names {
    /// Takes what `/proc/<pid>/comm` and `/proc/<pid>/cmdline` say; cannot fail.
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

    /// The kernel's name for the process: at most 15 bytes, and the process may change it.
    pub fn comm(&self) -> &[u8] {
        &self.comm
    }

    /// The last part of the path in `argv[0]`; empty where there are no arguments.
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

    /// Whether `command` is the whole of `comm`, or of what `comm` is the beginning of.
    ///
    /// Where the arguments still have the whole name, that decides: two long names may begin
    /// alike.
    fn is_called(&self, command: &[u8]) -> bool {
        if self.comm == command {
            return command.len() < COMM_BYTES
                || self.full_name().is_none_or(|name| name == command);
        }
        self.comm.len() == COMM_BYTES
            && command.starts_with(&self.comm)
            && self.full_name().is_none_or(|name| name == command)
    }

    /// The name that `comm` was cut from, where one of the first arguments has it.
    fn full_name(&self) -> Option<&[u8]> {
        self.arguments()
            .take(NAMING_ARGUMENTS)
            .map(base)
            .find(|name| name.starts_with(&self.comm))
    }
}

impl fmt::Display for Names {
    /// `comm`, and the program where that is called otherwise. No arguments: those may hold what
    /// is nobody's business.
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

/// By what a process was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The kernel's name for it.
    Comm,
    /// The last part of the path in `argv[0]`.
    Program,
    /// A part of its command line.
    CommandLine,
}

impl By {
    /// As text, for logs and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Program => "argv[0]",
            Self::CommandLine => "command line",
        }
    }
}

/// A pattern that a process matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match<'a> {
    /// The pattern, as it was written.
    pub pattern: &'a str,
    /// What it matched.
    pub by: By,
}

/// The patterns of one configuration.
///
/// # Example
/// ```
/// use fivespot_agent::pattern::{By, Names, Patterns};
/// let patterns = Patterns::new(vec!["steam".into()], vec!["idea.jar".into()]);
/// let steam = Names::new(b"steam\n", b"/usr/games/steam\0-silent\0");
/// assert_eq!(patterns.find(&steam).map(|found| found.by), Some(By::Comm));
/// let editor = Names::new(b"java\n", b"java\0-jar\0/opt/idea.jar\0");
/// assert_eq!(patterns.find(&editor).map(|found| found.pattern), Some("idea.jar"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    commands: Vec<String>,
    substrings: Vec<(String, Finder<'static>)>,
}

impl Patterns {
    /// Patterns for whole names and for parts of command lines. An empty one matches nothing.
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

    /// The patterns in the order in which they are tried, one that is in both lists once.
    pub fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = Vec::new();
        let substrings = self.substrings.iter().map(|(text, _)| text);
        for text in self.commands.iter().chain(substrings) {
            if !texts.contains(&text.as_str()) {
                texts.push(text);
            }
        }
        texts
    }

    /// The first pattern that a process of these names matches: whole names before parts, each
    /// in the order of the configuration.
    pub fn find(&self, names: &Names) -> Option<Match<'_>> {
        let program = names.program();
        for pattern in &self.commands {
            let by = if names.is_called(pattern.as_bytes()) {
                By::Comm
            } else if program == pattern.as_bytes() {
                By::Program
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
            by: By::CommandLine,
        })
    }
}

#[cfg(test)]
mod tests;
