//! CustomResourceDefinitions: registration of the resources that they define, and their
//! status.

pub(crate) mod naming;

use std::sync::Arc;

use kubemu_admission::crd::Crd;
use serde_json::{Value, json};

use crate::alias;
use crate::apply::{self, Writer};
use crate::meta;
use crate::openapi::schema::Schema;
use crate::registry::{self, Registry};
use crate::resource::{
    Column, GroupResource, Resource, Scale, Subresource, Verb, api_version,
};
use crate::state::State;
use crate::store::{Bucket, Change, Key, Object};
use crate::work_queue::WorkItem;
use naming::{Names, UsedNames, strings};

/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Handles a written definition: its resources are served from here on.
pub(crate) fn changed(state: &mut State, change: &Arc<Change>) {
    let Some(after) = change.after.as_deref() else {
        unregister(state, &change.object);
        requeue_group(state, change.bucket, &defined(&change.object).group);
        return;
    };
    let known = state.definitions.contains_key(&defined(after));
    if meta::is_deleting(after) {
        if !known && is_established(after) {
            // Its objects are served until they are deleted, also after a restart.
            serve(state, after, &defined(after));
        }
        state.queue.add(WorkItem::Definition(change.key.clone()));
        return;
    }
    let same = change
        .before
        .as_deref()
        .is_some_and(|it| it["spec"] == after["spec"]);
    if !(known && same) {
        reconcile(state, change.bucket, after);
        end_watches(state, &defined(after));
    }
}

/// Reconciles the definitions of a group whose names were not accepted before.
fn requeue_group(state: &mut State, bucket: Bucket, group: &str) {
    let waits = |it: &Value| {
        let conditions = it["status"]["conditions"].as_array();
        let mut refused = conditions.into_iter().flatten();
        refused.any(|it| it["type"] == "NamesAccepted" && it["status"] == "False")
            && !meta::is_deleting(it)
    };
    let waiting: Vec<Object> = others(state, bucket, group, "")
        .into_iter()
        .filter(|it| waits(it))
        .collect();
    for definition in waiting {
        reconcile(state, bucket, &definition);
        let key = Key::new("", meta::name(&definition));
        let accepted = |it: &Value| it["status"]["acceptedNames"].clone();
        let after = state.get(bucket, &key).map(|it| accepted(it));
        if after != Some(accepted(&definition)) {
            end_watches(state, &defined(&definition));
        }
    }
}

/// Ends the watches of the objects of a definition whose spec or accepted names have changed, as
/// kube-apiserver does (`updateCustomResourceDefinition` in k8s.io/apiextensions-apiserver): they
/// have the schema and the conversion of their start. A client resumes from its last event.
fn end_watches(state: &mut State, defined: &GroupResource) {
    let bucket = state.store.bucket(defined);
    state.broadcaster.end(bucket);
}

/// The definitions of a group, except the one with the given name.
fn others(state: &State, bucket: Bucket, group: &str, name: &str) -> Vec<Object> {
    let found = state.index.definitions_of(group);
    let found = found.filter(|key| &*key.name != name);
    found
        .filter_map(|key| state.store.get(bucket, key).cloned())
        .collect()
}

/// Serves the resources of a definition if its names are accepted, and updates its status.
fn reconcile(state: &mut State, bucket: Bucket, written: &Value) {
    let defined = defined(written);
    let mut used = UsedNames::default();
    for other in others(state, bucket, &defined.group, meta::name(written)) {
        used.add(&other);
    }
    let names = naming::of(written, &used);
    let mut definition = written.clone();
    if names.conflict.is_none() || is_established(written) {
        serve(state, &definition, &defined);
    }
    let status = status(&definition, names, &state.now());
    meta::fields(&mut definition).insert("status".to_owned(), status);
    if let Some(resource) = state.stored_resource(bucket).cloned() {
        let writer = Writer {
            manager: "kube-apiserver",
            subresource: "status",
            now: state.clock.now(),
        };
        apply::tracked(&resource, Some(written), &mut definition, &writer);
    }
    state.put(bucket, definition);
}

/// Starts the deletion of a definition: it waits until its objects are deleted.
pub(crate) fn begin_termination(definition: &mut Value, now: &str) {
    meta::add_finalizer(definition, CLEANUP);
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion \
            will begin soon",
    });
    let status = meta::field(meta::fields(definition), "status");
    let conditions = status.entry("conditions").or_insert(Value::Null);
    match conditions {
        Value::Array(all) => all.push(condition),
        other => *other = json!([condition]),
    }
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
}

pub(crate) fn defined(definition: &Value) -> GroupResource {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    GroupResource {
        group: text(&spec["group"]),
        resource: text(&spec["names"]["plural"]),
    }
}

fn serve(state: &mut State, definition: &Value, defined: &GroupResource) {
    // Validated as an update: a stored definition may keep what a new one must not have.
    match Crd::replace(definition, definition, state.kube) {
        Ok(compiled) => {
            state
                .definitions
                .insert(defined.clone(), Arc::new(compiled));
            let conversion = &definition["spec"]["conversion"];
            if conversion["strategy"] == "Webhook" {
                let webhook = Arc::new(conversion["webhook"].clone());
                state.webhooks.insert(defined.clone(), webhook);
            } else {
                state.webhooks.remove(defined);
            }
        }
        // Without its schema the resource is not served.
        Err(errors) => {
            state.record_invalid(definition, &errors);
            return;
        }
    }
    let mut registry = Registry::clone(&state.registry);
    for group in alias::names(&state.aliases, &defined.group) {
        registry.remove(group, &defined.resource);
    }
    for resource in resources(definition) {
        for other in alias::others(&state.aliases, &resource) {
            registry.insert(other);
        }
        registry.insert(resource);
    }
    state.serve(registry);
}

fn unregister(state: &mut State, definition: &Value) {
    let defined = defined(definition);
    state.definitions.remove(&defined);
    state.webhooks.remove(&defined);
    let mut registry = Registry::clone(&state.registry);
    for group in alias::names(&state.aliases, &defined.group) {
        registry.remove(group, &defined.resource);
    }
    state.serve(registry);
    end_watches(state, &defined);
}

fn status(definition: &Value, names: Names, now: &str) -> Value {
    let accepted = names.conflict.is_none();
    let (reason, message) = names
        .conflict
        .unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    let previous = &definition["status"];
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let word = if holds { "True" } else { "False" };
        let old = previous["conditions"].as_array();
        let old = old.into_iter().flatten().find(|it| it["type"] == kind);
        let since = match old {
            Some(old) if old["status"] == word => old["lastTransitionTime"].clone(),
            _ => now.into(),
        };
        json!({
            "type": kind,
            "status": word,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        })
    };
    let established = accepted || is_established(definition);
    let (why, detail) = if established {
        (
            "InitialNamesAccepted",
            "the initial names have been accepted",
        )
    } else {
        ("NotAccepted", "not all names are accepted")
    };
    let mut stored = strings(&previous["storedVersions"]);
    let versions = definition["spec"]["versions"].as_array();
    for version in versions
        .into_iter()
        .flatten()
        .filter(|it| it["storage"] == true)
    {
        let name = version["name"].as_str().unwrap_or_default().to_owned();
        if !stored.contains(&name) {
            stored.push(name);
        }
    }
    json!({
        "conditions": [
            condition("NamesAccepted", accepted, reason, &message),
            condition("Established", established, why, detail),
        ],
        "acceptedNames": names.accepted,
        "storedVersions": stored,
    })
}

/// The served resources of a definition, one per version.
fn resources(definition: &Value) -> Vec<Resource> {
    let spec = &definition["spec"];
    let defined = defined(definition);
    let versions: Vec<&Value> =
        spec["versions"].as_array().into_iter().flatten().collect();
    let stored = versions.iter().find(|it| it["storage"] == true);
    let stored = stored
        .map(|it| it["name"].as_str().unwrap_or_default())
        .unwrap_or_default();
    let stored_as = api_version(&defined.group, stored);
    let served = versions.into_iter().filter(|it| it["served"] == true);
    served
        .map(|version| resource(spec, version, &stored_as))
        .collect()
}

fn resource(spec: &Value, version: &Value, stored_as: &str) -> Resource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &spec["names"];
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let schema = version["schema"].get("openAPIV3Schema");
    let selectable = version["selectableFields"].as_array();
    let columns = version["additionalPrinterColumns"].as_array();
    Resource {
        list_kind: text(&names["listKind"]),
        singular: text(&names["singular"]),
        short_names: strings(&names["shortNames"]),
        categories: strings(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS.to_vec(),
        deprecation: deprecation(spec, version),
        subresources: subresources(version),
        columns: columns.into_iter().flatten().map(column).collect(),
        schema: schema.cloned().map(Schema::new),
        selectable: selectable
            .into_iter()
            .flatten()
            .map(|it| text(&it["jsonPath"]))
            .collect(),
        stored_as: stored_as.to_owned(),
        custom: true,
        unconditional_update: false,
        ..Resource::new(
            &group,
            &text(&version["name"]),
            &text(&names["kind"]),
            &plural,
        )
    }
}

/// In the order in which discovery lists them for custom resources.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The deprecation warning for clients of a version.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(actual) = version["deprecationWarning"].as_str() {
        return Some(actual.to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let own = text(&version["name"]);
    let others = spec["versions"].as_array().into_iter().flatten();
    let mut newer: Vec<String> = others
        .filter(|it| it["served"] == true && it["deprecated"] != true)
        .map(|it| text(&it["name"]))
        .filter(|it| registry::rank(it) > registry::rank(&own))
        .collect();
    newer.sort_by_key(|it| registry::rank(it));
    let instead = newer
        .last()
        .map(|it| format!("; use {group}/{it} {kind}"))
        .unwrap_or_default();
    Some(format!("{group}/{own} {kind} is deprecated{instead}"))
}

fn subresources(version: &Value) -> Vec<Subresource> {
    let declared = &version["subresources"];
    let mut all = Vec::new();
    if !declared["status"].is_null() {
        all.push(Subresource::Status);
    }
    if let Some(scale) = declared["scale"].as_object() {
        let path = |key: &str| scale.get(key).and_then(Value::as_str).map(str::to_owned);
        all.push(Subresource::Scale(Scale {
            spec_replicas_path: path("specReplicasPath").unwrap_or_default(),
            status_replicas_path: path("statusReplicasPath").unwrap_or_default(),
            label_selector_path: path("labelSelectorPath"),
        }));
    }
    all
}

fn column(declared: &Value) -> Column {
    let text = |key: &str| declared[key].as_str().unwrap_or_default().to_owned();
    let priority = declared["priority"]
        .as_i64()
        .and_then(|it| i32::try_from(it).ok());
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: text("description"),
        priority: priority.unwrap_or_default(),
        json_path: text("jsonPath"),
    }
}

/// The definition of the objects in a bucket, if it is being deleted.
pub(crate) fn terminating(state: &State, bucket: Bucket) -> Option<Key> {
    let resource = state.stored_resource(bucket).filter(|it| it.custom)?;
    let key = Key::new("", &resource.storage.to_string());
    let definition = state.get(state.buckets.definitions, &key)?;
    meta::is_deleting(definition).then_some(key)
}
