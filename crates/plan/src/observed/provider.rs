//! What Cluster API and the providers report of a machine that is being provisioned or removed.

use fivespot_capi::{Condition, Machine, Provider, one_line};

use crate::decide::case::Case;

/// What the providers report as the cause of a delay, to be appended to a sentence: `;
/// RemoteMachine worker: ProvisionFailed: ...`. Empty if they report nothing.
pub(crate) fn report(case: &Case<'_>) -> String {
    let owned = case.owned;
    let parts = [owned.infrastructure.first(), owned.bootstrap.first()];
    let all = parts.into_iter().flatten().filter_map(problem);
    // The empty first element puts the separator also before the first report.
    let all: Vec<String> = std::iter::once(String::new()).chain(all).collect();
    all.join("; ")
}

/// The finalizers of the objects that are being deleted, to be appended to a sentence: `;
/// RemoteMachine worker has the finalizers ...`. Empty if there are none.
pub(crate) fn finalizers(case: &Case<'_>) -> String {
    let owned = case.owned;
    let parts = [owned.infrastructure.first(), owned.bootstrap.first()];
    let kept = parts
        .into_iter()
        .flatten()
        .filter(|of| of.meta.is_deleting && !of.meta.finalizers.is_empty());
    let kept = kept.map(|Provider { kind, meta, .. }| {
        let finalizers = one_line(&meta.finalizers.join(", "));
        format!("; {kind} {} has the finalizers {finalizers}", meta.name)
    });
    kept.collect::<Vec<_>>().concat()
}

/// The report of an object that is not provisioned, or not removed, yet.
fn problem(provider: &Provider) -> Option<String> {
    let is_waited_for = !provider.is_ready || provider.meta.is_deleting;
    let problem = provider.problem.as_ref().filter(|_| is_waited_for)?;
    let Provider { kind, meta, .. } = provider;
    Some(format!("{kind} {}: {problem}", meta.name))
}

/// The progress of a removal as Cluster API reports it, to be appended to a sentence: `:
/// WaitingForInfrastructureDeletion: ...`. Empty before the first report.
pub(crate) fn removal(machine: &Machine) -> String {
    let progress = machine.deletion_progress();
    progress.map_or_else(String::new, |at| format!(": {}", sentence(at)))
}

/// A condition's reason and message in one line.
fn sentence(condition: &Condition) -> String {
    let message = one_line(&condition.message);
    if message.is_empty() {
        condition.reason.clone()
    } else {
        format!("{}: {message}", condition.reason)
    }
}

/// A Ready Node with the Machine's name that Cluster API cannot find, to be appended to a
/// sentence; empty if there is none.
pub(crate) fn node_without_provider_id(case: &Case<'_>, machine: &Machine) -> String {
    let node = case.observed.workload.node.known().and_then(Option::as_ref);
    let found = node.filter(|node| {
        node.name == machine.meta.name && node.is_ready && node.provider_id.is_none()
    });
    found.map_or_else(String::new, |node| {
        format!(
            "; Node {} is Ready but has no providerID, which Cluster API needs to find the Node of \
             a Machine",
            node.name
        )
    })
}
