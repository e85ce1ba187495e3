//! What one plan costs, in steps of the evaluation of its schedule, for the objects that cost
//! most.

use fivespot_api::{
    EndPolicy, ExceptionAction, Phase, ResolvedClass, ScheduleException, ScheduleSpec,
};
use fivespot_capi::Contract;
use fivespot_plan::{MAX_STEPS, Memory, Plan, plan_within};
use fivespot_schedule::{DateEntry, Dates, Override, OverrideMode, Steps};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::simulation::{EVENING, NOON, Simulation, at, in_service};

const NOW: &str = "2026-11-26T09:00:30Z";

/// What a plan may take more than its steps: the last search of each query.
const LAST_SEARCHES: u64 = 10_000;

/// A plan, and the steps that it took.
fn planned(simulation: &Simulation) -> (Plan, u64) {
    let steps = Steps::at_most(MAX_STEPS);
    let plan = plan_within(
        simulation.sm(),
        &simulation.observed(),
        &Memory::default(),
        simulation.now,
        &steps,
    );
    (plan, steps.taken())
}

/// So many dates of every year, all before today, some days apart.
fn dates_before_today(count: i64, apart: i64) -> Dates {
    let today = at(NOW).to_zoned(jiff::tz::TimeZone::UTC).date();
    let days = (1..=count).map(|n| today - (n * apart).days());
    let entry = |day: jiff::civil::Date| DateEntry::EveryYear {
        month: day.month(),
        day: day.day(),
    };
    days.map(entry).collect()
}

/// Sixteen exceptions, each with a calendar of these dates.
fn with_calendars(
    simulation: &mut Simulation,
    dates: &Dates,
    action: impl Fn(usize) -> ExceptionAction,
) {
    let exceptions = (0..16).map(|n| ScheduleException {
        name: format!("e{n}"),
        action: action(n),
        calendar_ref: Some(fivespot_api::CalendarRef {
            name: format!("c{n}"),
        }),
        start_date: None,
        end_date: None,
    });
    let exceptions = exceptions.collect();
    simulation.edit(|sm| sm.spec.schedule.exceptions = Some(exceptions));
    simulation.schedule.calendars =
        (0..16).map(|n| (format!("c{n}"), dates.clone())).collect();
}

fn cron(text: &str, lasts: &str, zone: &str) -> ScheduleSpec {
    ScheduleSpec {
        cron: Some(text.to_owned()),
        duration: Some(lasts.to_owned()),
        timezone: zone.to_owned(),
        ..ScheduleSpec::default()
    }
}

fn windows(lasts: &str, zone: &str) -> ScheduleSpec {
    let windows = (4..20).map(|hour| fivespot_api::ScheduleWindow {
        name: format!("w{hour}"),
        start: format!("{hour:02}:00"),
        duration: Some(lasts.to_owned()),
        ..fivespot_api::ScheduleWindow::default()
    });
    ScheduleSpec {
        windows: Some(windows.collect()),
        timezone: zone.to_owned(),
        ..ScheduleSpec::default()
    }
}

fn schedules() -> Vec<ScheduleSpec> {
    vec![
        cron("*/2 0-20 * * *", "1m", "UTC"),
        cron("0-58/3,1-58/3 * * * *", "1m", "Africa/Casablanca"),
        cron("*/2 * 1-30 * 1-6", "1m", "Australia/Lord_Howe"),
        cron("0 0 30 2 *", "1m", "America/New_York"),
        cron("0 0 * * 1", "168h", "America/New_York"),
        windows("1m", "Africa/Casablanca"),
        windows("168h", "America/New_York"),
    ]
}

fn overrides() -> Vec<Override> {
    let start = |n: i64| at(NOW) + SignedDuration::from_secs(n * 97 - 60);
    let modes = [OverrideMode::Hold, OverrideMode::Run, OverrideMode::Stop];
    let made = (0..256_i64).zip(modes.into_iter().cycle());
    made.map(|(n, mode)| Override {
        name: format!("o{n}"),
        mode,
        start: Some(start(n)),
        end: start(n) + SignedDuration::from_secs(61),
        created: None,
    })
    .collect()
}

#[test]
fn windows_of_a_minute_that_a_lead_time_joins_are_planned_in_few_steps() {
    let mut simulation = Simulation::new(Contract::V1Beta2, NOW);
    simulation.edit(|sm| {
        sm.spec.schedule = cron("*/2 0-20 * * *", "1m", "UTC");
        "2h".clone_into(&mut sm.spec.provisioning.lead_time);
        "24h".clone_into(&mut sm.spec.provisioning.minimum_run);
    });
    with_calendars(&mut simulation, &dates_before_today(328, 1), |_| {
        ExceptionAction::Stop
    });
    let (plan, steps) = planned(&simulation);
    assert!(steps < MAX_STEPS / 2 + LAST_SEARCHES, "{steps}");
    // The last window of the day is from 20:58 to 20:59.
    assert_eq!(plan.requeue_at, Some(at("2026-11-26T09:01:00Z")));
}

#[test]
fn no_schedule_costs_a_plan_more_than_its_steps() {
    let mut most = 0;
    for spec in schedules() {
        for (count, apart) in [(0, 1), (328, 1), (182, 2)] {
            for (lead, minimum, last_call) in [
                ("0s", "0s", "0s"),
                ("2h", "24h", "24h"),
                ("1m", "10m", "1h"),
            ] {
                for (policy, grace) in [
                    (EndPolicy::StartAtWindowEnd, "5m"),
                    (EndPolicy::CompleteByWindowEnd, "30s"),
                    (EndPolicy::CompleteByWindowEnd, "24h"),
                ] {
                    let mut simulation = Simulation::new(Contract::V1Beta2, NOW);
                    simulation.edit(|sm| {
                        sm.spec.schedule = spec.clone();
                        lead.clone_into(&mut sm.spec.provisioning.lead_time);
                        minimum.clone_into(&mut sm.spec.provisioning.minimum_run);
                        last_call.clone_into(&mut sm.spec.shutdown.last_call);
                        sm.spec.shutdown.end_policy = policy;
                        grace.clone_into(&mut sm.spec.graceful_shutdown_timeout);
                        sm.status = Some(long_unaccounted());
                    });
                    let dates = dates_before_today(count, apart);
                    with_calendars(&mut simulation, &dates, |n| {
                        if n % 2 == 0 {
                            ExceptionAction::Stop
                        } else {
                            ExceptionAction::Run
                        }
                    });
                    let (plan, alone) = planned(&simulation);
                    assert!(plan.requeue_at.is_none_or(|at| at > simulation.now));
                    simulation.schedule.overrides = overrides();
                    let (plan, overridden) = planned(&simulation);
                    assert!(plan.requeue_at.is_some_and(|at| at > simulation.now));
                    most = most.max(alone).max(overridden);
                }
            }
        }
    }
    assert!(most <= MAX_STEPS + LAST_SEARCHES, "{most}");
    assert!(
        most >= MAX_STEPS / 2,
        "{most}: the objects are too cheap to tell"
    );
}

/// Every other day is open by the windows and the others by calendars, so that the search for the end
/// of what is open goes through all of them.
fn always_open(simulation: &mut Simulation) {
    let every_other_day = |n: i32| fivespot_api::ScheduleWindow {
        name: format!("w{n}"),
        days: ["mon", "wed", "fri", "sun"].map(str::to_owned).to_vec(),
        start: "00:00".to_owned(),
        duration: Some("24h".to_owned()),
        ..fivespot_api::ScheduleWindow::default()
    };
    simulation.edit(|sm| {
        sm.spec.schedule = ScheduleSpec {
            windows: Some((0..16).map(every_other_day).collect()),
            timezone: "UTC".to_owned(),
            ..ScheduleSpec::default()
        };
    });
    with_calendars(simulation, &Dates::default(), |_| ExceptionAction::Run);
    let monday: jiff::civil::Date = "2026-03-02".parse().unwrap();
    for (n, dates) in (0_i64..).zip(simulation.schedule.calendars.values_mut()) {
        let weeks = (133 * n)..(133 * (n + 1));
        let days = weeks.flat_map(|week| [1, 3, 5].map(|day| 7 * week + day));
        let entry = |day: i64| DateEntry::Range {
            first: monday + day.days(),
            last: monday + day.days(),
        };
        *dates = days.map(entry).collect();
    }
}

#[test]
fn a_machine_stays_whose_schedule_has_an_end_too_far_for_the_steps() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    always_open(&mut simulation);
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Active), "{:?}", status.message);
    assert!(status.in_schedule);
}

#[test]
fn a_machine_with_a_jitter_is_made_although_its_schedule_ends_too_far_ahead() {
    for policy in [EndPolicy::StartAtWindowEnd, EndPolicy::CompleteByWindowEnd] {
        let mut memory = Memory::default();
        let mut simulation = Simulation::new(Contract::V1Beta2, NOON);
        always_open(&mut simulation);
        simulation.edit(|sm| {
            sm.spec.shutdown.end_policy = policy;
            sm.spec.class = Some(ResolvedClass {
                jitter: SignedDuration::from_mins(30),
                ..ResolvedClass::default()
            });
        });
        simulation.run_until(&mut memory, EVENING);
        let status = simulation.status();
        assert_eq!(status.phase, Some(Phase::Active), "{policy:?}");
    }
}

/// A status that was last written more than a year ago.
fn long_unaccounted() -> fivespot_api::ScheduledMachineStatus {
    let since: Timestamp = at("2025-10-01T00:00:00Z");
    fivespot_api::ScheduledMachineStatus {
        usage: Some(fivespot_api::Usage {
            accounted_time: Some(since),
            accounted_state: Some(fivespot_api::AccountedState::Active),
            ..fivespot_api::Usage::default()
        }),
        ..fivespot_api::ScheduledMachineStatus::default()
    }
}
