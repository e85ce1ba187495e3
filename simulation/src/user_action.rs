//! Actions of users, Cluster API and pods.

use fivespot_api::{name, reclaim};
use fivespot_capi::key;
use fivespot_testkit::{Cluster, machine_path, node_path, pod};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strum::VariantArray;

use crate::random::Random;
use crate::scenario::CALENDAR;
use crate::snapshot::{CALENDARS, OVERRIDES};

/// An action on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(crate) enum UserAction {
    Kill,
    Revive,
    SwitchOff,
    SwitchOn,
    OpenAllDay,
    NeverOpen,
    Hurry,
    OtherHost,
    OtherTaint,
    Pause,
    Resume,
    Delete,
    DropFinalizers,
    DeleteMachine,
    DeleteInfrastructure,
    DeleteBootstrap,
    DeleteNode,
    LoseNode,
    ReturnNode,
    StripOwners,
    Cordon,
    SameTaint,
    ForeignTaint,
    Annotate,
    Condemn,
    Reclaim,
    ForeignMachine,
    ForeignInfrastructure,
    HoldMachine,
    HoldInfrastructure,
    PauseCluster,
    ResumeCluster,
    LoseKubeconfig,
    RunPods,
    Guard,
    Run,
    Stop,
    Hold,
    RunTeam,
    RunLater,
    StopLater,
    HoldLater,
    EndOverride,
    ShortenOverride,
    KeepOverride,
    AddHoliday,
    DeleteCalendar,
    LeadTime,
    EndPolicy,
}

impl UserAction {
    pub(crate) fn changes_calendar(self) -> bool {
        matches!(self, Self::AddHoliday | Self::DeleteCalendar)
    }

    /// Draws an action. Running pods is the most frequent.
    pub(crate) fn draw(random: &mut Random) -> Self {
        if random.chance(25) {
            return Self::RunPods;
        }
        // The request that the agent on the Node makes.
        if random.chance(8) {
            return Self::Reclaim;
        }
        if random.chance(20) {
            let overrides = [Self::Run, Self::Stop, Self::Hold, Self::EndOverride];
            return random.pick(&overrides).unwrap_or(Self::Hold);
        }
        random.pick(Self::VARIANTS).unwrap_or(Self::RunPods)
    }

    /// Performs the action. An action that is not possible at that moment is skipped.
    pub(crate) async fn perform(self, cluster: &Cluster, name: &str, now: Timestamp) {
        let target = ActionTarget {
            cluster,
            name,
            owned: cluster.owned_paths(name),
        };
        match self {
            Self::Kill => target.edit(json!({"killSwitch": true})).await,
            Self::Revive => target.edit(json!({"killSwitch": false})).await,
            Self::SwitchOff => target.schedule(json!({"enabled": false})).await,
            Self::SwitchOn => target.schedule(json!({"enabled": true})).await,
            Self::OpenAllDay => target.weekly("0-23").await,
            Self::NeverOpen => target.cron("0 0 30 2 *").await,
            Self::Hurry => {
                let span = json!("30s");
                let spans =
                    json!({"gracefulShutdownTimeout": span, "nodeDrainTimeout": span});
                target.edit(spans).await;
            }
            Self::OtherHost => {
                let host =
                    json!({"spec": {"address": format!("{name}-b.example"), "port": 22}});
                target.edit(json!({"infrastructureSpec": host})).await;
            }
            Self::OtherTaint => {
                let taint = json!({"key": "example.com/shift", "value": "day", "effect": "NoSchedule"});
                target.edit(json!({"nodeTaints": [taint]})).await;
            }
            Self::Pause => target.annotate_own(json!({key::PAUSED: "true"})).await,
            Self::Resume => target.annotate_own(json!({key::PAUSED: null})).await,
            // An object that is deleted without the operator's finalizer leaves its owned objects
            // behind, as documented. A user who wants them to be deleted does not do that. (While
            // it is paused, the operator does not add its finalizer again.)
            Self::Delete if target.has_objects("/metadata/finalizers", false).await => {}
            Self::DropFinalizers
                if target
                    .has_objects("/metadata/deletionTimestamp", true)
                    .await => {}
            Self::Delete => target.delete(&machine_path(name)).await,
            Self::DropFinalizers => {
                let bare = json!({"metadata": {"finalizers": null}});
                target.patch(&machine_path(name), &bare).await;
            }
            other => other.change_schedule(&target, now).await,
        }
    }

    /// Actions that change when the machine is wanted, except changes of its windows.
    async fn change_schedule(self, target: &ActionTarget<'_>, now: Timestamp) {
        match self {
            Self::LeadTime => {
                target
                    .edit(json!({"provisioning": {"leadTime": "30m"}}))
                    .await;
            }
            Self::EndPolicy => {
                let policy = json!({"endPolicy": "CompleteByWindowEnd"});
                target.edit(json!({"shutdown": policy})).await;
            }
            Self::Run
            | Self::Stop
            | Self::Hold
            | Self::RunTeam
            | Self::RunLater
            | Self::StopLater
            | Self::HoldLater => self.create_override(target, now).await,
            Self::EndOverride | Self::ShortenOverride | Self::KeepOverride => {
                self.change_overrides(target, now).await;
            }
            Self::AddHoliday => {
                let date = now.to_zoned(TimeZone::UTC).date().to_string();
                let dates = json!([{"name": "today", "date": date}]);
                let patch = json!({"spec": {"dates": dates}});
                target.patch(&calendar_path(), &patch).await;
            }
            Self::DeleteCalendar => target.delete(&calendar_path()).await,
            other => other.change_surroundings(target, now).await,
        }
    }

    /// Creates an override of some minutes or hours.
    async fn create_override(self, target: &ActionTarget<'_>, now: Timestamp) {
        let after = |minutes: i64| (now + SignedDuration::from_mins(minutes)).to_string();
        let minutes = match now.as_second() % 3 {
            0 => 20,
            1 => 90,
            _ => 500,
        };
        let mode = match self {
            Self::Stop | Self::StopLater => "Stop",
            Self::Hold | Self::HoldLater => "Hold",
            _ => "Run",
        };
        let mut spec = json!({
            "targetRef": {"name": target.name}, "mode": mode, "endTime": after(minutes),
        });
        if matches!(self, Self::RunLater | Self::StopLater | Self::HoldLater) {
            spec["startTime"] = json!(after(minutes / 2));
        }
        if self == Self::RunTeam {
            spec["targetRef"] = Value::Null;
            spec["selector"] = json!({"matchLabels": {"example.com/team": "a"}});
        }
        let name = format!("extra-{}-{}", now.as_second(), target.name);
        let object = json!({
            "apiVersion": name::API_VERSION, "kind": name::OVERRIDE_KIND,
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
        });
        let _ = target.cluster.create(&object).await;
    }

    /// Deletes, shortens or keeps every override that names the machine.
    async fn change_overrides(self, target: &ActionTarget<'_>, now: Timestamp) {
        for of in target.cluster.list(OVERRIDES).await {
            if of["spec"]["targetRef"]["name"] != target.name {
                continue;
            }
            let name = of["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{OVERRIDES}/{name}");
            match self {
                Self::EndOverride => target.delete(&path).await,
                Self::ShortenOverride => {
                    let end = now + SignedDuration::from_mins(3);
                    let patch = json!({"spec": {"endTime": end.to_string()}});
                    target.patch(&path, &patch).await;
                }
                _ => {
                    let keep = json!({name::KEEP_ANNOTATION: "true"});
                    let patch = json!({"metadata": {"annotations": keep}});
                    target.patch(&path, &patch).await;
                }
            }
        }
    }

    /// Actions on the objects around the ScheduledMachine.
    async fn change_surroundings(self, target: &ActionTarget<'_>, now: Timestamp) {
        let name = target.name;
        let [bootstrap, infrastructure, machine] = &target.owned;
        match self {
            Self::DeleteMachine => target.delete(machine).await,
            Self::DeleteInfrastructure => target.delete(infrastructure).await,
            Self::DeleteBootstrap => target.delete(bootstrap).await,
            Self::DeleteNode => target.delete(&node_path(name)).await,
            Self::LoseNode => target.set_node_ready(false).await,
            Self::ReturnNode => target.set_node_ready(true).await,
            Self::StripOwners => {
                let bare = json!({"metadata": {"ownerReferences": null}});
                target.patch(infrastructure, &bare).await;
            }
            Self::Cordon => {
                let patch = json!({
                    "metadata": {"annotations": {"example.com/cordoned": "yes"}},
                    "spec": {"unschedulable": true},
                });
                target.patch(&node_path(name), &patch).await;
            }
            Self::SameTaint => target.taint("example.com/shift").await,
            Self::ForeignTaint => target.taint("example.com/theirs").await,
            Self::Annotate => {
                let note = json!({"metadata": {
                    "annotations": {"example.com/note": "mine"},
                    "labels": {"example.com/team": "a"},
                }});
                target.patch(machine, &note).await;
                target.patch(&node_path(name), &note).await;
            }
            Self::Condemn => target.mark_for_remediation(now).await,
            Self::Reclaim => {
                let request = json!({"metadata": {"annotations": {
                    name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
                    name::RECLAIM_REASON_ANNOTATION: "process-match: steam",
                    name::RECLAIM_REQUESTED_AT_ANNOTATION: now.to_string(),
                }}});
                target.patch(&node_path(name), &request).await;
            }
            Self::ForeignMachine => target.create_foreign_object(2).await,
            Self::ForeignInfrastructure => target.create_foreign_object(1).await,
            Self::HoldMachine => target.add_finalizer(machine).await,
            Self::HoldInfrastructure => target.add_finalizer(infrastructure).await,
            Self::PauseCluster => target.pause_cluster(true).await,
            Self::ResumeCluster => target.pause_cluster(false).await,
            Self::LoseKubeconfig => {
                target
                    .delete("/api/v1/namespaces/default/secrets/production-cluster-kubeconfig")
                    .await;
            }
            Self::RunPods => target.run_pods().await,
            Self::Guard => target.add_disruption_budget().await,
            _ => {}
        }
    }
}

/// Reverts what other actors did, and removes their finalizers. What the user has requested stays.
pub(crate) async fn undo_user_actions(cluster: &Cluster, name: &str) {
    let target = ActionTarget {
        cluster,
        name,
        owned: cluster.owned_paths(name),
    };
    UserAction::Resume
        .perform(cluster, name, Timestamp::UNIX_EPOCH)
        .await;
    target
        .annotate_own(json!({name::HOST_FREE_ANNOTATION: null}))
        .await;
    target.pause_cluster(false).await;
    target.set_node_ready(true).await;
    target.delete(&budget(name)).await;
    // The Cluster's controller reconciles it, and creates a deleted kubeconfig again.
    let note = json!({"metadata": {"annotations": {"example.com/nudge": name}}});
    target.patch(&cluster.cluster_path(), &note).await;
    for path in &target.owned {
        if let Some(mut object) = cluster.get(path).await {
            // A Machine is not reconciled when objects without an owner reference to it are
            // deleted.
            if object["kind"] == "Machine" {
                target.patch(path, &note).await;
            }
            let finalizers = object["metadata"]["finalizers"].as_array_mut();
            if let Some(all) = finalizers {
                all.retain(|held| held != TEST_FINALIZER);
                let patch = json!({"metadata": {"finalizers": all}});
                target.patch(path, &patch).await;
            }
            // A provider finalizes only objects of a Machine. An action has removed the owner
            // reference.
            let owners = object["metadata"]["ownerReferences"].as_array();
            let is_owned =
                owners.is_some_and(|all| all.iter().any(|one| one["kind"] == "Machine"));
            let is_going = object["metadata"]["deletionTimestamp"].is_string();
            if is_going && !is_owned && object["kind"] != "Machine" {
                let patch = json!({"metadata": {"finalizers": null}});
                target.patch(path, &patch).await;
            }
            if object["metadata"]["labels"][FOREIGN] == "yes" {
                let patch = json!({"metadata": {"finalizers": null}});
                target.delete(path).await;
                target.patch(path, &patch).await;
            }
        }
    }
    target.delete_machine_without_node().await;
}

const TEST_FINALIZER: &str = "example.com/held";
/// The label of objects that do not belong to the operator.
pub(crate) const FOREIGN: &str = "example.com/foreign";

fn calendar_path() -> String {
    format!("{CALENDARS}/{CALENDAR}")
}

fn budget(name: &str) -> String {
    format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}")
}

struct ActionTarget<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    owned: [String; 3],
}

impl ActionTarget<'_> {
    /// Ignores errors: the object may just have been deleted.
    async fn patch(&self, path: &str, patch: &Value) {
        let _ = self.cluster.try_patch(path, patch).await;
    }

    /// Whether owned objects exist for a ScheduledMachine that has this field, or lacks it.
    async fn has_objects(&self, field: &str, is_set: bool) -> bool {
        let Some(own) = self.cluster.get(&machine_path(self.name)).await else {
            return false;
        };
        if own.pointer(field).is_some() != is_set {
            return false;
        }
        for path in &self.owned {
            if self.cluster.get(path).await.is_some() {
                return true;
            }
        }
        false
    }

    async fn delete(&self, path: &str) {
        if self.cluster.get(path).await.is_some() {
            self.cluster.delete(path).await;
        }
    }

    async fn edit(&self, spec: Value) {
        let path = machine_path(self.name);
        self.patch(&path, &json!({ "spec": spec })).await;
    }

    async fn schedule(&self, schedule: Value) {
        self.edit(json!({ "schedule": schedule })).await;
    }

    async fn weekly(&self, hours: &str) {
        let schedule = json!({
            "cron": null, "duration": null, "windows": null,
            "daysOfWeek": ["mon-sun"], "hoursOfDay": [hours],
        });
        self.schedule(schedule).await;
    }

    async fn cron(&self, cron: &str) {
        let schedule = json!({
            "cron": cron, "duration": "1h", "windows": null,
            "daysOfWeek": null, "hoursOfDay": null,
        });
        self.schedule(schedule).await;
    }

    async fn annotate_own(&self, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.patch(&machine_path(self.name), &patch).await;
    }

    async fn taint(&self, key: &str) {
        let path = node_path(self.name);
        let Some(node) = self.cluster.get(&path).await else {
            return;
        };
        let mut taints = node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if taints.iter().all(|taint| taint["key"] != key) {
            taints.push(json!({"key": key, "value": "theirs", "effect": "NoSchedule"}));
            self.patch(&path, &json!({"spec": {"taints": taints}}))
                .await;
        }
    }

    /// Makes a Node that has been ready lose its kubelet, or get it back.
    async fn set_node_ready(&self, is_ready: bool) {
        let path = node_path(self.name);
        let Some(mut node) = self.cluster.get(&path).await else {
            return;
        };
        let (now, status) = (
            self.cluster.clock().now(),
            if is_ready { "True" } else { "False" },
        );
        let conditions = node["status"]["conditions"].as_array_mut();
        let Some(conditions) = conditions else {
            return;
        };
        let mut ready = conditions.iter_mut().filter(|of| of["type"] == "Ready");
        let Some(ready) = ready.next().filter(|of| of["status"] != status) else {
            return;
        };
        ready["status"] = json!(status);
        ready["lastTransitionTime"] = json!(format!("{now:.0}"));
        let patch = json!({"status": {"conditions": conditions}});
        self.patch(&format!("{path}/status"), &patch).await;
    }

    async fn mark_for_remediation(&self, now: Timestamp) {
        let machine = &self.owned[2];
        let Some(found) = self.cluster.get(machine).await else {
            return;
        };
        let mut conditions = found["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions.push(json!({
            "type": key::OWNER_REMEDIATED, "status": "False", "reason": "WaitingForRemediation",
            "message": "", "lastTransitionTime": now.to_string(),
        }));
        let patch = json!({"status": {"conditions": conditions}});
        self.patch(&format!("{machine}/status"), &patch).await;
    }

    async fn create_foreign_object(&self, part: usize) {
        let Some(path) = self.owned.get(part) else {
            return;
        };
        let (version, kind) = match part {
            2 => ("cluster.x-k8s.io/v1beta2", "Machine"),
            _ => ("infrastructure.cluster.x-k8s.io/v1beta1", "RemoteMachine"),
        };
        let mut object = json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": self.name, "namespace": "default",
                         "labels": {FOREIGN: "yes"}},
            "spec": {"address": "foreign.example"},
        });
        if part == 2 {
            object["spec"] = json!({
                "clusterName": "other",
                "bootstrap": {"dataSecretName": "none"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                                      "kind": "RemoteMachine", "name": "none"},
            });
        }
        if self.cluster.get(path).await.is_none() {
            let _ = self.cluster.create(&object).await;
        }
    }

    async fn add_finalizer(&self, path: &str) {
        if let Some(object) = self.cluster.get(path).await
            && object["metadata"].get("deletionTimestamp").is_none()
        {
            let mut finalizers = object["metadata"]["finalizers"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if !finalizers.contains(&json!(TEST_FINALIZER)) {
                finalizers.push(json!(TEST_FINALIZER));
            }
            self.patch(path, &json!({"metadata": {"finalizers": finalizers}}))
                .await;
        }
    }

    async fn pause_cluster(&self, is_paused: bool) {
        let patch = json!({"spec": {"paused": is_paused}});
        self.patch(&self.cluster.cluster_path(), &patch).await;
    }

    /// A Node that was deleted by hand returns when its kubelet registers again. Until then, the
    /// Machine has lost its Node. Deletes such a Machine.
    async fn delete_machine_without_node(&self) {
        let machine = self.cluster.get(&self.owned[2]).await.unwrap_or_default();
        let is_lost = machine["status"]["nodeRef"]["name"] == self.name
            && self.cluster.get(&node_path(self.name)).await.is_none();
        if is_lost {
            self.delete(&self.owned[2]).await;
        }
    }

    async fn run_pods(&self) {
        if self.cluster.get(&node_path(self.name)).await.is_none() {
            return;
        }
        for count in 0..2 {
            let mut pod = pod(&format!("{}-{count}", self.name), self.name, self.name);
            pod["metadata"]["annotations"] =
                json!({"sim.5spot.finos.org/replace-after": "60s"});
            let _ = self.cluster.create(&pod).await;
        }
    }

    async fn add_disruption_budget(&self) {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": self.name}}},
        });
        let _ = self.cluster.create(&budget).await;
    }
}
