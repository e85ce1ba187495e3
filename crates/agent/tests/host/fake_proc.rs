//! A directory with the layout of `/proc`, in which processes start and end atomically.

use std::fs;
use std::path::PathBuf;

use fivespot_agent::proc::Proc;

use crate::program::unique;

/// Removed when dropped.
pub(crate) struct FakeProc(PathBuf);

impl Drop for FakeProc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl FakeProc {
    pub(crate) fn new() -> Self {
        let root = std::env::temp_dir().join(unique("5spot-agent-proc-"));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    pub(crate) fn proc(&self) -> Proc {
        Proc::open(&self.0).unwrap()
    }

    /// Adds a process called `name`, atomically.
    pub(crate) fn start(&self, pid: u32, name: &str) {
        let growing = self.0.join(format!("growing-{pid}"));
        fs::create_dir_all(&growing).unwrap();
        fs::write(growing.join("comm"), format!("{name}\n")).unwrap();
        fs::write(growing.join("cmdline"), format!("/usr/bin/{name}\0")).unwrap();
        let stat = format!(
            "{pid} ({name}) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"
        );
        fs::write(growing.join("stat"), stat).unwrap();
        fs::rename(growing, self.0.join(pid.to_string())).unwrap();
    }

    /// Makes a process that has been added that of the agent.
    pub(crate) fn is_agent(&self, pid: u32) {
        std::os::unix::fs::symlink(pid.to_string(), self.0.join("self")).unwrap();
    }

    /// Removes everything: nothing can be read any more.
    pub(crate) fn vanish(&self) {
        fs::remove_dir_all(&self.0).unwrap();
    }

    /// Removes the process.
    pub(crate) fn end(&self, pid: u32) {
        fs::remove_dir_all(self.0.join(pid.to_string())).unwrap();
    }
}
