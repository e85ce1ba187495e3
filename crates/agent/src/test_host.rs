//! A directory that stands for a host in a test.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::command::{Failure, Outcome};

/// A directory of its own, removed when this is dropped.
pub(crate) struct TestHost(PathBuf);

impl Drop for TestHost {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Deref for TestHost {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl TestHost {
    /// An empty directory. The name is that of the test, among all of them.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("5spot-agent-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    /// Writes a file below it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Removes a file below it.
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.join(path)).unwrap();
    }

    /// What a command prints, with its exit code and with DIR for the directory.
    pub(crate) fn printed(
        &self,
        command: impl FnOnce(&mut Vec<u8>) -> Result<Outcome, Failure>,
    ) -> String {
        let mut out = Vec::new();
        let end = match command(&mut out) {
            Ok(Outcome::Yes) => "exit code 0\n".to_owned(),
            Ok(_) => "exit code 1\n".to_owned(),
            Err(failure) => format!("error: {failure}\nexit code 2\n"),
        };
        let text = String::from_utf8(out).unwrap() + &end;
        text.replace(&self.display().to_string(), "DIR")
    }
}
