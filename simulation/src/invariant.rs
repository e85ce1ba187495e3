//! The invariants ("laws"), checked at each write that the server has accepted.

use fivespot_api::name;
use fivespot_capi::key;
use fivespot_testkit::ProxiedRequest;
use jiff::Timestamp;
use serde_json::Value;

use crate::effective_schedule::{EffectiveSchedule, Inputs};
use crate::owner::reclaimed_at;
use crate::snapshot::{MachineSnapshot, instant};
use crate::user_action::FOREIGN;

/// A write, with the objects right before and right after it.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) now: Timestamp,
    /// What the clock of the operator's host shows.
    pub(crate) shown: Timestamp,
    /// Whether that clock was ahead before and was corrected. Time may not advance for the
    /// operator then.
    pub(crate) is_in_doubt: bool,
    /// The operator that sent the write.
    pub(crate) by: &'a str,
    /// The holder of the Lease, if there are several operators.
    pub(crate) leader: Option<&'a str>,
    pub(crate) request: &'a ProxiedRequest,
    pub(crate) body: Value,
    pub(crate) code: u16,
    pub(crate) before: &'a MachineSnapshot,
    pub(crate) after: &'a MachineSnapshot,
    /// Whether an attempt to disable its schedule has failed.
    pub(crate) has_failed_disable: bool,
}

/// The text of an invariant, and whether a write keeps it. `None` if it does not apply to the
/// write.
pub(crate) type Invariant = (&'static str, fn(&Case<'_>) -> Option<bool>);

/// All invariants.
pub(crate) const INVARIANTS: &[Invariant] = &[
    (
        "S1 only objects of ours are deleted, with a uid precondition",
        deletes_own,
    ),
    ("S2 one Machine", makes_one),
    (
        "S4 only our Machine's Node is changed, and drained after the shutdown record",
        drains_own,
    ),
    (
        "S5 a Node is uncordoned only if we cordoned it",
        uncordons_own,
    ),
    ("S6 pods are evicted, or deleted for a reclaim", evicts),
    ("S7 foreign taints are kept", keeps_taints),
    (
        "S8 a Machine is deleted before its objects, the finalizer last",
        keeps_order,
    ),
    (
        "S9 foreign finalizers, labels and annotations are not changed",
        keeps_foreign,
    ),
    (
        "S10 no Machine with pods is deleted before the deadline",
        waits_for_deadline,
    ),
    (
        "S11 no object is created while it is not wanted",
        creates_wanted,
    ),
    ("S12 only the holder of the Lease writes", is_sent_by_leader),
    ("S13 no write leaves an object unchanged", changes),
    (
        "S15 no request is sent that the roles do not allow",
        is_allowed,
    ),
    (
        "S16 the status never reverts to an older one",
        advances_status,
    ),
    (
        "every shutdown begins with the shutdown record",
        records_first,
    ),
    ("a paused object is not changed", respects_pause),
    (
        "a machine that is wanted again is not removed",
        respects_window,
    ),
    ("a hold creates and deletes nothing", respects_hold),
    (
        "a hold starts and cancels no shutdown",
        keeps_shutdown_record,
    ),
    (
        "a shutdown by the end of the window has no later deadline",
        ends_in_time,
    ),
    (
        "a Node announces the end of the need for it, from the last call on",
        announces_end,
    ),
    ("a phase is reported when it is true", reports_actual_phase),
    (
        "a host that was reclaimed is not used again",
        disables_first,
    ),
];

/// Whether a write keeps an invariant. `None` if the invariant does not apply to the write. `known`
/// is the state that the sender last received, if responses that its decision is based on were
/// slow. The sender could not have changes that were made while they were in flight.
///
/// `earlier` are the overrides and calendars that the caches of the sender may still have held.
pub(crate) fn is_satisfied(
    invariant: &Invariant,
    case: &Case<'_>,
    (known, earlier): (&[KnownState], &[Inputs]),
) -> Option<bool> {
    let (name, keeps) = invariant;
    let is_satisfied = keeps(case)?;
    if is_satisfied || !BY_WHAT_WAS_KNOWN.contains(name) {
        return Some(is_satisfied);
    }
    let then = known.iter().map(|known| Case {
        now: known.at,
        shown: known.shown,
        before: &known.snapshot,
        ..case.clone()
    });
    let mut cases: Vec<Case<'_>> = then.collect();
    cases.push(case.clone());
    let is_kept_by = |case: &Case<'_>| {
        let with_earlier = earlier.iter().map(|inputs| MachineSnapshot {
            inputs: inputs.clone(),
            ..case.before.clone()
        });
        let mut results = with_earlier.map(|snapshot| {
            let before = &snapshot;
            keeps(&Case {
                before,
                ..case.clone()
            })
        });
        keeps(case) == Some(true) || results.any(|kept| kept == Some(true))
    };
    Some(cases.iter().any(is_kept_by))
}

/// The invariants that a write also keeps if it would have kept them when a slow response was
/// created that its sender acted on. The server cannot enforce them: no request has a precondition
/// on the facts that they are about.
const BY_WHAT_WAS_KNOWN: &[&str] = &[
    "S10 no Machine with pods is deleted before the deadline",
    "S11 no object is created while it is not wanted",
    "a paused object is not changed",
    "a machine that is wanted again is not removed",
    "a hold creates and deletes nothing",
    "a hold starts and cancels no shutdown",
    "a shutdown by the end of the window has no later deadline",
    "a Node announces the end of the need for it, from the last call on",
];

/// The objects when a slow response was created.
#[derive(Clone, Debug)]
pub(crate) struct KnownState {
    pub(crate) at: Timestamp,
    /// What the clock of the operator's host showed.
    pub(crate) shown: Timestamp,
    /// When the response arrives at the operator.
    pub(crate) arrives: Timestamp,
    pub(crate) snapshot: MachineSnapshot,
}

impl Case<'_> {
    fn is(&self, verb: &str, resource: &str) -> bool {
        self.code < 300
            && self.request.event.verb == verb
            && self.request.event.resource == resource
            && (self.request.event.subresource.is_empty() || resource.contains('/'))
    }

    fn is_sub(&self, subresource: &str) -> bool {
        self.code < 300 && self.request.event.subresource == subresource
    }

    /// The object that the write changes, right before and right after it.
    fn target(&self) -> Option<(&Value, &Value)> {
        let (before, after) = (self.before, self.after);
        let pair = match self.request.event.resource.as_str() {
            "scheduledmachines" => (&before.owner, &after.owner),
            "machines" => (&before.machine, &after.machine),
            "remotemachines" => (&before.infrastructure, &after.infrastructure),
            "k0sworkerconfigs" => (&before.bootstrap, &after.bootstrap),
            "nodes" => (&before.node, &after.node),
            _ => return None,
        };
        Some(pair)
    }

    fn is_patch(&self) -> bool {
        self.code < 300 && matches!(self.request.event.verb.as_str(), "patch" | "update")
    }

    fn shuts_down_for(&self, reasons: &[&str]) -> bool {
        let reason = self
            .before
            .shutdown_record()
            .and_then(|shutdown| shutdown["reason"].as_str());
        reason.is_some_and(|reason| reasons.contains(&reason))
    }
}

fn is_provider(resource: &str) -> bool {
    ["remotemachines", "k0sworkerconfigs"].contains(&resource)
}

fn deletes_own(case: &Case<'_>) -> Option<bool> {
    let resource = case.request.event.resource.as_str();
    let (before, _) = case.target()?;
    if !case.is("delete", resource) || resource == "nodes" {
        return None;
    }
    let is_named = case.body["preconditions"]["uid"] == before["metadata"]["uid"];
    let is_foreign = before["metadata"]["labels"][FOREIGN] == "yes";
    Some(is_named && !is_foreign && case.before.is_ours(before))
}

fn makes_one(case: &Case<'_>) -> Option<bool> {
    if !case.is("create", "machines") {
        return None;
    }
    let uid = case.after.uid();
    let is_its = |machine: &&Value| {
        machine["metadata"]["labels"][name::SCHEDULED_MACHINE_UID_LABEL] == uid
            && machine["metadata"]["deletionTimestamp"].is_null()
    };
    Some(case.after.machines.iter().filter(is_its).count() <= 1)
}

fn drains_own(case: &Case<'_>) -> Option<bool> {
    let is_cordon = case.is_patch()
        && case.request.event.resource == "nodes"
        && case.before.node["spec"]["unschedulable"] != true
        && case.after.node["spec"]["unschedulable"] == true;
    if !is_cordon && !case.is_sub("eviction") {
        return None;
    }
    Some(case.before.shutdown_record().is_some() && case.before.has_its_node())
}

fn uncordons_own(case: &Case<'_>) -> Option<bool> {
    let is_uncordon = case.is_patch()
        && case.request.event.resource == "nodes"
        && case.before.node["spec"]["unschedulable"] == true
        && case.after.node["spec"]["unschedulable"] != true;
    let marker = &case.before.node["metadata"]["annotations"][name::CORDONED_ANNOTATION];
    is_uncordon.then(|| !marker.is_null())
}

fn evicts(case: &Case<'_>) -> Option<bool> {
    case.is("delete", "pods").then(|| {
        let machine = &case.before.machine["metadata"]["annotations"];
        !machine[name::RECLAIM_ANNOTATION].is_null()
            && case.body["gracePeriodSeconds"] != 0
    })
}

fn keeps_taints(case: &Case<'_>) -> Option<bool> {
    if !case.is_patch() || case.request.event.resource != "nodes" {
        return None;
    }
    let taints = |node: &Value| node["spec"]["taints"].as_array().cloned();
    let after = taints(&case.after.node).unwrap_or_default();
    let before = taints(&case.before.node).unwrap_or_default();
    let is_foreign = |taint: &&Value| taint["value"] == "theirs";
    Some(
        before
            .iter()
            .filter(is_foreign)
            .all(|taint| after.contains(taint)),
    )
}

/// Whether an object has a Machine as owner.
fn has_machine(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|all| all.iter().any(|owner| owner["kind"] == "Machine"))
}

fn keeps_order(case: &Case<'_>) -> Option<bool> {
    let resource = case.request.event.resource.as_str();
    if case.is("delete", resource) && is_provider(resource) {
        let machine = &case.before.machine;
        // Objects that Cluster API has not adopted in time are deleted only by the operator, once
        // the Machine is being deleted. The bootstrap object is last, as in Cluster API.
        let is_going = !machine["metadata"]["deletionTimestamp"].is_null();
        let is_left = case
            .target()
            .is_some_and(|(before, _)| !has_machine(before));
        let host = &case.before.infrastructure;
        let is_last = resource == "remotemachines" || !case.before.is_ours(host);
        let is_used = !machine.is_null() && case.before.is_ours(machine);
        return Some(!is_used || is_going && is_left && is_last);
    }
    let holds = |owner: &Value| {
        let held = owner["metadata"]["finalizers"].as_array();
        held.is_some_and(|all| all.iter().any(|held| held == name::FINALIZER))
    };
    let lets_go = resource == "scheduledmachines"
        && case.is_patch()
        && holds(&case.before.owner)
        && !holds(&case.after.owner);
    lets_go.then(|| case.before.ours().is_empty())
}

fn keeps_foreign(case: &Case<'_>) -> Option<bool> {
    let (before, after) = case.target()?;
    if !case.is_patch() || after.is_null() {
        return None;
    }
    let is_unchanged = |field: &str| {
        let then = before["metadata"][field].as_object();
        then.is_none_or(|all| {
            all.iter().all(|(key, value)| {
                !key.starts_with("example.com/")
                    || after["metadata"][field][key.as_str()] == *value
            })
        })
    };
    let held = |object: &Value| {
        let all = object["metadata"]["finalizers"].as_array();
        let foreign = |held: &&Value| **held != name::FINALIZER;
        all.map(|all| all.iter().filter(foreign).cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    Some(
        is_unchanged("labels")
            && is_unchanged("annotations")
            && held(before) == held(after),
    )
}

fn waits_for_deadline(case: &Case<'_>) -> Option<bool> {
    if !case.is("delete", "machines") {
        return None;
    }
    (!case.is_in_doubt).then_some(())?;
    let deadline = instant(&case.before.shutdown_record()?["deadline"])?;
    let annotations = &case.before.machine["metadata"]["annotations"];
    let is_our_drain = !annotations[key::EXCLUDE_NODE_DRAINING].is_null();
    let is_running = |pod: &&Value| {
        pod["metadata"]["deletionTimestamp"].is_null()
            && pod["status"]["phase"] != "Succeeded"
    };
    let holds_pods =
        case.before.has_its_node() && case.before.pods.iter().any(|pod| is_running(&pod));
    let is_at_once = case.shuts_down_for(&["KillSwitch", "Reclaim"]);
    let is_over = deadline <= case.now.max(case.shown);
    Some(is_at_once || !is_our_drain || !holds_pods || is_over)
}

fn creates_wanted(case: &Case<'_>) -> Option<bool> {
    let resource = case.request.event.resource.as_str();
    let is_machine = resource == "machines";
    let is_about_it = case.is("create", resource) && !case.is_in_doubt;
    if !is_about_it || !is_machine && !is_provider(resource) {
        return None;
    }
    let infrastructure = &case.before.infrastructure;
    let completes =
        is_machine && !infrastructure.is_null() && case.before.is_ours(infrastructure);
    let is_begun = !case.before.ours().is_empty();
    let is_needed = |now| {
        let schedule = case.before.schedule();
        let is_long_enough = || schedule.is_some_and(|of| !of.is_too_short(now));
        case.before.is_needed(now) && (is_begun || is_long_enough())
    };
    Some(completes || is_needed(case.now) || is_needed(case.shown))
}

fn is_sent_by_leader(case: &Case<'_>) -> Option<bool> {
    (case.code < 300).then_some(())?;
    case.leader.map(|leader| leader == case.by)
}

/// Before the Machine of a reclaimed host is deleted, the schedule is disabled or stopped by an
/// override, or it is recorded that it was, or an attempt to do that has failed. A failed attempt does not block the
/// deletion.
fn disables_first(case: &Case<'_>) -> Option<bool> {
    let machine = &case.before.machine["metadata"]["annotations"];
    let is_reclaim =
        case.is("delete", "machines") && !machine[name::RECLAIM_ANNOTATION].is_null();
    let is_killed = case.before.is_killed() || case.before.is_deleting();
    let is_off = case.before.owner["spec"]["schedule"]["enabled"] == false;
    let is_recorded = machine[name::RECLAIM_DISABLED_ANNOTATION] == "true";
    let schedule = case.before.schedule();
    let in_force = schedule.as_ref().and_then(|of| of.in_force(case.shown));
    let is_stopped = in_force.is_some_and(|of| reclaimed_at(of).is_some());
    (is_reclaim && !is_killed)
        .then_some(is_off || is_stopped || is_recorded || case.has_failed_disable)
}

fn changes(case: &Case<'_>) -> Option<bool> {
    let (before, after) = case.target()?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    case.is_patch().then(|| version(before) != version(after))
}

fn is_allowed(case: &Case<'_>) -> Option<bool> {
    let is_answered = case.code > 0;
    is_answered.then_some(case.code != 403)
}

fn advances_status(case: &Case<'_>) -> Option<bool> {
    if !case.is_sub("status") {
        return None;
    }
    let (before, after) = (&case.before.owner["status"], &case.after.owner["status"]);
    let generation = |status: &Value| status["observedGeneration"].as_i64().unwrap_or(0);
    let conditions = |status: &Value| status["conditions"].as_array().cloned();
    let earlier = conditions(before).unwrap_or_default();
    let goes_back = |new: &Value| {
        let same = earlier.iter().find(|old| old["type"] == new["type"]);
        same.is_some_and(|old| {
            let at = |condition: &Value| instant(&condition["lastTransitionTime"]);
            at(new) < at(old) || new["status"] == old["status"] && at(new) != at(old)
        })
    };
    let later = conditions(after).unwrap_or_default();
    Some(generation(before) <= generation(after) && !later.iter().any(goes_back))
}

fn records_first(case: &Case<'_>) -> Option<bool> {
    case.is("delete", "machines")
        .then(|| case.before.shutdown_record().is_some())
}

fn respects_pause(case: &Case<'_>) -> Option<bool> {
    let is_over = case.is_sub("status") || case.request.event.resource == "events";
    (case.code < 300 && !is_over).then(|| !case.before.is_paused())
}

fn respects_window(case: &Case<'_>) -> Option<bool> {
    let is_removal = case.is("delete", "machines") || case.is_sub("eviction");
    if !is_removal || case.is_in_doubt {
        return None;
    }
    let is_going = !case.before.machine["metadata"]["deletionTimestamp"].is_null();
    // A machine under a hold is not cancelled, nor one that ends with the window that is open.
    let is_needed = |now| {
        case.before.is_needed(now)
            && !case.before.is_held(now)
            && !ends_with_window(case, now)
    };
    let is_driven_out = is_needed(case.now)
        && is_needed(case.shown)
        && case.shuts_down_for(&["ScheduleEnded"])
        && !is_going;
    Some(!is_driven_out)
}

/// Whether the shutdown record is for the open window or a later one.
fn ends_with_window(case: &Case<'_>, now: Timestamp) -> bool {
    let recorded = case.before.shutdown_record();
    let recorded = recorded.and_then(|of| instant(&of["windowEnd"]));
    let end = case.before.schedule().and_then(|of| of.next_change(now));
    recorded.is_some_and(|recorded| end.is_some_and(|end| end <= recorded))
}

/// A hold allows no creation, deletion or eviction, unless there is a shutdown record.
fn respects_hold(case: &Case<'_>) -> Option<bool> {
    let resource = case.request.event.resource.as_str();
    let is_made = is_provider(resource) || resource == "machines";
    let is_made_or_ended =
        is_made && (case.is("create", resource) || case.is("delete", resource));
    let is_touched = is_made_or_ended || case.is_sub("eviction");
    if !is_touched || case.is_in_doubt {
        return None;
    }
    let is_held = case.before.is_held(case.now) && case.before.is_held(case.shown);
    Some(!is_held || case.before.shutdown_record().is_some())
}

/// A hold starts no shutdown because of the schedule, and cancels none.
fn keeps_shutdown_record(case: &Case<'_>) -> Option<bool> {
    if !case.is_sub("status") || case.is_in_doubt {
        return None;
    }
    let is_held = case.before.is_held(case.now) && case.before.is_held(case.shown);
    let (before, after) = (case.before.shutdown_record(), case.after.shutdown_record());
    let is_going = !case.before.machine["metadata"]["deletionTimestamp"].is_null();
    let is_made = before.is_none()
        && after.is_some_and(|of| {
            ["ScheduleEnded", "Remediation"]
                .contains(&of["reason"].as_str().unwrap_or(""))
        });
    let is_taken_back = before.is_some() && after.is_none() && !is_going;
    Some(!is_held || !is_made && !is_taken_back)
}

/// With the end policy `CompleteByWindowEnd`, the deadline of a shutdown is not after the end of
/// the window that is open by the operator's clock.
fn ends_in_time(case: &Case<'_>) -> Option<bool> {
    let shutdown = case.after.shutdown_record()?;
    let is_new = case.is_sub("status") && case.before.shutdown_record().is_none();
    if !is_new || shutdown["reason"] != "ScheduleEnded" || case.is_in_doubt {
        return None;
    }
    let deadline = instant(&shutdown["deadline"])?;
    let started = instant(&shutdown["startedAt"])?;
    let schedule = case.before.schedule();
    let schedule = schedule.filter(EffectiveSchedule::completes_by_window_end);
    let open = schedule.filter(|of| of.is_wanted(case.shown));
    let end = open.and_then(|of| of.next_change(case.shown));
    Some(end.is_none_or(|end| deadline <= end.max(started)))
}

/// The end that a write announces on the Node is that of the need for its machine, and its last
/// call has come.
fn announces_end(case: &Case<'_>) -> Option<bool> {
    let announced = |snapshot: &MachineSnapshot| {
        instant(&snapshot.node["metadata"]["annotations"][name::LEAVES_AT_ANNOTATION])
    };
    let end = announced(case.after)?;
    let is_new = case.request.event.resource == "nodes"
        && case.is_patch()
        && announced(case.before) != Some(end);
    if !is_new || case.is_in_doubt {
        return None;
    }
    let is_right = |now| {
        let schedule = case.before.schedule();
        let leaves_at = schedule.and_then(|of| of.leaves_at(now));
        case.before.is_needed(now) && !case.before.is_held(now) && leaves_at == Some(end)
    };
    Some(is_right(case.now) || is_right(case.shown))
}

fn reports_actual_phase(case: &Case<'_>) -> Option<bool> {
    let reported = case.after.phase();
    let is_over =
        reported != case.before.phase() && ["Inactive", "Terminated"].contains(&reported);
    (case.is_sub("status") && is_over).then(|| case.before.ours().is_empty())
}

#[cfg(test)]
mod tests {
    use kubemu_apiserver::AuditEvent;
    use serde_json::json;

    use super::*;

    /// A request to delete the Machine.
    fn deletion(at: Timestamp) -> ProxiedRequest {
        let event = AuditEvent {
            at,
            user: String::new(),
            impersonated: String::new(),
            verb: "delete".to_owned(),
            path: String::new(),
            group: "cluster.x-k8s.io".to_owned(),
            resource: "machines".to_owned(),
            subresource: String::new(),
            namespace: "default".to_owned(),
            name: "worker".to_owned(),
            label_selector: String::new(),
            code: 0,
            annotations: std::collections::BTreeMap::new(),
        };
        ProxiedRequest {
            event,
            body: Vec::new().into(),
            query: String::new(),
        }
    }

    #[test]
    fn a_slow_response_excuses_only_laws_that_the_server_cannot_enforce() {
        let at = Timestamp::UNIX_EPOCH;
        let paused = MachineSnapshot {
            owner: json!({"metadata": {"annotations": {key::PAUSED: "true"}}}),
            ..MachineSnapshot::default()
        };
        let request = deletion(at);
        let case = Case {
            now: at,
            shown: at,
            is_in_doubt: false,
            by: "operator-0",
            leader: None,
            request: &request,
            body: Value::Null,
            code: 200,
            before: &paused,
            after: &paused,
            has_failed_disable: false,
        };
        let then = KnownState {
            at,
            shown: at,
            arrives: at,
            snapshot: MachineSnapshot::default(),
        };
        let law_named = |name: &str| {
            let invariant = INVARIANTS.iter().find(|(invariant, _)| *invariant == name);
            invariant.unwrap()
        };
        let pause = law_named("a paused object is not changed");
        assert_eq!(is_satisfied(pause, &case, (&[], &[])), Some(false));
        assert_eq!(
            is_satisfied(pause, &case, (std::slice::from_ref(&then), &[])),
            Some(true)
        );
        let record_first = law_named("every shutdown begins with the shutdown record");
        assert_eq!(
            is_satisfied(record_first, &case, (&[then], &[])),
            Some(false)
        );
        for name in BY_WHAT_WAS_KNOWN {
            law_named(name);
        }
    }
}
