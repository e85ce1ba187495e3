//! The maximum size of a stored object.

use std::io;

use serde_json::Value;

use crate::status::{Reason, Status};

/// Maximum size of an object as JSON, in bytes: etcd's default request limit
/// (`--max-request-bytes`). Kubernetes stores custom objects as JSON, and built-in ones in a
/// somewhat smaller format.
const MAX_OBJECT_SIZE: usize = 1024 * 1024 * 3 / 2;

/// Rejects an object that is too large for etcd, with etcd's message.
///
/// # Errors
/// 500.
pub(crate) fn check(object: &Value) -> Result<(), Status> {
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, object) {
        Ok(()) if count.0 <= MAX_OBJECT_SIZE => Ok(()),
        _ => {
            let message = "etcdserver: request is too large";
            Err(Status::new(500, Reason::Unknown, message))
        }
    }
}

/// Counts the bytes written to it, up to the limit.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > MAX_OBJECT_SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
