//! JSON patches (RFC 6902), as Kubernetes' library carries them out (gopkg.in/evanphx/json-patch):
//! where it differs from the standard, so does this.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::rejected;
use crate::decode::go_kind;
use crate::nesting;
use crate::status::Status;

/// Operations in one patch (`maxJSONPatchOperations` in k8s.io/apiserver).
const MAX_OPERATIONS: usize = 10_000;

/// What all copies of a patch may add up to: they could double an object again and again
/// (`AccumulatedCopySizeLimit`, which Kubernetes sets to the limit of a request's body).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// An operation that does not apply. Kubernetes does not tell why.
struct Inapplicable;

type Done = Result<(), Inapplicable>;

/// Carries out `operations` in order on a copy of `object`.
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
    let mut document = Document {
        root: object.clone(),
        copied: 0,
    };
    for operation in list {
        let done = match operation.as_object() {
            Some(fields) => document.perform(&Operation(fields)),
            None => Err(Inapplicable),
        };
        done.map_err(|Inapplicable| rejected())?;
    }
    Ok(document.root)
}

/// The operations of a patch whose texts are texts.
///
/// # Errors
/// 400 in the words of Go's decoder.
fn checked(operations: &Value) -> Result<&Vec<Value>, Status> {
    let refused = |value: &Value, into: &str| {
        let kind = go_kind(value);
        Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go {into}"
        ))
    };
    let list = operations
        .as_array()
        .ok_or_else(|| refused(operations, "value of type []handlers.jsonPatchOp"))?;
    for operation in list {
        let Value::Object(fields) = operation else {
            if operation.is_null() {
                continue;
            }
            return Err(refused(operation, "value of type handlers.jsonPatchOp"));
        };
        for (name, value) in fields {
            let is_text = matches!(name.as_str(), "op" | "path" | "from");
            if is_text && !value.is_string() && !value.is_null() {
                let into = format!("struct field jsonPatchOp.{name} of type string");
                return Err(refused(value, &into));
            }
        }
    }
    Ok(list)
}

/// One operation as it was sent.
struct Operation<'a>(&'a Map<String, Value>);

impl<'a> Operation<'a> {
    fn text(&self, name: &str) -> Result<&'a str, Inapplicable> {
        let found = self.0.get(name).and_then(Value::as_str);
        found.ok_or(Inapplicable)
    }

    /// What is to be put somewhere; null where nothing was said.
    fn value(&self) -> Value {
        self.0.get("value").cloned().unwrap_or_default()
    }
}

/// What is patched.
struct Document {
    root: Value,
    /// What the copies have added up to.
    copied: usize,
}

impl Document {
    fn perform(&mut self, operation: &Operation<'_>) -> Done {
        match operation.text("op")? {
            "add" => self.add(operation.text("path")?, operation.value()),
            "remove" => self.remove(operation.text("path")?).map(|_| ()),
            "replace" => self.replace(operation.text("path")?, operation.value()),
            "move" => {
                let moved = self.remove(operation.text("from")?)?;
                self.add(operation.text("path")?, moved)
            }
            "test" => self.test(operation.text("path")?, operation.0.get("value")),
            "copy" => self.copy(operation.text("from")?, operation.text("path")?),
            _ => Err(Inapplicable),
        }
    }

    /// The object or list that a path leads into, and the key in it. What is before the first
    /// slash is not looked at.
    fn find(&mut self, path: &str) -> Result<(&mut Value, String), Inapplicable> {
        let (_, steps) = path.split_once('/').ok_or(Inapplicable)?;
        let (parents, last) = match steps.rsplit_once('/') {
            Some((parents, last)) => (Some(parents), last),
            None => (None, steps),
        };
        let mut at = &mut self.root;
        for step in parents.into_iter().flat_map(|it| it.split('/')) {
            let key = unescaped(step);
            at = match at {
                Value::Object(fields) => fields.get_mut(&*key).ok_or(Inapplicable)?,
                Value::Array(items) => {
                    let index = index(&key, items.len())?;
                    items.get_mut(index).ok_or(Inapplicable)?
                }
                _ => return Err(Inapplicable),
            };
        }
        if at.is_object() || at.is_array() {
            Ok((at, unescaped(last).into_owned()))
        } else {
            Err(Inapplicable)
        }
    }

    /// What is at a path. What an object does not have counts as null.
    fn get(&mut self, path: &str) -> Result<&Value, Inapplicable> {
        let (parent, key) = self.find(path)?;
        match parent {
            Value::Array(items) => {
                items.get(index(&key, items.len())?).ok_or(Inapplicable)
            }
            other => Ok(&other[&key]),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Done {
        // Asked of each, as moves of a value into itself would otherwise deepen it without end.
        if path.matches('/').count() + nesting::depth(&value) > nesting::MOST {
            return Err(Inapplicable);
        }
        let (parent, key) = self.find(path)?;
        match parent {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) => {
                let end = items.len();
                let at = if key == "-" {
                    end
                } else {
                    index(&key, end + 1)?
                };
                if at > end {
                    return Err(Inapplicable);
                }
                items.insert(at, value);
            }
            _ => return Err(Inapplicable),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, Inapplicable> {
        let (parent, key) = self.find(path)?;
        match parent {
            Value::Object(fields) => fields.shift_remove(&key).ok_or(Inapplicable),
            Value::Array(items) => {
                let at = index(&key, items.len())?;
                if at >= items.len() {
                    return Err(Inapplicable);
                }
                Ok(items.remove(at))
            }
            _ => Err(Inapplicable),
        }
    }

    /// Puts a value in the place of another. A key that an object does not have is added, which
    /// the standard does not allow.
    fn replace(&mut self, path: &str, value: Value) -> Done {
        if path.is_empty() {
            let is_whole = value.is_object() || value.is_array();
            if !is_whole || nesting::depth(&value) > nesting::MOST {
                return Err(Inapplicable);
            }
            self.root = value;
            return Ok(());
        }
        let (parent, key) = self.find(path)?;
        if let Value::Array(items) = parent {
            let at = index(&key, items.len())?;
            if at >= items.len() {
                return Err(Inapplicable);
            }
            items.remove(at);
            let end = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            return self.add(&format!("{end}/{at}"), value);
        }
        self.add(path, value)
    }

    fn test(&mut self, path: &str, expected: Option<&Value>) -> Done {
        let found = match path {
            "" => &self.root,
            _ => self.get(path)?,
        };
        if found == expected.unwrap_or(&Value::Null) {
            Ok(())
        } else {
            Err(Inapplicable)
        }
    }

    fn copy(&mut self, from: &str, path: &str) -> Done {
        let value = self.get(from)?.clone();
        self.copied += size(&value);
        if self.copied > MAX_COPIED_BYTES {
            return Err(Inapplicable);
        }
        self.add(path, value)
    }
}

/// A step of a path without its escapes, of which `~1` goes first.
fn unescaped(step: &str) -> Cow<'_, str> {
    if step.contains('~') {
        step.replace("~1", "/").replace("~0", "~").into()
    } else {
        step.into()
    }
}

/// The index that a step names, counted from the end where it is below zero. It may be beyond
/// the end.
fn index(step: &str, len: usize) -> Result<usize, Inapplicable> {
    let number: i64 = step.parse().map_err(|_| Inapplicable)?;
    let counted = usize::try_from(number.unsigned_abs()).map_err(|_| Inapplicable)?;
    if number < 0 {
        len.checked_sub(counted).ok_or(Inapplicable)
    } else {
        Ok(counted)
    }
}

/// About as many bytes as the value has as JSON.
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
