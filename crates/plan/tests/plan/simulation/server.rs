//! The API server: guarded writes.

use fivespot_api::{ScheduleOverride, name};
use fivespot_plan::{Call, ReclaimStop, Request, Side};
use serde_json::{Value, json};

use super::{Id, Simulation, WriteResult};

impl Simulation {
    /// Handles a request as the API server does.
    pub(crate) fn send(&mut self, request: &Request) -> WriteResult {
        let target = &request.target;
        let id = (target.object.kind.clone(), target.object.name.clone());
        assert_eq!(
            request.side == Side::Workload,
            ["Node", "Pod", "ConfigMap"].contains(&id.0.as_str())
        );
        match &request.call {
            Call::Create(object) => {
                if self.objects.contains_key(&id) {
                    return WriteResult::Conflict;
                }
                self.put(object.clone());
                if object["kind"] == name::OVERRIDE_KIND {
                    let created = serde_json::from_value(self.objects[&id].clone());
                    let created: ScheduleOverride = created.unwrap();
                    self.schedule.overrides.extend(created.in_schedule());
                    self.schedule
                        .reclaim_stops
                        .extend(ReclaimStop::of(&created));
                }
                WriteResult::Success
            }
            Call::Patch(patch) if id.0 == name::KIND => self.patch_sm(patch),
            Call::Patch(patch) => self.patch(&id, patch),
            Call::Delete { uid } => {
                let deleted = self.delete(&id, Some(uid));
                if id.0 == name::OVERRIDE_KIND {
                    self.schedule.overrides.retain(|of| of.name != id.1);
                    self.schedule.reclaim_stops.retain(|of| of.name != id.1);
                }
                deleted
            }
            Call::DeletePod { uid, grace } => {
                assert!(*grace > 0, "the kubelet is waited for");
                self.let_go(uid)
            }
            Call::Evict { uid } => self.evict(uid),
        }
    }

    fn patch_sm(&mut self, patch: &Value) -> WriteResult {
        let version = self.next();
        let Some(sm) = self.sm.as_mut() else {
            return WriteResult::NotFound;
        };
        if patch["metadata"]["resourceVersion"] != json!(sm.metadata.resource_version) {
            return WriteResult::Conflict;
        }
        let spec = &patch["spec"];
        if let Some(enabled) = spec["enabled"].as_bool() {
            sm.spec.enabled = Some(enabled);
            sm.metadata.generation = sm.metadata.generation.map(|before| before + 1);
        }
        if let Some(enabled) = spec["schedule"]["enabled"].as_bool() {
            sm.spec.schedule.enabled = enabled;
            sm.metadata.generation = sm.metadata.generation.map(|before| before + 1);
        }
        let finalizers = &patch["metadata"]["finalizers"];
        if !finalizers.is_null() {
            let finalizers = serde_json::from_value(finalizers.clone());
            sm.metadata.finalizers = Some(finalizers.unwrap());
        }
        sm.metadata.resource_version = Some(version);
        self.collect_sm();
        WriteResult::Success
    }

    fn patch(&mut self, id: &Id, patch: &Value) -> WriteResult {
        let version = self.next();
        let Some(object) = self.objects.get_mut(id) else {
            return WriteResult::NotFound;
        };
        for guard in ["uid", "resourceVersion"] {
            if patch["metadata"][guard] != object["metadata"][guard] {
                return WriteResult::Conflict;
            }
        }
        merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(version);
        WriteResult::Success
    }

    pub(crate) fn delete(&mut self, id: &Id, uid: Option<&str>) -> WriteResult {
        let (version, now) = (self.next(), self.now.to_string());
        let Some(object) = self.objects.get_mut(id) else {
            return WriteResult::NotFound;
        };
        let meta = &mut object["metadata"];
        if uid.is_some_and(|uid| meta["uid"] != uid) {
            return WriteResult::Conflict;
        }
        if meta["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            if meta["deletionTimestamp"].is_null() {
                meta["deletionTimestamp"] = json!(now);
                meta["resourceVersion"] = json!(version);
            }
        } else {
            self.objects.remove(id);
        }
        WriteResult::Success
    }

    fn evict(&mut self, uid: &str) -> WriteResult {
        if self.budget_until.is_some_and(|until| self.now < until) {
            return WriteResult::TooMany;
        }
        self.let_go(uid)
    }

    fn let_go(&mut self, uid: &str) -> WriteResult {
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) else {
            return WriteResult::NotFound;
        };
        pod.is_deleting = true;
        WriteResult::Success
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let object = object.as_object_mut().unwrap();
    for (field, change) in patch {
        if change.is_null() {
            object.remove(field);
        } else {
            merge(object.entry(field.clone()).or_insert(Value::Null), change);
        }
    }
}
