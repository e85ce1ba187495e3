//! Reading a file of the host without trusting it: at most so many bytes, and never waiting.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// The text of a regular file, which bytes that are not UTF-8 do not spoil, and what it is.
///
/// # Errors
/// It cannot be read, is not a regular file (a link is not followed, a pipe not waited for), or has
/// more than `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<(String, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
        return Err(io::Error::other(format!("has more than {limit} bytes")));
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), found))
}

/// Whether there is nothing at the path, rather than something that cannot be read.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
