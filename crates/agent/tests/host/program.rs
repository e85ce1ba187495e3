//! Real programs with arbitrary names, which end with the test.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fivespot_agent::config::Config;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A name that no other test and no other run uses.
pub(crate) fn unique(stem: &str) -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{stem}{:x}x{number}", std::process::id())
}

/// A configuration that matches processes called `name`, and none by their command line.
pub(crate) fn called(name: &str) -> Config {
    Config::parse(&format!(
        "match_commands = [{name:?}]\npoll_interval_ms = 10"
    ))
    .unwrap()
}

/// A configuration that matches processes with `part` in their command line.
pub(crate) fn containing(part: &str) -> Config {
    let text = format!("match_argv_substrings = [{part:?}]\npoll_interval_ms = 10");
    Config::parse(&text).unwrap()
}

/// An executable with a given name, removed when this is dropped.
pub(crate) struct Program {
    directory: PathBuf,
    pub(crate) path: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Program {
    /// A copy of the system's program `original`.
    pub(crate) fn copy(original: &str, name: &str) -> Self {
        let program = Self::empty(name);
        let directories = ["/bin", "/usr/bin"];
        let mut originals =
            directories.map(|directory| Path::new(directory).join(original));
        originals.sort_by_key(|path| !path.exists());
        fs::copy(&originals[0], &program.path).unwrap();
        program
    }

    /// A shell script.
    pub(crate) fn script(text: &str, name: &str) -> Self {
        let program = Self::empty(name);
        fs::write(&program.path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program.path, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn empty(name: &str) -> Self {
        let directory = std::env::temp_dir().join(unique("5spot-agent-program-"));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name);
        Self { directory, path }
    }

    /// Runs it; the process is killed when the result is dropped.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        Running::start(&mut command)
    }
}

/// A process, killed and reaped when this is dropped.
pub(crate) struct Running {
    child: Child,
    /// The pipe that it reads from.
    stdin: Option<ChildStdin>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = loop {
            match command.spawn() {
                // A child of another test holds the file open for writing until it execs.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                child => break child.unwrap(),
            }
        };
        Self {
            stdin: child.stdin.take(),
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its standard input and waits for its end.
    pub(crate) fn end(&mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}
