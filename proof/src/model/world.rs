//! Shared by all states: the objects that any of them contains, and how writes change them.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use fivespot_api::{ScheduledMachine, name};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Action, Memory};
use serde_json::{Value, json};

use super::Step;
use super::law::Law;
use super::operator::{Answer, Flight, Question};
use super::pool::{Id, Pool};
use super::state::{Core, Kind, Left, Objects, Pod, Reach, State};

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
    owes: bool,
    broken: Option<Law>,
    has_moved: bool,
}

/// The data shared by all states.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: Pool<String, Value>,
    pub(crate) machines: Pool<String, ScheduledMachine>,
    pub(crate) memories: Pool<String, Memory>,
    pub(crate) flights: Pool<String, Flight>,
    /// The planner's answers: it is pure, so that each is computed once.
    pub(crate) answers: RwLock<HashMap<Question, Answer>>,
    /// The effect of each step: most states do not differ in what it depends on.
    pub(crate) effects: RwLock<HashMap<(Step, Core), Effect>>,
    /// Fingerprints of states from which the world settles in the desired state.
    pub(crate) settled: RwLock<std::collections::HashSet<u64>>,
}

impl World {
    /// The initial state; with a lead time and the end policy CompleteByWindowEnd if it
    /// `is_timed`.
    pub(crate) fn first(&self, is_timed: bool, left: Left) -> State {
        let mut state = State {
            now: 0,
            sm: Some(self.keep_sm(scheduled_machine(is_timed))),
            objects: Objects::default(),
            pod: Pod::None,
            is_guarded: true,
            reach: Reach::Answers,
            overriding: None,
            cached_override: None,
            refuses_claims: false,
            born: Default::default(),
            cached_sm: None,
            cached: Default::default(),
            owes: false,
            memory: self.keep_memory(Memory::default()),
            flight: None,
            left,
            broken: None,
        };
        state.put(Kind::Cluster, Some(self.keep(cluster())));
        state.catch_up();
        state
    }

    /// Applies a step, computed once for each distinct world: `act` returns whether anything
    /// changed.
    pub(crate) fn once(
        &self,
        state: &mut State,
        step: Step,
        act: impl FnOnce(&mut State) -> bool,
    ) -> bool {
        let key = (step, state.core());
        let effects = self.effects.read().unwrap_or_else(PoisonError::into_inner);
        let known = effects.get(&key).copied();
        drop(effects);
        let effect = known.unwrap_or_else(|| {
            let mut next = State {
                owes: false,
                broken: None,
                ..state.clone()
            };
            let has_moved = act(&mut next);
            let effect = Effect {
                core: next.core(),
                owes: next.owes,
                broken: next.broken,
                has_moved,
            };
            let mut effects =
                self.effects.write().unwrap_or_else(PoisonError::into_inner);
            effects.insert(key, effect);
            effect
        });
        state.set_core(effect.core);
        state.owes |= effect.owes;
        state.broken = effect.broken.or(state.broken);
        effect.has_moved
    }

    /// Stores an object; its resourceVersion is its number.
    pub(crate) fn keep(&self, mut object: Value) -> Id {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        let key = object.to_string();
        self.objects.keep(key, |id| {
            object["metadata"]["resourceVersion"] = json!(id.version());
            object
        })
    }

    /// Stores a ScheduledMachine; its resourceVersion is its number.
    pub(crate) fn keep_sm(&self, mut object: ScheduledMachine) -> Id {
        object.metadata.resource_version = None;
        let key = serde_json::to_string(&object).unwrap_or_default();
        self.machines.keep(key, |id| {
            object.metadata.resource_version = Some(id.version());
            object
        })
    }

    /// Stores the operator's memory.
    pub(crate) fn keep_memory(&self, memory: Memory) -> Id {
        self.memories.keep(format!("{memory:?}"), |_| memory)
    }

    /// Stores the writes in flight.
    pub(crate) fn keep_flight(&self, flight: Flight) -> Id {
        self.flights.keep(format!("{flight:?}"), |_| flight)
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
            state.put(kind, Some(self.keep(object)));
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
            state.sm = Some(self.keep_sm(object));
        }
    }

    /// Adds a new object of a kind, with a uid that was not used before.
    pub(crate) fn create(&self, state: &mut State, kind: Kind, mut object: Value) {
        let count = &mut state.born[kind as usize];
        *count = count.saturating_add(1);
        object["metadata"]["uid"] = json!(format!("{}-{count}", kind.wire()));
        state.put(kind, Some(self.keep(object)));
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

fn cluster() -> Value {
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
