//! A custom object's replica count as an `autoscaling/v1` Scale.

use std::sync::Arc;

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
use crate::patch::{Kind, patched, undecodable};
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
    let old = read::existing(state, target)?;
    let old = state.shown(&target.resource, &old)?;
    let current = scale(&old, paths);
    let wanted = match verb {
        Verb::Update => {
            let mut wanted = decode::object(call, "Scale")?.value;
            update::check_place(target, &mut wanted)?;
            wanted
        }
        Verb::Patch => {
            // Applying to a Scale would have to record managers of paths that it maps.
            let kind = patch::kind(call, target)?.unwrap_or(Kind::Merge);
            let body = decode::value(call);
            let body = body.map_err(|it| undecodable(kind, &it.why))?.value;
            patched(kind, &target.resource, &current, &body)?
        }
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

/// 422 of a Scale that wants less than nothing.
fn negative(target: &Target, replicas: i64) -> Status {
    let scale = Resource::new("autoscaling", "v1", "Scale", "");
    let why = "must be greater than or equal to 0";
    let error = FieldError::invalid("spec.replicas", replicas.into(), why);
    invalid(&scale, &target.name, &[error])
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
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": {"replicas": count(&paths.spec_replicas_path)},
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
