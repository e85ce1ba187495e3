//! Objects on disk, so that a server can resume from the state of a previous one.
//!
//! A request is one transaction, committed before the response is sent and before watchers receive
//! its events, so no client has seen a write that a crash loses. The log of changes is not stored:
//! a watch from before the start gets 410, as after a compaction. When the disk fails, the write
//! and all later requests get a 500 until a restart, also reads, the controllers stop, and `/readyz`
//! fails. redb is one file with checksummed transactions, without dependencies or C; a log of our own
//! would have its recovery to maintain.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition,
};
use serde_json::Value;

use crate::meta;
use crate::resource::GroupResource;
use crate::store::Key;

/// The current state of every object as JSON, by resource, namespace and name.
const OBJECTS: TableDefinition<&str, &[u8]> = TableDefinition::new("objects");
/// Numbers by name.
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
/// The resourceVersion of the last write.
const VERSION: &str = "version";
/// The format of the tables.
const FORMAT: &str = "format";
/// The current format.
const CURRENT_FORMAT: u64 = 1;
/// The database file in the directory.
const FILE: &str = "objects.redb";

/// The reason why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// Another process uses the directory.
    #[error(
        "{0} is in use by another process; stop that process, or specify another \
         directory"
    )]
    InUse(PathBuf),
    /// A newer release wrote the directory.
    #[error(
        "{path} has format {found}, but {CURRENT_FORMAT} is the newest supported format; use \
         a newer release, or specify another directory"
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The directory or a file in it cannot be created or opened.
    #[error("{path} cannot be opened")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Users other than the owner may write to the directory.
    #[error(
        "users other than the owner may write to {path} (mode {mode:o}); run `chmod go-w \
         {path}`, or specify another directory"
    )]
    Shared {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The database failed.
    #[error("the database in {path} failed")]
    Database {
        /// The directory.
        path: PathBuf,
        /// The error of the database.
        source: Box<redb::Error>,
    },
    /// A stored value is not an object.
    #[error("the database in {path} contains {storage_key:?}, which is not an object")]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// The key of the value in the database.
        storage_key: String,
    },
}

/// A directory that stores objects. Clones share it; only one server at a time writes to it,
/// and no other process.
///
/// Every write is on disk before the response is sent. After a crash, every write that was
/// acknowledged is present; one that was not acknowledged may be.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    database: Database,
    restored: Mutex<Option<StoredState>>,
}

/// The content of a directory when it was opened.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    /// The resourceVersion of the last write; 0 if there was none.
    pub(crate) version: u64,
    pub(crate) objects: Vec<(GroupResource, Key, Value)>,
}

/// One write to store: the key, and the object after the write.
pub(crate) type Entry = (String, Option<Vec<u8>>);

impl Storage {
    /// Opens a directory, and creates it if it is missing, accessible only to its owner.
    ///
    /// # Errors
    /// The directory cannot be created or read, other users may write to it, another process
    /// uses it, or a newer release wrote it.
    pub fn open(directory: &Path) -> Result<Self, StorageError> {
        let path = || directory.to_owned();
        let failed = |source| StorageError::Directory {
            path: path(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed)?;
        let mode = fs::metadata(directory).map_err(failed)?.mode() & 0o7777;
        // The directory contains the credentials of the server's administrator.
        if mode & 0o022 != 0 {
            let path = path();
            return Err(StorageError::Shared { path, mode });
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(directory.join(FILE))
            .map_err(failed)?;
        let opened = FileBackend::new(file)
            .and_then(|file| Database::builder().create_with_backend(file));
        let database = opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StorageError::InUse(path()),
            other => StorageError::Database {
                path: path(),
                source: Box::new(other.into()),
            },
        })?;
        let restored = read_state(&database, directory)?;
        Ok(Self(Arc::new(Inner {
            directory: path(),
            database,
            restored: Mutex::new(Some(restored)),
        })))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// The content of the directory when it was opened; empty on further calls.
    pub(crate) fn load(&self) -> StoredState {
        let mut restored = self
            .0
            .restored
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        restored.take().unwrap_or_default()
    }

    /// Stores some writes, all or none, and the resulting resourceVersion.
    pub(crate) fn write(
        &self,
        version: u64,
        entries: &[Entry],
    ) -> Result<(), redb::Error> {
        let transaction = self.0.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            for (storage_key, object) in entries {
                match object {
                    Some(object) => {
                        objects.insert(storage_key.as_str(), object.as_slice())?
                    }
                    None => objects.remove(storage_key.as_str())?,
                };
            }
            let mut numbers = transaction.open_table(NUMBERS)?;
            numbers.insert(VERSION, version)?;
            numbers.insert(FORMAT, CURRENT_FORMAT)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Storage").field(&self.0.directory).finish()
    }
}

/// The key of an object in the database. Names contain no NUL.
pub(crate) fn storage_key(resource: &GroupResource, key: &Key) -> String {
    let GroupResource { group, resource } = resource;
    format!("{group}\0{resource}\0{}\0{}", key.namespace, key.name)
}

fn read_state(
    database: &Database,
    directory: &Path,
) -> Result<StoredState, StorageError> {
    let failed = |source: redb::Error| StorageError::Database {
        path: directory.to_owned(),
        source: Box::new(source),
    };
    let (format, version, stored) = read(database).map_err(failed)?;
    if format > CURRENT_FORMAT {
        return Err(StorageError::Newer {
            path: directory.to_owned(),
            found: format,
        });
    }
    let mut objects = Vec::with_capacity(stored.len());
    for (storage_key, bytes) in stored {
        let parts: Vec<&str> = storage_key.split('\0').collect();
        let object = serde_json::from_slice::<Value>(&bytes);
        let ([group, resource, namespace, name], Ok(object)) = (parts.as_slice(), object)
        else {
            return Err(StorageError::Damaged {
                path: directory.to_owned(),
                storage_key,
            });
        };
        let key = Key::new(namespace, name);
        objects.push((GroupResource::new(group, resource), key, object));
    }
    // Sorted in the order of the writes.
    objects.sort_by_key(|(.., it)| meta::version(it).parse::<u64>().unwrap_or_default());
    Ok(StoredState { version, objects })
}

type Stored = Vec<(String, Vec<u8>)>;

/// The format, the version of the last write, and every object.
fn read(database: &Database) -> Result<(u64, u64, Stored), redb::Error> {
    let transaction = database.begin_write()?;
    // Creates the tables in a new database.
    transaction.open_table(OBJECTS)?;
    transaction.open_table(NUMBERS)?;
    transaction.commit()?;
    let transaction = database.begin_read()?;
    let numbers = transaction.open_table(NUMBERS)?;
    let number = |name: &str| -> Result<u64, redb::Error> {
        Ok(numbers.get(name)?.map(|it| it.value()).unwrap_or_default())
    };
    let mut stored = Vec::new();
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (storage_key, object) = entry?;
        stored.push((storage_key.value().to_owned(), object.value().to_vec()));
    }
    Ok((number(FORMAT)?, number(VERSION)?, stored))
}

/// Writes `text` to a file that only its owner can read, atomically.
///
/// The text is first written to a new file with an unpredictable name, so that a file or link
/// of another user is never followed.
///
/// # Errors
/// The directory is missing or cannot be written to; no file is left behind then.
pub fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let directory = path.parent().unwrap_or(Path::new(""));
    let here = Path::new(".");
    let is_here = directory.as_os_str().is_empty();
    let directory = if is_here { here } else { directory };
    // Created with access only for its owner.
    let mut draft = tempfile::NamedTempFile::new_in(directory)?;
    draft.write_all(text)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt as _, Full};
    use kubemu_clock::Clock;
    use redb::StorageBackend;
    use redb::backends::InMemoryBackend;
    use serde_json::json;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{Delete, Options, Selector, Server, Status};

    /// A disk that is full from some time on.
    #[derive(Debug, Default)]
    struct Disk {
        bytes: InMemoryBackend,
        is_full: Arc<AtomicBool>,
    }

    impl Disk {
        fn check(&self) -> io::Result<()> {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(io::Error::other("No space left on device"));
            }
            Ok(())
        }
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            self.bytes.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            StorageBackend::read(&self.bytes, offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.check()?;
            self.bytes.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.check()?;
            self.bytes.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.check()?;
            StorageBackend::write(&self.bytes, offset, data)
        }
    }

    /// A server with a namespace that has a config map, and the switch that fills its disk.
    async fn server() -> (Server, Arc<AtomicBool>) {
        let disk = Disk::default();
        let is_full = disk.is_full.clone();
        let database = Database::builder().create_with_backend(disk).unwrap();
        let storage = Storage(Arc::new(Inner {
            directory: PathBuf::from("/disk"),
            database,
            restored: Mutex::new(None),
        }));
        let clock = Clock::stopped_at("2026-03-06T21:30:00Z".parse().unwrap());
        let options = Options {
            storage: Some(storage),
            ..Options::new(clock)
        };
        let server = Server::new(options).unwrap();
        let client = server.client();
        let blue = json!({"metadata": {"name": "blue"}});
        client.create("/api/v1/namespaces", blue).await.unwrap();
        let map = json!({"metadata": {"name": "kept"}});
        client.create(MAPS, map).await.unwrap();
        server.clock().wait_until_idle().await;
        (server, is_full)
    }

    const MAPS: &str = "/api/v1/namespaces/blue/configmaps";

    async fn page(server: &Server, path: &str) -> (u16, String) {
        let request = Request::builder().uri(path).body(Full::<Bytes>::default());
        let response = server.in_process().oneshot(request.unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn is_refused(refused: &Status) -> bool {
        let start = "Internal error occurred: the data directory cannot be written: ";
        refused.code == 500 && refused.message.starts_with(start)
    }

    #[tokio::test]
    async fn what_is_not_on_disk_is_not_read() {
        let (server, is_full) = server().await;
        let client = server.client();
        assert_eq!(page(&server, "/readyz").await, (200, "ok".to_owned()));
        is_full.store(true, Ordering::SeqCst);
        let lost = json!({"metadata": {"name": "lost"}});
        assert!(is_refused(&client.create(MAPS, lost).await.unwrap_err()));
        for name in ["lost", "kept"] {
            let read = client.get(&format!("{MAPS}/{name}")).await;
            assert!(is_refused(&read.unwrap_err()), "{name}");
        }
        let all = Selector::default();
        assert!(is_refused(&client.list(MAPS, &all).await.unwrap_err()));
        assert!(is_refused(&client.watch(MAPS, &all, "").unwrap_err()));
        let failed = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
        assert_eq!(page(&server, "/readyz").await, (500, failed.to_owned()));
        assert_eq!(page(&server, "/livez").await, (200, "ok".to_owned()));
    }

    #[tokio::test]
    async fn the_controllers_stop_when_the_disk_is_full() {
        let (server, is_full) = server().await;
        let client = server.client();
        is_full.store(true, Ordering::SeqCst);
        let path = "/api/v1/namespaces/blue";
        let deleted = client.delete(path, &Delete::default()).await;
        assert!(is_refused(&deleted.unwrap_err()));
        let version = server.version();
        server.clock().wait_until_idle().await;
        assert_eq!(server.version(), version);
    }
}
