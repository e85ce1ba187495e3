//! Edits of the user of the ScheduledMachine, and changes by other clients.

use fivespot_api::{name, reclaim};
use fivespot_capi::key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::cluster_api::{has_controller, parts};
use super::environment::{
    EARLIER, Environment, FOREIGN, NAME, OUR_TAINT, THEIRS, is_deleting, is_ours,
};
use super::schedule_at::{Mode, Override};
use super::state::{Kind, State, WorkloadReachability, instant};

/// An edit of the ScheduledMachine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    /// Sets the kill switch, or clears it.
    KillSwitch,
    /// Disables the schedule, or enables it again.
    Enabled,
    /// Sets the end of the window to 23:00, or back to 18:00.
    Hours,
    /// Sets the grace to one minute, or back to five.
    Grace,
    /// Sets a grace of more than a day.
    LongGrace,
    /// Sets another host.
    Host,
    /// Sets objects of another provider, or those of the first again.
    Provider,
    /// Sets another taint value, or the first again.
    Taint,
    /// Sets a time zone that does not exist, or UTC again.
    Zone,
    /// Pauses the object, or resumes it.
    Pause,
    /// `kubectl delete`.
    Delete,
    /// `kubectl delete`, and then sets a label of Cluster API: no policy checks an object that is
    /// being deleted.
    DeleteAndLabel,
    /// Creates an override, or changes its mode.
    Override(Mode),
    /// Deletes the override.
    EndOverride,
}

impl Edit {
    pub(crate) const ALL: [Self; 16] = [
        Self::KillSwitch,
        Self::Enabled,
        Self::Hours,
        Self::Grace,
        Self::LongGrace,
        Self::Host,
        Self::Provider,
        Self::Taint,
        Self::Zone,
        Self::Pause,
        Self::Delete,
        Self::DeleteAndLabel,
        Self::Override(Mode::Run),
        Self::Override(Mode::Stop),
        Self::Override(Mode::Hold),
        Self::EndOverride,
    ];
}

/// What other clients do to the objects around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ExternalChange {
    /// An administrator cordons the Node, with a marker that is not ours.
    Cordon,
    /// A client deletes the Machine.
    DeleteMachine,
    /// A client removes the Machine together with its finalizers.
    MachineVanishes,
    /// A client deletes the infrastructure object under the Machine.
    DeleteInfrastructure,
    /// A foreign Machine takes the name.
    ForeignMachine,
    /// A foreign infrastructure object takes the name.
    ForeignInfrastructure,
    /// A health check marks the Machine as unhealthy, or as healthy again.
    HealthCheck,
    /// The Cluster is deleted.
    DeleteCluster,
    /// The Node object vanishes.
    NodeVanishes,
    /// The workload cluster stops responding, or responds again.
    Silence,
    /// The kubeconfig is replaced by one that is not accepted, or by a good one.
    Kubeconfig,
    /// A backup restores the Machine with another uid.
    Restore,
    /// A client writes an annotation of its own on the Machine.
    Annotate,
    /// Another Node takes the name.
    OtherNode,
    /// A client taints the Node.
    Taint,
    /// A client adds the taint to the Node that the ScheduledMachine requests.
    SameTaint,
    /// The Cluster is paused.
    PauseCluster,
    /// The Machine is paused.
    PauseMachine,
    /// The Cluster loses its control plane.
    LoseControlPlane,
    /// The owner of the host requests it back.
    Reclaim,
    /// An administrator taints the Node, and its kubelet writes that the taint is ours.
    ForgedRecord,
    /// Cluster API's annotation names another Machine as that of the Node.
    NodeOfAnother,
    /// `clusterctl move` has created the objects again, with the uid of an earlier
    /// ScheduledMachine on their labels.
    Move,
    /// A policy rejects that Cluster API adopts objects.
    RefuseAdoption,
    /// The host reports that it is free, since its earlier report or since now.
    HostFree,
    /// The host reports that it is in use.
    HostInUse,
}

impl ExternalChange {
    pub(crate) const ALL: [Self; 24] = [
        Self::Cordon,
        Self::DeleteMachine,
        Self::MachineVanishes,
        Self::DeleteInfrastructure,
        Self::ForeignMachine,
        Self::ForeignInfrastructure,
        Self::HealthCheck,
        Self::DeleteCluster,
        Self::NodeVanishes,
        Self::Silence,
        Self::Kubeconfig,
        Self::Restore,
        Self::Annotate,
        Self::OtherNode,
        Self::Taint,
        Self::SameTaint,
        Self::PauseCluster,
        Self::PauseMachine,
        Self::LoseControlPlane,
        Self::Reclaim,
        Self::ForgedRecord,
        Self::NodeOfAnother,
        Self::Move,
        Self::RefuseAdoption,
    ];

    /// What the owner of a host that is lent does.
    pub(crate) const OF_OWNER: [Self; 3] =
        [Self::Reclaim, Self::HostFree, Self::HostInUse];
}

impl Environment {
    /// The user edits the object.
    pub(crate) fn edit(&self, state: &mut State, edit: Edit) {
        match edit {
            Edit::Override(mode) => {
                // At 23:00, or at the next instant.
                let end = (state.now + 1).max(3);
                state.overriding = Some(Override {
                    mode,
                    end,
                    reclaimed: None,
                });
            }
            Edit::EndOverride => state.overriding = None,
            edit => self.edit_object(state, edit),
        }
    }

    fn edit_object(&self, state: &mut State, edit: Edit) {
        let now = instant(state.now);
        self.change_sm(state, |sm| {
            let toggle = |text: &mut String, usual: &str, other: &str| {
                if text == usual { other } else { usual }.clone_into(text);
            };
            match edit {
                Edit::KillSwitch => sm.spec.kill_switch = !sm.spec.kill_switch,
                Edit::Enabled => {
                    sm.spec.schedule.enabled = !sm.spec.schedule.enabled;
                }
                Edit::Hours => {
                    if let Some(hours) = sm.spec.schedule.hours_of_day.first_mut() {
                        toggle(hours, "9-17", "9-22");
                    }
                }
                Edit::Grace => {
                    toggle(&mut sm.spec.node_drain_timeout, "5m", "1m");
                }
                Edit::LongGrace => {
                    "3000m".clone_into(&mut sm.spec.node_drain_timeout);
                    "3000m".clone_into(&mut sm.spec.graceful_shutdown_timeout);
                }
                Edit::Host => {
                    sm.spec.infrastructure_spec.spec =
                        serde_json::from_value(json!({ "address": "192.0.2.8" }))
                            .unwrap_or_default();
                }
                Edit::Provider => {
                    let (bootstrap, infrastructure) = (
                        &mut sm.spec.bootstrap_spec.kind,
                        &mut sm.spec.infrastructure_spec.kind,
                    );
                    toggle(bootstrap, "K0sWorkerConfig", "KubeadmConfig");
                    toggle(infrastructure, "RemoteMachine", "Metal3Machine");
                }
                Edit::Taint => {
                    if let Some(taint) = sm.spec.node_taints.first_mut() {
                        toggle(&mut taint.value, "", "gpu");
                    }
                }
                Edit::Zone => toggle(&mut sm.spec.schedule.timezone, "UTC", "Nowhere"),
                Edit::Pause => {
                    let annotations = sm.metadata.annotations.get_or_insert_default();
                    if annotations.remove(key::PAUSED).is_none() {
                        annotations.insert(key::PAUSED.to_owned(), String::new());
                    }
                }
                Edit::Delete => {
                    sm.metadata.deletion_timestamp.get_or_insert(Time(now));
                }
                Edit::DeleteAndLabel => {
                    sm.metadata.deletion_timestamp.get_or_insert(Time(now));
                    let label = "cluster.x-k8s.io/control-plane".to_owned();
                    let labels = &mut sm.spec.machine_template.labels;
                    labels.insert(label, String::new());
                }
                Edit::Override(_) | Edit::EndOverride => {}
            }
            if edit != Edit::Pause {
                let generation = sm.metadata.generation.unwrap_or_default();
                sm.metadata.generation = Some(generation + 1);
            }
        });
    }

    /// Another client changes something; returns whether the state changed.
    pub(crate) fn apply_external_change(
        &self,
        state: &mut State,
        external_change: ExternalChange,
    ) -> bool {
        let before = state.clone();
        match external_change {
            ExternalChange::Cordon => self.change(state, Kind::Node, |node| {
                node["spec"]["unschedulable"] = json!(true);
                let annotations = &mut node["metadata"]["annotations"];
                annotations[FOREIGN] = json!("yes");
                annotations[name::CORDONED_ANNOTATION] = json!(THEIRS);
            }),
            // Only once Cluster API has adopted its objects: the operator could do nothing about
            // an earlier deletion.
            ExternalChange::DeleteMachine => {
                if self.is_infrastructure_adopted(state) {
                    self.delete(state, Kind::Machine);
                }
            }
            ExternalChange::MachineVanishes => {
                let machine = self.get(state, Kind::Machine);
                if machine.is_some_and(|of| is_ours(&of))
                    && self.is_infrastructure_adopted(state)
                {
                    state.put(Kind::Machine, None);
                }
            }
            ExternalChange::DeleteInfrastructure => {
                let infrastructure = self.get(state, Kind::Infrastructure);
                if infrastructure.is_some_and(|object| has_controller(&object)) {
                    self.delete(state, Kind::Infrastructure);
                }
            }
            ExternalChange::ForeignMachine => self.create_foreign(state, Kind::Machine),
            ExternalChange::ForeignInfrastructure => {
                self.create_foreign(state, Kind::Infrastructure);
            }
            ExternalChange::HealthCheck => self.change(state, Kind::Machine, |machine| {
                let condition =
                    json!({ "type": key::OWNER_REMEDIATED, "status": "False" });
                if let Some(conditions) = machine["status"]["conditions"].as_array_mut() {
                    let known = conditions.len();
                    conditions.retain(|known| *known != condition);
                    if conditions.len() == known {
                        conditions.push(condition);
                    }
                }
            }),
            ExternalChange::DeleteCluster => self.delete(state, Kind::Cluster),
            ExternalChange::NodeVanishes => {
                state.put(Kind::Node, None);
                state.pod = super::state::Pod::None;
            }
            ExternalChange::Silence => {
                state.reachability =
                    other(state.reachability, WorkloadReachability::Silent);
            }
            ExternalChange::Kubeconfig => {
                state.reachability =
                    other(state.reachability, WorkloadReachability::Refused);
            }
            ExternalChange::Restore => self.restore(state),
            ExternalChange::OtherNode if state.at(Kind::Node).is_some() => {
                self.join(state, "another-machine");
            }
            ExternalChange::OtherNode => {}
            ExternalChange::Taint => self.taint(state, FOREIGN),
            ExternalChange::SameTaint => self.taint(state, OUR_TAINT),
            ExternalChange::PauseCluster => {
                self.change(state, Kind::Cluster, |cluster| {
                    cluster["spec"]["paused"] = json!(true);
                });
            }
            ExternalChange::PauseMachine => {
                self.change(state, Kind::Machine, |machine| {
                    if is_ours(machine) {
                        machine["metadata"]["annotations"][key::PAUSED] = json!("");
                    }
                });
            }
            ExternalChange::LoseControlPlane => {
                self.change(state, Kind::Cluster, |cluster| {
                    cluster["status"]["initialization"]["controlPlaneInitialized"] =
                        json!(false);
                });
            }
            ExternalChange::Reclaim => self.change(state, Kind::Node, |node| {
                node["metadata"]["annotations"][name::RECLAIM_REQUESTED_ANNOTATION] =
                    json!(reclaim::REQUESTED);
            }),
            ExternalChange::ForgedRecord => self.forge(state),
            ExternalChange::NodeOfAnother => self.change(state, Kind::Node, |node| {
                node["metadata"]["annotations"][key::MACHINE] = json!("another");
            }),
            ExternalChange::Move => {
                for kind in Kind::CREATED {
                    self.change(state, kind, |object| {
                        if is_ours(object) && !is_deleting(object) {
                            let labels = &mut object["metadata"]["labels"];
                            labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!(EARLIER);
                        }
                    });
                }
            }
            ExternalChange::RefuseAdoption => state.refuses_adoption = true,
            ExternalChange::HostFree => self.report_free(state),
            ExternalChange::HostInUse => self.change_sm(state, |sm| {
                let annotations = sm.metadata.annotations.get_or_insert_default();
                annotations.remove(name::HOST_FREE_ANNOTATION);
            }),
            ExternalChange::Annotate => self.change(state, Kind::Machine, |machine| {
                machine["metadata"]["annotations"][FOREIGN] = json!("yes");
            }),
        }
        *state != before
    }

    /// The host reports that it is free now.
    fn report_free(&self, state: &mut State) {
        let now = instant(state.now);
        self.change_sm(state, |sm| {
            let annotations = sm.metadata.annotations.get_or_insert_default();
            let before = annotations.get(name::HOST_FREE_ANNOTATION);
            let since = before.and_then(|text| text.split(' ').next());
            let since = since.map_or_else(|| now.to_string(), str::to_owned);
            let report = format!("{since} {now}");
            annotations.insert(name::HOST_FREE_ANNOTATION.to_owned(), report);
        });
    }

    /// Whether Cluster API has adopted the infrastructure object of the Machine, if it exists.
    fn is_infrastructure_adopted(&self, state: &State) -> bool {
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let [_, infrastructure] = parts(&machine);
        let infrastructure = infrastructure.and_then(|of| self.get(state, of));
        infrastructure.is_none_or(|object| has_controller(&object))
    }

    /// A foreign object takes a free name.
    fn create_foreign(&self, state: &mut State, kind: Kind) {
        let api_version = match kind {
            Kind::Machine => "cluster.x-k8s.io/v1beta2",
            _ => "infrastructure.cluster.x-k8s.io/v1beta1",
        };
        if state.at(kind).is_none() {
            let object = json!({
                "apiVersion": api_version, "kind": kind.api_kind(),
                "metadata": {
                    "name": NAME, "namespace": "default",
                    "labels": {
                        name::SCHEDULED_MACHINE_LABEL: NAME,
                        name::SCHEDULED_MACHINE_UID_LABEL: "sm-2",
                    },
                },
                "spec": { "clusterName": "other" },
            });
            self.create(state, kind, object);
        }
    }

    /// Restores the Machine with another uid, and updates the owner references to it.
    fn restore(&self, state: &mut State) {
        let machine = self.get(state, Kind::Machine);
        let Some(machine) = machine.filter(|found| is_ours(found) && !is_deleting(found))
        else {
            return;
        };
        let then = machine["metadata"]["uid"].clone();
        self.create(state, Kind::Machine, machine);
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let now = &machine["metadata"]["uid"];
        for kind in parts(&machine).into_iter().flatten() {
            self.change(state, kind, |object| {
                let owners = object["metadata"]["ownerReferences"].as_array_mut();
                let its = owners
                    .into_iter()
                    .flatten()
                    .filter(|one| one["uid"] == then);
                its.for_each(|one| one["uid"] = now.clone());
            });
        }
    }

    fn taint(&self, state: &mut State, key: &str) {
        self.change(state, Kind::Node, |node| {
            let taint = json!({ "key": key, "value": THEIRS, "effect": "NoSchedule" });
            match node["spec"]["taints"].as_array_mut() {
                Some(taints) if taints.iter().any(|found| found["key"] == key) => {}
                Some(taints) => taints.push(taint),
                None => node["spec"]["taints"] = json!([taint]),
            }
        });
    }

    /// Taints the Node, and adds the taint to our record.
    fn forge(&self, state: &mut State) {
        self.taint(state, FOREIGN);
        self.change(state, Kind::Node, |node| {
            let record =
                &mut node["metadata"]["annotations"][name::APPLIED_TAINTS_ANNOTATION];
            let ours = serde_json::from_str(record.as_str().unwrap_or("[]"));
            let mut all: Vec<Value> = ours.unwrap_or_default();
            if all.iter().all(|taint| taint["key"] != FOREIGN) {
                let key = FOREIGN;
                all.push(json!({ "key": key, "value": THEIRS, "effect": "NoSchedule" }));
            }
            *record = json!(Value::Array(all).to_string());
        });
    }

    /// Whether the Cluster or our Machine is paused.
    pub(crate) fn is_paused(&self, state: &State) -> bool {
        let cluster = self.get(state, Kind::Cluster);
        let machine = self.get(state, Kind::Machine);
        cluster.is_some_and(|cluster| cluster["spec"]["paused"] == true)
            || machine.is_some_and(|machine| {
                is_ours(&machine)
                    && !machine["metadata"]["annotations"][key::PAUSED].is_null()
            })
    }

    /// Whether the Cluster is ready for machines.
    pub(crate) fn is_cluster_ready(&self, state: &State) -> bool {
        let cluster = self.get(state, Kind::Cluster).unwrap_or_default();
        self.has_cluster(state)
            && cluster["status"]["initialization"]["controlPlaneInitialized"] == true
    }

    /// Whether the Cluster exists and is not being deleted.
    pub(crate) fn has_cluster(&self, state: &State) -> bool {
        self.get(state, Kind::Cluster)
            .is_some_and(|cluster: Value| !is_deleting(&cluster))
    }
}

/// Toggles a problem: the step that begins it also ends it.
fn other(
    reachability: WorkloadReachability,
    failure: WorkloadReachability,
) -> WorkloadReachability {
    if reachability == WorkloadReachability::Answers {
        failure
    } else {
        WorkloadReachability::Answers
    }
}
