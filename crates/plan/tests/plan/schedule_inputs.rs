//! The effects of overrides, exceptions, lead time and the end policy on a machine.

use std::sync::Arc;

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{
    EndPolicy, OverrideMode, Phase, Resolved, ScheduleException, ScheduledMachine,
    SharedSchedule, Unfollowable,
};
use fivespot_capi::Contract;
use fivespot_plan::{Memory, Step, Unknown};
use fivespot_schedule::{DateEntry, Override};

use crate::simulation::{
    BEFORE, CLOSES, EVENING, MONDAY, NOON, OPENS, Simulation, at, in_service, pod,
};

fn overriding(mode: OverrideMode, start: Option<&str>, end: &str) -> Override {
    Override {
        name: "it".to_owned(),
        mode: mode.into(),
        start: start.map(at),
        end: at(end),
        created: None,
    }
}

fn reason(simulation: &Simulation, kind: ConditionType) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, kind).unwrap();
    format!("{} {}", found.status, found.reason)
}

fn is_stalled(simulation: &Simulation) -> bool {
    condition::find(&simulation.status().conditions, ConditionType::Stalled).is_some()
}

#[test]
fn a_run_override_keeps_the_machine_beyond_its_window_to_its_own_end() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let until = "2026-03-06T19:30:00Z";
    simulation.schedule.overrides =
        vec![overriding(OverrideMode::Run, Some(NOON), until)];
    simulation.run_until(&mut memory, CLOSES);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(
        reason(&simulation, ConditionType::Scheduled),
        "True OverrideRun"
    );
    assert_eq!(simulation.status().in_force.unwrap().name, "it");
    assert_eq!(simulation.status().next_cleanup, Some(at(until)));
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(until));
    assert_eq!(simulation.status().in_force, None);
}

#[test]
fn a_stop_override_shuts_the_machine_down_until_its_end() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let (from, until) = ("2026-03-06T13:00:00Z", "2026-03-06T15:00:00Z");
    simulation.schedule.overrides =
        vec![overriding(OverrideMode::Stop, Some(from), until)];
    simulation.run_until(&mut memory, "2026-03-06T14:00:00Z");
    assert_eq!(simulation.first("DeleteMachine"), at(from));
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    assert_eq!(
        reason(&simulation, ConditionType::Scheduled),
        "False OverrideStop"
    );
    assert_eq!(simulation.status().next_activation, Some(at(until)));
    simulation.run_until(&mut memory, "2026-03-06T16:00:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn a_holiday_is_reported_while_the_machine_is_closed_for_weeks() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    let schedule = serde_json::json!({
        "cron": "0 9 1 * *",
        "exceptions": [{"name": "holiday", "action": "Stop",
                        "startDate": "2026-03-25", "endDate": "2026-03-25"}],
    });
    simulation.edit(|sm| sm.spec.schedule = serde_json::from_value(schedule).unwrap());
    for (until, expected) in [
        ("2026-03-24T23:59:59Z", "False ScheduleInactive"),
        ("2026-03-25T00:00:00Z", "False ExceptionStop"),
        ("2026-03-26T00:00:00Z", "False ScheduleInactive"),
    ] {
        simulation.run_until(&mut memory, until);
        let found = reason(&simulation, ConditionType::Scheduled);
        assert_eq!(found, expected, "{until}");
    }
}

#[test]
fn under_hold_nothing_is_created_or_shut_down() {
    let until = "2026-03-06T19:00:00Z";
    let hold = || vec![overriding(OverrideMode::Hold, None, until)];
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = hold();
    simulation.run_until(&mut memory, "2026-03-06T18:30:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(
        reason(&simulation, ConditionType::Ready),
        "True MachineRunning"
    );
    assert_eq!(
        reason(&simulation, ConditionType::Scheduled),
        "Unknown OverrideHold"
    );
    assert_eq!(simulation.status().shutdown, None);
    assert_eq!(simulation.status().next_cleanup, Some(at(until)));
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(until));

    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.schedule.overrides = hold();
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.kinds(), [""; 0]);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    assert_eq!(reason(&simulation, ConditionType::Ready), "True Inactive");
}

#[test]
fn a_shutdown_that_has_begun_completes_under_hold_and_is_not_cancelled() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert!(simulation.status().shutdown.is_some());
    simulation.schedule.overrides = vec![
        overriding(OverrideMode::Hold, None, EVENING),
        overriding(OverrideMode::Run, None, EVENING),
    ];
    simulation.run_until(&mut memory, "2026-03-06T18:30:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:05:00Z")
    );
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn the_kill_switch_and_a_disabled_schedule_precede_an_override() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = vec![overriding(OverrideMode::Hold, None, MONDAY)];
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));

    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = vec![overriding(OverrideMode::Stop, None, MONDAY)];
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(simulation.status().in_force, None);
}

fn on_holidays(simulation: &mut Simulation) {
    simulation.edit(|sm| {
        let exception = serde_json::json!({
            "name": "holidays", "action": "Stop", "calendarRef": {"name": "zurich"},
        });
        let exception: ScheduleException = serde_json::from_value(exception).unwrap();
        sm.spec.schedule.exceptions = Some(vec![exception]);
    });
}

#[test]
fn on_the_dates_of_a_calendar_no_machine_is_created() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    on_holidays(&mut simulation);
    let friday = DateEntry::parse("2026-03-06").unwrap();
    let dates = [friday].into_iter().collect();
    simulation
        .schedule
        .calendars
        .insert("zurich".to_owned(), dates);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    assert_eq!(
        reason(&simulation, ConditionType::Scheduled),
        "False ExceptionStop"
    );
    assert_eq!(simulation.status().next_activation, Some(at(MONDAY)));
}

#[test]
fn a_calendar_that_is_missing_is_reported_and_the_schedule_applies() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    on_holidays(&mut simulation);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(
        reason(&simulation, ConditionType::Ready),
        "True CalendarNotFound"
    );
    let references = reason(&simulation, ConditionType::ReferencesValid);
    assert_eq!(references, "False CalendarNotFound");
    let mut events = simulation.events.iter();
    assert!(events.any(|event| event.reason == "CalendarNotFound"));
    assert!(!is_stalled(&simulation));
}

#[test]
fn a_lead_time_creates_the_machine_before_the_window_opens() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.edit(|sm| sm.spec.provisioning.lead_time = "10m".to_owned());
    simulation.run_until(&mut memory, NOON);
    assert_eq!(
        simulation.first("CreateMachine"),
        at("2026-03-06T08:50:00Z")
    );
    let status = simulation.status();
    assert_eq!(status.lead_time.as_deref(), Some("10m"));
    let last = status.last_provisioning.unwrap();
    assert_eq!(last.start_time, at("2026-03-06T08:50:00Z"));
    assert!(last.ready_time.is_some_and(|ready| ready < at(OPENS)));
}

#[test]
fn a_machine_whose_window_is_postponed_before_it_opens_is_not_told_that_it_has_closed() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, "2026-03-06T08:00:00Z"),
        Memory::default(),
    );
    simulation.edit(|sm| "30m".clone_into(&mut sm.spec.provisioning.lead_time));
    simulation.run_until(&mut memory, "2026-03-06T08:45:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["12-17".to_owned()]);
    simulation.run_until(&mut memory, "2026-03-06T08:50:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T08:45:00Z")
    );
    let says = |what: &str| simulation.reported.iter().any(|it| it.contains(what));
    assert!(says("no window is open; Machine worker"));
    assert!(!says("the window has closed"));
}

#[test]
fn no_machine_is_created_for_less_than_the_minimum_run() {
    let late = "2026-03-06T17:45:00Z";
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, late), Memory::default());
    simulation.edit(|sm| sm.spec.provisioning.minimum_run = "30m".to_owned());
    simulation.run_until(&mut memory, EVENING);
    assert!(
        simulation
            .log
            .iter()
            .all(|(_, step)| step != "CreateMachine")
    );
    let first = simulation.reported.first().unwrap();
    assert!(first.contains("minimumRun"), "{first}");
    assert_eq!(simulation.status().next_activation, Some(at(MONDAY)));
}

#[test]
fn with_complete_by_window_end_a_machine_is_deleted_by_the_end_of_its_window() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T17:57:00Z");
    let shutdown = simulation.status().shutdown.unwrap();
    assert_eq!(shutdown.started_at, at("2026-03-06T17:55:00Z"));
    assert_eq!(shutdown.window_end, Some(at(CLOSES)));
    assert_eq!(shutdown.deadline, at(CLOSES));
    // A shorter grace makes the machine needed again, for the same window: it is still shut down.
    simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "1m".to_owned());
    simulation.run_until(&mut memory, EVENING);
    assert!(simulation.first("DeleteMachine") <= at(CLOSES));
    assert!(
        simulation
            .log
            .iter()
            .all(|(_, step)| step != "UncordonNode")
    );
}

#[test]
fn a_machine_that_still_exists_at_the_end_of_its_window_has_left_late() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd);
    simulation.run_until(&mut memory, "2026-03-06T17:54:00Z");
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:10:00Z");
    assert!(simulation.reported.iter().any(|line| {
        line.contains("the window closes at 2026-03-06T18:00:00Z; Machine worker")
    }));
    simulation.is_moving = true;
    simulation.run_until(&mut memory, EVENING);
    let late = simulation.events.iter().find(|of| of.reason == "LeftLate");
    assert_eq!(
        late.unwrap().note,
        "the machine was removed 10m after the end of its window at 2026-03-06T18:00:00Z; a \
         longer spec.gracefulShutdownTimeout starts its shutdown earlier"
    );
}

#[test]
fn the_message_of_a_held_machine_names_the_end_of_the_hold() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = vec![overriding(OverrideMode::Hold, None, EVENING)];
    simulation.settle(&mut memory);
    assert_eq!(
        simulation.status().message.unwrap(),
        "Node worker is in service; override it holds the machine until 2026-03-06T20:00:00Z"
    );
}

#[test]
fn the_cause_of_a_shutdown_is_reported_while_it_lasts() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = vec![overriding(OverrideMode::Stop, None, MONDAY)];
    simulation.settle(&mut memory);
    let condition_text = |simulation: &Simulation, part: &str| {
        let reported = simulation.reported.iter();
        reported.filter(|line| line.contains(part)).count()
    };
    assert_eq!(
        condition_text(&simulation, "override it stops the machine; Machine worker"),
        1
    );
    assert_eq!(condition_text(&simulation, "the window has closed"), 0);

    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    on_holidays(&mut simulation);
    let friday = DateEntry::parse("2026-03-06").unwrap();
    let dates = [friday].into_iter().collect();
    simulation
        .schedule
        .calendars
        .insert("zurich".to_owned(), dates);
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation, "exception holidays applies today"),
        1
    );
}

#[test]
fn a_node_that_is_not_ready_in_time_is_stalled_and_not_replaced() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.edit(|sm| sm.spec.provisioning.timeout = "10m".to_owned());
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T09:09:00Z");
    assert!(!is_stalled(&simulation));
    simulation.run_until(&mut memory, "2026-03-06T09:11:00Z");
    assert_eq!(
        reason(&simulation, ConditionType::Stalled),
        "True ProvisioningTimeout"
    );
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    let deleted = Step::DeleteMachine;
    assert!(
        simulation
            .log
            .iter()
            .all(|(_, step)| *step != format!("{deleted:?}"))
    );
    let mut events = simulation.events.iter();
    assert!(events.any(|event| event.reason == "ProvisioningTimeout"));
    simulation.is_moving = true;
    simulation.run_until(&mut memory, NOON);
    assert!(!is_stalled(&simulation));
}

#[test]
fn a_cluster_that_is_missing_is_stalled_while_a_machine_is_needed() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    let key = ("Cluster".to_owned(), "prod".to_owned());
    simulation.objects.remove(&key);
    simulation.run_until(&mut memory, "2026-03-06T08:30:00Z");
    assert!(!is_stalled(&simulation));
    simulation.run_until(&mut memory, NOON);
    assert_eq!(
        reason(&simulation, ConditionType::Stalled),
        "True ClusterNotFound"
    );
}

#[test]
fn nothing_is_created_while_the_stored_definition_is_outdated() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    let lacks = Some("it lacks status.shutdown".to_owned());
    simulation.outdated_crd.clone_from(&lacks);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.kinds(), [""; 0]);
    assert_eq!(
        reason(&simulation, ConditionType::Ready),
        "False CustomResourceDefinitionOutdated"
    );
    let mut events = simulation.events.iter();
    assert!(
        events.any(|of| of.reason == "CustomResourceDefinitionOutdated"
            && of.note.contains("it lacks status.shutdown"))
    );
    simulation.outdated_crd = None;
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    // The existing machine stays, and is shut down as usual.
    simulation.outdated_crd = lacks;
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert_eq!(simulation.kinds(), [""; 0]);
}

/// Reading overrides is forbidden, as with the roles of an earlier version.
fn forbid_overrides(simulation: &mut Simulation) {
    let message = "scheduleoverrides is forbidden".to_owned();
    simulation.schedule.unknown = Some(Unknown::Forbidden { message });
}

#[test]
fn while_overrides_cannot_be_read_the_schedule_neither_creates_nor_ends_a_machine() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    forbid_overrides(&mut simulation);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.kinds(), [""; 0]);
    assert_eq!(reason(&simulation, ConditionType::Ready), "False Forbidden");

    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    forbid_overrides(&mut simulation);
    simulation.run_until(&mut memory, EVENING);
    assert!(
        simulation
            .log
            .iter()
            .all(|(_, step)| step != "DeleteMachine")
    );
    assert_eq!(reason(&simulation, ConditionType::Ready), "False Forbidden");
    simulation.schedule.unknown = None;
    simulation.settle(&mut memory);
    assert_eq!(simulation.first("DeleteMachine"), at(EVENING));
}

#[test]
fn while_overrides_cannot_be_read_the_kill_switch_and_a_deletion_remove_the_machine() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    forbid_overrides(&mut simulation);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    assert_eq!(simulation.kinds(), [""; 0]);

    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    forbid_overrides(&mut simulation);
    simulation.delete_sm();
    simulation.settle(&mut memory);
    assert!(simulation.sm.is_none());
    assert_eq!(simulation.kinds(), [""; 0]);
}

#[test]
fn while_overrides_cannot_be_read_a_shutdown_that_could_be_cancelled_waits() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert!(simulation.status().shutdown.is_some());
    forbid_overrides(&mut simulation);
    simulation.run_until(&mut memory, "2026-03-06T18:30:00Z");
    assert!(
        simulation
            .log
            .iter()
            .all(|(_, step)| step != "DeleteMachine")
    );
    simulation.schedule.unknown = None;
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

/// A schedule that machines follow, with these hours on weekdays.
fn shared(hours: &str) -> Resolved {
    let spec = serde_json::json!({
        "daysOfWeek": ["mon-fri"], "hoursOfDay": [hours], "timezone": "UTC",
    });
    let schedule = SharedSchedule::of_spec("TimeBasedSpotSchedule", &spec).unwrap();
    Resolved::Shared {
        schedule: Arc::new(schedule),
        generation: Some(1),
    }
}

/// Whoever edits a schedule that many follow must not shut all of their machines down by a mistake.
#[test]
fn what_was_decided_last_holds_on_while_the_followed_schedule_cannot_be_evaluated() {
    let unpublished = |published| Resolved::Provided {
        published: Err(published),
        is_flapping: false,
    };
    let not_ready = Unfollowable::NotReady("its calendar is missing".to_owned());
    let held = "what was decided last holds on";
    for (resolved, reason, message) in [
        (
            shared("9-24"),
            "ProviderNotReady",
            format!(
                "TimeBasedSpotSchedule office cannot be evaluated, {held}: \
                 spec.hoursOfDay[0]: hours must be from 0 to 23"
            ),
        ),
        (
            unpublished(not_ready),
            "ProviderNotReady",
            format!(
                "TimeBasedSpotSchedule office is not ready, {held}: its calendar is missing"
            ),
        ),
        (
            unpublished(Unfollowable::ActiveMissing),
            "StatusActiveMissing",
            format!(
                "TimeBasedSpotSchedule office has not published status.active, {held}"
            ),
        ),
    ] {
        let mut memory = Memory::default();
        let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
        let follows = |resolved: Resolved| {
            let follower = serde_json::json!({
                "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
                "kind": "TimeBasedSpotSchedule", "name": "office", "timezone": "UTC",
            });
            move |object: &mut ScheduledMachine| {
                object.spec.schedule = serde_json::from_value(follower).unwrap();
                object.spec.schedule.resolved = Some(resolved);
            }
        };
        simulation.edit(follows(shared("9-16")));
        simulation.run_until(&mut memory, NOON);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        simulation.edit(follows(resolved));
        simulation.run_until(&mut memory, EVENING);
        assert_eq!(simulation.status().phase, Some(Phase::Active), "{reason}");
        let conditions = simulation.status().conditions;
        let found =
            condition::find(&conditions, ConditionType::SpotScheduleResolved).unwrap();
        assert_eq!((found.reason.as_str(), &found.message), (reason, &message));
        let scheduled = condition::find(&conditions, ConditionType::Scheduled).unwrap();
        let until = "open until TimeBasedSpotSchedule office can be evaluated again";
        assert_eq!(scheduled.message, until);
        simulation.edit(follows(shared("9-16")));
        simulation.run_until(&mut memory, "2026-03-06T22:00:00Z");
        assert_eq!(simulation.status().phase, Some(Phase::Inactive), "{reason}");
    }
}
