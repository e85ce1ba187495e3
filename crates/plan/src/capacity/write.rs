//! How a target gets its values.

use fivespot_api::ObjectRef;
use fivespot_api::name;
use fivespot_api::scheduled_capacity::{
    FieldPath, ScheduledCapacity, ScheduledCapacitySpec, WrittenValue,
};
use serde_json::{Value, json};

use super::PAUSED_ANNOTATION;
use super::report::Problem;
use crate::{Fact, Unknown};

/// One write of a target. Each is guarded by the server.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacityWrite {
    /// A JSON patch (RFC 6902) of the object. One of its operations is its resourceVersion, so that
    /// it is refused with 409 if the object has changed.
    JsonPatch(Value),
    /// A merge patch of the subresource `scale`, with the resourceVersion.
    Scale(Value),
    /// A server-side apply of the whole object.
    Apply(Value),
}

/// A field with its values.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) path: FieldPath,
    text: String,
    active: Value,
    inactive: Value,
}

impl Field {
    pub(super) fn value(&self, is_active: bool) -> &Value {
        if is_active {
            &self.active
        } else {
            &self.inactive
        }
    }

    pub(super) fn written(&self, is_active: bool) -> WrittenValue {
        WrittenValue {
            field: self.text.clone(),
            value: self.value(is_active).clone(),
            stored: None,
        }
    }

    /// Whether the target has the value, or what the server stored instead of it.
    pub(super) fn is_written(
        &self,
        found: Option<&Value>,
        is_active: bool,
        written: &[WrittenValue],
    ) -> bool {
        let Some(found) = found else {
            return false;
        };
        let value = self.value(is_active);
        let mut ours = written.iter();
        let ours = ours.find(|it| it.field == self.text && it.value == *value);
        is_same(found, value) || ours.and_then(|it| it.stored.as_ref()) == Some(found)
    }
}

/// Whether a server may have stored one for the other: a quantity may be a number or a text.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    one == other || text(one).is_some() && text(one) == text(other)
}

/// The fields of a spec.
pub(super) fn fields(spec: &ScheduledCapacitySpec) -> Result<Vec<Field>, Problem> {
    let all = spec.all_fields().into_iter().map(|it| {
        let path = it.field.parse::<FieldPath>();
        let path = path.map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(Field {
            path,
            text: it.field,
            active: it.active_value,
            inactive: it.inactive_value,
        })
    });
    all.collect()
}

/// The target that may be written; `None` if it is to be created.
pub(super) fn target(
    object: &ScheduledCapacity,
    found: &Fact<Option<Value>>,
) -> Result<Option<Value>, Problem> {
    let kind = &object.spec.target.kind;
    let what = object.target_text();
    let found = match found {
        Fact::Known(Some(found)) => found,
        Fact::Known(None) if object.spec.template.is_some() => return Ok(None),
        Fact::Known(None) => {
            let message =
                format!("there is no {what}: create it, or correct spec.target");
            return Err(Problem::target("TargetNotFound", message));
        }
        Fact::Unknown(Unknown::NotServed { .. }) => {
            let message = format!(
                "the API server does not serve {kind} of {}: install its CRD, or correct \
                 spec.target",
                object.spec.target.api_version
            );
            return Err(Problem::target("KindNotServed", message));
        }
        Fact::Unknown(unknown) => {
            let remedy = "; let the operator read and patch it, see `5spot generate manifests \
                          --capacity-target`";
            return Err(Problem::unread(unknown, &what, remedy));
        }
    };
    let meta = &found["metadata"];
    if object.spec.template.is_some() && !is_owned(object, meta) {
        let message = format!(
            "a {what} exists that this ScheduledCapacity has not created: rename one of the two, \
             or name it in spec.target.name in place of the template"
        );
        return Err(Problem::target("TargetNotOwned", message));
    }
    if !meta["deletionTimestamp"].is_null() {
        let message = format!("{what} is being deleted");
        return Err(Problem::target("TargetDeleting", message));
    }
    if meta["annotations"].get(PAUSED_ANNOTATION).is_some() {
        return Err(Problem::paused(&what));
    }
    Ok(Some(found.clone()))
}

fn is_owned(object: &ScheduledCapacity, meta: &Value) -> bool {
    let owners = meta["ownerReferences"].as_array();
    let uid = object.metadata.uid.as_deref();
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| owner["controller"] == true && owner["uid"].as_str() == uid)
}

/// Where the target is.
pub(super) fn reference(object: &ScheduledCapacity, found: &Value) -> ObjectRef {
    let meta = &found["metadata"];
    ObjectRef {
        api_version: object.spec.target.api_version.clone(),
        kind: object.spec.target.kind.clone(),
        name: object.target_name().to_owned(),
        namespace: meta["namespace"].as_str().map(str::to_owned),
        uid: meta["uid"].as_str().map(str::to_owned),
    }
}

impl CapacityWrite {
    /// The write that gives a target its values.
    pub(super) fn of(
        object: &ScheduledCapacity,
        fields: &[Field],
        is_active: bool,
        target: Option<&Value>,
    ) -> Result<Self, Problem> {
        if let Some(template) = &object.spec.template {
            let mut spec = Value::Object(template.clone());
            for field in fields {
                let put = field.path.put(&mut spec, field.value(is_active).clone());
                put.map_err(|error| Problem::field(&error))?;
            }
            return Ok(Self::Apply(created(object, spec)));
        }
        let none = Value::Null;
        let target = target.unwrap_or(&none);
        let version = &target["metadata"]["resourceVersion"];
        if object.spec.target.subresource.is_some() {
            let replicas = fields.first().map(|field| field.value(is_active).clone());
            return Ok(Self::Scale(json!({
                "metadata": {"resourceVersion": version},
                "spec": {"replicas": replicas},
            })));
        }
        let guard = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version});
        let mut operations = vec![guard];
        for field in fields {
            let value = field.value(is_active);
            let operation = field.path.operation(&target["spec"], value);
            operations.push(operation.map_err(|error| Problem::field(&error))?);
        }
        Ok(Self::JsonPatch(Value::Array(operations)))
    }
}

/// The object of a template.
fn created(object: &ScheduledCapacity, spec: Value) -> Value {
    let target = &object.spec.target;
    let meta = &object.metadata;
    json!({
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "ownerReferences": [{
                "apiVersion": name::API_VERSION,
                "kind": name::CAPACITY_KIND,
                "name": meta.name,
                "uid": meta.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// Records what the server stored where that is something else than what was written.
pub(super) fn note_stored(written: &mut [WrittenValue], spec: &Value) {
    for value in written {
        let path = value.field.parse::<FieldPath>().ok();
        let found = path.and_then(|path| path.get(spec).cloned());
        value.stored = found.filter(|found| !is_same(found, &value.value));
    }
}

/// The client, other than `own`, that manages a field of an object according to its
/// `managedFields`; the last that has written, if there are several. Empty if there is none.
pub fn manager_of(object: &Value, field: &str, own: &str) -> String {
    let Ok(path) = field.parse::<FieldPath>() else {
        return String::new();
    };
    let entries = object["metadata"]["managedFields"].as_array();
    let others = entries.into_iter().flatten().filter(|entry| {
        let fields = &entry["fieldsV1"]["f:spec"];
        let steps = path.managed();
        let found = steps
            .iter()
            .try_fold(fields, |within, step| within.get(step));
        entry["manager"] != own && found.is_some()
    });
    let last = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default());
    let manager = last.and_then(|entry| entry["manager"].as_str());
    fivespot_capi::one_line(manager.unwrap_or_default())
}
