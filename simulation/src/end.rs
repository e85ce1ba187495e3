//! The required end state of every scenario: what its user wants.

use fivespot_api::name;
use jiff::Timestamp;
use serde_json::Value;

use crate::snapshot::{MachineSnapshot, instant};
use crate::user_action::FOREIGN;

/// Describes what differs from the desired state. `None` if nothing does.
pub(crate) fn violation(snapshot: &MachineSnapshot, now: Timestamp) -> Option<String> {
    let ours = snapshot.ours().len();
    let phase = snapshot.phase();
    let complaint =
        |wanted: &str| Some(format!("{wanted}, but is {phase} with {ours} objects"));
    if snapshot.owner.is_null() {
        let all = [
            &snapshot.bootstrap,
            &snapshot.infrastructure,
            &snapshot.machine,
        ];
        let is_orphan = |object: &&Value| {
            !object.is_null() && object["metadata"]["labels"][FOREIGN] != "yes"
        };
        let orphan = all.into_iter().find(is_orphan);
        return orphan.map(|object| format!("L3 orphaned: {}", object["kind"]));
    }
    if snapshot.is_deleting() {
        return complaint("L3 a deleted object is removed");
    }
    if snapshot.is_killed() {
        let is_so = ours == 0 && phase == "Terminated";
        return (!is_so)
            .then(|| complaint("a killed machine is Terminated"))
            .flatten();
    }
    if !snapshot.is_enabled() {
        let is_so = phase == "Disabled";
        return (!is_so)
            .then(|| complaint("a disabled schedule is Disabled"))
            .flatten();
    }
    let schedule = snapshot.schedule()?;
    // A machine under an override in mode Hold may be in any state.
    if schedule.is_held(now) {
        return None;
    }
    let is_not_begun = ours == 0 && phase == "Inactive" && schedule.is_too_short(now);
    if schedule.is_needed(now) && is_not_begun {
        return None;
    }
    if !schedule.is_needed(now) {
        let is_so = ours == 0 && phase == "Inactive" && snapshot.node.is_null();
        return (!is_so)
            .then(|| complaint("L2 outside its window a machine is Inactive"))
            .flatten();
    }
    let is_so = ours == 3 && phase == "Active" && snapshot.has_its_node();
    if !is_so {
        return complaint("L1 within its window a machine is Active");
    }
    if snapshot.owner["status"]["shutdown"].is_object() {
        return complaint("L4 a machine in service is not shut down");
    }
    node_complaint(snapshot).or_else(|| last_call_complaint(snapshot, now))
}

/// What is wrong with the last call on the Node of a machine in service: it is announced from
/// `lastCall` before the machine is no longer needed, with that instant, and not before.
pub(crate) fn last_call_complaint(
    snapshot: &MachineSnapshot,
    now: Timestamp,
) -> Option<String> {
    let expected = snapshot.schedule()?.leaves_at(now);
    let announced =
        instant(&snapshot.node["metadata"]["annotations"][name::LEAVES_AT_ANNOTATION]);
    let taints = snapshot.node["spec"]["taints"].as_array();
    let is_tainted = taints.is_some_and(|all| {
        all.iter().any(|of| {
            of["key"] == name::LAST_CALL_TAINT && of["effect"] == "PreferNoSchedule"
        })
    });
    let is_right = announced == expected && is_tainted == expected.is_some();
    (!is_right).then(|| {
        format!(
            "the last call is for {expected:?}, but the Node announces {announced:?}, \
             with its taint: {is_tainted}"
        )
    })
}

fn node_complaint(snapshot: &MachineSnapshot) -> Option<String> {
    let meta = &snapshot.node["metadata"]["annotations"];
    let is_cordoned_by_user = !meta["example.com/cordoned"].is_null();
    if snapshot.node["spec"]["unschedulable"] == true && !is_cordoned_by_user {
        return Some("L4 the Node of a machine in service is cordoned".to_owned());
    }
    if !meta[name::RECLAIM_REQUESTED_ANNOTATION].is_null() {
        return Some("L4 a reclaim request is left on the Node".to_owned());
    }
    let taints = |node: &Value| node.as_array().cloned().unwrap_or_default();
    let present = taints(&snapshot.node["spec"]["taints"]);
    let is_present = |wanted: &&Value| {
        present.iter().any(|taint| {
            taint["key"] == wanted["key"] && taint["effect"] == wanted["effect"]
        })
    };
    let wanted = taints(&snapshot.owner["spec"]["nodeTaints"]);
    let lacking = wanted.iter().find(|taint| !is_present(taint));
    lacking.map(|taint| format!("L6 the Node lacks the taint {}", taint["key"]))
}
