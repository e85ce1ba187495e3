//! `'...%s...'.format([...])`.

use super::no_such_overload;
use crate::{RunError, Value};

pub(super) fn format<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(_), Value::List(_)] = args else {
        return no_such_overload();
    };
    no_such_overload()
}
