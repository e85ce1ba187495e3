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

/// Why an operation does not apply. Kubernetes reports it of what policies have made, and of nothing
/// else.
enum Inapplicable {
    /// The value at a path is not the one that is tested for.
    Test(String),
    /// In the words of Kubernetes' library.
    Why(String),
}

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
    let mut document = Document::of(object);
    for operation in list {
        let done = document.perform(operation);
        done.map_err(|_| rejected())?;
    }
    Ok(document.root)
}

/// Carries out the operations that a policy has made. The object stays as it is where a `test`
/// fails.
///
/// # Errors
/// Why an operation does not apply, in the words of Kubernetes' library.
pub(super) fn carried_out(object: &Value, operations: &Value) -> Result<Value, String> {
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
        }
    }
    Ok(document.root)
}

/// Carries out the operations that a webhook has answered with, all or none.
///
/// # Errors
/// Why an operation does not apply, in the words of Kubernetes' library.
pub(super) fn of_webhook(object: &Value, operations: &[Value]) -> Result<Value, String> {
    let mut document = Document::of(object);
    for operation in operations {
        let done = document.perform(operation);
        done.map_err(|it| match it {
            Inapplicable::Test(path) => {
                format!("testing value {path} failed: test failed")
            }
            Inapplicable::Why(why) => why,
        })?;
    }
    Ok(document.root)
}

/// The operations of a patch that a webhook has answered with.
///
/// # Errors
/// What Go's decoder says of anything else than a list of objects.
pub(super) fn operations_of_webhook(patch: &Value) -> Result<&[Value], String> {
    let refused = |value: &Value, into: &str| {
        let kind = go_kind(value);
        format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{into}")
    };
    if patch.is_null() {
        return Ok(&[]);
    }
    let list = patch.as_array().ok_or_else(|| refused(patch, "Patch"))?;
    let other = list.iter().find(|it| !it.is_object() && !it.is_null());
    other.map_or(Ok(list), |it| Err(refused(it, "Operation")))
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
        found.ok_or_else(|| missing(&format!("operation missing {name} field")))
    }

    /// Where a value comes from.
    fn source(&self) -> Result<&'a str, Inapplicable> {
        let found = self.0.get("from").and_then(Value::as_str);
        found.ok_or_else(|| {
            let name = self.0.get("op").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            let why = "operation failed to decode from: operation, missing from field";
            missing(&format!("{name} {why}"))
        })
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
    fn of(object: &Value) -> Self {
        Self {
            root: object.clone(),
            copied: 0,
        }
    }

    fn perform(&mut self, operation: &Value) -> Done {
        let Some(fields) = operation.as_object() else {
            return failed("Unexpected kind: unknown".to_owned());
        };
        let operation = Operation(fields);
        match operation.text("op")? {
            "add" => self.add(operation.text("path")?, operation.value()),
            "remove" => self.remove(operation.text("path")?),
            "replace" => self.replace(operation.text("path")?, operation.value()),
            "move" => self.transfer(operation.source()?, operation.text("path")?),
            "test" => self.test(operation.text("path")?, operation.0.get("value")),
            "copy" => self.copy(operation.source()?, operation.text("path")?),
            other => failed(format!("Unexpected kind: {other}")),
        }
    }

    /// The object or list that a path leads into, and the key in it. What is before the first
    /// slash is not looked at.
    fn find(&mut self, path: &str) -> Option<Place<'_>> {
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
        let is_place = at.is_object() || at.is_array();
        is_place.then(|| Place {
            holder: at,
            key: unescaped(last).into_owned(),
            depth: path.matches('/').count(),
        })
    }

    fn add(&mut self, path: &str, value: Value) -> Done {
        let Some(place) = self.find(path) else {
            let what = "add operation does not apply: doc is missing path";
            return Err(missing(&format!("{what}: \"{path}\"")));
        };
        let done = place.put(value);
        done.map_err(|why| {
            Inapplicable::Why(format!("error in add for path: '{path}': {why}"))
        })
    }

    fn remove(&mut self, path: &str) -> Done {
        let Some(place) = self.find(path) else {
            let what = "remove operation does not apply: doc is missing path";
            return Err(missing(&format!("{what}: \"{path}\"")));
        };
        let done = place.take();
        done.map(|_| ()).map_err(|why| {
            Inapplicable::Why(format!("error in remove for path: '{path}': {why}"))
        })
    }

    /// Puts a value in the place of another. A key that an object does not have is added, which
    /// the standard does not allow.
    fn replace(&mut self, path: &str, value: Value) -> Done {
        let what = "replace operation does not apply: doc is missing";
        if path.is_empty() {
            let is_whole = value.is_object() || value.is_array();
            if !is_whole || nesting::depth(&value) > nesting::MOST {
                // The library wraps an error that there is not.
                let why = "replace operation value must be object or array: %!w(<nil>)";
                return failed(why.to_owned());
            }
            self.root = value;
            return Ok(());
        }
        let Some(place) = self.find(path) else {
            return Err(missing(&format!("{what} path: {path}")));
        };
        if place.look().is_err() {
            return Err(missing(&format!("{what} key: {path}")));
        }
        place.set(value).map_err(Inapplicable::Why)
    }

    /// Moves a value.
    fn transfer(&mut self, from: &str, path: &str) -> Done {
        let what = "move operation does not apply: doc is missing";
        let Some(source) = self.find(from) else {
            return Err(missing(&format!("{what} from path: {from}")));
        };
        let key = source.key.clone();
        let moved = source.take();
        let moved = moved.map_err(|why| {
            Inapplicable::Why(format!("error in move for path: '{key}': {why}"))
        })?;
        let Some(target) = self.find(path) else {
            return Err(missing(&format!("{what} destination path: {path}")));
        };
        target.put(moved).map_err(|why| {
            Inapplicable::Why(format!("error in move for path: '{path}': {why}"))
        })
    }

    fn test(&mut self, path: &str, expected: Option<&Value>) -> Done {
        let expected = expected.unwrap_or(&Value::Null);
        let is_expected = if path.is_empty() {
            self.root == *expected
        } else {
            let Some(place) = self.find(path) else {
                let what = "test operation does not apply: is missing path";
                return Err(missing(&format!("{what}: {path}")));
            };
            let found = place.look().map_err(|why| {
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

    fn copy(&mut self, from: &str, path: &str) -> Done {
        let what = "copy operation does not apply: doc is missing";
        let Some(source) = self.find(from) else {
            return Err(missing(&format!("{what} from path: {from}")));
        };
        let value = source.look().cloned().map_err(|why| {
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

/// The last step of a path.
struct Place<'v> {
    /// An object or a list.
    holder: &'v mut Value,
    key: String,
    /// How many steps the path has.
    depth: usize,
}

impl Place<'_> {
    /// What is here. What an object does not have counts as null.
    fn look(&self) -> Result<&Value, String> {
        match &*self.holder {
            Value::Array(items) => {
                let at = index(&self.key, items.len())?;
                items.get(at).ok_or_else(|| out_of_range(at))
            }
            other => Ok(&other[&self.key]),
        }
    }

    /// Puts a value here, in a list before what is here.
    fn put(self, value: Value) -> Result<(), String> {
        // Asked of each, as moves of a value into itself would otherwise deepen it without end.
        self.within_depth(&value)?;
        match self.holder {
            Value::Array(items) => {
                let (end, key) = (items.len(), &self.key);
                let at = if key == "-" {
                    end
                } else {
                    index(key, end + 1).map_err(|why| {
                        let is_number = key.parse::<i64>().is_ok();
                        if is_number {
                            return why;
                        }
                        format!("value was not a proper array index: '{key}': {why}")
                    })?
                };
                if at > end {
                    return Err(out_of_range(at));
                }
                items.insert(at, value);
            }
            holder => holder[&self.key] = value,
        }
        Ok(())
    }

    /// Puts a value in the place of what is here.
    fn set(self, value: Value) -> Result<(), String> {
        self.within_depth(&value)?;
        match self.holder {
            Value::Array(items) => {
                let at = index(&self.key, items.len())?;
                let item = items.get_mut(at).ok_or_else(|| out_of_range(at))?;
                *item = value;
            }
            holder => holder[&self.key] = value,
        }
        Ok(())
    }

    fn take(self) -> Result<Value, String> {
        let key = &self.key;
        match self.holder {
            Value::Array(items) => {
                let at = index(key, items.len())?;
                if at >= items.len() {
                    return Err(out_of_range(at));
                }
                Ok(items.remove(at))
            }
            holder => {
                let fields = holder.as_object_mut();
                fields.and_then(|it| it.shift_remove(key)).ok_or_else(|| {
                    format!("Unable to remove nonexistent key: {key}: missing value")
                })
            }
        }
    }

    fn within_depth(&self, value: &Value) -> Result<(), String> {
        if self.depth + nesting::depth(value) > nesting::MOST {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }
}

fn failed(why: String) -> Done {
    Err(Inapplicable::Why(why))
}

/// Something is missing that an operation needs.
fn missing(what: &str) -> Inapplicable {
    Inapplicable::Why(format!("{what}: missing value"))
}

fn out_of_range(index: usize) -> String {
    format!("Unable to access invalid index: {index}: invalid index referenced")
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
fn index(step: &str, len: usize) -> Result<usize, String> {
    let number: i64 = step
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {step:?}: invalid syntax"))?;
    let invalid =
        || format!("Unable to access invalid index: {number}: invalid index referenced");
    let counted = usize::try_from(number.unsigned_abs()).map_err(|_| invalid())?;
    if number < 0 {
        len.checked_sub(counted).ok_or_else(invalid)
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
