//! What users read: the status' message, and the events.

use fivespot_api::Phase;
use fivespot_api::condition::{self, ConditionType};
use fivespot_capi::Contract;
use fivespot_plan::Memory;
use serde_json::json;

use crate::simulation::{NAME, Simulation, at, in_service, pod};

#[test]
fn the_messages_of_a_working_day() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta2, "2026-03-06T08:00:00Z");
    simulation.run_until(&mut memory, "2026-03-06T12:00:00Z");
    simulation.pods = vec![pod("a"), pod("b")];
    simulation.budget_until = Some(at("2026-03-06T18:01:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T20:00:00Z");
    insta::assert_snapshot!(simulation.reported.join("\n"), @r#"
    2026-03-06T08:00:00Z Inactive no machine is wanted until 2026-03-06T09:00:00Z
    2026-03-06T09:00:00Z Provisioning creating Machine worker
    2026-03-06T09:00:00Z Provisioning waiting for Machine worker to get a Node
    2026-03-06T09:00:00Z MachineRunning Node worker is in service until 2026-03-06T18:00:00Z
    2026-03-06T18:00:00Z ShuttingDown the window has closed; Machine worker is removed by 2026-03-06T18:05:00Z at the latest
    2026-03-06T18:00:02Z ShuttingDown evicting 2 pods from Node worker; default/a is not evicted: it would violate the disruption budget
    2026-03-06T18:01:00Z ShuttingDown the window has closed; Machine worker is removed by 2026-03-06T18:05:00Z at the latest
    2026-03-06T18:01:00Z Inactive no machine is wanted until 2026-03-09T09:00:00Z
    "#);
    let events: Vec<_> = simulation
        .events
        .iter()
        .map(|event| format!("{} {} {}", event.kind.as_str(), event.reason, event.note))
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r#"
    Normal ScheduleInactive Inactive: no machine is wanted until 2026-03-06T09:00:00Z
    Normal ScheduleActive Inactive -> Pending: creating Machine worker
    Normal MachineCreated Pending -> Active: Node worker is in service until 2026-03-06T18:00:00Z
    Normal GracePeriodActive Active -> ShuttingDown: the window has closed; Machine worker is removed by 2026-03-06T18:05:00Z at the latest
    Normal MachineDeleted ShuttingDown -> Inactive: no machine is wanted until 2026-03-09T09:00:00Z
    "#);
}

/// Sets a message of Cluster API on the Machine.
fn report(simulation: &mut Simulation, message: &str) {
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "NotReady", "message": message,
        "lastTransitionTime": "2026-03-06T12:00:00Z",
    });
    simulation.get_mut("Machine").unwrap()["status"]["conditions"] = json!([condition]);
}

#[test]
fn reports_of_cluster_api_are_written_together_after_two_seconds() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let before = simulation.count("Status");
    for step in ["first", "second", "third", "last"] {
        report(&mut simulation, step);
        simulation.settle(&mut memory);
    }
    assert_eq!(simulation.count("Status"), before + 1, "the first alone");
    simulation.run_until(&mut memory, "2026-03-06T12:00:01Z");
    assert_eq!(simulation.count("Status"), before + 1, "not yet");
    simulation.run_until(&mut memory, "2026-03-06T12:00:10Z");
    assert_eq!(simulation.count("Status"), before + 2, "the last, once");
    let conditions = simulation.status().conditions;
    let reported = condition::find(&conditions, ConditionType::MachineReady);
    assert_eq!(reported.unwrap().message, "last");
}

#[test]
fn a_change_of_phase_is_written_at_once() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2026-03-06T18:01:00Z"));
    report(&mut simulation, "something");
    simulation.settle(&mut memory);
    simulation.edit(|object| object.spec.kill_switch = true);
    simulation.settle(&mut memory);
    let (reported, phase) = simulation.phases.last().unwrap();
    assert_eq!(
        (*reported, *phase),
        (at("2026-03-06T12:00:00Z"), Phase::Terminated)
    );
}

#[test]
fn the_messages_of_problems() {
    let open = "2026-03-06T09:00:00Z";
    let mut reported = Vec::new();
    let mut change = |change: fn(&mut Simulation)| {
        let mut simulation = Simulation::new(Contract::V1Beta2, open);
        change(&mut simulation);
        simulation.settle(&mut Memory::default());
        let phase = simulation.status().phase.unwrap();
        reported.push(format!(
            "{phase} {}",
            simulation.reported.last().unwrap().replace(open, "").trim()
        ));
    };
    change(|simulation| simulation.objects.clear());
    change(|simulation| simulation.get_mut("Cluster").unwrap()["status"] = json!({}));
    change(|simulation| {
        simulation.put(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
            "metadata": { "name": NAME },
        }));
    });
    change(|simulation| {
        simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-25".to_owned()]);
    });
    change(|simulation| {
        simulation.edit(|sm| sm.spec.schedule.timezone = "Mars/Olympus".to_owned());
    });
    change(|simulation| simulation.edit(|sm| sm.spec.schedule.days_of_week.clear()));
    change(|simulation| simulation.edit(|sm| sm.spec.cluster_name.clear()));
    change(|simulation| simulation.edit(|sm| sm.spec.schedule.enabled = false));
    change(|simulation| simulation.edit(|sm| sm.spec.kill_switch = true));
    change(|simulation| {
        simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    });
    insta::assert_snapshot!(reported.join("\n"), @r#"
    Pending ClusterNotFound there is no Cluster prod in this namespace; create it, or correct spec.clusterName
    Pending ClusterNotReady Cluster prod is not ready for machines: its infrastructure is not ready
    Error NameTaken a RemoteMachine worker exists and is not owned by this ScheduledMachine; rename one of the two
    Error InvalidHours spec.schedule: hours[0]: expected an hour from 0 to 23 at byte 2, found '25'; nothing is changed
    Error UnknownTimeZone spec.schedule: time zone: 'Mars/Olympus' is not in the tz database; use an IANA name such as 'Europe/Zurich'; nothing is changed
    Error Incomplete spec.schedule: days and hours: both must be given, and days are missing; nothing is changed
    Error InvalidSpec spec.clusterName: must be set, unless classRef names a class
    Disabled Disabled the schedule is disabled
    Terminated Terminated no machine runs while the kill switch is set; set spec.killSwitch to false to return to service
    Pending Paused the Cluster is paused: nothing is changed until it is resumed
    "#);
}

#[test]
fn a_cancelled_shutdown_and_a_return_after_a_problem_create_no_machine() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
    simulation.settle(&mut memory);
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.settle(&mut memory);
    simulation.edit(|sm| sm.spec.schedule.enabled = true);
    simulation.settle(&mut memory);
    let reported: Vec<_> = simulation
        .events
        .iter()
        .skip(3)
        .map(|event| format!("{} {}", event.reason, event.action))
        .collect();
    insta::assert_snapshot!(reported.join("\n"), @r"
    GracePeriodActive PhaseTransitionToShuttingDown
    MachineRunning PhaseTransitionToActive
    ScheduleDisabled PhaseTransitionToDisabled
    MachineRunning PhaseTransitionToActive
    ");
}
