//! Random fleets: machines of one or two classes that need a few hosts on a Monday and a Tuesday.
//!
//! The forecast cannot know how much of its time a shutdown takes. So here no machine begins to need a
//! host within the time in which another one may leave it: windows open five minutes after the half
//! hour and close on it, and a shutdown may last four minutes.

use std::array;

use jiff::{SignedDuration, Timestamp};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

pub(crate) const NAMESPACES: [&str; 2] = ["default", "research"];

/// How many half hours of a day there are, and how many the fleets are about.
const OF_A_DAY: u64 = 48;
const HALF_HOURS: u64 = 2 * OF_A_DAY;

const DAYS: [&str; 2] = ["mon", "tue"];

/// Some machines and their classes.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) classes: Vec<Class>,
    pub(crate) machines: Vec<Machine>,
}

#[derive(Debug)]
pub(crate) struct Class {
    name: &'static str,
    hosts: u64,
    /// How long a shutdown may take.
    pub(crate) grace: SignedDuration,
    pub(crate) lead: SignedDuration,
    is_gone_at_end: bool,
    minimum_run: SignedDuration,
    machines: Option<u64>,
    hours: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) namespace: &'static str,
    pub(crate) name: String,
    pub(crate) class: usize,
    host: Option<u64>,
    priority: u64,
    /// Half hours since Monday at which windows begin, and how many they last, to the minute as
    /// [`minutes`](Self::minutes) says. They do not touch.
    windows: Vec<(u64, u64)>,
}

/// A time in which a machine is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// When it is created if nothing prevents it.
    pub(crate) start: Timestamp,
    /// When its window opens.
    pub(crate) opens: Timestamp,
    /// When it is needed no longer.
    pub(crate) end: Timestamp,
}

struct Dice(SplitMix64);

impl Dice {
    /// A number of `from..=to`.
    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.next_u64() % (to - from + 1)
    }

    /// Whether one of `sides` comes up.
    fn is_one_of(&mut self, sides: u64) -> bool {
        self.within(1, sides) == 1
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.within(1, all.len() as u64)).unwrap() - 1]
    }
}

/// When the fleets begin, on a Monday.
pub(crate) fn monday() -> Timestamp {
    "2026-03-09T00:00:00Z".parse().unwrap()
}

/// How many minutes after the half hour windows open.
const OPENS: u64 = 5;

impl Fleet {
    /// The fleet of a seed.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice(SplitMix64::seed_from_u64(seed));
        let number = if dice.is_one_of(3) { 2 } else { 1 };
        let classes: Vec<Class> = ["desks", "racks"][..number]
            .iter()
            .map(|name| Class::random(&mut dice, name))
            .collect();
        let machines = 0..dice.within(2, 6);
        let machines = machines.map(|place| {
            let class = usize::try_from(dice.within(1, number as u64)).unwrap() - 1;
            Machine::random(&mut dice, place, (class, &classes[class]))
        });
        Self {
            machines: machines.collect(),
            classes,
        }
    }

    /// Its objects, classes first.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let classes = self.classes.iter().map(Class::object);
        let machines = self.machines.iter().map(|it| it.object(&self.classes));
        classes.chain(machines).collect()
    }

    /// When a machine is needed, in order.
    pub(crate) fn openings(&self, machine: &Machine) -> Vec<Opening> {
        let class = &self.classes[machine.class];
        let early = if class.is_gone_at_end {
            class.grace
        } else {
            SignedDuration::ZERO
        };
        let at = |minute: u64| {
            let minute = i64::try_from(minute).unwrap();
            monday() + SignedDuration::from_mins(minute)
        };
        let windows = machine.windows.iter();
        let openings = windows.map(|window| {
            let (opens, closes) = Machine::minutes(window);
            Opening {
                start: at(opens) - class.lead,
                opens: at(opens),
                end: at(closes) - early,
            }
        });
        openings
            .filter(|it| it.end.duration_since(it.start) >= class.minimum_run)
            .collect()
    }
}

impl Class {
    fn random(dice: &mut Dice, name: &'static str) -> Self {
        let mins = SignedDuration::from_mins;
        let machines = dice.is_one_of(3).then(|| dice.within(1, 3));
        let hours = dice.is_one_of(3).then(|| dice.within(3, 24));
        // One that a limit lets begin when another one ends would meet those that leave before it.
        let is_limited = machines.is_some() || hours.is_some();
        Self {
            name,
            hosts: dice.within(1, 4),
            grace: mins(dice.pick(&[1, 4])),
            lead: mins(dice.pick(&[0, 0, 30])),
            is_gone_at_end: dice.is_one_of(3) && !is_limited,
            minimum_run: mins(dice.pick(&[0, 0, 60])),
            machines,
            hours,
        }
    }

    fn object(&self) -> Value {
        let hosts = 0..self.hosts;
        let hosts: Vec<_> = hosts.map(|host| json!({"name": host_name(host)})).collect();
        let policy = if self.is_gone_at_end {
            "CompleteByWindowEnd"
        } else {
            "StartAtWindowEnd"
        };
        let minutes = |length: SignedDuration| format!("{}m", length.as_mins());
        let mut limits = json!({});
        if let Some(machines) = self.machines {
            limits["machinesPerNamespace"] = json!(machines);
        }
        if let Some(hours) = self.hours {
            limits["hoursPerWeekPerNamespace"] = json!(hours);
        }
        let mut class = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineClass",
            "metadata": {"name": self.name},
            "spec": {
                "clusterNames": ["production-cluster"],
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig",
                    "spec": {"version": "v1.30.0+k0s.0"},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "RemoteMachine",
                    "spec": {"address": "desk.example", "port": 22},
                },
                "gracefulShutdownTimeout": minutes(self.grace),
                "nodeDrainTimeout": minutes(self.grace),
                "provisioning": {
                    "leadTime": minutes(self.lead), "minimumRun": minutes(self.minimum_run),
                },
                "shutdown": {"endPolicy": policy},
                "hosts": hosts,
            },
        });
        if limits != json!({}) {
            class["spec"]["limits"] = limits;
        }
        class
    }
}

impl Machine {
    fn random(dice: &mut Dice, place: u64, (class, of): (usize, &Class)) -> Self {
        let mut windows = Vec::new();
        // A lead time is at most half an hour.
        let mut next = dice.within(1, 30);
        while next < HALF_HOURS {
            let length = dice.within(1, 20);
            windows.push((next, length));
            // Apart also with the lead time.
            next += length + dice.within(3, 40);
        }
        let [first, second] = array::from_fn(|_| dice.is_one_of(4));
        Self {
            namespace: NAMESPACES[usize::from(first)],
            name: format!("machine-{place}"),
            class,
            host: second.then(|| dice.within(1, of.hosts) - 1),
            priority: dice.pick(&[50, 50, 10, 90]),
            windows,
        }
    }

    /// The minutes since Monday at which a window opens and closes.
    fn minutes((begin, length): &(u64, u64)) -> (u64, u64) {
        (begin * 30 + OPENS, (begin + length) * 30)
    }

    fn object(&self, classes: &[Class]) -> Value {
        let windows = self.windows.iter().zip(0..);
        let windows: Vec<_> = windows
            .map(|(window, number)| {
                let (opens, closes) = Self::minutes(window);
                let of_day = opens % (OF_A_DAY * 30);
                json!({
                    "name": format!("w-{number}"),
                    "days": [DAYS[usize::try_from(opens / (OF_A_DAY * 30)).unwrap()]],
                    "start": format!("{:02}:{:02}", of_day / 60, of_day % 60),
                    "duration": format!("{}m", closes - opens),
                })
            })
            .collect();
        let mut class = json!({"name": classes[self.class].name});
        if let Some(host) = self.host {
            class["host"] = json!(host_name(host));
        }
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "classRef": class,
                "priority": self.priority,
                "schedule": {"windows": windows, "timezone": "UTC"},
            },
        })
    }
}

fn host_name(host: u64) -> String {
    format!("host-{host}")
}
