//! What providers need of the Machine.

use fivespot_api::ScheduledMachine;
use fivespot_plan::Memory;
use serde_json::{Value, json};

use crate::world::{CONTRACTS, OPENS, World};

/// Sets a member of the spec, given as a JSON pointer below it.
fn ask_for(world: &mut World, pointer: &str, value: &Value) {
    world.edit(|object| {
        let mut json = serde_json::to_value(&*object).unwrap();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        json["spec"].pointer_mut(parent).unwrap()[member] = value.clone();
        *object = serde_json::from_value::<ScheduledMachine>(json).unwrap();
    });
}

#[test]
fn version_and_failure_domain_reach_the_machine_in_both_contracts() {
    for contract in CONTRACTS {
        let mut world = World::new(contract, OPENS);
        ask_for(&mut world, "/machineTemplate/version", &json!("v1.31.2"));
        ask_for(
            &mut world,
            "/machineTemplate/failureDomain",
            &json!("zone-1"),
        );
        world.settle(&mut Memory::default());
        let spec = &world.get("Machine").unwrap()["spec"];
        assert_eq!(spec["version"], "v1.31.2", "{contract:?}");
        assert_eq!(spec["failureDomain"], "zone-1", "{contract:?}");
    }
}

#[test]
fn a_machine_without_version_and_failure_domain_has_neither_field() {
    for contract in CONTRACTS {
        let mut world = World::new(contract, OPENS);
        world.settle(&mut Memory::default());
        let spec = world.get("Machine").unwrap()["spec"].as_object().unwrap();
        assert!(!spec.contains_key("version"), "{contract:?}");
        assert!(!spec.contains_key("failureDomain"), "{contract:?}");
    }
}

#[test]
fn a_new_version_waits_for_the_next_activation() {
    let mut memory = Memory::default();
    let mut world = World::new(CONTRACTS[1], OPENS);
    ask_for(&mut world, "/machineTemplate/version", &json!("v1.31.2"));
    world.settle(&mut memory);
    world.run_until(&mut memory, "2026-03-06T12:00:00Z");
    ask_for(&mut world, "/machineTemplate/version", &json!("v1.32.0"));
    world.settle(&mut memory);
    let told = world.told.last().unwrap();
    assert!(told.contains("PendingChanges"), "{told}");
    assert_eq!(world.get("Machine").unwrap()["spec"]["version"], "v1.31.2");
}
