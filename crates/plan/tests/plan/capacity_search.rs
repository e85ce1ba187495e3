//! Every order of a few disturbances of one ScheduledCapacity, by the planner that is shipped.
//!
//! A search and not the model of `proof`: one capacity has one target and one writer, so that
//! everything fits into a few hundred thousand steps, which a test can make each time.

use std::collections::{HashSet, VecDeque};

use fivespot_api::ScheduledCapacity;
use fivespot_plan::capacity::CapacityWrite;
use fivespot_plan::{CapacityFacts, Fact, ScheduleInputs, Unknown, plan_capacity};
use fivespot_schedule::{Override, OverrideMode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A Friday with a window from 09:00 to 18:00; between two of these instants the clock may stand
/// still for any number of steps.
const CLOCK: [&str; 8] = [
    "2026-03-06T08:59:00Z",
    "2026-03-06T09:00:00Z",
    "2026-03-06T09:01:00Z",
    "2026-03-06T09:12:00Z",
    "2026-03-06T18:00:00Z",
    "2026-03-06T18:04:00Z",
    "2026-03-06T18:31:00Z",
    "2026-03-06T18:45:00Z",
];
const ACTIVE: i64 = 3;
const INACTIVE: i64 = 0;
/// What the other client writes.
const FOREIGN: i64 = 5;
/// How many disturbances there are at most on one way.
const DISTURBANCES: u8 = 2;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// What happens beside the planner.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// Another client writes the field.
    Rival,
    /// What uses the target goes, or comes back.
    Usage,
    /// Somebody pauses the target, or ends that.
    Pause,
    /// An override of mode Hold begins, or ends.
    Hold,
    /// The inputs of the schedule can no longer be read, or can be again.
    Unread,
    /// The target can no longer be read, or can be again.
    Untold,
    /// The kill switch is set, or unset.
    Kill,
    /// The next write of the target is refused.
    Refusal,
    /// The process ends after the next write of the target, before that of the status.
    Crash,
}

const DISTURBANCES_OF: [Disturbance; 9] = [
    Disturbance::Rival,
    Disturbance::Usage,
    Disturbance::Pause,
    Disturbance::Hold,
    Disturbance::Unread,
    Disturbance::Untold,
    Disturbance::Kill,
    Disturbance::Refusal,
    Disturbance::Crash,
];

/// The world, and the account that the laws are judged by: it is kept beside the planner and reads
/// nothing of what that remembers.
#[derive(Clone, Debug)]
struct World {
    object: ScheduledCapacity,
    clock: usize,
    replicas: i64,
    running: i64,
    version: u32,
    is_paused: bool,
    is_held: bool,
    is_unread: bool,
    is_untold: bool,
    refuses: bool,
    crashes: bool,
    left: u8,
    /// For which values the last write was, since which generation, and when it was written again.
    account: Option<Account>,
    way: Vec<String>,
}

/// What has been written for one state of one spec.
#[derive(Clone, Debug, PartialEq)]
struct Account {
    value: i64,
    generation: i64,
    at: Vec<Timestamp>,
    /// Whether a write is unknown to the planner.
    is_lossy: bool,
}

impl World {
    fn start() -> Self {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 1},
            "spec": {
                "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
                "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "capacity": {"field": "replicas", "activeValue": ACTIVE},
                "handback": {"drainedPath": "status.replicas", "timeout": "30m"},
            },
        });
        Self {
            object: serde_json::from_value(object).unwrap(),
            clock: 0,
            replicas: FOREIGN,
            running: FOREIGN,
            version: 1,
            is_paused: false,
            is_held: false,
            is_unread: false,
            is_untold: false,
            refuses: false,
            crashes: false,
            left: DISTURBANCES,
            account: None,
            way: Vec::new(),
        }
    }

    fn now(&self) -> Timestamp {
        at(CLOCK[self.clock])
    }

    /// What distinguishes this world from others. How it came about does not, nor do words.
    fn key(&self) -> String {
        let mut status = serde_json::to_value(&self.object.status).unwrap();
        if let Some(fields) = status.as_object_mut() {
            fields.remove("message");
            fields.remove("conditions");
        }
        format!(
            "{status} {} {} {} {} {:?} {:?}",
            self.object.spec.kill_switch,
            self.clock,
            self.replicas,
            self.running,
            (self.is_paused, self.is_held, self.is_unread, self.is_untold),
            (self.refuses, self.crashes, self.left, &self.account),
        )
    }

    /// Which value the schedule asks for, as a reader of the spec would say.
    fn wanted(&self) -> i64 {
        let is_open = (at(CLOCK[1])..at(CLOCK[4])).contains(&self.now());
        if is_open && !self.object.spec.kill_switch {
            ACTIVE
        } else {
            INACTIVE
        }
    }

    fn facts(&self) -> CapacityFacts {
        let failed = || Unknown::Failed {
            message: "the API server does not answer".to_owned(),
        };
        let mut schedule = ScheduleInputs {
            unknown: self.is_unread.then(failed),
            ..ScheduleInputs::default()
        };
        if self.is_held {
            schedule.overrides = vec![Override {
                name: "freeze".to_owned(),
                mode: OverrideMode::Hold,
                start: None,
                end: at("2026-03-07T00:00:00Z"),
                created: None,
            }];
        }
        let mut target = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "t-1",
                "resourceVersion": self.version.to_string(),
            },
            "spec": {"replicas": self.replicas},
            "status": {"replicas": self.running},
        });
        if self.is_paused {
            target["metadata"]["annotations"] =
                json!({"cluster.x-k8s.io/paused": "true"});
        }
        CapacityFacts {
            schedule,
            target: if self.is_untold {
                Fact::Unknown(failed())
            } else {
                Fact::Known(Some(target))
            },
            rival: Some("someone".to_owned()),
            ..CapacityFacts::default()
        }
    }

    /// The worlds that may follow.
    fn next(&self) -> Vec<Self> {
        let mut all = vec![self.reconciled()];
        if self.clock + 1 < CLOCK.len() {
            let mut later = self.clone();
            later.clock += 1;
            later.way.push(format!("it is {}", CLOCK[later.clock]));
            all.push(later);
        }
        if self.left > 0 {
            all.extend(DISTURBANCES_OF.map(|it| self.disturbed(it)));
        }
        all
    }

    fn disturbed(&self, by: Disturbance) -> Self {
        let mut next = self.clone();
        next.left -= 1;
        next.way.push(format!("{by:?}"));
        match by {
            Disturbance::Rival => {
                next.replicas = FOREIGN;
                next.version += 1;
            }
            Disturbance::Usage => next.running = if next.running == 0 { 2 } else { 0 },
            Disturbance::Pause => next.is_paused = !next.is_paused,
            Disturbance::Hold => next.is_held = !next.is_held,
            Disturbance::Unread => next.is_unread = !next.is_unread,
            Disturbance::Untold => next.is_untold = !next.is_untold,
            Disturbance::Kill => {
                next.object.spec.kill_switch = !next.object.spec.kill_switch;
                let generation = &mut next.object.metadata.generation;
                *generation = generation.map(|it| it + 1);
            }
            Disturbance::Refusal => next.refuses = true,
            Disturbance::Crash => next.crashes = true,
        }
        next
    }

    /// The world after the planner has been asked once.
    fn reconciled(&self) -> Self {
        let plan = plan_capacity(&self.object, &self.facts(), self.now());
        let mut next = self.clone();
        next.way.push(format!("{:?}", plan.write));
        if let Some(write) = &plan.write {
            next.judge(write);
            if std::mem::take(&mut next.refuses) {
                // The server has not taken it, and the status is not written.
                return next;
            }
            next.replicas = value_of(write);
            next.version += 1;
            next.note(self.wanted());
            if std::mem::take(&mut next.crashes) {
                if let Some(account) = &mut next.account {
                    account.is_lossy = true;
                }
                return next;
            }
        }
        let status = plan.status_after(None);
        let before = self.object.status.as_ref();
        let waited = before.and_then(|it| it.handback_deadline);
        if status.handback_deadline.is_some() && waited.is_none() {
            assert_eq!(
                next.replicas, INACTIVE,
                "awaited before it: {:#?}",
                next.way
            );
        }
        next.object.status = Some(status);
        next
    }

    /// The laws about a write.
    fn judge(&self, write: &CapacityWrite) {
        let way = &self.way;
        let kills = self.object.spec.kill_switch;
        assert!(!self.is_paused && !self.is_untold, "{way:#?}");
        assert!(kills || !self.is_held && !self.is_unread, "{way:#?}");
        assert_eq!(value_of(write), self.wanted(), "{way:#?}");
        assert_ne!(value_of(write), self.replicas, "without need: {way:#?}");
        let Some(account) = self.account.as_ref().filter(|it| self.continues(it)) else {
            return;
        };
        let recent = |it: &&Timestamp| **it + SignedDuration::from_mins(10) > self.now();
        let recent = account.at.iter().filter(recent).count();
        assert!(recent < 3 || account.is_lossy, "fought for: {way:#?}");
    }

    /// Whether a write now is for the same state of the same spec as those of the account.
    fn continues(&self, account: &Account) -> bool {
        let generation = self.object.metadata.generation.unwrap_or_default();
        (account.value, account.generation) == (self.wanted(), generation)
    }

    fn note(&mut self, value: i64) {
        let (now, generation) = (self.now(), self.object.metadata.generation);
        let account = self.account.take().filter(|it| self.continues(it));
        let mut account = account.unwrap_or_else(|| Account {
            value,
            generation: generation.unwrap_or_default(),
            at: Vec::new(),
            is_lossy: false,
        });
        account.at.push(now);
        self.account = Some(account);
    }

    /// The same without anything that prevents a write, after the planner has been asked twice.
    fn quiet(&self) -> (Self, Option<CapacityWrite>) {
        let mut next = self.clone();
        (next.is_paused, next.is_held) = (false, false);
        (next.is_unread, next.is_untold) = (false, false);
        (next.refuses, next.crashes) = (false, false);
        let next = next.reconciled().reconciled();
        let plan = plan_capacity(&next.object, &next.facts(), next.now());
        (next, plan.write)
    }
}

fn value_of(write: &CapacityWrite) -> i64 {
    let CapacityWrite::JsonPatch(operations) = write else {
        panic!("an existing object is patched, but: {write:?}");
    };
    let guard: &Value = &operations[0]["path"];
    assert_eq!(guard, "/metadata/resourceVersion");
    operations[1]["value"].as_i64().unwrap()
}

#[test]
fn in_every_order_of_two_disturbances_the_laws_of_a_capacity_hold() {
    let mut seen = HashSet::new();
    let mut ahead = VecDeque::from([World::start()]);
    while let Some(world) = ahead.pop_front() {
        let (quiet, write) = world.quiet();
        let way = &quiet.way;
        assert_eq!(write, None, "it does not come to rest: {way:#?}");
        let status = quiet.object.status.as_ref().unwrap();
        let is_written = quiet.replicas == quiet.wanted();
        assert!(is_written || status.contested_by.is_some(), "{way:#?}");
        for next in world.next() {
            if seen.insert(next.key()) {
                ahead.push_back(next);
            }
        }
    }
    // That the search reaches what it is about.
    assert!(seen.len() > 1_000, "{}", seen.len());
}
