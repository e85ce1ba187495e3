//! Audit mode: what would be done is reported, and nothing is done.
//!
//! Admission does not let a machine that exists change to audit mode. Where it has happened all
//! the same, its objects are left as they are.

use crate::act::write;
use crate::decide::case::Case;
use crate::decide::outcome::{Omitted, Outcome, State};

/// The outcome of a machine in audit mode: that of its decision without its writes. Our finalizer,
/// which an enforced machine has, is removed as soon as no object of it is left.
pub(crate) fn only_report(case: &Case<'_>, outcome: Outcome) -> Outcome {
    let is_released = outcome.state.is_observed()
        && case.owned.is_gone()
        && case.subject.has_finalizer();
    let release = is_released.then(|| write::remove_finalizer(case.subject));
    let reported = Outcome::of(state(case, outcome.state));
    Outcome {
        requeues: outcome.requeues,
        ..reported.with(release.into_iter().collect())
    }
}

/// The state without the steps that are not taken.
fn state(case: &Case<'_>, state: State) -> State {
    let is_provisioned = matches!(state, State::Provisioning(_));
    if matches!(state, State::Terminating(_) | State::Stalled(_)) {
        State::Audited(Omitted::Removal)
    } else if is_provisioned && case.owned.is_gone() {
        State::Audited(Omitted::Creation)
    } else if is_provisioned && !is_coming_up(case) {
        State::Audited(Omitted::Completion)
    } else {
        state
    }
}

/// Whether Cluster API is provisioning a Machine of ours.
fn is_coming_up(case: &Case<'_>) -> bool {
    let machine = case.owned.our_machine();
    machine.is_some_and(|machine| !machine.meta.is_deleting)
}
