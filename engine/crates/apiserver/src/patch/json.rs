//! JSON patches (RFC 6902) as implemented by Kubernetes' library
//! (gopkg.in/evanphx/json-patch), including its deviations from the standard.

mod location;
mod operation;

use std::borrow::Cow;

use serde_json::Value;

use super::rejected;
use crate::nesting;
use crate::status::Status;
use location::{Location, index};
pub(super) use operation::operations_of_webhook;
use operation::{Operation, checked};

/// Maximum number of operations in one patch (`maxJSONPatchOperations` in k8s.io/apiserver).
const MAX_OPERATIONS: usize = 10_000;

/// Maximum size of all copies of a patch in total: each copy could double the object
/// (`AccumulatedCopySizeLimit`, which Kubernetes sets to the limit of a request's body).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of values that the operations of a patch shift in lists or move, in total:
/// an insertion at the head of a list shifts all its entries, so that 10,000 of them would keep the
/// server busy for half a minute.
const MAX_SHIFTED: usize = 20_000_000;

/// The reason why an operation does not apply. Kubernetes reports it only for operations of
/// policies.
enum Inapplicable {
    /// The value at a path differs from the tested one.
    Test(String),
    /// The message of Kubernetes' library.
    Why(String),
    /// The patch shifts too many values.
    TooCostly,
}

type OperationResult = Result<(), Inapplicable>;

/// Applies `operations` in order to a copy of `object`.
pub(super) fn apply(object: &Value, operations: &Value) -> Result<Value, Status> {
    let list = checked(operations)?;
    if list.len() > MAX_OPERATIONS {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is \
             {MAX_OPERATIONS}, got {}",
            list.len()
        );
        return Err(Status {
            message,
            ..Status::too_large(MAX_OPERATIONS)
        });
    }
    let mut document = Document::of(object);
    for operation in list {
        document.perform(operation).map_err(|it| match it {
            Inapplicable::TooCostly => Status {
                message: format!("Request entity too large: {}", too_costly()),
                ..Status::too_large(MAX_SHIFTED)
            },
            Inapplicable::Test(_) | Inapplicable::Why(_) => rejected(),
        })?;
    }
    Ok(document.root)
}

/// Applies operations that apply once more, except tests, and calls `before` with the value before
/// each. `None` if one does not apply.
pub(super) fn replay(
    object: &Value,
    operations: &[Value],
    mut before: impl FnMut(&mut Value, &Value),
) -> Option<Value> {
    let mut document = Document::of(object);
    for operation in operations {
        before(&mut document.root, operation);
        if operation["op"] != "test" {
            document.perform(operation).ok()?;
        }
    }
    Some(document.root)
}

/// Applies the operations of a policy. The object stays unchanged if a `test` fails.
///
/// # Errors
/// The message of Kubernetes' library for an operation that does not apply.
pub(super) fn apply_for_policy(
    object: &Value,
    operations: &Value,
) -> Result<Value, String> {
    let list = operations.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.len() > MAX_OPERATIONS {
        let found = list.len();
        return Err(format!(
            "the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {found}"
        ));
    }
    let mut document = Document::of(object);
    for operation in list {
        match document.perform(operation) {
            Ok(()) => {}
            Err(Inapplicable::Test(_)) => return Ok(object.clone()),
            Err(Inapplicable::Why(why)) => return Err(why),
            Err(Inapplicable::TooCostly) => return Err(too_costly()),
        }
    }
    Ok(document.root)
}

/// Applies the operations of a webhook's response, all or none.
///
/// # Errors
/// The message of Kubernetes' library for an operation that does not apply.
pub(super) fn of_webhook(object: &Value, operations: &[Value]) -> Result<Value, String> {
    let mut document = Document::of(object);
    for operation in operations {
        let result = document.perform(operation);
        result.map_err(|it| match it {
            Inapplicable::Test(path) => {
                format!("testing value {path} failed: test failed")
            }
            Inapplicable::Why(why) => why,
            Inapplicable::TooCostly => too_costly(),
        })?;
    }
    Ok(document.root)
}

/// The document that is patched.
struct Document {
    root: Value,
    /// The total size of all copies.
    copied: usize,
    /// The number of values that were shifted or moved.
    shifted: usize,
}

impl Document {
    fn of(object: &Value) -> Self {
        Self {
            root: object.clone(),
            copied: 0,
            shifted: 0,
        }
    }

    fn perform(&mut self, operation: &Value) -> OperationResult {
        self.apply(operation)?;
        if self.shifted > MAX_SHIFTED {
            return Err(Inapplicable::TooCostly);
        }
        Ok(())
    }

    fn apply(&mut self, operation: &Value) -> OperationResult {
        let Some(fields) = operation.as_object() else {
            return failed("Unexpected kind: unknown".to_owned());
        };
        let operation = Operation(fields);
        match operation.text("op")? {
            "add" => self.add(operation.text("path")?, operation.value()),
            "remove" => self.remove(operation.text("path")?),
            "replace" => self.replace(operation.text("path")?, operation.value()),
            "move" => self.move_value(operation.source()?, operation.text("path")?),
            "test" => self.test(operation.text("path")?, operation.0.get("value")),
            "copy" => self.copy(operation.source()?, operation.text("path")?),
            other => failed(format!("Unexpected kind: {other}")),
        }
    }

    /// The object or list that contains the last step of a path, and its key. The part before
    /// the first slash is ignored.
    fn find(&mut self, path: &str) -> Option<Location<'_>> {
        let (_, steps) = path.split_once('/')?;
        let (parents, last) = match steps.rsplit_once('/') {
            Some((parents, last)) => (Some(parents), last),
            None => (None, steps),
        };
        let mut at = &mut self.root;
        for step in parents.into_iter().flat_map(|it| it.split('/')) {
            let key = unescaped(step);
            at = match at {
                Value::Object(fields) => fields.get_mut(&*key)?,
                Value::Array(items) => {
                    let index = index(&key, items.len()).ok()?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
        let is_container = at.is_object() || at.is_array();
        is_container.then(|| Location {
            container: at,
            key: unescaped(last).into_owned(),
            depth: path.matches('/').count(),
            shifted: &mut self.shifted,
        })
    }

    fn add(&mut self, path: &str, value: Value) -> OperationResult {
        let Some(location) = self.find(path) else {
            let what = "add operation does not apply: doc is missing path";
            return Err(missing(&format!("{what}: \"{path}\"")));
        };
        let result = location.put(value);
        result.map_err(|why| {
            Inapplicable::Why(format!("error in add for path: '{path}': {why}"))
        })
    }

    fn remove(&mut self, path: &str) -> OperationResult {
        let Some(location) = self.find(path) else {
            let what = "remove operation does not apply: doc is missing path";
            return Err(missing(&format!("{what}: \"{path}\"")));
        };
        let result = location.take();
        result.map(|_| ()).map_err(|why| {
            Inapplicable::Why(format!("error in remove for path: '{path}': {why}"))
        })
    }

    /// Replaces a value. A key that an object does not have is added, in contrast to the
    /// standard.
    fn replace(&mut self, path: &str, value: Value) -> OperationResult {
        let what = "replace operation does not apply: doc is missing";
        if path.is_empty() {
            let is_whole = value.is_object() || value.is_array();
            if !is_whole || nesting::depth(&value) > nesting::MAX_DEPTH {
                // The library wraps a nil error.
                let why = "replace operation value must be object or array: %!w(<nil>)";
                return failed(why.to_owned());
            }
            self.root = value;
            return Ok(());
        }
        let Some(location) = self.find(path) else {
            return Err(missing(&format!("{what} path: {path}")));
        };
        if location.current().is_err() {
            return Err(missing(&format!("{what} key: {path}")));
        }
        location.set(value).map_err(Inapplicable::Why)
    }

    /// Moves a value.
    fn move_value(&mut self, from: &str, path: &str) -> OperationResult {
        let what = "move operation does not apply: doc is missing";
        let Some(source) = self.find(from) else {
            return Err(missing(&format!("{what} from path: {from}")));
        };
        let key = source.key.clone();
        let moved = source.take();
        let moved = moved.map_err(|why| {
            Inapplicable::Why(format!("error in move for path: '{key}': {why}"))
        })?;
        // Its depth is measured at the new place.
        self.shifted += count(&moved);
        let Some(target) = self.find(path) else {
            return Err(missing(&format!("{what} destination path: {path}")));
        };
        target.put(moved).map_err(|why| {
            Inapplicable::Why(format!("error in move for path: '{path}': {why}"))
        })
    }

    fn test(&mut self, path: &str, expected: Option<&Value>) -> OperationResult {
        let expected = expected.unwrap_or(&Value::Null);
        let is_expected = if path.is_empty() {
            self.root == *expected
        } else {
            let Some(location) = self.find(path) else {
                let what = "test operation does not apply: is missing path";
                return Err(missing(&format!("{what}: {path}")));
            };
            let found = location.current().map_err(|why| {
                Inapplicable::Why(format!("error in test for path: '{path}': {why}"))
            })?;
            found == expected
        };
        if is_expected {
            Ok(())
        } else {
            Err(Inapplicable::Test(path.to_owned()))
        }
    }

    fn copy(&mut self, from: &str, path: &str) -> OperationResult {
        let what = "copy operation does not apply: doc is missing";
        let Some(source) = self.find(from) else {
            return Err(missing(&format!("{what} from path: {from}")));
        };
        let value = source.current().cloned().map_err(|why| {
            Inapplicable::Why(format!("error in copy for from: '{from}': {why}"))
        })?;
        self.copied += size(&value);
        if self.copied > MAX_COPIED_BYTES {
            return failed(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {MAX_COPIED_BYTES}",
                self.copied
            ));
        }
        let Some(target) = self.find(path) else {
            return Err(missing(&format!("{what} destination path: {path}")));
        };
        target.put(value).map_err(|why| {
            Inapplicable::Why(format!("error while adding value during copy: {why}"))
        })
    }
}

/// The error for a patch that shifts too many values.
fn too_costly() -> String {
    format!(
        "the operations of the JSON patch shift more than {MAX_SHIFTED} values in lists or move \
         them; send several smaller patches, or replace the list as a whole"
    )
}

/// The number of values in a value, including itself.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn failed(why: String) -> OperationResult {
    Err(Inapplicable::Why(why))
}

/// The error for a missing value that an operation needs.
fn missing(what: &str) -> Inapplicable {
    Inapplicable::Why(format!("{what}: missing value"))
}

/// A path step with its escapes decoded; `~1` is decoded first.
fn unescaped(step: &str) -> Cow<'_, str> {
    if step.contains('~') {
        step.replace("~1", "/").replace("~0", "~").into()
    } else {
        step.into()
    }
}

/// The approximate size of the value as JSON, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|it| size(it) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields
                .iter()
                .map(|(key, value)| key.len() + size(value) + 4)
                .sum::<usize>()
        }
    }
}
