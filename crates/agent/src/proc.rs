//! The processes of a host, from `/proc`.
//!
//! A process is read through its opened directory, which the kernel binds to that process. After
//! the process has ended, reads through it fail; they never return another process that was given
//! the same PID.

mod cgroup;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use crate::pattern::Names;
use crate::proc::cgroup::{Place, View};

/// How many bytes of a command line are read: the longest single argument that Linux accepts.
const CMDLINE_BYTES: usize = 128 * 1024;

/// How many bytes of `comm` and `stat` are read; the kernel writes less.
const SHORT_BYTES: usize = 4096;

/// How many bytes of control groups are read: a line for each hierarchy, of which there are a dozen.
const GROUPS_BYTES: usize = 64 * 1024;

/// How many bytes of `fdinfo` are read; a driver writes less.
const FILE_BYTES: usize = 16 * 1024;

/// The flag of processes that are ending (`PF_EXITING`).
const EXITING: u64 = 0x4;

/// The flag of kernel threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process ID.
pub type Pid = u32;

/// A mounted `/proc`, or a directory with the same layout.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
    /// The PID of this process in this `/proc`.
    own: Option<Pid>,
    scope: Scope,
    /// From where control groups are seen.
    view: View,
}

/// Which processes may match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All processes.
    #[default]
    Everywhere,
    /// Processes that are not in a container of a pod, according to their control group. One whose
    /// group is not known is none of them: a pod could see to it that its process ends before its
    /// group is read.
    OutsideContainers,
}

impl Proc {
    /// Opens `/proc`, or the directory where it is mounted.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::read_dir(root)?;
        // From the link instead of getpid, which returns the PID in this process's own namespace.
        let own = readlinkat(CWD, root.join("self"), Vec::new())
            .ok()
            .and_then(|target| target.to_str().ok()?.parse().ok());
        Ok(Self {
            root: root.to_owned(),
            own,
            scope: Scope::default(),
            view: View::default(),
        })
    }

    /// The directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The same, limited to the processes of a scope.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        let view = self.process(1).and_then(|init| init.groups());
        Self {
            scope,
            view: view.map_or_else(View::default, |groups| View::new(&groups)),
            ..self
        }
    }

    /// Whether a process may match at all.
    pub(crate) fn may_match(&self, process: &Process) -> bool {
        match self.scope {
            Scope::Everywhere => true,
            Scope::OutsideContainers => process.place(&self.view) == Place::Outside,
        }
    }

    /// The current PIDs, in the kernel's order.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn pids(&self) -> io::Result<impl Iterator<Item = Pid> + use<>> {
        let entries = fs::read_dir(&self.root)?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
    }

    /// Opens a process. `None` if it has ended, or is this one.
    pub fn process(&self, pid: Pid) -> Option<Process> {
        if self.own == Some(pid) {
            return None;
        }
        self.open_process(pid)
    }

    /// This process: its PID here, and when it started. `None` if it is not in this `/proc`.
    pub(crate) fn own(&self) -> Option<(Pid, u64)> {
        let own = self.own?;
        let stat = self.open_process(own)?.stat()?;
        Some((own, stat.started))
    }

    /// Whether this process is in a container of a pod.
    pub(crate) fn is_in_pod(&self) -> bool {
        let init = self.open_process(1).and_then(|init| init.groups());
        let view = init.map_or_else(View::default, |groups| View::new(&groups));
        let own = self.own.and_then(|own| self.open_process(own));
        own.is_some_and(|own| own.place(&view) == Place::InPod)
    }

    fn open_process(&self, pid: Pid) -> Option<Process> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            openat(CWD, self.root.join(pid.to_string()), flags, Mode::empty());
        Some(Process {
            pid,
            directory: directory.ok()?,
        })
    }
}

/// The fields of `/proc/<pid>/stat` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Whether it is a kernel thread, which runs no program.
    pub is_kernel_thread: bool,
    /// Whether it has ended and its parent has not read its exit status yet.
    pub has_ended: bool,
    /// Whether it is ending or has ended.
    pub is_exiting: bool,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// One process, even if its PID is reused.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    directory: OwnedFd,
}

impl Process {
    /// Its PID.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Its current names. `None` if it is gone.
    pub fn names(&self) -> Option<Names> {
        let comm = self.read("comm", SHORT_BYTES)?;
        // A process that is ending still has a name but no arguments.
        let cmdline = self.read("cmdline", CMDLINE_BYTES).unwrap_or_default();
        Some(Names::new(&comm, &cmdline))
    }

    /// Its `stat`. `None` if it is gone.
    pub fn stat(&self) -> Option<Stat> {
        parse_stat(&self.read("stat", SHORT_BYTES)?)
    }

    /// Calls `visit` with the number of each of its open files, at most `limit`, and what the file is.
    ///
    /// # Errors
    /// It is gone, or this process may not look.
    pub(crate) fn each_file(
        &self,
        limit: usize,
        mut visit: impl FnMut(&str, &[u8]),
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let files = Dir::new(openat(&self.directory, "fd", flags, Mode::empty())?)?;
        let mut target = Vec::new();
        let numbers = files.filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
            name.parse::<u32>().is_ok().then_some(name)
        });
        for number in numbers.take(limit) {
            let link = readlinkat(&self.directory, format!("fd/{number}"), target);
            target = match link {
                Ok(link) => link.into_bytes(),
                // It has been closed.
                Err(Errno::NOENT) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            visit(&number, &target);
        }
        Ok(())
    }

    /// What the kernel says about one of its open files. `None` if it is closed.
    pub(crate) fn file_information(&self, number: &str) -> Option<String> {
        let text = self.read(&format!("fdinfo/{number}"), FILE_BYTES)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Its control groups. `None` if it is gone, or if they are longer than any real ones.
    fn groups(&self) -> Option<Vec<u8>> {
        let groups = self.read("cgroup", GROUPS_BYTES)?;
        (groups.len() < GROUPS_BYTES).then_some(groups)
    }

    /// Whether it is in a container of a pod.
    fn place(&self, view: &View) -> Place {
        let Some(groups) = self.groups() else {
            return Place::Unknown;
        };
        // Afterwards: what has not begun to end by now had its groups before.
        match self.stat() {
            Some(stat) => view.place(&groups, stat.is_exiting),
            None => Place::Unknown,
        }
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
                // The kernel fills the buffer while there is more data.
                Ok(read) if read < room => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        text.truncate(limit);
        Some(text)
    }
}

/// Parses the line in `/proc/<pid>/stat`. The name in it may contain any characters, including
/// parentheses and line breaks; only numbers follow the last parenthesis.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        is_kernel_thread: number(6)? & KERNEL_THREAD != 0,
        is_exiting: number(6)? & EXITING != 0,
        has_ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        started: number(19)?,
    })
}

#[cfg(test)]
mod tests;
