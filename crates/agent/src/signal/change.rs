//! Changes in directories, of which the kernel tells: so a signal is read at once.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

/// A buffer for some dozen events. What they say is not needed.
const BYTES: usize = 4096;
/// How many buffers are read at once. The kernel keeps 16384 events, and drops others.
const BUFFERS: usize = 64;

/// What files appear, change and go.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The directories that are watched.
#[derive(Debug)]
pub(super) struct Changes {
    /// The inotify. This type reads any descriptor.
    inotify: Receiver,
    watched: BTreeSet<i32>,
}

impl Changes {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// The kernel has no inotify, or this user has too many of them.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self {
            inotify: Receiver::from_owned_fd_unchecked(inotify)?,
            watched: BTreeSet::new(),
        })
    }

    /// Watches these directories instead of earlier ones, in place of one that does not exist its
    /// nearest ancestor. Returns whether all are watched; others have to be read now and then.
    ///
    /// To be called before the directories are read, each time: one may have been replaced.
    pub(super) fn watch<'p>(
        &mut self,
        directories: impl Iterator<Item = &'p Path>,
    ) -> bool {
        let mut watched = BTreeSet::new();
        let mut are_all = true;
        for directory in directories {
            match self.nearest(directory) {
                Some(watch) => {
                    watched.insert(watch);
                }
                None => are_all = false,
            }
        }
        for former in self.watched.difference(&watched) {
            // It fails for a directory that is gone.
            let _ = inotify::remove_watch(&self.inotify, *former);
        }
        self.watched = watched;
        are_all
    }

    fn nearest(&self, directory: &Path) -> Option<i32> {
        let add = |path| inotify::add_watch(&self.inotify, path, EVENTS);
        let mut missing = Vec::new();
        for path in directory.ancestors() {
            match add(path) {
                Ok(watch) => {
                    // Nobody tells of what was created before its ancestor was watched.
                    let created = missing.into_iter().rev();
                    let created = created.map_while(|path| add(path).ok());
                    return Some(created.last().unwrap_or(watch));
                }
                Err(Errno::NOENT | Errno::NOTDIR) => missing.push(path),
                Err(_) => return None,
            }
        }
        None
    }

    /// Waits for a change, at least until `earliest`. Many changes are one. None is lost if the
    /// future is dropped before it completes.
    pub(super) async fn next(&self, earliest: Instant) {
        sleep_until(earliest).await;
        loop {
            if self.inotify.readable().await.is_err() {
                // The directories are read now and then.
                return pending().await;
            }
            if self.drain() {
                return;
            }
        }
    }

    /// Reads what has happened so far. Returns whether anything has.
    fn drain(&self) -> bool {
        let mut bytes = [0; BYTES];
        let read = (0..BUFFERS).map(|_| self.inotify.try_read(&mut bytes));
        read.take_while(Result::is_ok).count() > 0
    }
}
