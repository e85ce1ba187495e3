//! Shutdown: its record, the drain, the Machine's deletion, and the objects left without a
//! Machine.

use fivespot_api::time::{next_whole_second, whole_seconds};
use fivespot_api::{Shutdown, ShutdownReason};
use fivespot_capi::{Machine, MachinePatch, Provider};
use fivespot_schedule::{DecidedBy, Window};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::act::write;
use crate::act::write::{MachineParts, Purpose};
use crate::decide::case::Case;
use crate::decide::record::hash_of;
use crate::decide::{drain, drain::Drain};
use crate::decide::{machine, reclaim};
use crate::decide::{outcome::Outcome, outcome::ShutdownChange, outcome::State};
use crate::observed::location::reference;
use crate::observed::provider;
use crate::observed::{owned::NamedMachine, owned::ProviderRole};
use crate::status::{conditions, undrained};
use crate::{Action, Cause, Step};

/// How long Cluster API may at least take to adopt the objects of a Machine that is shut down,
/// even without grace: it reconciles a Machine about once a second, and takes longer after its
/// own restart. See `internals/decisions/0057-the-owner-reference-is-awaited-for-a-limited-time.md`.
const ADOPTION_TIME: SignedDuration = SignedDuration::from_secs(60);
/// How long until objects that are deleted without a Machine are read again.
const CLEANUP_REQUEUE: SignedDuration = SignedDuration::from_secs(10);

/// What to do about a machine that is shut down.
pub(crate) fn shut_down(case: &Case<'_>, reason: ShutdownReason) -> Outcome {
    match case.owned.our_machine() {
        Some(machine) => shut_down_machine(case, machine, reason),
        None => clean_up(case),
    }
}

fn shut_down_machine(
    case: &Case<'_>,
    machine: &Machine,
    reason: ShutdownReason,
) -> Outcome {
    if reason == ShutdownReason::Reclaim
        && let Some(outcome) = reclaim::next(case, machine)
    {
        return outcome;
    }
    let Some(shutdown) = case.shutdown_record(machine) else {
        return record_shutdown(case, machine, reason, case.now);
    };
    if reason.is_at_once() && shutdown.reason != reason {
        return record_shutdown(case, machine, reason, shutdown.started_at);
    }
    let deadline = case.deadline(shutdown);
    let is_over = reason.is_at_once() || deadline <= case.now;
    let message = progress_message(case, machine, shutdown);
    let unadopted = unadopted(case, machine);
    let adoptable_until = adoptable_until(case, shutdown);
    if machine.meta.is_deleting {
        let exclusions = if is_over {
            write::exclusions(machine, true)
        } else {
            MachinePatch::default()
        };
        let mut waiting = wait_for_machine(case, machine, exclusions, message);
        if is_over && !reason.is_at_once() {
            waiting = undrained::warn_of_interrupted_drain(machine, waiting);
        }
        let waiting = delete_unadopted(case, waiting, &unadopted, adoptable_until);
        return if is_over {
            waiting
        } else {
            waiting.requeue_at(deadline)
        };
    }
    if !unadopted.is_empty() && case.now < adoptable_until {
        return wait_for_adoption(case, machine, adoptable_until);
    }
    if is_over {
        let actions = delete_without_drain(machine, true);
        let outcome = Outcome::of(State::Terminating(message)).with(actions);
        return if reason.is_at_once() {
            outcome
        } else {
            undrained::warn(case, machine, outcome)
        };
    }
    drain_first(case, machine, shutdown, message)
}

/// Drains the Node of a Machine that is shut down with time to drain, then deletes the Machine.
fn drain_first(
    case: &Case<'_>,
    machine: &Machine,
    shutdown: &Shutdown,
    message: String,
) -> Outcome {
    match drain::next(case, machine, shutdown.started_at) {
        Drain::NotOurs => {
            let outcome = Outcome::of(State::Terminating(message))
                .with(vec![write::delete_machine(machine)]);
            undrained::warn(case, machine, outcome)
        }
        Drain::Empty => {
            let actions = delete_without_drain(machine, false);
            Outcome::of(State::Terminating(message)).with(actions)
        }
        Drain::Running {
            actions,
            due,
            problem,
        } => {
            let timeouts =
                write::patch_machine(machine, &machine::timeouts(case, machine));
            let actions = timeouts.into_iter().chain(actions).collect();
            Outcome::of(State::Terminating(problem.unwrap_or(message)))
                .with(actions)
                .until(case.deadline(shutdown))
                .requeue_at(due)
        }
    }
}

/// Deletes the Machine without a drain by Cluster API and, if `volumes`, without a wait for volumes.
fn delete_without_drain(machine: &Machine, volumes: bool) -> Vec<Action> {
    let exclude = write::patch_machine(machine, &write::exclusions(machine, volumes));
    let delete = write::delete_machine(machine);
    exclude.into_iter().chain([delete]).collect()
}

/// The objects of the Machine that are deleted next and that Cluster API has not made the Machine
/// the owner of: the infrastructure object, and once that is gone the bootstrap object, in
/// Cluster API's order. A provider may need the bootstrap data to release its host, so the
/// bootstrap object must not go first: Cluster API may still adopt both.
///
/// A Machine that is deleted before the adoption can go without its infrastructure object, which can
/// then hang forever: providers do nothing for an object without a Machine. Without a Cluster
/// nothing is adopted any more. An object that has been ready was adopted, even if a foreground
/// deletion has stripped its owner references.
fn unadopted<'a>(
    case: &Case<'a>,
    machine: &Machine,
) -> Vec<(ProviderRole, &'a Provider)> {
    let is_served = case
        .cluster()
        .is_some_and(|cluster| !cluster.meta.is_deleting)
        && !machine.had_infrastructure
        && machine.node.is_none();
    if !is_served {
        return Vec::new();
    }
    let is_unadopted = |(_, found): &(ProviderRole, &Provider)| {
        let mut owners = found.meta.owners.iter();
        !found.meta.is_deleting && !owners.any(fivespot_capi::Owner::is_machine)
    };
    let infrastructure = &case.owned.infrastructure;
    let next = if infrastructure.first().is_some() {
        ProviderRole::Infrastructure
    } else if machine.meta.is_deleting && infrastructure.is_gone() {
        ProviderRole::Bootstrap
    } else {
        return Vec::new();
    };
    let providers = case.owned.providers().into_iter();
    providers
        .filter(|(role, _)| *role == next)
        .filter(is_unadopted)
        .collect()
}

/// Until when Cluster API may adopt the objects that are deleted with the Machine: until the
/// deadline, but at least for a minute.
fn adoptable_until(case: &Case<'_>, shutdown: &Shutdown) -> Timestamp {
    let deadline = case.deadline(shutdown);
    deadline.max(after(shutdown.started_at, ADOPTION_TIME))
}

/// Waits until Cluster API has adopted the objects that are deleted with the Machine, at most
/// until `until`.
fn wait_for_adoption(case: &Case<'_>, machine: &Machine, until: Timestamp) -> Outcome {
    let name = &machine.meta.name;
    let message = format!(
        "waiting for Cluster API to adopt the objects of Machine {name}, which is deleted at \
         {} in any case",
        whole_seconds(until),
    );
    let state = if case.stalls_at() <= case.now {
        State::Stalled(format!("{message}; nothing has changed for 10 minutes"))
    } else {
        State::Terminating(message)
    };
    Outcome::of(state)
        .requeue_at(until)
        .requeue_at(case.stalls_at())
}

/// Adds to the wait for a Machine that is being deleted: the objects that Cluster API has not
/// adopted in time are deleted directly, because nothing else deletes them.
fn delete_unadopted(
    case: &Case<'_>,
    mut waiting: Outcome,
    unadopted: &[(ProviderRole, &Provider)],
    until: Timestamp,
) -> Outcome {
    if unadopted.is_empty() {
        return waiting;
    }
    if case.now < until {
        return waiting.requeue_at(until);
    }
    let deletions = unadopted
        .iter()
        .map(|(role, found)| write::delete_provider(*role, found));
    waiting.actions.extend(deletions);
    waiting
}

/// Writes the shutdown record, or shortens its deadline. Nothing is removed before it is stored.
fn record_shutdown(
    case: &Case<'_>,
    machine: &Machine,
    reason: ShutdownReason,
    started: Timestamp,
) -> Outcome {
    let given = if reason.is_at_once() {
        SignedDuration::ZERO
    } else {
        case.desired.shutdown_timeout
    };
    // The status stores whole seconds. A shutdown with grace must not get less time than that.
    let started = if given.is_zero() {
        whole_seconds(started)
    } else {
        next_whole_second(started)
    };
    let deadline = after(started, given);
    let is_of_schedule = reason == ShutdownReason::ScheduleEnded;
    let window_end = case.window_end().filter(|_| is_of_schedule);
    // A shutdown that was prevented until the window was over still has its time.
    let ended_window = case.ended_window().filter(|_| is_of_schedule);
    let shutdown = Shutdown {
        machine_uid: machine.meta.uid.clone(),
        started_at: started,
        deadline: window_end.map_or(deadline, |end| deadline.min(end.max(started))),
        reason,
        window_end: window_end.or(ended_window),
    };
    let message = announcement(case, machine, &shutdown);
    Outcome {
        shutdown: ShutdownChange::Write(shutdown),
        ..Outcome::of(State::Terminating(message))
    }
}

/// The message about a Machine that is shut down. Before the Machine is deleted it is the
/// announcement, for as long as that can still come true; after that it is what is waited for, as
/// Cluster API and the providers report it. It changes together with the Machine's own condition,
/// so that no step of an ordinary shutdown needs a separate status write.
fn progress_message(case: &Case<'_>, machine: &Machine, shutdown: &Shutdown) -> String {
    let name = &machine.meta.name;
    if machine.meta.is_deleting {
        let removed = being_removed(case, machine);
        return format!("{}; {removed}", cause(case, shutdown.reason));
    }
    let deadline = case.deadline(shutdown);
    let is_at_once = shutdown.reason.is_at_once();
    if shutdown.reason == ShutdownReason::KillSwitch || !is_at_once && case.now < deadline
    {
        announcement(case, machine, shutdown)
    } else {
        waiting_message(name)
    }
}

fn waiting_message(name: &str) -> String {
    format!("waiting for Machine {name} to be gone")
}

/// What a Machine that is being deleted waits for, in words for the message.
pub(crate) fn being_removed(case: &Case<'_>, machine: &Machine) -> String {
    let name = &machine.meta.name;
    let (progress, report) = (provider::removal(machine), provider::report(case));
    format!("waiting for Machine {name} to be removed{progress}{report}")
}

/// Why the Machine is shut down, in words for the message.
fn cause(case: &Case<'_>, reason: ShutdownReason) -> String {
    let cause = match reason {
        ShutdownReason::ScheduleEnded => return why_not_needed(case),
        ShutdownReason::Deleted => "the object is being deleted",
        ShutdownReason::Remediation => "the machine is being replaced",
        ShutdownReason::KillSwitch => "the kill switch is set",
        ShutdownReason::Reclaim => "the host is reclaimed",
    };
    cause.to_owned()
}

/// Why no machine is needed: the rule that decides about the schedule now.
fn why_not_needed(case: &Case<'_>) -> String {
    if let Some(end) = case.window_end() {
        return format!("the window closes at {end}");
    }
    match case.decided_by() {
        Some(DecidedBy::Override(of)) => {
            format!("override {} stops the machine", of.name)
        }
        Some(DecidedBy::Exception(of)) => format!("exception {} applies today", of.name),
        Some(DecidedBy::Base) | None if has_had_window(case) => {
            "the window has closed".to_owned()
        }
        Some(DecidedBy::Base) | None => "no window is open".to_owned(),
    }
}

/// Whether a window of the schedule has been open since the Machine was created. None has if the
/// schedule was edited between the lead time and the window.
fn has_had_window(case: &Case<'_>) -> bool {
    let (Ok(schedule), Some(created)) = (
        &case.desired.schedule,
        case.subject.status.last_scheduled_time,
    ) else {
        return true;
    };
    match schedule.at_within(created, case.steps) {
        Window::Open { .. } => true,
        Window::Closed { until } => until.is_some_and(|opens| opens <= case.now),
    }
}

/// Why the Machine is shut down, and by when.
fn announcement(case: &Case<'_>, machine: &Machine, shutdown: &Shutdown) -> String {
    let (name, by) = (&machine.meta.name, case.deadline(shutdown));
    let why = cause(case, shutdown.reason);
    if shutdown.reason.is_at_once() {
        format!("{why}; Machine {name} is removed at once")
    } else {
        format!("{why}; Machine {name} is removed by {by} at the latest")
    }
}

/// Waits for a Machine that another client deleted although it is wanted. There is no shutdown
/// record to count from, so the minute for adoption by Cluster API is counted in memory.
pub(crate) fn wait_for_old(case: &Case<'_>, machine: &Machine) -> Outcome {
    let message = being_removed(case, machine);
    let waiting = wait_for_machine(case, machine, MachinePatch::default(), message);
    let since = case.memory.deleting_since().unwrap_or(case.now);
    let unadopted = unadopted(case, machine);
    delete_unadopted(case, waiting, &unadopted, after(since, ADOPTION_TIME))
}

/// Waits for a Machine that Cluster API is deleting; `exclusions` are the steps it may skip, and
/// `message` is reported while the removal makes progress.
fn wait_for_machine(
    case: &Case<'_>,
    machine: &Machine,
    exclusions: MachinePatch,
    message: String,
) -> Outcome {
    let patch = MachinePatch {
        annotations: exclusions.annotations,
        ..machine::timeouts(case, machine)
    };
    let name = &machine.meta.name;
    let state = if case.stalls_at() <= case.now {
        let (progress, report) = (provider::removal(machine), provider::report(case));
        let kept = provider::finalizers(case);
        State::Stalled(format!(
            "Machine {name} has not changed for 10 minutes{progress}{report}{kept}"
        ))
    } else {
        State::Terminating(message)
    };
    Outcome::of(state)
        .with(write::patch_machine(machine, &patch).into_iter().collect())
        .requeue_at(case.stalls_at())
}

/// Deletes the objects that exist without a Machine.
fn clean_up(case: &Case<'_>) -> Outcome {
    if let Some(unknown) = case.owned.unknown() {
        return crate::not_observable(case, unknown);
    }
    let providers = case.owned.providers();
    if providers.is_empty() {
        return Outcome::of(State::Idle);
    }
    let leftovers = case
        .owned
        .leftovers(case.subject.status.machine_ref.is_some());
    if !leftovers.is_empty() {
        return delete(case, &leftovers);
    }
    match case.owned.infrastructure.first() {
        Some(infrastructure) if may_get_a_machine(case) => {
            finish_to_delete(case, infrastructure)
        }
        Some(_) | None => delete(case, &providers),
    }
}

/// Whether a Machine may be created only to be deleted: the spec violates no rule, the Cluster
/// exists and is not being deleted, the name is free, and the API server has not refused the
/// Machine.
fn may_get_a_machine(case: &Case<'_>) -> bool {
    let is_refused = matches!(
        case.failed_at(Step::CreateMachine),
        Some(Cause::NamespaceTerminating | Cause::Rejected | Cause::NotServed)
    );
    case.desired.is_admissible
        && matches!(case.owned.machine, NamedMachine::Absent)
        && case
            .cluster()
            .is_some_and(|cluster| !cluster.meta.is_deleting)
        && case.observed.contract.known().is_some()
        && conditions::outdated(case).is_none()
        && !is_refused
}

/// Creates the missing Machine, so that Cluster API can delete the objects in its order: an
/// infrastructure object without a Machine can hang forever.
fn finish_to_delete(case: &Case<'_>, infrastructure: &Provider) -> Outcome {
    let recorded = case.subject.status.bootstrap_ref.as_ref().map(reference);
    let bootstrap = case.owned.bootstrap.first().map(Provider::reference);
    let bootstrap = bootstrap.or(recorded);
    let parts = MachineParts {
        bootstrap: bootstrap.unwrap_or_else(|| case.desired.bootstrap.reference.clone()),
        infrastructure: infrastructure.reference(),
        hash: hash_of(infrastructure).unwrap_or(&case.desired.hash),
    };
    let create = write::create_machine(case, parts, Purpose::Removal);
    let message = format!(
        "creating a Machine for {}, to delete both",
        titled(infrastructure)
    );
    Outcome::of(State::Terminating(message)).with(create.into_iter().collect())
}

/// Deletes objects that no Machine of ours needs, and waits until they are gone.
pub(crate) fn delete(case: &Case<'_>, objects: &[(ProviderRole, &Provider)]) -> Outcome {
    let actions: Vec<_> = objects
        .iter()
        .filter(|(_, found)| !found.meta.is_deleting)
        .map(|(role, found)| write::delete_provider(*role, found))
        .collect();
    let names: Vec<_> = objects.iter().map(|(_, found)| titled(found)).collect();
    let names = names.join(" and ");
    // An object that has not been deleted yet may have been unchanged for a long time.
    let state = if actions.is_empty() && case.stalls_at() <= case.now {
        let finalizers: Vec<_> = objects
            .iter()
            .flat_map(|(_, found)| found.meta.finalizers.clone())
            .collect();
        let held = finalizers.join(", ");
        State::Stalled(format!(
            "{names} has not changed for 10 minutes, finalizers: {held}"
        ))
    } else {
        State::Terminating(format!("waiting for {names} to be gone"))
    };
    Outcome::of(state)
        .with(actions)
        .requeue_at(case.stalls_at())
        .requeue_at(after(case.now, CLEANUP_REQUEUE))
}

fn titled(provider: &Provider) -> String {
    format!("{} {}", provider.kind, provider.meta.name)
}
