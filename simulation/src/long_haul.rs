//! The long haul: years with many machines and without faults, compared with the schedules day by
//! day.
//!
//! What is checked: each machine is created and deleted on the second of its edges and at no other
//! time; the seconds in `status.usage` and in the metrics are those of the schedule; no request is
//! refused; and the memory of the process does not grow.

use std::collections::BTreeMap;
use std::time::Instant;

use fivespot_api::ScheduledMachine;
use fivespot_schedule::Schedule;
use fivespot_testkit::{AuditEvent, Cluster, Operator, resident_kib, scheduled_machine};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};

/// The size of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    /// In virtual years of 365 days.
    pub(crate) years: u32,
    pub(crate) machines: usize,
}

/// The results so far.
#[derive(Debug, Default)]
pub(crate) struct LongHaulResults {
    years: u32,
    machines: usize,
    openings: u64,
    closings: u64,
    requests: u64,
    /// The number of monthly accounts of machines that were compared.
    accounts: u64,
    /// Resident memory at the end of each month, in KiB.
    resident: Vec<u64>,
    seconds: u64,
    pub(crate) broken: Vec<String>,
}

/// The start of the run: not on an edge of any schedule.
const BEGIN: &str = "2026-01-01T00:00:30Z";

/// The number of months of usage that a status keeps. Memory may grow until they are reached.
const STORED_MONTHS: usize = 14;

/// The largest allowed ratio of resident memory in the last months to that after the first
/// fourteen.
const MAX_GROWTH: f64 = 1.05;

/// The number of deviations that are kept.
const MAX_REPORTED: usize = 20;

/// Schedules of all kinds: hours, nights, cron, whole days, and an hour at noon.
fn schedule(number: usize) -> Value {
    let zone = |zone: &str, mut schedule: Value| {
        schedule["timezone"] = json!(zone);
        schedule
    };
    match number % 5 {
        0 => zone(
            "America/New_York",
            json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}),
        ),
        1 => zone(
            "Europe/Berlin",
            json!({"windows": [{"name": "night", "days": ["mon-fri"], "start": "20:00", "end": "06:00"}]}),
        ),
        2 => zone("Asia/Tokyo", json!({"cron": "0 6 * * *", "duration": "4h"})),
        3 => zone(
            "Australia/Sydney",
            json!({"daysOfWeek": ["sat-sun"], "hoursOfDay": ["0-23"]}),
        ),
        _ => zone(
            "America/Sao_Paulo",
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["12"]}),
        ),
    }
}

/// A machine with its parsed schedule.
struct Planned {
    object: Value,
    schedule: Schedule,
}

fn planned(number: usize) -> Option<Planned> {
    let mut object = scheduled_machine(&format!("worker-{number}"));
    object["spec"]["schedule"] = schedule(number);
    let machine: ScheduledMachine = serde_json::from_value(object.clone()).ok()?;
    let schedule = machine.spec.schedule.schedule().ok()?;
    Some(Planned { object, schedule })
}

/// Runs on this thread, and prints the progress each month. `each_year` is called with the results
/// after each whole year, so that a run that is interrupted leaves a record.
pub(crate) fn run_long_haul(
    length: Length,
    each_year: impl Fn(&LongHaulResults),
) -> LongHaulResults {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(length, each_year)),
        Err(error) => LongHaulResults {
            broken: vec![error.to_string()],
            ..LongHaulResults::default()
        },
    }
}

async fn run(length: Length, each_year: impl Fn(&LongHaulResults)) -> LongHaulResults {
    let begun = Instant::now();
    let mut results = LongHaulResults {
        machines: length.machines,
        ..LongHaulResults::default()
    };
    let Ok(begin) = BEGIN.parse::<Timestamp>() else {
        return results;
    };
    let cluster = Cluster::seeded(begin, 1).await;
    cluster.add_cluster().await;
    let all: BTreeMap<String, Planned> = (0..length.machines)
        .filter_map(planned)
        .map(|planned| {
            let name = planned.object["metadata"]["name"].as_str();
            (name.unwrap_or_default().to_owned(), planned)
        })
        .collect();
    let operator = cluster.operator();
    for planned in all.values() {
        cluster.apply(&planned.object).await;
    }
    cluster.settle().await;
    // Time in a phase is counted from one scrape to the next.
    operator.instruments().metrics();
    let mut day = begin;
    let days = i64::from(length.years) * 365;
    let mut expected = at_once(&all, begin);
    for number in 1..=days {
        let next = begin + SignedDuration::from_hours(24 * number);
        cluster.advance_until(next).await;
        expected.extend(edges(&all, day, next));
        results.compare(&mut expected, &cluster.take_requests());
        day = next;
        let is_new_month = day.to_zoned(TimeZone::UTC).day() == 1;
        if is_new_month || number == days {
            results.account(&cluster, &all, day).await;
            results.metrics(&operator, (begin, day));
            results.print_month(day);
        }
        if number % 365 == 0 {
            results.years += 1;
            results.seconds = begun.elapsed().as_secs();
            each_year(&results);
        }
    }
    results.check_memory();
    results
}

/// An expected or observed creation or deletion of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    at: Timestamp,
    /// The name of the machine. Empty for an opening, because the path of a create request has no
    /// name. Whether the right machine was created shows in its account.
    name: String,
    is_opening: bool,
}

impl Edge {
    fn of(name: &str, at: Timestamp, is_opening: bool) -> Self {
        let name = if is_opening { "" } else { name };
        Self {
            at,
            name: name.to_owned(),
            is_opening,
        }
    }
}

/// The openings at the start: one for each machine that is wanted then.
fn at_once(all: &BTreeMap<String, Planned>, begin: Timestamp) -> Vec<Edge> {
    let open = all
        .iter()
        .filter(|(_, planned)| planned.schedule.at(begin).is_open());
    open.map(|(name, _)| Edge::of(name, begin, true)).collect()
}

/// The edges between two instants.
fn edges(all: &BTreeMap<String, Planned>, from: Timestamp, to: Timestamp) -> Vec<Edge> {
    let of = |(name, planned): (&String, &Planned)| {
        let edges = planned.schedule.transitions(from, to);
        edges
            .map(|(at, is_opening)| Edge::of(name, at, is_opening))
            .collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// The number of seconds between two instants in which a schedule is open.
fn open_seconds(schedule: &Schedule, from: Timestamp, to: Timestamp) -> i64 {
    let (mut at, mut sum) = (from, 0);
    while at < to {
        let window = schedule.at(at);
        let until = window.until().unwrap_or(to).min(to);
        if window.is_open() {
            sum += until.duration_since(at).as_secs();
        }
        at = until;
    }
    sum
}

impl LongHaulResults {
    fn report_violation(&mut self, how: String) {
        if self.broken.len() < MAX_REPORTED {
            println!("broken: {how}");
            self.broken.push(how);
        }
    }

    /// Compares the Machines that were created and deleted with the expected edges.
    fn compare(&mut self, expected: &mut Vec<Edge>, requests: &[AuditEvent]) {
        let is_operator = |event: &&AuditEvent| event.user.ends_with("5spot-controller");
        let mut observed = Vec::new();
        for event in requests.iter().filter(is_operator) {
            self.requests += 1;
            if event.code >= 400 && event.code != 404 {
                self.report_violation(format!("{event:?}"));
            }
            let is_opening = match event.verb.as_str() {
                "create" => true,
                "delete" => false,
                _ => continue,
            };
            if event.resource == "machines" && event.code < 300 {
                observed.push(Edge::of(&event.name, event.at, is_opening));
            }
        }
        observed.sort_unstable();
        expected.sort_unstable();
        if observed != *expected {
            let missing = expected
                .iter()
                .find(|edge| !observed.contains(edge))
                .cloned();
            let more = observed
                .iter()
                .find(|edge| !expected.contains(edge))
                .cloned();
            self.report_violation(format!("missing: {missing:?}; unexpected: {more:?}"));
        }
        let openings = observed.iter().filter(|edge| edge.is_opening).count();
        self.openings += u64::try_from(openings).unwrap_or_default();
        self.closings += u64::try_from(observed.len() - openings).unwrap_or_default();
        expected.clear();
    }

    /// Compares the account of the last whole month with the schedule.
    async fn account(
        &mut self,
        cluster: &Cluster,
        all: &BTreeMap<String, Planned>,
        now: Timestamp,
    ) {
        let today = now.to_zoned(TimeZone::UTC).date();
        let first = today.first_of_month();
        let midnight = |date: jiff::civil::Date| {
            let zoned = date.to_zoned(TimeZone::UTC);
            zoned.map(|it| it.timestamp()).unwrap_or_default()
        };
        let Ok(before) = first.checked_sub(1.month()) else {
            return;
        };
        let (from, to) = (midnight(before), midnight(first));
        let begin = BEGIN.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let name = format!("{:04}-{:02}", before.year(), before.month());
        for (machine, planned) in all {
            let status = cluster.status(machine).await;
            let usage = &status["usage"];
            let accounted = usage["accountedTime"].as_str();
            let accounted = accounted.and_then(|text| text.parse::<Timestamp>().ok());
            let months = usage["months"].as_array();
            let month =
                months.and_then(|all| all.iter().find(|it| it["month"] == name.as_str()));
            // The account is written with the next change. Until then, the month is open.
            let until = accounted.unwrap_or(begin).min(to);
            let wanted = open_seconds(&planned.schedule, from.max(begin), until);
            let seconds = |field: &str| {
                month.map_or(0, |month| month[field].as_i64().unwrap_or_default())
            };
            let (active, late) = (seconds("activeSeconds"), seconds("lateSeconds"));
            if seconds("wantedSeconds") != wanted || active + late < wanted {
                self.report_violation(format!(
                    "{machine} in {name}: {wanted} s are wanted up to {until}, but the \
                     status has {month:?}"
                ));
            }
            self.accounts += 1;
        }
    }

    /// Compares the metrics with the elapsed time, and checks that there are no errors and no
    /// lateness.
    fn metrics(&mut self, operator: &Operator, (begin, now): (Timestamp, Timestamp)) {
        let text = operator.instruments().metrics();
        let sum = |metric: &str| -> f64 {
            let of = text.lines().filter(|line| line.starts_with(metric));
            let values =
                of.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.fold(0.0, |sum, value| sum + value)
        };
        let elapsed = now.duration_since(begin).as_secs();
        let machines = i64::try_from(self.machines).unwrap_or_default();
        for (metric, wanted) in [
            (
                "fivespot_machine_seconds_total{",
                i64::checked_mul(elapsed, machines).unwrap_or_default(),
            ),
            ("fivespot_errors_total{", 0),
            ("fivespot_transition_lateness_seconds_sum", 0),
        ] {
            let found = sum(metric);
            if format!("{found:.0}") != wanted.to_string() {
                self.report_violation(format!(
                    "at {now}, {metric} is {found}, not {wanted}"
                ));
            }
        }
    }

    fn print_month(&mut self, now: Timestamp) {
        let resident = resident_kib();
        self.resident.push(resident);
        println!(
            "{}  {:>9} openings  {:>9} closings  {:>10} requests  {:>7.1} MiB",
            now.to_zoned(TimeZone::UTC).date(),
            self.openings,
            self.closings,
            self.requests,
            mebibytes(resident),
        );
    }

    /// The mean resident memory of the first and of the last half of the months after the first
    /// fourteen. `None` for less than six such months.
    fn halves(&self) -> Option<(f64, f64)> {
        let steady = self.resident.get(STORED_MONTHS..)?;
        let half = steady.len() / 2;
        let mean = |months: &[u64]| {
            let sum: f64 = months.iter().copied().map(mebibytes).sum();
            let count = u32::try_from(months.len()).unwrap_or(u32::MAX);
            sum / f64::from(count)
        };
        (half >= 3).then(|| (mean(&steady[..half]), mean(&steady[steady.len() - half..])))
    }

    fn check_memory(&mut self) {
        if let Some((first, last)) = self.halves()
            && last > first * MAX_GROWTH
        {
            self.report_violation(format!(
                "{last:.1} MiB are resident in the last months, {first:.1} MiB before"
            ));
        }
    }

    pub(crate) fn print(&self) {
        println!("virtual years       {}", self.years);
        println!("machines            {}", self.machines);
        println!("openings, closings  {}, {}", self.openings, self.closings);
        println!("requests            {}", self.requests);
        println!("accounts compared   {}", self.accounts);
        if let Some((first, last)) = self.halves() {
            println!("resident MiB        {first:.1}, in the last months {last:.1}");
        }
        println!("broken              {}", self.broken.len());
        println!("seconds             {}", self.seconds);
    }

    pub(crate) fn to_value(&self) -> Value {
        let (first, last) = self.halves().unwrap_or_default();
        json!({
            "virtualYears": self.years,
            "machines": self.machines,
            "openings": self.openings,
            "closings": self.closings,
            "requests": self.requests,
            "accounts": self.accounts,
            "residentMiB": {"first": round(first), "last": round(last)},
            "broken": self.broken.len(),
            "seconds": self.seconds,
        })
    }
}

fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn mebibytes(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_is_valid_and_has_both_edges_within_two_weeks() {
        let begin: Timestamp = BEGIN.parse().unwrap();
        for number in 0..5 {
            let one = BTreeMap::from([(String::new(), planned(number).unwrap())]);
            let edges = edges(&one, begin, begin + SignedDuration::from_hours(24 * 14));
            for is_opening in [true, false] {
                let is_there = |edge: &Edge| edge.is_opening == is_opening;
                assert!(edges.iter().any(is_there), "{number} {is_opening}");
            }
        }
    }

    #[test]
    fn a_machine_that_is_not_created_is_reported() {
        let edge = |at: &str| Edge::of("worker", at.parse().unwrap(), true);
        let mut results = LongHaulResults::default();
        results.compare(&mut vec![edge("2026-01-01T09:00:00Z")], &[]);
        assert_eq!(results.broken.len(), 1, "{:?}", results.broken);
    }

    #[test]
    fn growing_memory_is_reported() {
        let of = |resident: Vec<u64>| {
            let mut results = LongHaulResults {
                resident,
                ..LongHaulResults::default()
            };
            results.check_memory();
            results.broken.len()
        };
        assert_eq!(of(vec![50_000; 40]), 0);
        assert_eq!(of((0..40).map(|month| 50_000 + 1_000 * month).collect()), 1);
    }

    #[test]
    fn open_seconds_are_counted_across_edges() {
        let noon = planned(4).unwrap().schedule;
        let begin: Timestamp = BEGIN.parse().unwrap();
        let week = begin + SignedDuration::from_hours(24 * 7);
        assert_eq!(open_seconds(&noon, begin, week), 7 * 3600);
    }
}
