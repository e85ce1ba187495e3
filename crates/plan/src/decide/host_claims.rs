//! Keeps the claims of hosts in line with what a machine uses.

use crate::Step;
use crate::act::write;
use crate::decide::case::Case;
use crate::decide::host;
use crate::decide::outcome::Outcome;

/// Adds the claim of a recorded host that somebody has deleted, and gives back what is not used.
pub(crate) fn settle(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let hosts = &case.observed.hosts;
    if !outcome.state.is_observed() || hosts.unknown.is_some() {
        return outcome;
    }
    let mut steps = outcome.actions.iter().map(|action| action.step);
    let is_claiming = steps.any(|step| step == Step::ClaimHost);
    if let Some(host) = host::unclaimed(case) {
        if !is_claiming {
            let claim = host::claim(case, host);
            let action = write::claim_host(&claim, &hosts.namespace);
            outcome.actions.insert(0, action);
        }
        return outcome;
    }
    if !case.owned.is_gone() && case.subject.status.host.is_none() {
        // The status is lost, as after a restore.
        if let Some(host) = host::made_on(case).filter(|_| !case.desired.is_audited) {
            outcome.host = Some(host);
        }
        return outcome;
    }
    let spare = host::spare(case, outcome.host.as_deref()).into_iter();
    let released = spare.map(|of| write::release_host(of, &hosts.namespace));
    outcome.actions.extend(released);
    outcome
}
