//! A certificate from files that another process maintains, such as a mounted Secret.
//!
//! Both files are read again and again, and used when they have changed: the kubelet exchanges a
//! mounted Secret by renaming a link, other tools write or rename the files. A pair that does not
//! match, as between the writes of the two files, leaves the old pair in use.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::certificate::{self, Certificate};

/// The file with the chain, as in a Secret of type `kubernetes.io/tls`.
pub const CHAIN: &str = "tls.crt";
/// The file with the key.
pub const KEY: &str = "tls.key";
/// The most bytes of either file.
const MAX_BYTES: u64 = 256 << 10;
/// How often they are read. A certificate is renewed long before it expires.
const EVERY: Duration = Duration::from_secs(2);

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("reading {path}: {source}")]
    File {
        /// The file.
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

/// A directory with [`CHAIN`] and [`KEY`].
#[derive(Debug)]
pub struct MountedCertificate {
    directory: PathBuf,
    certificate: Certificate,
    /// What the files were last, or why they could not be read.
    last: Result<[Vec<u8>; 2], String>,
}

impl MountedCertificate {
    /// Uses the files in `directory` for `certificate`.
    ///
    /// # Errors
    /// The files are missing or cannot be used.
    pub fn open(directory: &Path, certificate: &Certificate) -> Result<Self, Error> {
        let files = read(directory)?;
        let mounted = Self {
            directory: directory.to_owned(),
            certificate: certificate.clone(),
            last: Ok(files.clone()),
        };
        mounted.exchange(&files)?;
        Ok(mounted)
    }

    /// Uses the files after each change. If they cannot be used, logs that and keeps the current
    /// certificate. Never ends.
    pub async fn reload_on_change(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let files = read(&self.directory).map_err(|error| error.to_string());
            if files == self.last {
                continue;
            }
            let used = files
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|files| self.exchange(files).map_err(|it| it.to_string()));
            match used {
                Ok(()) => tracing::info!("certificate reloaded"),
                Err(error) => {
                    tracing::warn!(
                        error,
                        "certificate not reloaded, keeping the current one"
                    );
                }
            }
            self.last = files;
        }
    }

    fn exchange(&self, [chain, key]: &[Vec<u8>; 2]) -> Result<(), Error> {
        let exchanged = self.certificate.exchange(chain, key);
        exchanged.map_err(|source| Error::Pair {
            path: self.directory.clone(),
            source,
        })
    }
}

/// The chain and the key.
fn read(directory: &Path) -> Result<[Vec<u8>; 2], Error> {
    let file = |name: &str| {
        let path = directory.join(name);
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(&path);
        match opened.and_then(|it| it.take(MAX_BYTES + 1).read_to_end(&mut bytes)) {
            Err(source) => Err(Error::File { path, source }),
            Ok(length) if length as u64 > MAX_BYTES => Err(Error::Long(path)),
            Ok(_) => Ok(bytes),
        }
    };
    Ok([file(CHAIN)?, file(KEY)?])
}
