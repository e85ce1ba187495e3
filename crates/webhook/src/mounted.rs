//! A certificate from files that another process maintains, such as a mounted Secret.
//!
//! The directory is watched by the kernel (inotify), not polled. The kubelet exchanges a mounted
//! Secret by renaming a link; other tools write or rename the files. After any change in the
//! directory, both files are read again. A pair that does not match, as between the writes of the
//! two files, leaves the old pair in use.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::certificate::{self, Certificate};

/// The file with the chain, as in a Secret of type `kubernetes.io/tls`.
pub const CHAIN: &str = "tls.crt";
/// The file with the key.
pub const KEY: &str = "tls.key";
/// The most bytes of either file.
const MAX_BYTES: u64 = 256 << 10;

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or the directory cannot be read or watched.
    #[error("reading {path}: {source}")]
    File {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is longer than any certificate or key.
    #[error("{0} is longer than 256 KiB")]
    Long(PathBuf),
    /// The files are not a usable pair.
    #[error("{path}: {source}")]
    Pair {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        source: certificate::Error,
    },
}

/// A directory with [`CHAIN`] and [`KEY`], watched.
#[derive(Debug)]
pub struct MountedCertificate {
    directory: PathBuf,
    certificate: Certificate,
    changes: mpsc::Receiver<()>,
}

impl MountedCertificate {
    /// Uses the files in `directory` for `certificate`, and watches the directory on a thread
    /// that ends with the process or with the first change after this is dropped.
    ///
    /// # Errors
    /// The files are missing or cannot be used, or the directory cannot be watched.
    pub fn open(directory: &Path, certificate: &Certificate) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::File {
            path: directory.to_owned(),
            source,
        };
        let watch = || -> Result<OwnedFd, Errno> {
            let events = inotify::init(CreateFlags::CLOEXEC)?;
            let changes = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR;
            inotify::add_watch(&events, directory, changes)?;
            Ok(events)
        };
        let events = watch().map_err(|errno| failed(errno.into()))?;
        // Several changes that have not been processed are one.
        let (change, changes) = mpsc::channel(1);
        std::thread::Builder::new()
            .name("certificate".to_owned())
            .spawn(move || report(events, &change))
            .map_err(failed)?;
        let mounted = Self {
            directory: directory.to_owned(),
            certificate: certificate.clone(),
            changes,
        };
        // After the watch has begun, so that no change is missed.
        mounted.read()?;
        Ok(mounted)
    }

    /// Reads the files again after each change. If they cannot be used, logs that and keeps the
    /// current certificate. Ends when the directory itself is removed.
    pub async fn reload_on_change(mut self) {
        while self.changes.recv().await.is_some() {
            match self.read() {
                Ok(()) => tracing::info!("certificate reloaded"),
                Err(error) => {
                    tracing::warn!(%error, "certificate not reloaded, keeping the current one");
                }
            }
        }
        tracing::warn!(directory = %self.directory.display(), "the certificate directory is no \
                                                               longer watched");
    }

    fn read(&self) -> Result<(), Error> {
        let (chain, key) = (self.file(CHAIN)?, self.file(KEY)?);
        let exchanged = self.certificate.exchange(&chain, &key);
        exchanged.map_err(|source| Error::Pair {
            path: self.directory.clone(),
            source,
        })
    }

    fn file(&self, name: &str) -> Result<Vec<u8>, Error> {
        use io::Read as _;
        let path = self.directory.join(name);
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(&path)?;
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Err(source) => Err(Error::File { path, source }),
            Ok(bytes) if bytes.len() as u64 > MAX_BYTES => Err(Error::Long(path)),
            Ok(bytes) => Ok(bytes),
        }
    }
}

/// Sends changes until the directory is gone or the receiver is dropped.
fn report(events: OwnedFd, change: &mpsc::Sender<()>) {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(events, &mut space);
    loop {
        match reader.next() {
            Ok(event) if event.events().contains(ReadFlags::IGNORED) => return,
            Ok(_) => {
                if let Err(TrySendError::Closed(())) = change.try_send(()) {
                    return;
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
