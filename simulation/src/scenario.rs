//! The scenario of a seed: time zones, days, machines and disruptions.

use fivespot_testkit::{instant, scheduled_machine};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::effective_schedule::{EffectiveSchedule, Inputs};
use crate::fault::Fault;
use crate::fleet::{Fleet, FleetAction};
use crate::random::Random;
use crate::user_action::UserAction;

/// Time zones with all kinds of clock changes: by an hour, by half an hour, none, at midnight, by
/// the lunar calendar, and in the southern hemisphere.
const ZONES: [&str; 12] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Pacific/Apia",
    "America/St_Johns",
    "Asia/Tehran",
];

/// The days on which a scenario may begin: the clocks change on them or soon after, the year ends,
/// there is a leap day, or nothing happens.
const DAYS: [&str; 9] = [
    "2026-03-06T03:00:00Z",
    "2026-03-27T03:00:00Z",
    "2026-04-03T03:00:00Z",
    "2026-04-23T03:00:00Z",
    "2026-10-03T03:00:00Z",
    "2026-10-23T03:00:00Z",
    "2026-10-30T03:00:00Z",
    "2026-12-29T03:00:00Z",
    "2028-02-26T03:00:00Z",
];

/// By how many seconds a clock is set back at most.
const MAX_SECONDS_BACK: usize = 540;

/// By how many seconds a clock is set forward: enough that a correction is accepted, and so few
/// that delayed actions are done by the end.
const SECONDS_AHEAD: std::ops::Range<usize> = 601..1_800;

/// One of so many scenarios is a fleet.
const FLEET_EVERY: u64 = 50;

/// How many actions and faults the day of a fleet has, and about how many writes.
const ACTIONS_ON_FLEET: usize = 40;
const FAULTS_OF_FLEET: usize = 40;
const WRITES_OF_FLEET: usize = 2_000;

/// One machine of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) object: Value,
}

impl Machine {
    /// Whether it returns to its host after a reclaim.
    fn returns(&self) -> bool {
        self.object["spec"]["reclaim"]["return"].is_object()
    }
}

/// A fault, a user action or a disturbance of the operators' host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disruption {
    /// A fault of a request or of a watch event.
    Fault(Fault),
    /// An action of a user, Cluster API or a pod at an instant, on the machine with this number.
    UserAction(Timestamp, usize, UserAction),
    /// The clock of the operators' host is set ahead by this many seconds at an instant (behind, if
    /// negative), and corrected after some minutes.
    Clock(Timestamp, i64, u8),
    /// The operators' host is suspended at an instant for some minutes.
    Suspend(Timestamp, u8),
    /// The owner of the host of the machine with this number is there from an instant on for some
    /// minutes.
    Visit(Timestamp, usize, u8),
    /// The operator with this number is cut off from the server from an instant on for some
    /// minutes.
    CutOff(Timestamp, usize, u8),
    /// An action on a fleet at an instant.
    Fleet(Timestamp, FleetAction),
}

impl Disruption {
    fn is_user_action(&self) -> bool {
        matches!(
            self,
            Self::UserAction(..) | Self::Visit(..) | Self::Fleet(..)
        )
    }
}

/// The scenario of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) begins: Timestamp,
    /// The instant after which no disruption occurs.
    pub(crate) calm: Timestamp,
    /// The machines that are checked one by one.
    pub(crate) machines: Vec<Machine>,
    /// What there is in place of them in the scenario of a fleet.
    pub(crate) fleet: Option<Fleet>,
    /// The number of operators. Several use leader election with a Lease.
    pub(crate) operators: usize,
    /// In no order. Each can be left out.
    pub(crate) disruptions: Vec<Disruption>,
}

impl Scenario {
    /// Generates the scenario of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        if seed % FLEET_EVERY == FLEET_EVERY - 1 {
            return Self::of_fleet(seed, &mut random);
        }
        let begins = instant(random.pick(&DAYS).unwrap_or(DAYS[0]));
        let days = 1 + random.below(4);
        let calm = begins + SignedDuration::from_hours(24 * signed(days));
        let count = 1 + random.below(3);
        let machines: Vec<Machine> = (0..count)
            .map(|at| machine(&mut random, at, begins, days))
            .collect();
        let mut scenario = Self {
            seed,
            begins,
            calm,
            machines,
            fleet: None,
            operators: if random.chance(25) { 2 } else { 1 },
            disruptions: Vec::new(),
        };
        // Some scenarios have no disruptions.
        if !random.chance(4) {
            scenario.add_disruptions(&mut random, days);
        }
        // In some scenarios there are only user actions.
        if random.chance(15) {
            scenario.disruptions.retain(Disruption::is_user_action);
        }
        scenario
    }

    /// The scenario of a fleet. Half of them have no faults, so that it can be said who is next.
    fn of_fleet(seed: u64, random: &mut Random) -> Self {
        let begins = instant(random.pick(&DAYS).unwrap_or(DAYS[0]));
        let fleet = Fleet::draw(random);
        let operators = if random.chance(25) { 2 } else { 1 };
        let mut disruptions = Vec::new();
        for _ in 0..ACTIONS_ON_FLEET {
            let when = FleetAction::when(random, begins);
            disruptions.push(Disruption::Fleet(when, FleetAction::draw(random)));
        }
        if random.chance(50) {
            for _ in 0..FAULTS_OF_FLEET {
                let fault = Fault::draw(random, WRITES_OF_FLEET);
                disruptions.push(Disruption::Fault(fault));
            }
        }
        Self {
            seed,
            begins,
            calm: begins + SignedDuration::from_hours(24),
            machines: Vec::new(),
            fleet: Some(fleet),
            operators,
            disruptions,
        }
    }

    /// Whether no fault is injected and the clock of the operators is right.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.disruptions.iter().all(Disruption::is_user_action)
    }

    /// The same scenario with only the disruptions of these numbers.
    pub(crate) fn only(&self, kept: &[usize]) -> Self {
        let disruptions = kept
            .iter()
            .filter_map(|at| self.disruptions.get(*at).copied());
        Self {
            disruptions: disruptions.collect(),
            ..self.clone()
        }
    }

    fn add_disruptions(&mut self, random: &mut Random, days: usize) {
        let work = days * self.machines.len();
        for _ in 0..random.below(6 * work + 6) {
            self.disruptions
                .push(Disruption::Fault(Fault::draw(random, 30 * work)));
        }
        let edges: Vec<Vec<Timestamp>> = self
            .machines
            .iter()
            .map(|machine| self.edges(&machine.object))
            .collect();
        for _ in 0..random.below(3 * work + 3) {
            let at = random.below(self.machines.len());
            let when = self.when(random, edges.get(at).map_or(&[], Vec::as_slice));
            self.disruptions.push(Disruption::UserAction(
                when,
                at,
                UserAction::draw(random),
            ));
        }
        for (at, edges) in edges.iter().enumerate() {
            if self.machines.get(at).is_some_and(Machine::returns) {
                for _ in 0..=random.below(2 * days) {
                    let when = self.when(random, edges);
                    let minutes = u8::try_from(1 + random.below(90)).unwrap_or(1);
                    self.disruptions.push(Disruption::Visit(when, at, minutes));
                }
            }
        }
        // An override that starts and ends is in every scenario.
        let at = random.below(self.machines.len());
        let when = self.when(random, edges.get(at).map_or(&[], Vec::as_slice));
        let later = [
            UserAction::RunLater,
            UserAction::StopLater,
            UserAction::HoldLater,
        ];
        let later = random.pick(&later).unwrap_or(UserAction::StopLater);
        self.disruptions
            .push(Disruption::UserAction(when, at, later));
        for _ in 0..random.below(2 * days + 1) {
            let at = random.below(self.machines.len());
            let when = self.when(random, edges.get(at).map_or(&[], Vec::as_slice));
            let minutes = u8::try_from(1 + random.below(60)).unwrap_or(1);
            let disruption = match random.below(3) {
                0 => {
                    let ahead = SECONDS_AHEAD.start + random.below(SECONDS_AHEAD.len());
                    Disruption::Clock(when, signed(ahead), minutes)
                }
                1 => {
                    let behind = 1 + random.below(MAX_SECONDS_BACK);
                    Disruption::Clock(when, -signed(behind), minutes)
                }
                _ => Disruption::Suspend(when, minutes),
            };
            self.disruptions.push(disruption);
        }
        if self.operators == 1 {
            return;
        }
        for _ in 0..random.below(3 * days + 1) {
            let at = random.below(self.machines.len());
            let when = self.when(random, edges.get(at).map_or(&[], Vec::as_slice));
            let minutes = u8::try_from(1 + random.below(40)).unwrap_or(1);
            let operator_index = random.below(self.operators);
            self.disruptions
                .push(Disruption::CutOff(when, operator_index, minutes));
        }
    }

    /// An instant soon after a window has opened or closed, or any instant of the scenario.
    fn when(&self, random: &mut Random, edges: &[Timestamp]) -> Timestamp {
        let edge = random.pick(edges).filter(|_| random.chance(75));
        let after = |from: Timestamp, seconds: usize| {
            from + SignedDuration::from_secs(signed(seconds))
        };
        match edge {
            Some(edge) if random.chance(50) => after(edge, random.below(30)),
            Some(edge) => after(edge, random.below(900)),
            None => {
                let all = self.calm.duration_since(self.begins).as_secs();
                after(self.begins, random.below(usize::try_from(all).unwrap_or(0)))
            }
        }
        .min(self.calm)
    }

    /// The edges of a machine's windows within the scenario.
    fn edges(&self, object: &Value) -> Vec<Timestamp> {
        let mut edges = Vec::new();
        let mut now = self.begins;
        let inputs = Inputs {
            overrides: Vec::new(),
            calendars: vec![calendar(self.begins)],
        };
        let schedule = EffectiveSchedule::of(object, &inputs);
        let next = |now| schedule.as_ref().and_then(|of| of.next_edge(now));
        while let Some(next) = next(now).filter(|next| *next < self.calm) {
            edges.push(next);
            now = next;
        }
        edges
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(0)
}

/// The calendar of a scenario: the second day as a date, and the fourth as a day of every year.
pub(crate) fn calendar(begins: Timestamp) -> Value {
    let day = |hours: i64| {
        let at = begins + SignedDuration::from_hours(hours);
        at.to_zoned(TimeZone::UTC).date().to_string()
    };
    let every_year = day(72).split_off("YYYY-".len());
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendar",
        "metadata": {"name": CALENDAR, "namespace": "default"},
        "spec": {"dates": [
            {"name": "second", "date": day(24)},
            {"name": "fourth", "date": every_year},
        ]},
    })
}

/// The name of the calendar.
pub(crate) const CALENDAR: &str = "holidays";

/// Exceptions: those of the calendar, some dates, or both.
fn exceptions(random: &mut Random, begins: Timestamp, days: usize) -> Value {
    let day = |days: usize| {
        let at = begins + SignedDuration::from_hours(24 * signed(days));
        at.to_zoned(TimeZone::UTC).date().to_string()
    };
    let first = random.below(days + 2);
    let last = first + random.below(2);
    let mut action = || random.pick(&["Run", "Stop"]);
    let dates = json!({
        "name": "fair", "action": action(), "startDate": day(first), "endDate": day(last),
    });
    let holidays = json!({
        "name": "holidays", "action": action(), "calendarRef": {"name": CALENDAR},
    });
    match random.below(3) {
        0 => json!([dates]),
        1 => json!([holidays]),
        _ => json!([dates, holidays]),
    }
}

fn machine(random: &mut Random, at: usize, begins: Timestamp, days: usize) -> Machine {
    let name = format!("worker-{at}");
    let mut object = scheduled_machine(&name);
    let team = random.pick(&["a", "b"]);
    object["metadata"]["labels"] = json!({"example.com/team": team});
    let spec = &mut object["spec"];
    let zone = random.pick(&ZONES).unwrap_or("UTC");
    spec["schedule"] = match random.below(6) {
        0 => json!({"cron": "30 6 * * *", "duration": "7h", "timezone": zone}),
        1 => json!({"cron": "0 2 * * *", "duration": "3h", "timezone": zone}),
        2 => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["1-3"], "timezone": zone})
        }
        3 => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["20-5"], "timezone": zone})
        }
        4 => json!({"windows": [
            {"name": "early", "start": "05:45", "duration": "2h"},
            {"name": "late", "start": "21:30", "end": "01:15"},
        ], "timezone": zone}),
        _ => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["9-17"], "timezone": zone})
        }
    };
    if random.chance(40) {
        spec["schedule"]["exceptions"] = exceptions(random, begins, days);
    }
    if random.chance(40) {
        let lead = random.pick(&["5m", "20m", "2h"]);
        let minimum = random.pick(&["0s", "10m", "90m"]);
        spec["provisioning"] = json!({"leadTime": lead, "minimumRun": minimum});
    }
    if random.chance(40) {
        spec["shutdown"] = json!({"endPolicy": "CompleteByWindowEnd"});
    }
    if random.chance(40) {
        let last_call = random.pick(&["1m", "45m", "3h"]);
        spec["shutdown"]["lastCall"] = json!(last_call);
    }
    let spans = ["0s", "30s", "2m", "5m"];
    spec["gracefulShutdownTimeout"] = json!(random.pick(&spans));
    spec["nodeDrainTimeout"] = json!(random.pick(&spans));
    if random.chance(50) {
        spec["nodeTaints"] = json!([
            {"key": "example.com/shift", "value": "night", "effect": "NoSchedule"},
        ]);
    }
    if random.chance(40) {
        let after = random.pick(&["1m", "15m", "40m"]);
        let most = 1 + random.below(3);
        spec["reclaim"] = json!({"return": {"after": after, "maxPerDay": most}});
    }
    Machine { name, object }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_scenarios_and_different_seeds_do_not() {
        let text = |seed| format!("{:?}", Scenario::of(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn a_scenario_can_be_reduced_to_some_of_its_troubles() {
        let scenario = (0..100)
            .map(Scenario::of)
            .find(|scenario| scenario.disruptions.len() > 3);
        let scenario = scenario.unwrap();
        let less = scenario.only(&[0, 2]);
        assert_eq!(
            less.disruptions,
            [scenario.disruptions[0], scenario.disruptions[2]]
        );
        assert_eq!(less.machines.len(), scenario.machines.len());
    }
}
