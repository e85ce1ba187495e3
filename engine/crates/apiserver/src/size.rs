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
    // Nearly every object is so small that it need not be encoded to know it.
    if bound(object) <= MAX_OBJECT_SIZE {
        return Ok(());
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, object) {
        Ok(()) if count.0 <= MAX_OBJECT_SIZE => Ok(()),
        _ => {
            let message = "etcdserver: request is too large";
            Err(Status::new(500, Reason::Unknown, message))
        }
    }
}

/// At least as many bytes as the value has as JSON.
fn bound(value: &Value) -> usize {
    // A number is at most `-1.2345678901234567e-308`, and each byte of a text at most `\u001f`.
    let text = |it: &str| 2 + 6 * it.len();
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 24,
        Value::String(it) => text(it),
        Value::Array(items) => 2 + items.iter().map(|it| 1 + bound(it)).sum::<usize>(),
        Value::Object(fields) => {
            let each = fields.iter().map(|(key, it)| 2 + text(key) + bound(it));
            2 + each.sum::<usize>()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_value_is_longer_than_its_bound() {
        let values = [
            json!(null),
            json!(false),
            json!(-1.234_567_890_123_456_7e-308),
            json!(i64::MIN),
            json!(u64::MAX),
            json!("a\"\\\u{1f}\u{7f}é"),
            json!([]),
            json!([[], {}, 1, "", null]),
            json!({"\u{0}": {"a": [true, {"b": -0.1}]}, "": ""}),
        ];
        for value in values {
            let length = value.to_string().len();
            assert!(length <= bound(&value), "{value}: {length}");
        }
    }

    #[test]
    fn the_limit_is_that_of_the_text_and_not_of_its_bound() {
        let of_length = |length: usize| json!("a".repeat(length - 2));
        assert!(check(&of_length(MAX_OBJECT_SIZE)).is_ok());
        assert!(check(&of_length(MAX_OBJECT_SIZE + 1)).is_err());
    }
}
