//! What to do about one ScheduledMachineSet: which of its machines are created, changed and
//! deleted.
//!
//! The name of a machine is that of its set and an index, so that two creations of one machine
//! cannot both succeed. Everything is decided from machines that were just read from the server.
//! Two things no read shows: a request that was sent and not answered may still take effect. Until
//! it is answered the machine counts, and the request is the first to be sent again.

mod report;

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::rules::{self, Violation};
use fivespot_api::scheduled_machine_set::{INDEXES, MAX_REPLICAS};
use fivespot_api::{ScheduledMachineSet, name};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::act::memory::after;
use crate::merge_patch::difference;

pub use report::{SetFailure, events as set_events, warning as set_warning};

/// How many machines one plan creates, changes and deletes at most. The rest is planned after
/// that, and other sets have their turn in between.
pub const MAX_ACTIONS: usize = 50;

/// How many of these are left to creations and deletions where more machines are to be changed.
const MIN_SCALED: usize = 10;

/// How many machines that refuse the template are tried again as often as one alone.
const WAITING: usize = 10;

/// What was observed of a set.
#[derive(Clone, Copy, Debug)]
pub struct SetFacts<'o> {
    /// The set.
    pub set: &'o ScheduledMachineSet,
    /// The machines of the set, in any order.
    pub machines: &'o [SetMachine],
    /// The indexes whose names other ScheduledMachines have.
    pub taken: &'o BTreeSet<u32>,
    /// The requests without an answer.
    pub unanswered: &'o Unanswered,
    /// The current time.
    pub now: Timestamp,
}

/// The requests of which it is not known whether they have taken effect or will, and those that were
/// refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// The indexes of machines that were to be created.
    pub creations: BTreeSet<u32>,
    /// The uids of machines that were to be deleted.
    pub deletions: BTreeSet<String>,
    /// The machines, by uid, that could not be given the template.
    pub refused: BTreeMap<String, Refusal>,
    /// Which of them is reported, and why it refuses the template: the same one as long as it does,
    /// because the server names the object in its message.
    pub why_refused: Option<(String, SetFailure)>,
}

/// A change that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The generation of the set.
    pub generation: Option<i64>,
    /// How often in a row.
    pub attempts: u32,
    /// When it is sent again.
    pub retry_at: Timestamp,
}

impl Unanswered {
    /// Why machines refuse the template, and when the next one that waits is tried again; `None` if
    /// none waits.
    pub fn refusal(&self, now: Timestamp) -> Option<(SetFailure, Timestamp)> {
        let retries = self.refused.values().map(|of| of.retry_at);
        let next = retries.filter(|at| *at > now).min()?;
        let (_, why) = self.why_refused.clone()?;
        Some((why, next))
    }

    /// A machine has accepted the template. The others are tried again: what they refused may be
    /// allowed by now.
    pub fn accepted(&mut self, uid: &str, now: Timestamp) {
        if self.refused.remove(uid).is_some() {
            for of in self.refused.values_mut() {
                of.retry_at = of.retry_at.min(now);
            }
        }
    }

    /// A machine could not be given the template of that generation. `wait` is the backoff after so
    /// many attempts. That which is reported waits as long; the others wait longer the more they are,
    /// so that together they cost as much as [`WAITING`] do. Without an answer of the server nothing
    /// waits, but others come first then.
    pub fn failed(
        &mut self,
        uid: &str,
        generation: Option<i64>,
        failure: SetFailure,
        wait: impl FnOnce(u32) -> SignedDuration,
        now: Timestamp,
    ) {
        let before = self.refused.get(uid).map_or(0, |of| of.attempts);
        let attempts = before.saturating_add(1);
        let mut retry_at = now;
        if failure.is_refusal() {
            let others = i32::try_from(self.refused.len() / WAITING).unwrap_or(i32::MAX);
            let wait = wait(attempts).saturating_mul(others.saturating_add(1));
            retry_at = after(now, wait);
            let reported = self.why_refused.as_ref();
            if reported.is_none_or(|(of, _)| of == uid || !self.refused.contains_key(of))
            {
                self.why_refused = Some((uid.to_owned(), failure));
            }
        }
        let refusal = Refusal {
            generation,
            attempts,
            retry_at,
        };
        self.refused.insert(uid.to_owned(), refusal);
    }
}

/// A ScheduledMachine of the set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetMachine {
    /// Its index.
    pub index: u32,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Whether it is Active.
    pub is_active: bool,
    /// Whether its condition `Ready` is true.
    pub is_ready: bool,
    /// Its priority.
    pub priority: u8,
    /// Whether it has the label of the set.
    pub is_labelled: bool,
    /// The template that it was last given, as JSON; empty if that is not known.
    pub applied: String,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum SetAction {
    /// Creates the machine with that index. If there is one of its name, nothing is known: the
    /// machines are read again.
    Create {
        /// The index.
        index: u32,
        /// The object.
        object: Value,
    },
    /// Gives a machine what has changed in the template.
    Update {
        /// The index.
        index: u32,
        /// The uid.
        uid: String,
        /// A merge patch that contains the resourceVersion.
        patch: Value,
        /// What is sent if the server refuses that: the [`switches`] of it.
        alone: Option<Value>,
    },
    /// Deletes a machine, which its finalizer makes an ordinary shutdown. Guarded by uid and
    /// resourceVersion.
    Delete {
        /// The index.
        index: u32,
        /// The uid.
        uid: String,
        /// The resourceVersion.
        version: String,
    },
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetPlan {
    /// What to send, in this order.
    pub actions: Vec<SetAction>,
    /// Whether more is to be done after that.
    pub repeats: bool,
    /// Whether more machines are to be changed, which one that cannot be created or deleted does not
    /// delay.
    pub has_more_updates: bool,
    /// Why nothing is done about an invalid set.
    violation: Option<String>,
}

impl SetMachine {
    /// A ScheduledMachine as it is stored. `None` if it is not of the set: if another object owns
    /// it, or its name is not that of a machine of the set.
    pub fn of(object: &Value, set: &ScheduledMachineSet) -> Option<Self> {
        let meta = &object["metadata"];
        let set_name = set.metadata.name.as_deref()?;
        let index = ScheduledMachineSet::index_of(set_name, meta["name"].as_str()?)?;
        let uid = set.metadata.uid.as_deref()?;
        if owner_of(object) != Some(uid) {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (spec, status) = (&object["spec"], &object["status"]);
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|it| it["type"] == "Ready");
        let applied = meta["annotations"][name::SET_TEMPLATE_ANNOTATION].as_str();
        Some(Self {
            index,
            uid: text(&meta["uid"]),
            version: text(&meta["resourceVersion"]),
            is_leaving: meta["deletionTimestamp"].is_string(),
            is_active: status["phase"] == "Active",
            is_ready: ready.is_some_and(|it| it["status"] == "True"),
            priority: spec["priority"]
                .as_u64()
                .and_then(|it| it.try_into().ok())
                .unwrap_or(fivespot_api::scheduled_machine::DEFAULT_PRIORITY),
            is_labelled: meta["labels"][name::SET_LABEL] == set_name,
            applied: applied.unwrap_or_default().to_owned(),
        })
    }
}

/// The uid of the set that is the controller of a ScheduledMachine; `None` if none is.
pub fn owner_of(machine: &Value) -> Option<&str> {
    let owners = machine["metadata"]["ownerReferences"].as_array()?;
    let of_set = owners.iter().find(|it| {
        let group = it["apiVersion"].as_str().unwrap_or_default();
        it["controller"] == true
            && it["kind"] == name::SET_KIND
            && group.split('/').next() == Some(name::GROUP)
    });
    of_set?["uid"].as_str()
}

/// Decides what to do about a set.
///
/// # Guarantees
/// Total and deterministic. If every action succeeds, the plan after them has none. There are
/// never more machines than wanted, besides those that are being deleted, and none is deleted while
/// there are no more than wanted. Nothing is done about a set that is invalid or being deleted.
pub fn plan_set(facts: &SetFacts<'_>) -> SetPlan {
    let SetFacts { set, .. } = *facts;
    if set.metadata.deletion_timestamp.is_some() {
        return SetPlan::default();
    }
    let broken = rules::check_set(set);
    if let Some(first) = broken.first().map(Violation::to_string) {
        return SetPlan {
            violation: Some(first),
            ..SetPlan::default()
        };
    }
    let staying = facts.staying();
    let unlabelled = staying.iter().filter(|it| !it.is_labelled);
    let unlabelled: BTreeSet<u32> = unlabelled.map(|it| it.index).collect();
    let mut scaled = Vec::new();
    // The server finds the machines of a set by their label.
    if unlabelled.is_empty() {
        scaled.extend(surplus(facts));
        scaled.extend(missing(facts));
    }
    let deleted: BTreeSet<u32> = scaled.iter().map(SetAction::index).collect();
    // An edit may be the kill switch: it waits for no machine that cannot be created.
    let mut actions = updates(facts, &deleted);
    let room = MAX_ACTIONS - scaled.len().min(MIN_SCALED);
    let has_more_updates = actions.len() > room;
    actions.truncate(room);
    actions.extend(scaled);
    let repeats = has_more_updates || actions.len() > MAX_ACTIONS;
    actions.truncate(MAX_ACTIONS);
    SetPlan {
        actions,
        repeats,
        has_more_updates,
        violation: None,
    }
}

impl SetAction {
    fn index(&self) -> u32 {
        match self {
            Self::Create { index, .. }
            | Self::Update { index, .. }
            | Self::Delete { index, .. } => *index,
        }
    }
}

impl SetFacts<'_> {
    /// The machines that are not being deleted.
    fn staying(&self) -> Vec<&SetMachine> {
        self.machines.iter().filter(|it| !it.is_leaving).collect()
    }

    fn wanted(&self) -> usize {
        self.set.spec.replicas.min(MAX_REPLICAS) as usize
    }
}

/// Deletes the machines that are too many.
fn surplus(facts: &SetFacts<'_>) -> Vec<SetAction> {
    let mut staying = facts.staying();
    let many = staying.len().saturating_sub(facts.wanted());
    // One whose deletion may be under way is not replaced by another one.
    staying.sort_by_key(|it| {
        let is_asked = facts.unanswered.deletions.contains(&it.uid);
        let last_first = std::cmp::Reverse(it.index);
        (!is_asked, it.is_active, it.priority, last_first)
    });
    let deleted = staying.into_iter().take(many).map(|it| SetAction::Delete {
        index: it.index,
        uid: it.uid.clone(),
        version: it.version.clone(),
    });
    deleted.collect()
}

/// Creates the machines that are missing: those that may have been created, then the lowest free
/// indexes.
fn missing(facts: &SetFacts<'_>) -> Vec<SetAction> {
    let used: BTreeSet<u32> = facts.machines.iter().map(|it| it.index).collect();
    let open = &facts.unanswered.creations;
    let again = open.iter().copied().filter(|index| !used.contains(index));
    let is_free = |index: &u32| {
        !used.contains(index) && !open.contains(index) && !facts.taken.contains(index)
    };
    let free = (0..INDEXES).filter(is_free);
    let count = facts.wanted().saturating_sub(facts.staying().len());
    let created = again.chain(free).take(count.min(MAX_ACTIONS + 1));
    created
        .map(|index| SetAction::Create {
            index,
            object: machine(facts.set, index),
        })
        .collect()
}

/// Gives the machines what has changed in the template, except those of these indexes: first those
/// that have refused it least often, and of these those without the label.
fn updates(facts: &SetFacts<'_>, deleted: &BTreeSet<u32>) -> Vec<SetAction> {
    let applied = facts.set.spec.template.applied();
    let text = applied.to_string();
    let set = facts.set.metadata.name.as_deref().unwrap_or_default();
    let refusal = |it: &SetMachine| facts.unanswered.refused.get(&it.uid);
    let mut staying = facts.staying();
    staying.retain(|it| !deleted.contains(&it.index));
    staying.retain(|it| refusal(it).is_none_or(|of| of.retry_at <= facts.now));
    staying.sort_by_key(|it| {
        let attempts = refusal(it).map_or(0, |of| of.attempts);
        (attempts, it.is_labelled, it.index)
    });
    let outdated = staying.into_iter().filter_map(|it| {
        let is_current = it.applied == text;
        if is_current && it.is_labelled {
            return None;
        }
        let before = serde_json::from_str(&it.applied).unwrap_or_default();
        let change = difference(&before, applied.clone());
        let mut change = change.unwrap_or_else(|| json!({}));
        let mut patch = json!({"metadata": {
            "resourceVersion": it.version,
            "labels": change["labels"].take(),
            "annotations": change["annotations"].take(),
        }});
        let metadata = &mut patch["metadata"];
        for member in ["labels", "annotations"] {
            if !metadata[member].is_object() {
                metadata[member] = json!({});
            }
        }
        metadata["labels"][name::SET_LABEL] = json!(set);
        metadata["annotations"][name::SET_TEMPLATE_ANNOTATION] = json!(text);
        let spec = change["spec"].take();
        if spec.is_object() {
            patch["spec"] = spec;
        }
        Some(SetAction::Update {
            index: it.index,
            uid: it.uid.clone(),
            alone: switches(&patch, before),
            patch,
        })
    });
    outdated.take(MAX_ACTIONS + 1).collect()
}

/// What of a patch of a machine is sent alone if the server refuses the whole: the switches that stop
/// it, which are always admitted. They are added to what was `applied` before, so that a later
/// template without them takes them back. `None` if the patch contains none.
pub fn switches(patch: &Value, mut applied: Value) -> Option<Value> {
    let mut spec = Value::Null;
    let switches: [(&[&str], bool); 3] = [
        (&["killSwitch"], true),
        (&["enabled"], false),
        (&["schedule", "enabled"], false),
    ];
    for (path, stops) in switches {
        let switch = path.iter().fold(&patch["spec"], |of, field| &of[*field]);
        if *switch == stops {
            put(&mut spec, path, stops);
            put(member(&mut applied, "spec"), path, stops);
        }
    }
    spec.is_object().then(|| {
        let applied = applied.to_string();
        json!({
            "metadata": {
                "resourceVersion": patch["metadata"]["resourceVersion"],
                "annotations": { name::SET_TEMPLATE_ANNOTATION: applied },
            },
            "spec": spec,
        })
    })
}

fn put(of: &mut Value, path: &[&str], value: bool) {
    *path.iter().fold(of, |of, field| member(of, field)) = value.into();
}

/// The member of an object, which replaces any other value.
fn member<'v>(of: &'v mut Value, name: &str) -> &'v mut Value {
    if !of.is_object() {
        *of = json!({});
    }
    &mut of[name]
}

/// The ScheduledMachine with that index, as it is created. Cannot fail.
pub fn machine(set: &ScheduledMachineSet, index: u32) -> Value {
    let set_name = set.metadata.name.as_deref().unwrap_or_default();
    let applied = set.spec.template.applied();
    let mut object = json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {
            "name": ScheduledMachineSet::machine_name(set_name, index),
            "namespace": set.metadata.namespace,
            "labels": applied["labels"],
            "annotations": applied["annotations"],
            "ownerReferences": [{
                "apiVersion": name::API_VERSION,
                "kind": name::SET_KIND,
                "name": set_name,
                "uid": set.metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": applied["spec"],
    });
    let metadata = &mut object["metadata"];
    metadata["labels"][name::SET_LABEL] = json!(set_name);
    metadata["annotations"][name::SET_TEMPLATE_ANNOTATION] = json!(applied.to_string());
    object
}

impl SetPlan {
    /// Whether it creates or deletes machines, which is decided from live reads alone.
    pub fn is_about_live_reads(&self) -> bool {
        let is_update = |it: &SetAction| matches!(it, SetAction::Update { .. });
        !self.actions.iter().all(is_update)
    }
}
