//! Serving: creates the owned objects, and keeps an existing machine in line with the spec. They
//! are created once and never applied (`internals/decisions/0011-create-not-apply.md`).

use fivespot_api::condition::Reason;
use fivespot_api::name;
use fivespot_capi::{Machine, MachinePatch, Provider, Reference};
use jiff::SignedDuration;

use crate::act::memory::after;
use crate::act::write;
use crate::act::write::{MachineParts, Purpose};
use crate::decide::case::Case;
use crate::decide::host::HostNeed;
use crate::decide::outcome::{Outcome, ShutdownChange, State};
use crate::decide::record::{self, Record, hash_of};
use crate::decide::resolve::ProviderDraft;
use crate::decide::{agent, host, machine, pace, reclaim, shutdown, taint, turn};
use crate::observed::provider;
use crate::observed::{owned::NamedMachine, owned::ProviderObjects, owned::ProviderRole};
use crate::status::conditions;
use crate::why::Held;
use crate::{Access, Action};

/// How long until a Node that is not ready is read again if it is not watched.
const NODE_REQUEUE: SignedDuration = SignedDuration::from_secs(15);

/// What to do about a machine that is wanted.
pub(crate) fn serve(case: &Case<'_>) -> Outcome {
    match case.owned.machine {
        NamedMachine::Ours(machine) if machine.meta.is_deleting => {
            await_old(case, machine)
        }
        NamedMachine::Ours(machine) => keep_running(case, machine),
        NamedMachine::Absent | NamedMachine::Foreign(_) => complete(case),
    }
}

/// What to do about a machine about which the schedule decides nothing: its timeouts follow the
/// spec, and its state is reported.
pub(crate) fn maintain(case: &Case<'_>) -> Outcome {
    let Some(machine) = case.owned.our_machine() else {
        return Outcome::of(if case.owned.is_gone() {
            State::Idle
        } else {
            State::Unmanaged
        });
    };
    let patch = write::patch_machine(machine, &machine::timeouts(case, machine));
    let on_node = if machine.meta.is_deleting {
        Vec::new()
    } else {
        on_node(case, machine)
    };
    let mut outcome =
        Outcome::of(State::Unmanaged).with(patch.into_iter().chain(on_node).collect());
    outcome.requeues.extend(agent::due(case));
    outcome
}

/// What to do about a machine under an override of mode Hold: an existing machine is served as it
/// is, nothing is created, deleted, cordoned or drained.
pub(crate) fn hold(case: &Case<'_>) -> Outcome {
    let state = match case.owned.our_machine() {
        Some(machine) if machine.meta.is_deleting => {
            State::Terminating(shutdown::being_removed(case, machine))
        }
        Some(machine) => readiness(case, machine),
        None if case.owned.is_gone() => State::Idle,
        None => State::Unmanaged,
    };
    Outcome {
        state,
        ..maintain(case)
    }
}

/// The Machine was deleted by another client inside the window: it is created again once all its
/// objects are gone.
fn await_old(case: &Case<'_>, machine: &Machine) -> Outcome {
    provisioning(shutdown::wait_for_old(case, machine))
}

/// Keeps a machine in service: ends a shutdown record, and reverts what was done for it.
fn keep_running(case: &Case<'_>, machine: &Machine) -> Outcome {
    let node = machine::node(case, machine);
    let patch = MachinePatch {
        annotations: write::no_exclusions(machine).annotations,
        ..machine::timeouts(case, machine)
    };
    // Any client that may annotate the Node can put a marker there: only one with our uid is
    // ours.
    let uid = &case.subject.uid;
    let marked = node.filter(|node| node.cordon_marker.as_ref() == Some(uid));
    // Each write to the Node is guarded by its resourceVersion: one at a time.
    let on_node = if marked.is_none() {
        on_node(case, machine)
    } else {
        Vec::new()
    };
    let actions = write::patch_machine(machine, &patch)
        .into_iter()
        .chain(marked.map(write::uncordon))
        .chain(missing(case, machine))
        .chain(on_node)
        .collect();
    let mut outcome = Outcome {
        shutdown: ShutdownChange::Clear,
        ..Outcome::of(readiness(case, machine)).with(actions)
    };
    let conflict = taint::last_call::conflict(case, machine, &outcome.actions);
    outcome.events.extend(conflict);
    outcome.requeues.extend(agent::due(case));
    let held = pace::stop_held(case);
    outcome.requeues.extend(held.and_then(|held| held.again));
    if case.wants_replacement(machine) {
        outcome.requeues.extend(case.replaceable_from(machine));
    }
    let is_settled = matches!(outcome.state, State::InService { .. });
    let is_silent = matches!(case.observed.workload.access, Access::Unreachable { .. });
    // Another claim of the Node is found in caches of other owners' Machines, which enqueue no
    // key here.
    let is_untouchable = machine::why_untouchable(case, machine).is_some();
    if machine.node.is_some() && (!is_settled || is_silent || is_untouchable) {
        outcome.requeues.push(after(case.now, NODE_REQUEUE));
    }
    outcome
}

/// The writes to the Node of a machine that stays, one to the Node itself at a time, and to the
/// configuration of the agent there. A write in backoff delays no other.
fn on_node(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    let mut is_written = false;
    let agent = agent::actions(case, machine);
    let all = reclaim::stale_request(case, machine)
        .into_iter()
        .chain(taint::action(case, machine))
        .chain(agent);
    all.filter(|action| {
        let is_held = case.failed_at(action.step).is_some();
        let is_node = action.request.target.object.kind == "Node";
        let is_turn = !is_node || !is_written;
        is_written |= is_node && !is_held;
        is_turn
    })
    .collect()
}

/// Creates the objects that an existing Machine refers to, never had ready, and that do not
/// exist.
fn missing(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    if conditions::outdated(case).is_some()
        || conditions::obstacle(case).is_some()
        || host::is_lost(case)
    {
        return Vec::new();
    }
    let lacks =
        |part: &ProviderObjects<'_>, place: &Option<Reference>, draft: &ProviderDraft| {
            let is_here = |place: &Reference| place.is_same_object(&draft.reference);
            let is_ours_to_make =
                place.as_ref().is_some_and(is_here) && part.occupant.is_none();
            is_ours_to_make && part.unknown.is_none() && part.first().is_none()
        };
    let (owned, desired) = (case.owned, case.desired);
    let bootstrap = !machine.had_bootstrap
        && lacks(&owned.bootstrap, &machine.bootstrap, &desired.bootstrap);
    let infrastructure = !machine.had_infrastructure
        && lacks(
            &owned.infrastructure,
            &machine.infrastructure,
            &desired.infrastructure,
        );
    let bootstrap = bootstrap.then_some(ProviderRole::Bootstrap);
    let infrastructure = infrastructure.then_some(ProviderRole::Infrastructure);
    bootstrap
        .into_iter()
        .chain(infrastructure)
        .map(|role| write::create_provider(case, role))
        .collect()
}

/// The state of an existing machine.
pub(crate) fn readiness(case: &Case<'_>, machine: &Machine) -> State {
    let Some(link) = &machine.node else {
        let name = &machine.meta.name;
        let (report, node) = (
            provider::report(case),
            provider::node_without_provider_id(case, machine),
        );
        return State::Provisioning(format!(
            "waiting for Machine {name} to get a Node{report}{node}"
        ));
    };
    if let Some(lost) = lost(case, machine) {
        return State::InfrastructureMissing(format!(
            "{lost} of Machine {} is gone while Node {} is in service",
            machine.meta.name, link.name,
        ));
    }
    let is_ready = machine::is_node_ready(case, machine);
    let hash = machine.meta.annotations.get(name::SPEC_HASH_ANNOTATION);
    let is_remade = hash.is_some_and(|hash| *hash != case.desired.hash);
    // Admission rejects that while the machine exists, if its webhook or policy is installed.
    let is_moved = machine.cluster_name != case.desired.cluster;
    if is_ready == Some(true) {
        State::InService {
            node: link.name.clone(),
            has_pending_changes: is_remade || is_moved,
        }
    } else {
        State::NodeNotReady {
            node: link.name.clone(),
        }
    }
}

/// The kind and name of the object that our Machine was created from and that is gone; the
/// infrastructure object first.
pub(crate) fn lost(case: &Case<'_>, machine: &Machine) -> Option<String> {
    let (bootstrap, infrastructure) = (&case.owned.bootstrap, &case.owned.infrastructure);
    [
        (infrastructure, &machine.infrastructure),
        (bootstrap, &machine.bootstrap),
    ]
    .into_iter()
    .filter_map(|(part, place)| Some((part, place.as_ref()?)))
    .find(|(part, place)| part.is_absent_from(place))
    .map(|(_, place)| format!("{} {}", place.kind, place.name))
}

/// Creates the missing ones of the owned objects, in order.
fn complete(case: &Case<'_>) -> Outcome {
    if let Some(unknown) = case.owned.unknown() {
        return crate::not_observable(case, unknown);
    }
    let leftovers = case
        .owned
        .leftovers(case.subject.status.machine_ref.is_some());
    if !leftovers.is_empty() {
        return provisioning(shutdown::delete(case, &leftovers));
    }
    let (bootstrap, infrastructure) = (
        case.owned.bootstrap.first(),
        case.owned.infrastructure.first(),
    );
    if let (Some(outdated), None) = (bootstrap, infrastructure)
        && hash_of(outdated) != Some(&case.desired.hash)
    {
        return provisioning(shutdown::delete(
            case,
            &[(ProviderRole::Bootstrap, outdated)],
        ));
    }
    // What was made is for a host that is not to be used.
    if !case.owned.is_gone() && host::is_lost(case) {
        return provisioning(shutdown::delete(case, &case.owned.providers()));
    }
    // The missing object would be created elsewhere than where it is recorded.
    if !case.owned.is_gone() && !record::fits(&Record::due(case), case) {
        return provisioning(shutdown::delete(case, &case.owned.providers()));
    }
    let obstacle = conditions::outdated(case).or_else(|| conditions::obstacle(case));
    if let Some(why) = obstacle {
        // A new kind is noticed only by discovery, and a Cluster that the spec does not name is
        // not watched; everything else is watched.
        let is_watched =
            why.reason != Reason::KindNotServed && case.desired.is_cluster_named;
        let retry = after(case.now, SignedDuration::from_mins(1));
        let again = (!is_watched).then_some(retry);
        return blocked(Held { why, again });
    }
    if case.owned.is_gone() && case.is_too_short() {
        return Outcome::of(State::Idle);
    }
    if case.owned.is_gone()
        && let Some(held) = turn::start_held(case)
    {
        return blocked(held);
    }
    if let Some(outcome) = with_host(case) {
        return outcome;
    }
    Outcome {
        host: case.subject.status.host.clone(),
        ..create_in_turn(case, bootstrap, infrastructure)
    }
}

/// Claims and records a host of the class. `None` if the machine needs none, or has one.
fn with_host(case: &Case<'_>) -> Option<Outcome> {
    let claim = |host: &str| {
        let claim = host::claim(case, host);
        vec![write::claim_host(&claim, &case.observed.hosts.namespace)]
    };
    let child = case.subject.child();
    let provisioning = |host: &str| {
        let message = format!("creating Machine {child} on host {host}");
        Outcome::of(State::Provisioning(message))
    };
    let (host, outcome) = match host::need(case) {
        HostNeed::Nothing => return None,
        HostNeed::Unknown(unknown) => {
            let why = conditions::unknown_fact(unknown, "the claims of hosts");
            let recorded = case.subject.status.host.as_deref();
            (recorded, Outcome::of(State::Blocked(why)))
        }
        HostNeed::ClaimAgain(host) => (Some(host), provisioning(host).with(claim(host))),
        HostNeed::Claim(host) => (None, provisioning(host).with(claim(host))),
        HostNeed::Record(host) => (Some(host), provisioning(host)),
        HostNeed::GiveBack(host) => {
            let message = format!("giving host {host} back");
            (None, Outcome::of(State::Provisioning(message)))
        }
        HostNeed::Wait(why) => {
            return Some(Outcome {
                seeks_host: true,
                ..Outcome::of(State::Blocked(why))
            });
        }
    };
    Some(Outcome {
        host: host.map(str::to_owned),
        ..outcome
    })
}

/// Creates the missing objects, the first one once the rates of the class allow it.
fn create_in_turn(
    case: &Case<'_>,
    bootstrap: Option<&Provider>,
    infrastructure: Option<&Provider>,
) -> Outcome {
    let held = case.owned.is_gone().then(|| pace::start_held(case));
    match held.flatten() {
        Some(held) => blocked(held),
        None => create(case, bootstrap, infrastructure),
    }
}

/// Creates nothing, and says why.
fn blocked(held: Held) -> Outcome {
    let mut outcome = Outcome::of(State::Blocked(held.why));
    outcome.requeues.extend(held.again);
    outcome
}

/// Creates the missing objects, once their places are recorded.
fn create(
    case: &Case<'_>,
    bootstrap: Option<&Provider>,
    infrastructure: Option<&Provider>,
) -> Outcome {
    let message = format!("creating Machine {}", case.subject.child());
    let outcome = Outcome::of(State::Provisioning(message));
    if !record::allows_creation(case) {
        return Outcome {
            shutdown: ShutdownChange::Clear,
            ..outcome
        };
    }
    let hash = infrastructure
        .and_then(hash_of)
        .unwrap_or(&case.desired.hash);
    let reference = |found: Option<&Provider>, draft: &ProviderDraft| {
        found.map_or_else(|| draft.reference.clone(), Provider::reference)
    };
    let providers = [
        bootstrap
            .is_none()
            .then(|| write::create_provider(case, ProviderRole::Bootstrap)),
        infrastructure
            .is_none()
            .then(|| write::create_provider(case, ProviderRole::Infrastructure)),
    ];
    let parts = MachineParts {
        bootstrap: reference(bootstrap, &case.desired.bootstrap),
        infrastructure: reference(infrastructure, &case.desired.infrastructure),
        hash,
    };
    let machine = write::create_machine(case, parts, Purpose::Service);
    let actions = providers.into_iter().flatten().chain(machine).collect();
    outcome.with(actions)
}

/// Reports the removal of old objects as a step of provisioning.
fn provisioning(mut outcome: Outcome) -> Outcome {
    if let State::Terminating(message) = outcome.state {
        outcome.state = State::Provisioning(message);
    }
    outcome
}
