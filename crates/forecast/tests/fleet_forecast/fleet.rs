//! Fleets of machines of one class, in minutes from Monday 2026-03-09 00:00 UTC.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::{
    HostPool, LimitsOfClass, RatesOfClass, ResolvedClass, ScheduledMachine,
};
use fivespot_forecast::{FleetMachine, ForecastSpan};
use fivespot_schedule::Schedule;
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, json};

pub(crate) const DAY: i64 = 24 * 60;
pub(crate) const WEEK: i64 = 7 * DAY;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The instant of a minute.
pub(crate) fn at(minute: i64) -> Timestamp {
    let monday: Timestamp = "2026-03-09T00:00:00Z".parse().unwrap();
    monday + SignedDuration::from_mins(minute)
}

/// The minute of an instant.
pub(crate) fn minute(instant: Timestamp) -> i64 {
    instant.duration_since(at(0)).as_secs() / 60
}

/// A machine; times are in minutes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Desk {
    pub(crate) priority: u8,
    /// Whether it is in another namespace.
    pub(crate) is_other: bool,
    /// The only host that it takes.
    pub(crate) named: Option<usize>,
    /// Days of the week with the minute at which a window begins, and its length.
    pub(crate) windows: Vec<(i64, i64, i64)>,
    pub(crate) lead: i64,
    pub(crate) grace: i64,
    /// Whether it leaves early enough to be gone at the end of a window.
    pub(crate) is_gone_at_end: bool,
    pub(crate) minimum_run: i64,
    /// How long the last provisioning took.
    pub(crate) took: Option<i64>,
    /// The host that it has at the beginning, unless another one has it.
    pub(crate) host: Option<usize>,
    /// By how much its windows open and close later: one of [`DELAYS`].
    pub(crate) delay: i64,
}

/// Delays in minutes of a jitter of half an hour, and uids of machines that have them.
const DELAYS: [(i64, &str); 5] = [
    (0, "uid-603"),
    (1, "uid-4437"),
    (5, "uid-4545"),
    (15, "uid-1667"),
    (30, "uid-3026"),
];

/// Machines that share some hosts, for a week.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) hosts: usize,
    pub(crate) desks: Vec<Desk>,
    /// How many machines of a namespace may be needed at the same time, and for how many hours.
    pub(crate) machines: Option<u32>,
    pub(crate) hours: Option<u32>,
    /// How many machines may begin within a minute.
    pub(crate) starts: Option<u32>,
    /// The first minute that is reported.
    pub(crate) from: i64,
}

/// A machine as the forecast reads it.
pub(crate) struct Worker {
    namespace: &'static str,
    pub(crate) object: ScheduledMachine,
    pub(crate) schedule: Schedule,
}

impl Worker {
    pub(crate) fn member(&self) -> FleetMachine<'_> {
        FleetMachine {
            namespace: self.namespace,
            object: &self.object,
            schedule: Some(&self.schedule),
        }
    }
}

impl Fleet {
    pub(crate) fn span(&self) -> ForecastSpan {
        ForecastSpan {
            since: at(0),
            from: at(self.from),
            to: at(WEEK),
        }
    }

    /// The first machine that is said to have a host has it.
    pub(crate) fn host_of(&self, desk: usize) -> Option<usize> {
        let host = self.desks[desk].host.filter(|host| *host < self.hosts)?;
        let mut earlier = self.desks[..desk].iter();
        (!earlier.any(|it| it.host == Some(host))).then_some(host)
    }

    /// The host that a machine names, if the class has it.
    pub(crate) fn named(&self, desk: usize) -> Option<usize> {
        self.desks[desk].named.filter(|host| *host < self.hosts)
    }

    pub(crate) fn workers(&self) -> Vec<Worker> {
        self.workers_of("desks")
    }

    pub(crate) fn workers_of(&self, class: &str) -> Vec<Worker> {
        let hosts = (0..self.hosts).map(|host| (host_name(host), Map::new()));
        let pool: Arc<HostPool> = Arc::new(hosts.collect());
        let desks = 0..self.desks.len();
        desks.map(|desk| self.worker(desk, class, &pool)).collect()
    }

    fn worker(&self, place: usize, class: &str, pool: &Arc<HostPool>) -> Worker {
        let desk = &self.desks[place];
        let windows = desk.windows.iter().enumerate();
        let windows: Vec<_> = windows
            .map(|(number, (day, start, length))| {
                json!({
                    "name": format!("w-{number}"), "days": [DAYS[usize::try_from(*day).unwrap()]],
                    "start": format!("{:02}:{:02}", start / 60, start % 60),
                    "duration": format!("{length}m"),
                })
            })
            .collect();
        let provider = json!({"apiVersion": "a/v1", "kind": "K", "spec": {}});
        let end_policy = if desk.is_gone_at_end {
            "CompleteByWindowEnd"
        } else {
            "StartAtWindowEnd"
        };
        let uid = DELAYS.iter().find(|(delay, _)| *delay == desk.delay);
        let uid = uid.map(|(_, uid)| uid);
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": format!("m-{place}"), "namespace": "team", "uid": uid},
            "spec": {
                "schedule": {"windows": windows, "timezone": "UTC"},
                "clusterName": "c", "priority": desk.priority,
                "bootstrapSpec": provider, "infrastructureSpec": provider,
                "gracefulShutdownTimeout": format!("{}m", desk.grace),
                "shutdown": {"endPolicy": end_policy},
                "provisioning": {
                    "leadTime": format!("{}m", desk.lead),
                    "minimumRun": format!("{}m", desk.minimum_run),
                },
            },
            "status": {
                "host": self.host_of(place).map(host_name),
                "lastProvisioning": desk.took.map(|took| json!({
                    "startTime": at(0), "readyTime": at(took),
                })),
            },
        });
        let mut object: ScheduledMachine = serde_json::from_value(object).unwrap();
        object.spec.class = Some(ResolvedClass {
            name: class.to_owned(),
            host: self.named(place).map(host_name),
            pool: Some(Arc::clone(pool)),
            limits: Some(Arc::new(LimitsOfClass {
                machines: self.machines,
                hours: self.hours,
                max_override: None,
                timezone: "UTC".to_owned(),
            })),
            jitter: SignedDuration::from_mins(30),
            rates: RatesOfClass {
                starts: self.starts,
                ..RatesOfClass::default()
            },
            problem: None,
        });
        let schedule = object.spec.schedule(&BTreeMap::new()).unwrap();
        Worker {
            namespace: if desk.is_other { "zoo" } else { "team" },
            object,
            schedule,
        }
    }
}

fn host_name(host: usize) -> String {
    format!("host-{host}")
}

fn desk() -> impl Strategy<Value = Desk> {
    let window = (0..7_i64, 0..DAY / 15, 1..40_i64)
        .prop_map(|(day, start, length)| (day, start * 15, length * 15));
    let schedule = (vec(window, 1..6), any::<bool>());
    let lengths = (
        select(vec![0_i64, 0, 5, 20, 90]),
        select(vec![0_i64, 5, 30]),
        select(vec![0_i64, 0, 45]),
    );
    let host = (
        select(vec![10_u8, 10, 50, 90]),
        option::weighted(0.3, 0..4_usize),
        option::weighted(0.3, 0..4_usize),
    );
    let took = (option::of(0..30_i64), any::<bool>());
    let delay =
        prop_oneof![2 => Just(0), 1 => select(DELAYS.map(|(delay, _)| delay).to_vec())];
    (schedule, lengths, host, took, delay).prop_map(
        |(schedule, lengths, host, took, delay)| {
            let ((windows, is_gone_at_end), (lead, grace, minimum_run)) =
                (schedule, lengths);
            let (priority, named, host) = host;
            let (took, is_other) = took;
            Desk {
                priority,
                is_other,
                // One that has a host and names another one gives it back at once.
                named: named.filter(|named| host.is_none_or(|host| host == *named)),
                windows,
                lead,
                grace,
                is_gone_at_end,
                minimum_run,
                took,
                host,
                delay,
            }
        },
    )
}

/// One to three hosts and up to seven machines.
pub(crate) fn fleet() -> impl Strategy<Value = Fleet> {
    let limits = (
        option::weighted(0.4, 1..4_u32),
        option::weighted(0.4, 5..80_u32),
        option::weighted(0.4, 1..3_u32),
    );
    (1..5_usize, vec(desk(), 1..8), limits, 0..2 * DAY).prop_map(
        |(hosts, desks, (machines, hours, starts), from)| Fleet {
            hosts,
            desks,
            machines,
            hours,
            starts,
            from,
        },
    )
}
