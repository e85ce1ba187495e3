//! An embedded server of a test.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::book::ROOT;

const BINARY: &str = env!("CARGO_BIN_EXE_5spot");
/// The command that starts a server, and the beginning of the line that it prints when it is ready.
const SERVERS: [(&str, &str); 2] =
    [("dev", "applied "), ("apiserver", "export KUBECONFIG=")];

/// Distinguishes the directories of the servers.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// An embedded server; stopped when dropped.
pub(crate) struct Server {
    process: Child,
    /// A directory of its own, with its kubeconfig.
    pub(crate) directory: PathBuf,
}

impl Server {
    /// Starts a server by its command line, `5spot dev ...`, and waits until it is ready. `None`
    /// for other commands.
    pub(crate) fn named(words: &str) -> Option<Self> {
        let words = words.strip_prefix("5spot ")?;
        let (command, arguments) = words.split_once(' ').unwrap_or((words, ""));
        let found = SERVERS.into_iter().find(|(it, _)| *it == command);
        found.map(|server| Self::start(server, arguments))
    }

    fn start((command, ready): (&str, &str), arguments: &str) -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("5spot-server-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut process = Command::new(BINARY)
            .arg(command)
            .args(arguments.split_whitespace())
            .arg("--kubeconfig")
            .arg(directory.join("kubeconfig"))
            .current_dir(ROOT)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_ready = lines.any(|line| line.is_ok_and(|it| it.starts_with(ready)));
        // Created before the assertion, so that the process is stopped in either case.
        let server = Self { process, directory };
        assert!(is_ready, "5spot {command} {arguments} ended");
        thread::spawn(move || lines.for_each(drop));
        server
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
