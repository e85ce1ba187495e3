//! What is done about a set, whatever becomes of its requests.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::scheduled_machine_set::MAX_REPLICAS;
use fivespot_api::{ScheduledMachineSet, ScheduledMachineSetStatus, name, rules};
use fivespot_plan::set::{MAX_ACTIONS, Refusal, set_warning, switches};
use fivespot_plan::{SetAction, SetFacts, SetMachine, SetPlan, Unanswered, plan_set};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::simulation::at;

/// The set `desks` with so many machines.
fn set(replicas: u32) -> ScheduledMachineSet {
    serde_json::from_value(json!({
        "metadata": {"name": "desks", "namespace": "default", "uid": "s", "generation": 3},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {
                    "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["20-23"]},
                    "classRef": {"name": "desks"},
                },
            },
        },
    }))
    .unwrap()
}

/// Its machines as a server stores them.
#[derive(Clone, Debug, Default)]
struct World {
    machines: BTreeMap<u32, Value>,
    /// How many objects were created: uids and versions.
    counter: u64,
}

impl World {
    fn next(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    fn create(&mut self, index: u32, object: &Value) -> bool {
        if self.machines.contains_key(&index) {
            return false;
        }
        let mut object = object.clone();
        let version = self.next();
        object["metadata"]["uid"] = json!(format!("u{version}"));
        object["metadata"]["resourceVersion"] = json!(version);
        self.machines.insert(index, object);
        true
    }

    fn change(&mut self, index: u32, change: impl FnOnce(&mut Value)) {
        let version = self.next();
        if let Some(machine) = self.machines.get_mut(&index) {
            change(machine);
            machine["metadata"]["resourceVersion"] = json!(version);
        }
    }

    fn is_staying(machine: &Value) -> bool {
        machine["metadata"]["deletionTimestamp"].is_null()
    }

    fn staying(&self) -> usize {
        let all = self.machines.values();
        all.filter(|it| Self::is_staying(it)).count()
    }

    fn leave(&mut self, index: u32) {
        self.change(index, |it| {
            it["metadata"]["deletionTimestamp"] = json!("2026-03-06T12:00:00Z");
        });
    }

    /// Sends an action; returns whether the server accepts it.
    fn send(&mut self, action: &SetAction) -> bool {
        match action {
            SetAction::Create { index, object } => self.create(*index, object),
            SetAction::Delete {
                index,
                uid,
                version,
            } => {
                let found = self.machines.get(index);
                let is_same = found.is_some_and(|it| {
                    it["metadata"]["uid"] == **uid
                        && it["metadata"]["resourceVersion"] == **version
                });
                if is_same {
                    self.leave(*index);
                }
                is_same
            }
            SetAction::Update { index, patch, .. } => {
                let asked = &patch["metadata"]["resourceVersion"];
                let found = self.machines.get(index);
                let is_same =
                    found.is_some_and(|it| it["metadata"]["resourceVersion"] == *asked);
                if is_same {
                    self.change(*index, |it| merge(it, patch));
                }
                is_same
            }
        }
    }
}

/// Applies a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (member, value) in members {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(member);
        } else {
            merge(&mut target[member], value);
        }
    }
}

/// A set, its machines and what its controller remembers.
#[derive(Debug)]
struct Operated {
    set: ScheduledMachineSet,
    world: World,
    taken: BTreeSet<u32>,
    unanswered: Unanswered,
}

impl Operated {
    fn new(replicas: u32) -> Self {
        Self {
            set: set(replicas),
            world: World::default(),
            taken: BTreeSet::new(),
            unanswered: Unanswered::default(),
        }
    }

    fn read(&mut self) -> Vec<SetMachine> {
        let all = self.world.machines.values();
        let machines: Vec<SetMachine> =
            all.filter_map(|it| SetMachine::of(it, &self.set)).collect();
        let is_there = |index: &u32| machines.iter().any(|it| it.index == *index);
        self.unanswered.creations.retain(|index| !is_there(index));
        let is_staying =
            |uid: &String| machines.iter().any(|it| it.uid == *uid && !it.is_leaving);
        self.unanswered.deletions.retain(is_staying);
        machines
    }

    fn plan(&mut self) -> SetPlan {
        let machines = self.read();
        plan_set(&SetFacts {
            set: &self.set,
            machines: &machines,
            taken: &self.taken,
            unanswered: &self.unanswered,
            now: at("2026-03-06T12:00:00Z"),
        })
    }

    /// Plans and sends until there is nothing to do; returns how many plans that took.
    fn settle(&mut self) -> usize {
        for round in 0..200 {
            let plan = self.plan();
            if plan.actions.is_empty() {
                return round;
            }
            for action in &plan.actions {
                assert!(self.world.send(action), "{action:?}");
                if let SetAction::Create { index, .. } = action {
                    self.unanswered.creations.remove(index);
                }
            }
        }
        panic!("it does not come to rest");
    }

    fn indexes(&self) -> Vec<u32> {
        let all = self.world.machines.iter();
        let staying = all.filter(|(_, it)| World::is_staying(it));
        staying.map(|(index, _)| *index).collect()
    }

    fn scale(&mut self, replicas: u32) {
        self.set.spec.replicas = replicas;
    }

    /// Removes those that are being deleted.
    fn let_go(&mut self) {
        self.world.machines.retain(|_, it| World::is_staying(it));
    }

    fn ready(&mut self) -> (String, String) {
        let machines = self.read();
        let facts = SetFacts {
            set: &self.set,
            machines: &machines,
            taken: &self.taken,
            unanswered: &self.unanswered,
            now: at("2026-03-06T12:00:00Z"),
        };
        let now = at("2026-03-06T12:00:00Z");
        let status = plan_set(&facts).status_after(&facts, &[], None, now);
        let ready = status.unwrap().conditions.remove(0);
        (ready.reason, ready.message)
    }
}

#[test]
fn the_lowest_free_indexes_are_created_and_each_machine_is_owned_by_the_set() {
    let mut desks = Operated::new(5);
    desks.taken.insert(2);
    desks.settle();
    assert_eq!(desks.indexes(), [0, 1, 3, 4, 5]);
    let machine = &desks.world.machines[&3];
    assert_eq!(machine["metadata"]["name"], "desks-3");
    assert_eq!(machine["metadata"]["labels"]["team"], "a");
    assert_eq!(machine["metadata"]["labels"][name::SET_LABEL], "desks");
    let owner = &machine["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["controller"], &owner["uid"]),
        (&json!(true), &json!("s"))
    );
    assert_eq!(machine["spec"]["classRef"]["name"], "desks");
    let machine = serde_json::from_value(machine.clone()).unwrap();
    assert_eq!(rules::check(&machine), []);
    let (reason, message) = desks.ready();
    assert_eq!(reason, "Scaled");
    assert_eq!(
        message,
        "5 of 5 ScheduledMachines exist; desks-2 is not of this set, so that another index is used"
    );
}

#[test]
fn those_that_are_not_active_leave_first_then_those_of_low_priority_then_the_last() {
    let mut desks = Operated::new(6);
    desks.settle();
    for index in [0, 1, 2, 4] {
        desks
            .world
            .change(index, |it| it["status"]["phase"] = json!("Active"));
    }
    desks
        .world
        .change(1, |it| it["spec"]["priority"] = json!(7));
    for left in [
        vec![0, 1, 2, 3, 4],
        vec![0, 1, 2, 4],
        vec![0, 2, 4],
        vec![0, 2],
        vec![0],
        vec![],
    ] {
        desks.scale(u32::try_from(left.len()).unwrap());
        desks.settle();
        assert_eq!(desks.indexes(), left);
    }
    assert_eq!(desks.world.machines.len(), 6);
}

#[test]
fn a_machine_that_is_being_deleted_keeps_its_index() {
    let mut desks = Operated::new(3);
    desks.settle();
    desks.scale(1);
    desks.settle();
    desks.scale(3);
    desks.settle();
    assert_eq!(desks.indexes(), [0, 3, 4]);
    let (reason, message) = desks.ready();
    assert_eq!(reason, "Scaled");
    assert_eq!(
        message,
        "3 of 3 ScheduledMachines exist; 2 more are being deleted"
    );
    desks.let_go();
    desks.scale(4);
    desks.settle();
    assert_eq!(desks.indexes(), [0, 1, 3, 4]);
}

#[test]
fn a_change_of_the_template_reaches_a_machine_and_leaves_its_own_fields() {
    let mut desks = Operated::new(2);
    desks.settle();
    // A person has stopped one machine, and given it another priority.
    desks.world.change(1, |it| {
        it["spec"]["schedule"]["enabled"] = json!(false);
        it["spec"]["priority"] = json!(90);
        it["metadata"]["labels"]["own"] = json!("yes");
    });
    let schedule =
        json!({"windows": [{"name": "night", "start": "20:00", "end": "06:00"}]});
    let template = &mut desks.set.spec.template;
    template.spec.schedule = serde_json::from_value(schedule).unwrap();
    template.metadata.labels = [("team".to_owned(), "b".to_owned())].into();
    template.metadata.annotations = [("note".to_owned(), "x".to_owned())].into();
    assert_eq!(desks.settle(), 1);
    let (one, other) = (&desks.world.machines[&0], &desks.world.machines[&1]);
    for machine in [one, other] {
        assert_eq!(machine["spec"]["schedule"]["windows"][0]["start"], "20:00");
        assert_eq!(machine["spec"]["schedule"]["daysOfWeek"], json!([]));
        assert_eq!(machine["metadata"]["labels"]["team"], "b");
        assert_eq!(machine["metadata"]["annotations"]["note"], "x");
        let typed = serde_json::from_value(machine.clone()).unwrap();
        assert_eq!(rules::check(&typed), []);
    }
    assert_eq!(other["spec"]["schedule"]["enabled"], false);
    assert_eq!(other["spec"]["priority"], 90);
    assert_eq!(other["metadata"]["labels"]["own"], "yes");
    // What is no longer in the template is removed, and a switch of it reaches all.
    desks.set.spec.template.metadata.labels.clear();
    desks.set.spec.template.spec.kill_switch = true;
    desks.settle();
    let other = &desks.world.machines[&1];
    assert_eq!(other["metadata"]["labels"]["team"], Value::Null);
    assert_eq!(other["metadata"]["labels"][name::SET_LABEL], "desks");
    assert_eq!(other["spec"]["killSwitch"], true);
}

#[test]
fn without_a_record_of_what_was_applied_the_whole_template_is() {
    let mut desks = Operated::new(1);
    desks.settle();
    desks.world.change(0, |it| {
        it["metadata"]["annotations"] = json!({});
        it["spec"]["priority"] = json!(90);
    });
    assert_eq!(desks.settle(), 1);
    assert_eq!(desks.world.machines[&0]["spec"]["priority"], 50);
}

#[test]
fn a_machine_without_the_label_gets_it_before_others_are_created_or_deleted() {
    let mut desks = Operated::new(2);
    desks.settle();
    desks
        .world
        .change(1, |it| it["metadata"]["labels"] = json!({}));
    desks.scale(9);
    let plan = desks.plan();
    assert!(!plan.is_about_live_reads());
    let [
        SetAction::Update {
            index: 1, patch, ..
        },
    ] = plan.actions.as_slice()
    else {
        panic!("{plan:?}");
    };
    assert_eq!(patch["metadata"]["labels"][name::SET_LABEL], "desks");
}

#[test]
fn nothing_is_done_about_an_invalid_set_and_one_that_is_being_deleted() {
    let mut desks = Operated::new(2);
    desks.settle();
    desks.scale(0);
    desks.set.spec.template.spec.schedule.hours_of_day = vec!["99".to_owned()];
    assert_eq!(desks.plan().actions, []);
    let (reason, message) = desks.ready();
    assert_eq!(reason, "InvalidSpec");
    assert!(
        message.starts_with("spec.template.spec.schedule.hoursOfDay[0]: "),
        "{message}"
    );
    desks.set = set(0);
    let gone = at("2026-03-06T12:00:00Z");
    desks.set.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(gone));
    assert_eq!(desks.plan().actions, []);
}

#[test]
fn a_thousand_machines_are_created_in_bounded_steps() {
    let mut desks = Operated::new(MAX_REPLICAS);
    let plan = desks.plan();
    assert!(plan.repeats && plan.actions.len() == MAX_ACTIONS);
    assert_eq!(
        desks.settle(),
        (MAX_REPLICAS as usize).div_ceil(MAX_ACTIONS)
    );
    let before = desks.indexes();
    // All leave, and as many are wanted again: each index is used once.
    desks.scale(0);
    desks.settle();
    desks.scale(MAX_REPLICAS);
    desks.settle();
    assert!(desks.indexes().iter().all(|it| !before.contains(it)));
    // Now every index is in use, and the next creations wait until one is free.
    desks.scale(0);
    desks.settle();
    desks.scale(1);
    assert_eq!(desks.plan().actions, []);
    assert_eq!(desks.ready().0, "Scaling");
    desks.let_go();
    desks.settle();
    assert_eq!(desks.indexes(), [0]);
}

fn indexes_of_updates(plan: &SetPlan) -> Vec<u32> {
    let all = plan.actions.iter();
    let updated = all.filter_map(|it| match it {
        SetAction::Update { index, .. } => Some(*index),
        SetAction::Create { .. } | SetAction::Delete { .. } => None,
    });
    updated.collect()
}

/// A quota may refuse every creation, and the edit may be the kill switch.
#[test]
fn an_edit_comes_before_the_machines_that_are_missing_and_leaves_room_for_them() {
    let mut desks = Operated::new(3);
    desks.settle();
    desks.scale(200);
    desks.set.spec.template.spec.kill_switch = true;
    let plan = desks.plan();
    assert_eq!(indexes_of_updates(&plan), [0, 1, 2]);
    assert!(matches!(plan.actions[0], SetAction::Update { .. }));
    assert!(plan.repeats && !plan.has_more_updates);
    let mut desks = Operated::new(200);
    desks.settle();
    desks.scale(300);
    desks.set.spec.template.spec.kill_switch = true;
    let plan = desks.plan();
    assert!(plan.repeats && plan.has_more_updates);
    assert_eq!(indexes_of_updates(&plan).len(), 40);
    assert_eq!(plan.actions.len(), MAX_ACTIONS);
    desks.settle();
    assert_eq!(desks.indexes().len(), 300);
}

#[test]
fn machines_that_refuse_an_edit_keep_it_from_no_other_machine() {
    let mut desks = Operated::new(200);
    desks.settle();
    desks.set.spec.template.spec.priority = 7;
    let mut attempts = BTreeMap::<u32, u32>::new();
    for round in 0..12 {
        // As if each wait were over when the next plan is made.
        let mut plan = desks.plan();
        assert!(plan.actions.len() == MAX_ACTIONS || round >= 4);
        for action in std::mem::take(&mut plan.actions) {
            let SetAction::Update { index, uid, .. } = &action else {
                panic!("{action:?}");
            };
            if *index >= 120 {
                assert!(desks.world.send(&action));
                continue;
            }
            let attempts = attempts.entry(*index).or_default();
            *attempts += 1;
            let refusal = Refusal {
                generation: Some(3),
                attempts: *attempts,
                retry_at: at("2026-03-06T12:00:00Z"),
            };
            desks.unanswered.refused.insert(uid.clone(), refusal);
        }
        let machines = desks.world.machines.iter();
        let changed = machines.filter(|(_, it)| it["spec"]["priority"] == 7);
        assert!(round < 3 || changed.count() == 80, "{round}");
    }
    // (600 - 80) attempts, for 120 machines in turn.
    assert!(
        attempts.values().all(|it| (4..=5).contains(it)),
        "{attempts:?}"
    );
    for refusal in desks.unanswered.refused.values_mut() {
        refusal.retry_at = at("2026-03-06T12:00:01Z");
    }
    assert_eq!(desks.plan().actions, []);
}

#[test]
fn the_switches_that_stop_a_machine_are_what_is_sent_of_a_refused_edit() {
    let metadata = json!({"resourceVersion": "7", "labels": {"team": "a"}});
    for (spec, alone) in [
        (json!({"priority": 90}), Value::Null),
        (
            json!({"killSwitch": false, "schedule": {"enabled": true}}),
            Value::Null,
        ),
        (
            json!({"killSwitch": true, "priority": 90}),
            json!({"killSwitch": true}),
        ),
        (
            json!({"enabled": false, "priority": 90}),
            json!({"enabled": false}),
        ),
        (
            json!({"schedule": {"enabled": false, "timezone": "UTC"}}),
            json!({"schedule": {"enabled": false}}),
        ),
    ] {
        let patch = json!({"metadata": metadata, "spec": spec});
        let mut applied = json!({"labels": {"a": "b"}, "spec": {"priority": 50}});
        let Some(mut sent) = switches(&patch, applied.clone()) else {
            assert_eq!(alone, Value::Null, "{spec}");
            continue;
        };
        let record = &mut sent["metadata"]["annotations"];
        let record = record[name::SET_TEMPLATE_ANNOTATION].take();
        merge(&mut applied["spec"], &alone);
        let recorded: Value = serde_json::from_str(record.as_str().unwrap()).unwrap();
        assert_eq!(recorded, applied, "{spec}");
        sent["metadata"]["annotations"] = Value::Null;
        let metadata = json!({"resourceVersion": "7", "annotations": null});
        assert_eq!(sent, json!({"metadata": metadata, "spec": alone}), "{spec}");
    }
    assert_eq!(switches(&json!({"metadata": metadata}), Value::Null), None);
    // Whoever may change the annotation.
    let patch = json!({"metadata": metadata, "spec": {"killSwitch": true}});
    for hostile in [
        json!("x"),
        json!({"spec": [1]}),
        json!({"spec": {"schedule": 1}}),
    ] {
        assert!(switches(&patch, hostile).is_some());
    }
}

/// A creation was sent, its response was lost, and it takes effect after the machines were read.
#[test]
fn a_set_has_no_machine_too_many_after_a_response_was_lost() {
    let mut desks = Operated::new(2);
    let plan = desks.plan();
    assert!(desks.world.send(&plan.actions[0]));
    desks.unanswered.creations.insert(1);
    // The first one goes, so that a lower index is free: it is not used before the other creation
    // is answered.
    desks.world.machines.clear();
    desks.scale(1);
    let plan = desks.plan();
    let [again @ SetAction::Create { index: 1, .. }] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    // The first attempt takes effect now, so that this one is refused.
    assert!(desks.world.send(again));
    assert!(!desks.world.send(again));
    assert_eq!(desks.settle(), 0);
    assert_eq!(desks.indexes(), [1]);
}

/// A deletion was sent, its response was lost, and another machine would be chosen now.
#[test]
fn no_second_machine_is_deleted_while_a_deletion_is_unanswered() {
    let mut desks = Operated::new(3);
    desks.settle();
    desks.scale(2);
    let plan = desks.plan();
    let [SetAction::Delete { index: 2, uid, .. }] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    desks.unanswered.deletions.insert(uid.clone());
    desks
        .world
        .change(2, |it| it["status"]["phase"] = json!("Active"));
    desks.settle();
    assert_eq!(desks.indexes(), [0, 1]);
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// It takes effect, and the response is lost.
    Lost,
    /// It is under way, and may take effect later.
    Delayed,
    /// It never arrives, which the sender does not know.
    Dropped,
    /// The server refuses it.
    Refused,
}

#[derive(Clone, Debug)]
enum Happening {
    Scale(u32),
    Reconcile(Vec<Fate>),
    Activity(u32, bool),
    Priority(u32, u8),
    Template(u8),
    Gone(u32),
    DeletedByHand(u32),
    Arrival,
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let fate = select(vec![
        Fate::Answered,
        Fate::Answered,
        Fate::Lost,
        Fate::Delayed,
        Fate::Dropped,
        Fate::Refused,
    ]);
    let index = 0..14_u32;
    prop_oneof![
        3 => (0..8_u32).prop_map(Happening::Scale),
        8 => proptest::collection::vec(fate, 1..8).prop_map(Happening::Reconcile),
        2 => (index.clone(), any::<bool>()).prop_map(|(of, is)| Happening::Activity(of, is)),
        1 => (index.clone(), any::<u8>()).prop_map(|(of, is)| Happening::Priority(of, is)),
        1 => any::<u8>().prop_map(Happening::Template),
        2 => index.clone().prop_map(Happening::Gone),
        1 => index.prop_map(Happening::DeletedByHand),
        2 => Just(Happening::Arrival),
        1 => Just(Happening::Restart),
    ]
}

/// A set under random requests of users and random faults.
struct Random {
    desks: Operated,
    /// Requests under way. Each arrives before the same request is answered that was sent after it.
    delayed: Vec<SetAction>,
    /// The largest number that was wanted since all requests were answered.
    most: usize,
}

fn is_same(one: &SetAction, other: &SetAction) -> bool {
    match (one, other) {
        (SetAction::Create { index, .. }, SetAction::Create { index: other, .. }) => {
            index == other
        }
        (SetAction::Delete { uid, .. }, SetAction::Delete { uid: other, .. }) => {
            uid == other
        }
        _ => false,
    }
}

impl Random {
    fn happens(&mut self, happening: &Happening) {
        let Self { desks, .. } = self;
        match happening {
            Happening::Scale(replicas) => desks.scale(*replicas),
            Happening::Activity(index, is) => {
                let phase = if *is { "Active" } else { "Inactive" };
                let change = |it: &mut Value| it["status"]["phase"] = json!(phase);
                desks.world.change(*index, change);
            }
            Happening::Priority(index, priority) => {
                let change = |it: &mut Value| it["spec"]["priority"] = json!(priority);
                desks.world.change(*index, change);
            }
            Happening::Template(priority) => {
                desks.set.spec.template.spec.priority = *priority;
            }
            Happening::Gone(index) => {
                let found = desks.world.machines.get(index);
                if found.is_some_and(|it| !World::is_staying(it)) {
                    desks.world.machines.remove(index);
                }
            }
            Happening::DeletedByHand(index) => desks.world.leave(*index),
            Happening::Arrival => {
                for action in std::mem::take(&mut self.delayed) {
                    desks.world.send(&action);
                }
            }
            Happening::Restart => {
                self.delayed.clear();
                desks.unanswered = Unanswered::default();
            }
            Happening::Reconcile(fates) => self.reconcile(fates),
        }
        self.check();
    }

    /// There are never more machines than were wanted when the last requests were sent.
    fn check(&mut self) {
        let replicas = self.desks.set.spec.replicas as usize;
        self.most = self.most.max(replicas);
        let machines = &self.desks.world.machines;
        let coming: BTreeSet<u32> = self
            .delayed
            .iter()
            .filter_map(|it| match it {
                SetAction::Create { index, .. } => Some(*index),
                SetAction::Update { .. } | SetAction::Delete { .. } => None,
            })
            .filter(|index| !machines.contains_key(index))
            .collect();
        let staying = self.desks.world.staying();
        assert!(
            staying + coming.len() <= self.most,
            "{staying} + {coming:?}"
        );
        self.desks.read();
        let is_calm =
            self.delayed.is_empty() && self.desks.unanswered == Unanswered::default();
        if is_calm && staying <= replicas {
            self.most = replicas;
        }
    }

    /// A deletion is sent only if there are too many, also if all that are unanswered take effect.
    fn check_deletion(&self, uid: &str) {
        let open = &self.desks.unanswered.deletions;
        let staying = self.desks.world.staying();
        let many = staying.saturating_sub(self.desks.set.spec.replicas as usize);
        let asked = open.len() + usize::from(!open.contains(uid));
        assert!(many > 0 && (asked <= many || open.contains(uid)));
    }

    fn reconcile(&mut self, fates: &[Fate]) {
        let plan = self.desks.plan();
        let mut fates = fates.iter().cycle();
        for action in &plan.actions {
            let fate = fates.next().copied().unwrap_or(Fate::Answered);
            let is_answered = matches!(fate, Fate::Answered | Fate::Refused);
            match action {
                SetAction::Create { index, .. } => {
                    self.desks.unanswered.creations.insert(*index);
                }
                SetAction::Delete { uid, .. } => {
                    self.desks.read();
                    self.check_deletion(uid);
                    self.desks.unanswered.deletions.insert(uid.clone());
                }
                SetAction::Update { .. } => {}
            }
            if is_answered {
                let unanswered = &mut self.desks.unanswered;
                match action {
                    SetAction::Create { index, .. } => {
                        unanswered.creations.remove(index);
                    }
                    SetAction::Delete { uid, .. } => {
                        unanswered.deletions.remove(uid);
                    }
                    SetAction::Update { .. } => {}
                }
                self.delayed.retain(|it| !is_same(it, action));
            }
            let goes_on = match fate {
                Fate::Answered => self.desks.world.send(action),
                Fate::Lost => {
                    self.desks.world.send(action);
                    false
                }
                Fate::Delayed => {
                    self.delayed.push(action.clone());
                    false
                }
                Fate::Dropped | Fate::Refused => false,
            };
            self.check();
            if !goes_on {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_happens_a_set_has_no_machine_too_many_and_comes_to_rest(
        happenings in proptest::collection::vec(happening(), 0..60),
    ) {
        let mut random = Random {
            desks: Operated::new(3),
            delayed: Vec::new(),
            most: 3,
        };
        for happening in &happenings {
            random.happens(happening);
        }
        random.happens(&Happening::Arrival);
        for _ in 0..20 {
            random.happens(&Happening::Reconcile(vec![Fate::Answered]));
        }
        let Random { mut desks, .. } = random;
        prop_assert_eq!(desks.plan().actions, []);
        prop_assert_eq!(desks.world.staying(), desks.set.spec.replicas as usize);
        let applied = desks.set.spec.template.applied().to_string();
        for machine in desks.read().iter().filter(|it| !it.is_leaving) {
            prop_assert_eq!(&machine.applied, &applied);
        }
    }
}

/// Whoever reads the events of a set sees each reason once, and not that it is being scaled.
#[test]
fn a_set_warns_of_a_problem_once_until_its_reason_changes() {
    let ready = |status: &str, reason: &str| -> ScheduledMachineSetStatus {
        serde_json::from_value(json!({"conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "why",
            "lastTransitionTime": "2026-03-06T15:00:00Z",
        }]}))
        .unwrap()
    };
    let problem = || ready("False", "InvalidSpec");
    for (before, after, is_warned) in [
        (ready("True", "Ready"), problem(), true),
        (ready("False", "Scaling"), problem(), true),
        (ready("False", "CreateFailed"), problem(), true),
        (problem(), problem(), false),
        (problem(), ready("False", "Scaling"), false),
        (problem(), ready("True", "Ready"), false),
        (ScheduledMachineSetStatus::default(), problem(), true),
    ] {
        let event = set_warning(&before, &after);
        let reason = event.as_ref().map(|event| event.reason.as_str());
        let expected = is_warned.then_some("InvalidSpec");
        assert_eq!(reason, expected, "{before:?} {after:?}");
    }
}
