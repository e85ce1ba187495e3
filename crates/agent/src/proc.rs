//! The processes of a host, as `/proc` shows them.
//!
//! A process is read through its opened directory, which the kernel ties to that process: once
//! it has ended, what is read through it is nothing, and never another process that was given
//! the same number.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use crate::pattern::Names;

/// How much of a command line is looked at: the longest single argument that Linux lets pass.
const CMDLINE_BYTES: usize = 128 * 1024;

/// How much of `comm` and `stat` is looked at; the kernel writes less.
const SHORT_BYTES: usize = 4096;

/// How many letters a uid has at least: a UUID without hyphens, as static pods have it.
const UID_BYTES: usize = 32;

/// The bit in a process's flags that says kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process's number.
pub type Pid = u32;

/// A mounted `/proc`, or a directory that looks like one.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
    /// This process, as this `/proc` numbers it.
    own: Option<Pid>,
    scope: Scope,
}

/// Which processes may match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    #[default]
    Everywhere,
    /// Those that are in no container of a pod, by their control group.
    OutsideContainers,
}

impl Proc {
    /// Takes `/proc`, or where it is mounted.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::read_dir(root)?;
        // By the link rather than by getpid, which counts within this process's own namespace.
        let own = readlinkat(CWD, root.join("self"), Vec::new())
            .ok()
            .and_then(|target| target.to_str().ok()?.parse().ok());
        Ok(Self {
            root: root.to_owned(),
            own,
            scope: Scope::default(),
        })
    }

    /// The same, with processes of a scope only.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Whether a process may match at all.
    pub(crate) fn may_match(&self, process: &Process) -> bool {
        self.scope == Scope::Everywhere || !process.is_in_container()
    }

    /// The number of every process at this moment, in the kernel's order.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn pids(&self) -> io::Result<impl Iterator<Item = Pid> + use<>> {
        let entries = fs::read_dir(&self.root)?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
    }

    /// Opens a process; none if it has ended, or is this one.
    pub fn process(&self, pid: Pid) -> Option<Process> {
        if self.own == Some(pid) {
            return None;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            openat(CWD, self.root.join(pid.to_string()), flags, Mode::empty());
        Some(Process {
            pid,
            directory: directory.ok()?,
        })
    }
}

/// What else is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// It belongs to the kernel and runs no program.
    pub is_kernel_thread: bool,
    /// It has ended, and its parent has not asked for the result yet.
    pub has_ended: bool,
    /// When it started, in clock ticks since the machine did.
    pub started: u64,
}

/// One process, whatever becomes of its number.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    directory: OwnedFd,
}

impl Process {
    /// Its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// What it is called now; none if it is gone.
    pub fn names(&self) -> Option<Names> {
        let comm = self.read("comm", SHORT_BYTES)?;
        // A process that is ending has a name still and no arguments any more.
        let cmdline = self.read("cmdline", CMDLINE_BYTES).unwrap_or_default();
        Some(Names::new(&comm, &cmdline))
    }

    /// What else is known of it; none if it is gone.
    pub fn stat(&self) -> Option<Stat> {
        parse_stat(&self.read("stat", SHORT_BYTES)?)
    }

    /// Whether it is in a container of a pod. One that is gone is in none.
    fn is_in_container(&self) -> bool {
        let groups = self.read("cgroup", SHORT_BYTES).unwrap_or_default();
        is_of_pod(&groups)
    }

    /// At most `limit` bytes of one of its files.
    fn read(&self, file: &str, limit: usize) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.directory, file, flags, Mode::empty()).ok()?;
        let mut text = Vec::with_capacity(256);
        while text.len() < limit {
            text.reserve(256);
            let room = text.capacity() - text.len();
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text)) {
                // The kernel fills what it is given as long as there is more.
                Ok(read) if read < room => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        text.truncate(limit);
        Some(text)
    }
}

/// Whether control groups, as `/proc/<pid>/cgroup` has them, are those of a pod: below `kubepods`,
/// or, as an agent in a control group namespace sees its neighbours, below `pod` and a uid.
fn is_of_pod(groups: &[u8]) -> bool {
    let mut steps = groups.split(|byte| matches!(byte, b'/' | b'\n' | b':'));
    steps.any(|step| {
        let is_uid = |rest: &[u8]| {
            rest.len() >= UID_BYTES
                && rest
                    .iter()
                    .all(|it| it.is_ascii_hexdigit() || b"-_".contains(it))
        };
        step.starts_with(b"kubepods") || step.strip_prefix(b"pod").is_some_and(is_uid)
    })
}

/// Reads the line of `/proc/<pid>/stat`. The name in it may hold anything, brackets and line
/// breaks too; what follows the last bracket is numbers.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        is_kernel_thread: number(6)? & KERNEL_THREAD != 0,
        has_ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        started: number(19)?,
    })
}

#[cfg(test)]
mod tests;
