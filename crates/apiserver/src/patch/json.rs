//! JSON patches (RFC 6902).

use json_patch::jsonptr::Pointer;
use json_patch::{AddOperation, CopyOperation, Patch, PatchOperation, ReplaceOperation};
use serde_json::Value;

use super::rejected;
use crate::decode::go_kind;
use crate::nesting;
use crate::status::Status;

/// Operations in one patch (`maxJSONPatchOperations` in k8s.io/apiserver).
const MAX_OPERATIONS: usize = 10_000;

/// What all copies of a patch may add up to: they could double an object again and again
/// (`AccumulatedCopySizeLimit`, which Kubernetes sets to the limit of a request's body).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Carries out `operations` in order on a copy of `object`.
pub(super) fn apply(object: &Value, operations: &Value) -> Result<Value, Status> {
    let Some(list) = operations.as_array() else {
        let kind = go_kind(operations);
        return Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go value of type \
             []handlers.jsonPatchOp"
        )));
    };
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
    let patch =
        serde_json::from_value::<Patch>(operations.clone()).map_err(|_| rejected())?;
    let mut patched = object.clone();
    let mut copied = 0;
    for operation in patch.0 {
        if let PatchOperation::Copy(CopyOperation { from, .. }) = &operation {
            copied += from.resolve(&patched).map_or(0, size);
            if copied > MAX_COPIED_BYTES {
                return Err(rejected());
            }
        }
        if is_too_deep(&patched, &operation) {
            return Err(rejected());
        }
        let operation = as_kubernetes_reads(&patched, operation);
        json_patch::patch_unsafe(&mut patched, &[operation]).map_err(|_| rejected())?;
    }
    Ok(patched)
}

/// Whether an operation would put a value so deep that the outcome could not be read again.
/// Asked of each, as moves of a value into itself would otherwise deepen it without end.
fn is_too_deep(object: &Value, operation: &PatchOperation) -> bool {
    let found = |from: &Pointer| from.resolve(object).map_or(0, nesting::depth);
    let (path, depth) = match operation {
        PatchOperation::Add(it) => (&it.path, nesting::depth(&it.value)),
        PatchOperation::Replace(it) => (&it.path, nesting::depth(&it.value)),
        PatchOperation::Move(it) => (&it.path, found(&it.from)),
        PatchOperation::Copy(it) => (&it.path, found(&it.from)),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return false,
    };
    path.count() + depth > nesting::MOST
}

/// Kubernetes' library replaces keys of an object that are not there, which the standard
/// does not allow.
fn as_kubernetes_reads(object: &Value, operation: PatchOperation) -> PatchOperation {
    let PatchOperation::Replace(ReplaceOperation { path, value }) = operation else {
        return operation;
    };
    let parent = path.parent().and_then(|it| it.resolve(object).ok());
    if parent.is_some_and(Value::is_object) {
        PatchOperation::Add(AddOperation { path, value })
    } else {
        PatchOperation::Replace(ReplaceOperation { path, value })
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
