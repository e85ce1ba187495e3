//! Decodes a request body to the object that the server works on.

mod body;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kubemu_admission::crd::{Crd, CustomResource};
use serde_json::Value;

use crate::call::Call;
use crate::empty;
use crate::json_type::go_kind;
use crate::meta;
use crate::openapi::shape::Shape;
use crate::openapi::{definitions, strictness};
use crate::prune;
use crate::query::FieldValidation;
use crate::resource::{GroupResource, Resource};
use crate::status::Status;
use crate::strict;
pub(crate) use body::{DecodeError, Repeated, not_an_object, object, unchecked, value};

/// The compiled CustomResourceDefinitions by the resource that they define.
pub(crate) type Definitions = HashMap<GroupResource, Arc<Crd>>;

/// Checks that a sent object can be decoded as the kind of the request's path. The kind of a
/// built-in object may be omitted; it is then filled in.
///
/// # Errors
/// 400 with Kubernetes' message.
pub(crate) fn check_kind(
    definitions: &Definitions,
    call: &Call,
    resource: &Resource,
    object: &mut Value,
) -> Result<(), Status> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if let Some(error) = unreadable_kind(object) {
        return Err(error.of_kind(&resource.kind, call));
    }
    if !resource.custom
        && let Some(why) = version_error(object)
    {
        return Err(DecodeError { why }.of_kind(&resource.kind, call));
    }
    if resource.custom {
        if kind.is_empty() {
            let why = format!("Object 'Kind' is missing in '{object}'");
            return Err(DecodeError { why }.of_kind(&resource.kind, call));
        }
        if version.is_empty() {
            return Err(unversioned(resource, object));
        }
        check_version(definitions, resource, object)?;
        if let Some(why) = strictness::metadata_error(&object["metadata"]) {
            return Err(unhandled(resource, &why));
        }
        set_type_meta(resource, object);
        return Ok(());
    }
    let group = version.rsplit_once('/').map_or("", |it| it.0);
    if group == resource.group
        && !version.is_empty()
        && version != resource.api_version()
        && is_known(&version, &resource.kind)
        && (kind.is_empty() || kind == resource.kind)
    {
        // Kubernetes converts between the versions of a kind before this check.
        let expected = resource.api_version();
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        )));
    }
    decode(resource, object).map_err(|why| {
        let value = if kind.is_empty() {
            &resource.kind
        } else {
            &kind
        };
        let version = version.rsplit('/').next().filter(|it| !it.is_empty());
        let version = version.unwrap_or(&resource.version);
        let expected = &resource.kind;
        Status::bad_request(format!(
            "{value} in version \"{version}\" cannot be handled as a {expected}: {why}"
        ))
    })
}

/// The error for a version or a kind that is not a string.
pub(crate) fn unreadable_kind(object: &Value) -> Option<DecodeError> {
    ["apiVersion", "kind"].iter().find_map(|key| {
        let value = object.get(key)?;
        let kind = go_kind(value);
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go \
             struct field .{key} of type string"
        );
        (!value.is_string() && !value.is_null()).then_some(DecodeError { why })
    })
}

/// 400 for a custom object without a version, which may be null.
fn unversioned(resource: &Resource, object: &Value) -> Status {
    let (kind, expected) = (&resource.kind, resource.api_version());
    Status::bad_request(match object.get("apiVersion") {
        Some(Value::Null) => format!(
            "{kind} in version \"\" cannot be handled as a {kind}: .apiVersion accessor error: \
             <nil> is of the type <nil>, expected string"
        ),
        _ => format!(
            "the API version in the data () does not match the expected API version ({expected})"
        ),
    })
}

/// Checks the apiVersion of a custom object.
///
/// # Errors
/// 400 for another version, with warnings about the fields that the other version does not
/// have.
fn check_version(
    definitions: &Definitions,
    resource: &Resource,
    object: &Value,
) -> Result<(), Status> {
    let Some(unknown) = unknown_in_other_version(definitions, resource, object) else {
        return Ok(());
    };
    let version = object["apiVersion"].as_str().unwrap_or_default();
    // An empty group is omitted.
    let version = version.strip_prefix('/').unwrap_or(version);
    let expected = resource.api_version();
    let mut refused = Status::bad_request(format!(
        "the API version in the data ({version}) does not match the expected API version \
         ({expected})"
    ));
    refused.warnings = unknown;
    Err(refused)
}

/// The strict decoding errors of a custom object in another version than that of its path: the
/// fields that this other version does not have. Empty for objects of another group, which are
/// not inspected. `None` for an object in the version of its path or without a version.
pub(crate) fn unknown_in_other_version(
    definitions: &Definitions,
    resource: &Resource,
    object: &Value,
) -> Option<Vec<String>> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    if !resource.custom || version.is_empty() || version == resource.api_version() {
        return None;
    }
    let in_group = version.rsplit_once('/');
    let Some((_, version)) = in_group.filter(|it| it.0 == resource.group) else {
        return Some(Vec::new());
    };
    let definition = definitions.get(&resource.storage);
    let known = definition.and_then(|it| it.version(version));
    let unknown = unknown_fields(known, object);
    let unknown = unknown.iter().map(|it| format!("unknown field \"{it}\""));
    Some(unknown.collect())
}

/// The error for an object without a version if its kind does not exist in the group.
pub(crate) fn internal_kind_error(resource: &Resource, object: &Value) -> Option<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let is_known = kind.is_empty() || is_known(&resource.api_version(), kind);
    (!is_known).then(|| {
        format!(
            "no kind {kind:?} is registered for the internal version of group {:?} in scheme \
             \"pkg/runtime/scheme.go:111\"",
            resource.group
        )
    })
}

/// The error for an apiVersion that cannot be parsed.
pub(crate) fn version_error(object: &Value) -> Option<String> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let is_readable = version.matches('/').count() < 2;
    (!is_readable).then(|| format!("unexpected GroupVersion string: {version}"))
}

/// The fields of a custom object that its version does not have. A version that the definition
/// does not have has no fields.
fn unknown_fields(version: Option<&CustomResource>, object: &Value) -> Vec<String> {
    if let Some(version) = version {
        return version.decode(&mut object.clone());
    }
    let common = ["apiVersion", "kind", "metadata"];
    let names = object.as_object().into_iter().flatten();
    let names = names.map(|(name, _)| name.clone());
    names
        .filter(|name| !common.contains(&name.as_str()))
        .collect()
}

/// Decodes an object of a built-in kind as Go does: its kind, then the types of its fields.
/// Omitted apiVersion and kind are filled in.
///
/// # Errors
/// The message of Kubernetes' decoder.
pub(crate) fn decode(resource: &Resource, object: &mut Value) -> Result<(), String> {
    let text = |key: &str| object[key].as_str().filter(|it| !it.is_empty());
    let expected = resource.api_version();
    let version = text("apiVersion").unwrap_or(&expected);
    let kind = text("kind").unwrap_or(&resource.kind);
    if version != expected || kind != resource.kind {
        return Err(unconvertible(resource, version, kind));
    }
    if let Some(why) = strictness::type_error(resource, object) {
        return Err(why);
    }
    set_type_meta(resource, object);
    Ok(())
}

/// Whether a kind exists in a version.
fn is_known(api_version: &str, kind: &str) -> bool {
    let (group, bare) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    definitions::names_kind(group, bare, kind)
}

/// The error for an object of another kind that cannot be converted to this resource. The
/// scheme is named after the source line where Kubernetes creates it.
fn unconvertible(resource: &Resource, version: &str, kind: &str) -> String {
    let bare = version.rsplit('/').next().unwrap_or(version);
    if !is_known(version, kind) {
        // An empty group is omitted.
        let version = version.strip_prefix('/').unwrap_or(version);
        return format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        );
    }
    let family = match resource.group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(family) => family,
    };
    let own = &resource.kind;
    format!("converting ({bare}.{kind}) to ({family}.{own}): unknown conversion")
}

/// Writes apiVersion and kind first, as Kubernetes does. A different kind of a custom object
/// is kept, so that it is rejected together with other errors.
pub(crate) fn set_type_meta(resource: &Resource, object: &mut Value) {
    let fields = meta::fields(object);
    fields.shift_remove("apiVersion");
    let value = fields.shift_remove("kind").filter(|_| resource.custom);
    let kind = value.unwrap_or_else(|| resource.kind.as_str().into());
    fields.shift_insert(0, "apiVersion".to_owned(), resource.api_version().into());
    fields.shift_insert(1, "kind".to_owned(), kind);
}

/// The object that a request sends for `resource`, pruned and with its defaults, and the warnings about
/// its fields.
///
/// # Errors
/// 400 if it is no object of the kind, or has fields that the request wants refused.
pub(crate) fn sent(
    definitions: &Definitions,
    call: &Call,
    resource: &Resource,
) -> Result<(Value, Vec<String>), Status> {
    let body = object(call, &resource.kind)?;
    let mut object = body.value;
    check_kind(definitions, call, resource, &mut object)?;
    let first = body.repeated.first.len();
    let mut found = prune_and_default(definitions, resource, &mut object, body.repeated);
    limit_errors(resource, &mut found, first);
    let refuse = |why: String| unhandled(resource, &why);
    let warnings = apply_field_validation(call.query.field_validation, found, refuse)?;
    Ok((object, warnings))
}

/// Leaves out what Kubernetes' JSON decoder does not report about an object of a built-in kind: an
/// error that it has reported, and all but the first 100. `first` is the number of the errors
/// before those of the decoder.
pub(crate) fn limit_errors(resource: &Resource, found: &mut Vec<String>, first: usize) {
    if !resource.custom {
        let mut seen: HashSet<String> = HashSet::new();
        let mut at = 0;
        found.retain(|it| {
            at += 1;
            at <= first || seen.len() < strict::MAX_ERRORS && seen.insert(it.clone())
        });
    }
}

/// Prunes unknown fields and fills in defaults. Returns the strict decoding errors: the
/// `repeated` ones and the unknown fields, for built-in kinds in the order of the document.
pub(crate) fn prune_and_default(
    definitions: &Definitions,
    resource: &Resource,
    object: &mut Value,
    repeated: Repeated,
) -> Vec<String> {
    if let Some(definition) = definitions.get(&resource.storage) {
        let version = definition.served(&resource.version);
        let unknown = version.map(|it| it.decode(object)).unwrap_or_default();
        let unknown = unknown.iter().map(|it| format!("unknown field \"{it}\""));
        return repeated.into_first().into_iter().chain(unknown).collect();
    }
    let found = prune::prune(resource, object, &repeated.placed);
    empty::normalize(Shape::of(resource), object);
    repeated.first.into_iter().chain(found).collect()
}

/// Fills in the defaults of the result of an applied configuration; its fields have been
/// checked already.
pub(crate) fn complete(
    definitions: &Definitions,
    resource: &Resource,
    object: &mut Value,
) {
    let Some(definition) = definitions.get(&resource.storage) else {
        prune_and_default(definitions, resource, object, Repeated::default());
        return;
    };
    if let Some(version) = definition.served(&resource.version) {
        version.complete(object);
    }
}

/// Fills in the default of the status of a new custom object, from which the sent status was
/// removed. Returns the object without the default, if there is one.
pub(crate) fn default_status(
    definitions: &Definitions,
    resource: &Resource,
    object: &mut Value,
) -> Option<Value> {
    let is_new = resource.custom && resource.has_status();
    if !is_new || object.get("status").is_some() {
        return None;
    }
    let definition = definitions.get(&resource.storage)?;
    let version = definition.served(&resource.version)?;
    let mut defaulted = object.clone();
    version.decode(&mut defaulted);
    let status = defaulted.get("status").is_some();
    status.then(|| std::mem::replace(object, defaulted))
}

/// The warnings that result from strict decoding errors.
///
/// # Errors
/// With strict field validation, the result of `refuse`.
pub(crate) fn apply_field_validation(
    validation: FieldValidation,
    found: Vec<String>,
    refuse: impl FnOnce(String) -> Status,
) -> Result<Vec<String>, Status> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !found.is_empty() => Err(refuse(format!(
            "strict decoding error: {}",
            found.join(", ")
        ))),
        FieldValidation::Warn | FieldValidation::Strict => Ok(found),
    }
}

/// 400 for a sent object that cannot be decoded as its kind.
pub(crate) fn unhandled(resource: &Resource, why: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
    ))
}
