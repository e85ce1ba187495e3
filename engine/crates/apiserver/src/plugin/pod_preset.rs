//! PodPreset: applies the presets of a namespace to the pods that they select
//! (plugin/pkg/admission/podpreset in Kubernetes 1.19).

use std::sync::Arc;

use kubemu_admission::policy::Operation;
use serde_json::{Map, Value, json};

use super::pod::{list, text};
use super::{Attributes, Plugin, Removal, pod};
use crate::kind::pod::annotation::MIRROR;
use crate::kind::{self, BuiltinKind};
use crate::meta;
use crate::resource::GroupResource;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct PodPreset;

const PREFIX: &str = "podpreset.admission.kubernetes.io";

impl Plugin for PodPreset {
    fn name(&self) -> &'static str {
        "PodPreset"
    }

    fn description(&self) -> &'static str {
        "Adds the variables, volumes and mounts of PodPresets \
         (`settings.k8s.io/v1alpha1`, served while the plugin is enabled) to the new \
         pods that they select. If presets conflict with each other or with the pod, \
         none is applied and a warning is returned."
    }

    fn removal(&self) -> Option<Removal> {
        Some(Removal {
            release: "1.20",
            instead: "MutatingAdmissionPolicy or MutatingAdmissionWebhook",
        })
    }

    fn kinds(&self) -> Vec<Arc<dyn BuiltinKind>> {
        vec![Arc::new(kind::pod_preset::PodPreset)]
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let is_pod = attributes.is_about("", "pods");
        let Some(pod) = object.filter(|_| creates && is_pod) else {
            return Ok(());
        };
        let annotations = &pod["metadata"]["annotations"];
        let is_excluded = annotations[format!("{PREFIX}/exclude")] == "true";
        if is_excluded || !annotations[MIRROR].is_null() {
            return Ok(());
        }
        let presets = GroupResource::new("settings.k8s.io", "podpresets");
        let mut presets = cluster.objects(&presets, Some(attributes.namespace()));
        presets.retain(|it| selects(it, pod));
        if presets.is_empty() {
            return Ok(());
        }
        let mut changed = pod.clone();
        for preset in &presets {
            if let Err(why) = apply_preset(preset, &mut changed) {
                let names: Vec<&str> = presets.iter().map(|it| meta::name(it)).collect();
                let names = names.join(",");
                attributes.warn(format!(
                    "conflict occurred while applying podpresets: {names} on pod: {}: {why}",
                    attributes.name()
                ));
                return Ok(());
            }
        }
        if let Some(kind) = &attributes.resource().builtin {
            kind.default(&mut changed);
        }
        *pod = changed;
        Ok(())
    }
}

/// Whether a preset selects a pod. An absent selector is an empty one, which selects every pod.
fn selects(preset: &Value, pod: &Value) -> bool {
    let selector = &preset["spec"]["selector"];
    selector.is_null() || matches_label_selector(selector, pod)
}

/// Applies a preset to a pod.
///
/// # Errors
/// A conflict with a value of the pod.
fn apply_preset(preset: &Value, pod: &mut Value) -> Result<(), String> {
    let (name, requested) = (meta::name(preset), &preset["spec"]);
    let volumes = Merge {
        list: "volumes",
        words: "merging volumes",
        keys: &["name"],
    };
    volumes.add_to(name, requested, pod::spec(pod))?;
    for list in ["containers", "initContainers"] {
        let all = pod::spec(pod).get_mut(list).and_then(Value::as_array_mut);
        for container in all.into_iter().flatten().filter_map(Value::as_object_mut) {
            for merge in OF_CONTAINERS {
                merge.add_to(name, requested, container)?;
            }
        }
    }
    let key = format!("{PREFIX}/podpreset-{name}");
    let annotations = meta::field(meta::edit(pod), "annotations");
    annotations.insert(key, meta::version(preset).into());
    Ok(())
}

/// A list that a preset adds to.
struct Merge {
    list: &'static str,
    words: &'static str,
    /// The keys that must be unique among entries that differ. If empty, all entries are added.
    keys: &'static [&'static str],
}

const OF_CONTAINERS: [Merge; 3] = [
    Merge {
        list: "env",
        words: "merging env",
        keys: &["name"],
    },
    Merge {
        list: "envFrom",
        words: "merging envFrom",
        keys: &[],
    },
    Merge {
        list: "volumeMounts",
        words: "merging volume mounts",
        keys: &["name", "mountPath"],
    },
];

impl Merge {
    fn add_to(
        &self,
        preset: &str,
        requested: &Value,
        fields: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let requested = list(requested, self.list);
        if requested.is_empty() {
            return Ok(());
        }
        let own = fields.entry(self.list).or_insert_with(|| json!([]));
        let Some(own) = own.as_array_mut() else {
            return Ok(());
        };
        let original = own.clone();
        for entry in requested {
            let mut is_there = false;
            for key in self.keys {
                let value = text(entry, key);
                let Some(found) = original.iter().find(|it| text(it, key) == value)
                else {
                    continue;
                };
                if found != entry {
                    let words = self.words;
                    return Err(format!(
                        "{words} for {preset} has a conflict on {value}: {entry} does not \
                         match {found}"
                    ));
                }
                is_there = true;
            }
            if !is_there {
                own.push(entry.clone());
            }
        }
        Ok(())
    }
}
