//! Field ownership: server-side apply and `metadata.managedFields`.
//!
//! The rules are those of Kubernetes' structured merge diff. A configuration is merged field
//! by field according to the object's schema, lists by the keys that the schema declares. Each
//! field belongs to the managers that set it. Applying another value over another manager's
//! value is a conflict unless forced. A field that a manager applied before and omits from its
//! next configuration is removed unless another manager owns it.

mod check;
mod compare;
mod conflict;
mod element;
mod fields;
mod last_applied;
mod merge;
mod owned;
mod prune;
mod recompared;
mod record;
pub(crate) mod scale;
mod set;
mod walk;

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

use crate::decode;
use crate::empty;
use crate::openapi::shape::Shape;
use crate::resource::Resource;
use crate::status::{Reason, Status};
use compare::Comparison;
use conflict::Conflicts;
use record::{Managers, Operation};
use set::FieldSet;

/// The field manager of a write, the subresource, and the time.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// Name of the field manager; an empty one is called `unknown`.
    pub manager: &'a str,
    /// The subresource that the write goes through; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write; recorded in whole seconds.
    pub now: Timestamp,
}

/// A configuration to apply, and how conflicts with other managers are handled.
#[derive(Clone, Copy, Debug)]
pub struct Configuration<'a> {
    /// The configuration: all the fields that the manager wants to own.
    pub object: &'a Value,
    /// What happens if another manager has set a field to another value.
    pub on_conflict: OnConflict,
}

/// What happens if another manager has set a field to another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Nothing is applied; the error lists every conflicting field.
    Refuse,
    /// The manager takes over the field.
    Force,
}

impl OnConflict {
    /// The value of the query parameter `force`.
    pub(crate) fn of(force: bool) -> Self {
        if force { Self::Force } else { Self::Refuse }
    }
}

/// Records in `object` the fields that an update, a patch or a create by `writer` has changed;
/// `old` is the stored object, `None` for a create.
///
/// An object whose `managedFields` were reset with `[{}]` is not tracked until a manager
/// applies to it. Entries in `object` itself are used if they are well formed. Cannot fail.
pub fn tracked(
    resource: &Resource,
    old: Option<&Value>,
    object: &mut Value,
    writer: &Writer<'_>,
) {
    let sent = take_managed_fields(object);
    let mut managers = Managers::for_update(old, sent, writer.subresource);
    let known = old.is_some_and(|it| it["metadata"]["uid"].is_string());
    if managers.is_empty() && known {
        return;
    }
    let new = || Cow::Owned(empty::object(resource));
    let live = old.map_or_else(new, Cow::Borrowed);
    update(resource, (&live, object), &mut managers, writer);
    managers.write_to(object);
}

/// The object that results when `writer` applies `config` to `old`, or creates it if there is
/// no `old`, with its managed fields.
///
/// If nothing changes, the result equals `old`, including the times.
///
/// # Errors
/// 409 with every field that another manager has set to another value, unless forced; 400 for
/// a configuration of another kind or with managed fields; 500, as in Kubernetes, for a
/// configuration that does not fit the schema.
pub fn applied(
    resource: &Resource,
    old: Option<&Value>,
    config: &Configuration<'_>,
    writer: &Writer<'_>,
) -> Result<Value, Status> {
    check_config(resource, config.object)?;
    let first = apply(resource, old, config, writer);
    let mut object = match first {
        Ok(object) => object,
        Err(conflicts) => {
            let remaining =
                last_applied::without_last_applied(resource, old, writer, conflicts);
            if !remaining.is_empty() {
                return Err(remaining.to_status());
            }
            let forced = Configuration {
                on_conflict: OnConflict::Force,
                ..*config
            };
            apply(resource, old, &forced, writer).map_err(|it| it.to_status())?
        }
    };
    last_applied::update_annotation(&mut object, config.object, writer);
    Ok(object)
}

/// `live` with all fields of `configuration` set to its values, without recording a manager. A
/// MutatingAdmissionPolicy applies its configuration this way (`ApplyStructuredMergeDiff` in
/// k8s.io/apiserver).
///
/// # Errors
/// Kubernetes' message for a configuration that cannot be merged.
pub(crate) fn merged(
    live: &Value,
    configuration: &Value,
    shape: Shape<'_>,
) -> Result<Value, String> {
    let wrong = check::check(configuration, shape);
    if !wrong.is_empty() {
        let list = listed(&wrong);
        return Err(format!(
            "failed to convert patch object to typed object: {list}"
        ));
    }
    let atomics = walk::atomics(configuration, shape);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merge::merge(live, configuration, shape))
}

fn apply(
    resource: &Resource,
    old: Option<&Value>,
    config: &Configuration<'_>,
    writer: &Writer<'_>,
) -> Result<Value, Conflicts> {
    let shape = Shape::of(resource);
    let live = old.map_or_else(|| empty::object(resource), without_managed_fields);
    let mut managers = old.map(Managers::of).unwrap_or_default();
    if managers.is_empty() {
        let before = Writer {
            manager: "before-first-apply",
            subresource: "",
            ..*writer
        };
        update(
            resource,
            (&empty::object(resource), &live),
            &mut managers,
            &before,
        );
    }
    let reset = reset_fields(resource, writer.subresource);
    let id = record::Id::new(writer, Operation::Apply, resource);
    let last = managers.set_of(&id);
    let mut set = walk::field_set(config.object, shape);
    set.remove_recursively(&reset);
    managers.replace(&id, set, resource);
    let merged = merge::merge(&live, config.object, shape);
    let mut object = prune::prune(merged, &last, &managers, shape);
    let change = Comparison::of(&live, &object, shape).without(&reset);
    let conflicts = managers.conflicts(&change, &id);
    if config.on_conflict == OnConflict::Refuse && !conflicts.is_empty() {
        return Err(conflicts);
    }
    managers.remove_changed_fields(&change, Some(&id));
    managers.remove_fields(&id, &UNMANAGED);
    // A manager whose apply changes nothing is recorded without a time.
    if object != live {
        managers.set_time(&id, writer.now);
    }
    managers.write_to(&mut object);
    Ok(object)
}

/// Removes changed fields from their managers and adds them to the writer.
fn update(
    resource: &Resource,
    (old, new): (&Value, &Value),
    managers: &mut Managers<'_>,
    writer: &Writer<'_>,
) {
    let reset = reset_fields(resource, writer.subresource);
    let id = record::Id::new(writer, Operation::Update, resource);
    let mut change = Comparison::of(old, new, Shape::of(resource));
    if let Some(path) = recompared::path(resource, (old, new))
        && !managers.is_only_manager(&id, &path)
    {
        change.modified.insert_path(&path);
    }
    let change = change.without(&reset).without(&MANAGED_FIELDS);
    let set = change.set_values().difference(&UNMANAGED);
    let sets_fields = !set.is_empty();
    managers.update(change, (&id, set), resource);
    if sets_fields {
        managers.set_time(&id, writer.now);
    }
    managers.cap_updates();
}

/// The fields that a write through `subresource` cannot change and therefore does not own.
fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    let kind = resource.builtin.as_ref();
    if let Some(own) = kind.and_then(|it| it.reset_fields(subresource)) {
        let own: Vec<&[&str]> = own.iter().map(Vec::as_slice).collect();
        return FieldSet::of(&own);
    }
    match subresource {
        "status" if resource.custom => FieldSet::of(&[&["metadata"], &["spec"]]),
        "status" => {
            let metadata = kind.map(|it| it.status_metadata().unowned());
            let metadata = metadata.unwrap_or_default();
            let metadata = metadata.iter().map(Vec::as_slice);
            let all: Vec<&[&str]> = metadata.chain([["spec"].as_slice()]).collect();
            FieldSet::of(&all)
        }
        _ if resource.has_status() => FieldSet::of(&[&["status"]]),
        _ => FieldSet::default(),
    }
}

/// `metadata.managedFields`, which a write does not change directly.
static MANAGED_FIELDS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(&[&["metadata", "managedFields"]]));

/// Fields that the server sets or that identify the object: they have no manager.
static UNMANAGED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Checks that a configuration has its resource's kind, contains no managed fields and fits
/// the schema.
///
/// # Errors
/// 400 or 500, as in Kubernetes.
pub(crate) fn check_config(resource: &Resource, config: &Value) -> Result<(), Status> {
    let text = |key: &str| config[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if (api_version, kind) != (resource.api_version().as_str(), resource.kind.as_str()) {
        // A version that cannot be parsed leaves the whole kind empty.
        let named = if decode::version_error(config).is_some() {
            go_kind("", "")
        } else {
            go_kind(api_version, kind)
        };
        return Err(Status::bad_request(format!("invalid object type: {named}")));
    }
    // What is no list of objects is reported with the other faults of the configuration.
    let managers = config["metadata"]["managedFields"].as_array();
    if managers.is_some_and(|all| all.iter().all(Value::is_object)) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let wrong = check::check(config, Shape::of(resource));
    if wrong.is_empty() {
        return Ok(());
    }
    let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let named = go_kind(api_version, kind);
    let list = listed(&wrong);
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {named}): {list}"
    );
    Err(Status::new(500, Reason::Unknown, message))
}

/// 500, as in Kubernetes, for a result of the configuration `config` that cannot be converted
/// to an object of its kind for the reason `why`.
pub(crate) fn unconvertible(resource: &Resource, config: &Value, why: &str) -> Status {
    let named = go_kind(&resource.api_version(), &resource.kind);
    let why = format!("unable to convert unstructured object to {named}: {why}");
    config_error(config, &named, &why)
}

/// 500 for a configuration of the Scale of a custom object.
pub(crate) fn unconvertible_scale(config: &Value) -> Status {
    let why = "request to convert CR to an invalid group/version: autoscaling/v1";
    config_error(config, &go_kind("autoscaling/v1", "Scale"), why)
}

fn config_error(config: &Value, named: &str, why: &str) -> Status {
    let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let message = format!(
        "failed to convert new object ({namespace}/{name}; {named}) to proper version: {why}"
    );
    Status::new(500, Reason::Unknown, message)
}

/// The errors as structured merge diff prints them.
fn listed(wrong: &[String]) -> String {
    match wrong {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

/// A kind as Go prints it: `example.com/v1, Kind=Widget`, `/v1, Kind=Node`.
fn go_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    clear_managed_fields(&mut object);
    object
}

fn clear_managed_fields(object: &mut Value) {
    take_managed_fields(object);
}

/// The managed fields, which the object does not have any longer; null if there are none.
fn take_managed_fields(object: &mut Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let taken = metadata.and_then(|it| it.shift_remove("managedFields"));
    taken.unwrap_or_default()
}

#[cfg(test)]
mod tests;
