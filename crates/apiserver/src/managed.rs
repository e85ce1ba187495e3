//! Who manages which fields.

use jiff::Timestamp;
use serde_json::Value;

use crate::resource::Resource;
use crate::status::Status;

/// Who writes, through which door, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) now: Timestamp,
}

/// Records the fields that a create, update or patch has changed.
pub(crate) fn tracked(
    resource: &Resource,
    old: Option<&Value>,
    new: &mut Value,
    writer: &Writer<'_>,
) {
    let _ = (resource, old, new, writer);
}

/// The object after a server-side apply.
pub(crate) fn applied(
    resource: &Resource,
    old: Option<&Value>,
    body: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, Status> {
    let _ = (resource, writer, force);
    match old {
        Some(old) => crate::patch::merge(old, body),
        None => Ok(body.clone()),
    }
}
