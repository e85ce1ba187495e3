//! A custom object's replica count as an `autoscaling/v1` Scale.

use std::sync::{Arc, LazyLock};

use fivespot_admission::FieldError;
use serde_json::{Map, Value, json};

use super::write::{Draft, invalid};
use super::{patch, read, update};
use crate::answer::{Answer, Content};
use crate::apply::{self, Writer};
use crate::call::Call;
use crate::decode;
use crate::kind::column;
use crate::meta;
use crate::openapi::definitions;
use crate::patch::{Kind, patched, refused, type_error, undecodable};
use crate::resource::{Resource, Scale, Subresource, Verb};
use crate::route::Target;
use crate::state::State;
use crate::status::Status;

/// Shows, replaces or patches the Scale of an object.
pub(super) fn perform(
    state: &mut State,
    call: &Call,
    target: &Target,
    verb: Verb,
) -> Result<Answer, Status> {
    let paths = paths(&target.resource).ok_or_else(Status::no_such_resource)?;
    let sent = match verb {
        Verb::Update => Some(sent(state, call, target)?),
        _ => None,
    };
    let old = read::existing(state, target)?;
    let old = state.shown(&target.resource, &old)?;
    let current = scale(&old, paths);
    let wanted = match (verb, sent) {
        (Verb::Update, Some(sent)) => sent,
        (Verb::Patch, _) => changed(call, target, &current)?,
        _ => return Ok(Answer::new(200, Content::Plain(current))),
    };
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 && !target.resource.custom {
        return Err(negative(target, replicas));
    }
    let mut object = Value::clone(&old);
    meta::copy(&wanted, &mut object, "resourceVersion");
    put(&mut object, &paths.spec_replicas_path, replicas);
    let manager = call.manager();
    let writer = Writer {
        manager: &manager,
        subresource: "scale",
        now: state.instant(),
    };
    apply::scaled(&target.resource, &old, &mut object, &writer);
    let mut draft = Draft::new(object, Some(old));
    draft.managed = true;
    let mut answer = update::finish(state, call, target, draft)?;
    if let Content::Object(_, object) = &answer.content {
        answer.content = Content::Plain(scale(&Arc::clone(object), paths));
    }
    Ok(answer)
}

/// What is served as a Scale, whatever it is the Scale of.
static SCALE: LazyLock<Resource> = LazyLock::new(|| {
    let mut scale = Resource::new("autoscaling", "v1", "Scale", "");
    let schema = definitions::kind("autoscaling", "v1", "Scale");
    scale.schema = schema.cloned().map(Arc::new);
    scale
});

/// The Scale that a client sent.
///
/// # Errors
/// 400 of one that cannot be read, or is about another object.
fn sent(state: &State, call: &Call, target: &Target) -> Result<Value, Status> {
    let mut sent = decode::object(call, "Scale")?.value;
    let read = decode::check_kind(state, call, &SCALE, &mut sent);
    read.map_err(|refused| {
        if target.resource.custom {
            // Kubernetes does not know there what the Scale of a custom object is called.
            let why = "no kind is registered for the type v1.Scale in scheme \
                 \"pkg/runtime/scheme.go:111\"";
            Status::bad_request(why)
        } else {
            refused
        }
    })?;
    update::check_place(target, &mut sent)?;
    Ok(sent)
}

/// The Scale that a patch makes of the one there is.
///
/// # Errors
/// As of a patch of a built-in kind; 500 for one that is applied to a custom object, which
/// Kubernetes cannot do.
fn changed(call: &Call, target: &Target, current: &Value) -> Result<Value, Status> {
    let form = patch::kind(call, target)?;
    let kind = form.unwrap_or(Kind::Merge);
    let body = decode::value(call);
    let body = body.map_err(|it| undecodable(kind, &it.why))?.value;
    if form.is_none() {
        apply::check_config(&SCALE, &body)?;
        if target.resource.custom {
            return Err(apply::unconvertible_scale(&body));
        }
    }
    // Applying to a Scale would have to record managers of paths that it maps.
    let mut wanted = patched(kind, &SCALE, current, &body)?;
    if let Some(why) = type_error(kind, &SCALE, &mut wanted) {
        return Err(refused(kind, &SCALE, (current, &body), &why));
    }
    update::check_place(target, &mut wanted)?;
    Ok(wanted)
}

/// 422 of a Scale that wants less than nothing.
fn negative(target: &Target, replicas: i64) -> Status {
    let why = "must be greater than or equal to 0";
    let error = FieldError::invalid("spec.replicas", replicas.into(), why);
    invalid(&SCALE, &target.name, &[error])
}

/// The Scale of an object, if `target` is about that and not about the object itself.
pub(super) fn of(target: &Target, object: &Value) -> Option<Value> {
    if target.subresource != "scale" {
        return None;
    }
    paths(&target.resource).map(|paths| scale(object, paths))
}

fn paths(resource: &Resource) -> Option<&Scale> {
    resource.subresources.iter().find_map(|it| match it {
        Subresource::Scale(scale) => Some(scale),
        _ => None,
    })
}

fn scale(object: &Value, paths: &Scale) -> Value {
    let metadata = &object["metadata"];
    let mut shown = Map::new();
    for key in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = metadata.get(key) {
            shown.insert(key.to_owned(), value.clone());
        }
    }
    let count = |path: &str| get(object, path).as_i64().unwrap_or_default();
    let mut status = json!({"replicas": count(&paths.status_replicas_path)});
    if let Some(path) = &paths.label_selector_path {
        let selector = get(object, path);
        match selector {
            Value::Null => {}
            // Built-in kinds have the selector itself.
            Value::Object(_) => {
                status["selector"] = column::selector_text(selector).into();
            }
            _ => status["selector"] = selector.clone(),
        }
    }
    // Kubernetes leaves none out.
    let spec = match count(&paths.spec_replicas_path) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": spec,
        "status": status,
    })
}

fn get<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .filter(|it| !it.is_empty())
        .fold(object, |at, key| &at[key])
}

fn put(object: &mut Value, path: &str, replicas: i64) {
    let keys: Vec<&str> = path.split('.').filter(|it| !it.is_empty()).collect();
    let Some((last, parents)) = keys.split_last() else {
        return;
    };
    let mut at = meta::fields(object);
    for key in parents {
        at = meta::field(at, key);
    }
    at.insert((*last).to_owned(), replicas.into());
}
