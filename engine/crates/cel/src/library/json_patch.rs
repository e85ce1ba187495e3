//! The function for the paths of JSON patches.

use super::{Row, global, no_such_overload};
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[global(
    "jsonpatch.escapeKey",
    "string_jsonpatch_escapeKey_string",
    "string -> string",
    escape_key,
)];

/// Escapes text as one segment of a JSON pointer: `~` becomes `~0`, `/` becomes `~1`.
fn escape_key<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => {
            Ok(Value::text(text.replace('~', "~0").replace('/', "~1")))
        }
        _ => no_such_overload(),
    }
}
