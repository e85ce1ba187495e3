//! Machines that are made on a host of their class.

use std::sync::Arc;

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::host_claim::{Holder, HostClaim};
use fivespot_api::{HostPool, Phase, ResolvedClass, name};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use serde_json::{Value, json};

use crate::simulation::{BEFORE, CLOSES, EVENING, MONDAY, NOON, Simulation, at};

fn pool(hosts: &[&str]) -> Option<Arc<HostPool>> {
    let host = |name: &&str| {
        let patch = json!({"address": format!("10.0.0.{name}"), "port": null});
        (format!("desk-{name}"), patch.as_object().cloned().unwrap())
    };
    (!hosts.is_empty()).then(|| Arc::new(hosts.iter().map(host).collect()))
}

/// A machine of a class with these hosts, before its window.
fn before(hosts: &[&str], named: Option<&str>) -> Simulation {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    simulation.edit(|machine| {
        machine
            .spec
            .infrastructure_spec
            .spec
            .insert("port".to_owned(), json!(22));
        machine.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            host: named.map(str::to_owned),
            pool: pool(hosts),
            ..ResolvedClass::default()
        });
    });
    simulation
}

fn set_hosts(simulation: &mut Simulation, hosts: &[&str]) {
    let hosts = pool(hosts);
    simulation.edit(|machine| machine.spec.class.as_mut().unwrap().pool = hosts);
}

/// The Lease of another machine.
fn lease_of(host: &str, name: &str) -> Value {
    let claim = HostClaim {
        class: "desks".to_owned(),
        host: host.to_owned(),
        holder: Holder {
            namespace: "team-b".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-of-{name}"),
        },
    };
    claim.lease("5spot-system")
}

fn lease(simulation: &Simulation, host: &str) -> Option<HostClaim> {
    let id = ("Lease".to_owned(), name::host_claim("desks", host));
    simulation.objects.get(&id).and_then(HostClaim::read)
}

fn delete_lease(simulation: &mut Simulation, host: &str) {
    let id = ("Lease".to_owned(), name::host_claim("desks", host));
    simulation.objects.remove(&id);
}

fn ready(simulation: &Simulation) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::Ready).unwrap();
    format!("{} {}: {}", found.status, found.reason, found.message)
}

fn steps(simulation: &Simulation) -> Vec<&str> {
    simulation
        .log
        .iter()
        .map(|(_, step)| step.as_str())
        .collect()
}

fn place(simulation: &Simulation, step: &str) -> usize {
    let found = steps(simulation).iter().position(|of| *of == step);
    found.unwrap_or_else(|| panic!("no {step} in {:?}", simulation.log))
}

#[test]
fn a_host_is_claimed_then_recorded_then_used_and_given_back_in_the_reverse_order() {
    let mut simulation = before(&["2", "1"], None);
    let mut memory = Memory::default();
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().host, None, "before the window");
    let idle_hash = simulation.status().spec_hash.unwrap();
    simulation.run_until(&mut memory, NOON);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Active));
    assert_eq!(status.host.as_deref(), Some("desk-1"));
    assert_eq!(lease(&simulation, "desk-1").unwrap().holder.uid, "sm-1");
    let made = simulation.get("RemoteMachine").unwrap();
    assert_eq!(made["spec"], json!({"address": "10.0.0.1"}));
    let hash = &made["metadata"]["annotations"][name::SPEC_HASH_ANNOTATION];
    assert_eq!(*hash, json!(status.spec_hash));
    assert_ne!(*hash, json!(idle_hash));
    assert!(place(&simulation, "ClaimHost") < place(&simulation, "CreateBootstrap"));
    let between = &steps(&simulation)
        [place(&simulation, "ClaimHost")..place(&simulation, "CreateBootstrap")];
    assert_eq!(
        between,
        ["ClaimHost", "Status"],
        "one write records the host"
    );
    simulation.run_until(&mut memory, EVENING);
    let status = simulation.status();
    assert_eq!((status.host, status.spec_hash), (None, Some(idle_hash)));
    assert_eq!(simulation.kinds(), [""; 0]);
    assert!(place(&simulation, "DeleteMachine") < place(&simulation, "ReleaseHost"));
}

#[test]
fn a_machine_for_which_no_host_is_free_is_pending_and_takes_the_next_one() {
    let mut simulation = before(&["1"], None);
    simulation.put(lease_of("desk-1", "other"));
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    assert_eq!(
        ready(&simulation),
        "False NoHostFree: no host of ScheduledMachineClass desks is free; the machine takes the \
         next one"
    );
    assert_eq!(simulation.count("CreateBootstrap"), 0);
    delete_lease(&mut simulation, "desk-1");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().host.as_deref(), Some("desk-1"));
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn a_host_that_is_named_is_refused_with_the_name_of_its_holder() {
    let mut simulation = before(&["1", "2"], Some("desk-2"));
    simulation.put(lease_of("desk-2", "other"));
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    assert_eq!(
        ready(&simulation),
        "False HostTaken: host desk-2 of ScheduledMachineClass desks is used by ScheduledMachine \
         team-b/other"
    );
    delete_lease(&mut simulation, "desk-2");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().host.as_deref(), Some("desk-2"));
}

#[test]
fn a_crash_between_any_two_writes_leaves_one_host_or_none() {
    for writes in 0..30 {
        let mut simulation = before(&["1", "2"], None);
        simulation.writes_left = writes;
        simulation.run_until(&mut Memory::default(), EVENING);
        let is_over = simulation.writes_left > 0;
        simulation.writes_left = usize::MAX;
        // The other operator knows nothing of the first one.
        let mut memory = Memory::default();
        for end in [NOON, EVENING, MONDAY, "2026-03-09T12:00:00Z"] {
            if at(end) < simulation.now {
                continue;
            }
            simulation.run_until(&mut memory, end);
            let has_machine = simulation.get("Machine").is_some();
            let held =
                ["desk-1", "desk-2"].map(|host| lease(&simulation, host).is_some());
            let held = held.into_iter().filter(|is_held| *is_held).count();
            assert_eq!(held, usize::from(has_machine), "{writes} writes, {end}");
            assert_eq!(simulation.status().host.is_some(), has_machine, "{writes}");
        }
        if is_over {
            return;
        }
    }
    panic!("a window takes fewer writes");
}

#[test]
fn a_claim_that_somebody_deletes_is_made_again() {
    let mut simulation = before(&["1", "2"], None);
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    delete_lease(&mut simulation, "desk-1");
    simulation.settle(&mut memory);
    assert_eq!(lease(&simulation, "desk-1").unwrap().holder.name, "worker");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    // Also while the machine leaves, so that its end tells who waits for the host.
    delete_lease(&mut simulation, "desk-1");
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.count("ClaimHost"), 3);
    assert_eq!(simulation.kinds(), [""; 0]);
}

#[test]
fn a_host_that_is_removed_stays_until_its_machine_leaves() {
    let mut simulation = before(&["1", "2"], None);
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    set_hosts(&mut simulation, &["2"]);
    simulation.settle(&mut memory);
    let said = ready(&simulation);
    assert!(said.starts_with("True PendingChanges"), "{said}");
    assert_eq!(simulation.status().host.as_deref(), Some("desk-1"));
    assert!(lease(&simulation, "desk-1").is_some());
    simulation.run_until(&mut memory, EVENING);
    assert!(lease(&simulation, "desk-1").is_none());
    simulation.run_until(&mut memory, "2026-03-09T12:00:00Z");
    assert_eq!(simulation.status().host.as_deref(), Some("desk-2"));
}

#[test]
fn a_host_that_is_removed_before_its_machine_exists_is_given_back_for_another() {
    for writes in [4, 5, 6] {
        let mut simulation = before(&["1", "2"], None);
        simulation.writes_left = writes;
        simulation.run_until(&mut Memory::default(), NOON);
        assert!(simulation.get("Machine").is_none(), "{:?}", simulation.log);
        simulation.writes_left = usize::MAX;
        set_hosts(&mut simulation, &["2"]);
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, NOON);
        assert_eq!(
            simulation.status().host.as_deref(),
            Some("desk-2"),
            "{writes}"
        );
        assert!(lease(&simulation, "desk-1").is_none(), "{writes}");
        let made = simulation.get("RemoteMachine").unwrap();
        assert_eq!(made["spec"]["address"], "10.0.0.2");
    }
}

#[test]
fn a_machine_whose_class_is_gone_gives_its_host_back_when_it_leaves() {
    let mut simulation = before(&["1"], None);
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    simulation.edit(|machine| {
        machine.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            problem: Some(fivespot_api::ClassProblem::NotFound),
            ..ResolvedClass::default()
        });
    });
    simulation.settle(&mut memory);
    assert!(lease(&simulation, "desk-1").is_some());
    assert_eq!(simulation.status().host.as_deref(), Some("desk-1"));
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert_eq!(simulation.status().host, None);
    assert_eq!(simulation.kinds(), [""; 0]);
}

#[test]
fn a_deleted_machine_and_a_killed_one_give_their_host_back() {
    for is_deleted in [true, false] {
        let mut simulation = before(&["1"], None);
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, NOON);
        if is_deleted {
            simulation.delete_sm();
        } else {
            simulation.edit(|machine| machine.spec.kill_switch = true);
        }
        simulation.run_until(&mut memory, EVENING);
        assert_eq!(simulation.kinds(), [""; 0]);
        assert_eq!(simulation.sm.is_none(), is_deleted);
    }
}

#[test]
fn a_claim_that_is_refused_is_reported_and_tried_again() {
    let mut simulation = before(&["1"], None);
    simulation.failing = Some((Step::ClaimHost, Cause::Forbidden));
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    let said = ready(&simulation);
    assert!(
        said.contains("cannot change the claim of a host: the API server refuses it"),
        "{said}"
    );
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn a_machine_that_names_another_host_while_it_runs_moves_at_its_next_activation() {
    let mut simulation = before(&["1", "2"], Some("desk-1"));
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    simulation.edit(|machine| {
        machine.spec.class.as_mut().unwrap().host = Some("desk-2".to_owned());
    });
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().host.as_deref(), Some("desk-1"));
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.run_until(&mut memory, "2026-03-09T12:00:00Z");
    assert_eq!(simulation.status().host.as_deref(), Some("desk-2"));
    assert!(lease(&simulation, "desk-1").is_none());
}

#[test]
fn a_machine_that_was_restored_without_its_status_has_the_host_that_it_was_made_on() {
    let mut simulation = before(&["1", "2"], None);
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    delete_lease(&mut simulation, "desk-1");
    simulation.edit(|machine| machine.status = None);
    simulation.settle(&mut Memory::default());
    assert_eq!(simulation.status().host.as_deref(), Some("desk-1"));
    assert!(lease(&simulation, "desk-1").is_some());
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.kinds(), [""; 0]);
}
