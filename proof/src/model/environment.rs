//! Shared by all states: the objects that any of them contains, and how writes change them.

use fivespot_api::{Enforcement, ScheduledMachine, name};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Action, Memory};
use serde_json::{Value, json};

use super::Step;
use super::changes::ExternalChange;
use super::following::Settled;
use super::interner::{Interner, Memo};
use super::invariant::Invariant;
use super::operator::{PendingWrites, PlanInput, PlanOutcome};
use super::state::{Core, FaultBudget, Kind, Objects, Pod, State, WorkloadReachability};

/// The name of the ScheduledMachine and of all objects created for it.
pub(crate) const NAME: &str = "worker";
/// Its uid.
pub(crate) const UID: &str = "sm-1";
/// A finalizer and an annotation of another owner.
pub(crate) const FOREIGN: &str = "example.com/keep";

/// The value of a taint that another client has set on a Node.
pub(crate) const THEIRS: &str = "theirs";

/// The uid of an earlier ScheduledMachine of the same name.
pub(crate) const EARLIER: &str = "sm-0";

/// The label that the ScheduledMachine requests on its Machine.
pub(crate) const TEMPLATE: &str = "example.com/team";

/// The taint that the ScheduledMachine requests.
pub(crate) const OUR_TAINT: &str = "example.com/pool";

/// The effect of a step.
#[derive(Clone, Copy)]
pub(crate) struct Effect {
    core: Core,
    is_cache_behind: bool,
    broken: Option<Invariant>,
    has_moved: bool,
}

/// The data shared by all states.
#[derive(Default)]
pub(crate) struct Environment {
    pub(crate) objects: Interner<Value>,
    pub(crate) machines: Interner<ScheduledMachine>,
    pub(crate) memories: Interner<Memory>,
    pub(crate) pending_writes: Interner<PendingWrites>,
    /// The planner's answers: it is pure.
    pub(crate) plan_outcomes: Memo<PlanInput, PlanOutcome>,
    /// The effect of each step: most states do not differ in what it depends on.
    pub(crate) effects: Memo<(Step, Core), Effect>,
    pub(crate) settled: Settled,
}

impl Environment {
    /// The initial state; with a lead time and the end policy CompleteByWindowEnd if it
    /// `is_timed`.
    pub(crate) fn first(&self, is_timed: bool, budget: FaultBudget) -> State {
        let core = Core {
            now: 0,
            sm: Some(self.machines.intern(scheduled_machine(is_timed))),
            objects: Objects::default(),
            pod: Pod::None,
            is_guarded: true,
            reachability: WorkloadReachability::Answers,
            overriding: None,
            refuses_adoption: false,
            created_counts: Default::default(),
            memory: self.memories.intern_shown(Memory::default()),
            pending: None,
        };
        let mut state = State {
            core,
            cached_override: None,
            cached_sm: None,
            cached: Default::default(),
            is_cache_behind: false,
            budget,
            broken: None,
        };
        state.put(Kind::Cluster, Some(self.objects.intern(cluster())));
        state.catch_up();
        state
    }

    /// The same state with the machine in audit mode.
    pub(crate) fn audited(&self, mut state: State) -> State {
        self.change_sm(&mut state, |sm| {
            sm.spec.enforcement = Enforcement::Audit;
            sm.metadata.generation = sm.metadata.generation.map(|last| last + 1);
        });
        state.catch_up();
        state
    }

    /// The same state with a host that is lent: it returns once in a day, ten minutes after its owner
    /// has left.
    pub(crate) fn lent(&self, mut state: State) -> State {
        let reclaim = json!({"return": {"after": "10m", "maxPerDay": 1}});
        self.change_sm(&mut state, |sm| {
            sm.spec.reclaim = serde_json::from_value(reclaim).ok();
        });
        state.catch_up();
        state
    }

    /// The state that an undisturbed day reaches at this instant after the owner of the host has
    /// taken it back.
    pub(crate) fn reclaimed(&self, now: u8, mut state: State) -> State {
        state.pod = Pod::None;
        self.apply_external_change(&mut state, ExternalChange::Reclaim);
        let mut away = self.undisturbed(now, state);
        away.is_guarded = false;
        away
    }

    /// The same state after a return earlier on this day.
    pub(crate) fn returned(&self, mut state: State) -> State {
        self.change_sm(&mut state, |sm| {
            let returns =
                json!([{"time": "2026-03-06T07:00:00Z", "overrideUID": "earlier"}]);
            if let Some(status) = &mut sm.status {
                status.returns = serde_json::from_value(returns).unwrap_or_default();
            }
        });
        state.catch_up();
        state
    }

    /// Applies a step, computed once for each distinct state: `act` returns whether anything
    /// changed.
    pub(crate) fn apply_cached(
        &self,
        state: &mut State,
        step: Step,
        act: impl FnOnce(&mut State) -> bool,
    ) -> bool {
        let effect = self.effects.of((step, state.core), || {
            let mut next = State {
                is_cache_behind: false,
                broken: None,
                ..state.clone()
            };
            let has_moved = act(&mut next);
            Effect {
                core: next.core,
                is_cache_behind: next.is_cache_behind,
                broken: next.broken,
                has_moved,
            }
        });
        state.core = effect.core;
        state.is_cache_behind |= effect.is_cache_behind;
        state.broken = effect.broken.or(state.broken);
        effect.has_moved
    }

    /// The object of this kind.
    pub(crate) fn get(&self, state: &State, kind: Kind) -> Option<Value> {
        state.at(kind).map(|id| (*self.objects.of(id)).clone())
    }

    /// Changes the object of this kind, if there is one.
    pub(crate) fn change(
        &self,
        state: &mut State,
        kind: Kind,
        change: impl FnOnce(&mut Value),
    ) {
        if let Some(mut object) = self.get(state, kind) {
            change(&mut object);
            state.put(kind, Some(self.objects.intern(object)));
        }
    }

    /// Changes the ScheduledMachine, if there is one.
    pub(crate) fn change_sm(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut ScheduledMachine),
    ) {
        if let Some(id) = state.sm {
            let mut object = (*self.machines.of(id)).clone();
            change(&mut object);
            state.sm = Some(self.machines.intern(object));
        }
    }

    /// Adds a new object of a kind, with a uid that was not used before.
    pub(crate) fn create(&self, state: &mut State, kind: Kind, mut object: Value) {
        let count = &mut state.created_counts[kind as usize];
        *count = count.saturating_add(1);
        object["metadata"]["uid"] = json!(format!("{}-{count}", kind.api_kind()));
        state.put(kind, Some(self.objects.intern(object)));
    }

    /// DELETE: marks an object that has finalizers, removes one that has none.
    pub(crate) fn delete(&self, state: &mut State, kind: Kind) {
        let is_held = self.get(state, kind).is_some_and(|object| {
            object["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        });
        if is_held {
            self.change(state, kind, |object| {
                object["metadata"]["deletionTimestamp"] = json!("2026-03-06T00:00:00Z");
            });
        } else {
            state.put(kind, None);
        }
    }
}

/// Whether an object has our name label.
pub(crate) fn is_named_ours(object: &Value) -> bool {
    object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL] == NAME
}

/// Whether an object is ours by its own metadata: the name label, and our uid in a label or an
/// owner reference.
pub(crate) fn is_ours(object: &Value) -> bool {
    let meta = &object["metadata"];
    is_named_ours(object)
        && (meta["labels"][name::SCHEDULED_MACHINE_UID_LABEL] == UID
            || meta["ownerReferences"]
                .as_array()
                .is_some_and(|all| all.iter().any(|owner| owner["uid"] == UID)))
}

/// Whether a Node is our Machine's: it has its provider ID, and Cluster API's annotation names no
/// other Machine.
pub(crate) fn is_our_node(node: &Value, provider_id: &Value) -> bool {
    let of = &node["metadata"]["annotations"][key::MACHINE];
    node["spec"]["providerID"] == *provider_id && (of.is_null() || *of == NAME)
}

/// Whether an object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The kind of the object of an action, if the model has that kind.
pub(crate) fn kind_of(action: &Action) -> Option<Kind> {
    Kind::parse(&action.request.target.object.kind)
}

#[expect(clippy::expect_used, reason = "the text is below")]
fn scheduled_machine(is_timed: bool) -> ScheduledMachine {
    let mut object = json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {
            "name": NAME, "namespace": "default", "uid": UID, "generation": 1,
            "finalizers": [FOREIGN],
        },
        "spec": {
            "schedule": { "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"] },
            "clusterName": "prod",
            "machineTemplate": { "labels": { TEMPLATE: "a" } },
            "nodeTaints": [{ "key": OUR_TAINT, "effect": "NoSchedule" }],
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig",
                "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
                "spec": { "address": "192.0.2.7" },
            },
        },
    });
    if is_timed {
        let spec = &mut object["spec"];
        spec["provisioning"] = json!({ "leadTime": "20m" });
        spec["shutdown"] = json!({ "endPolicy": "CompleteByWindowEnd" });
        spec["gracefulShutdownTimeout"] = json!("90m");
        spec["nodeDrainTimeout"] = json!("90m");
    }
    serde_json::from_value(object).expect("a ScheduledMachine")
}

/// The Cluster.
pub(super) fn cluster() -> Value {
    json!({
        "apiVersion": Contract::V1Beta2.api_version(), "kind": "Cluster",
        "metadata": {
            "name": "prod", "namespace": "default", "uid": "cluster-1",
            "finalizers": ["cluster.cluster.x-k8s.io"],
        },
        "spec": {},
        "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        } },
    })
}
