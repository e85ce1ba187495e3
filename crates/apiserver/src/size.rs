//! How large an object may be that is stored.

use std::io;

use serde_json::Value;

use crate::status::{Reason, Status};

/// Most bytes of an object as JSON: what etcd takes in a request by default
/// (`--max-request-bytes`). Kubernetes keeps custom objects as JSON, and built-in ones in a form
/// that is somewhat smaller.
const MOST: usize = 1024 * 1024 * 3 / 2;

/// Refuses an object that etcd would not take, in its words.
///
/// # Errors
/// 500.
pub(crate) fn check(object: &Value) -> Result<(), Status> {
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, object) {
        Ok(()) if count.0 <= MOST => Ok(()),
        _ => {
            let message = "etcdserver: request is too large";
            Err(Status::new(500, Reason::Unknown, message))
        }
    }
}

/// Counts what is written to it, up to the limit.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
