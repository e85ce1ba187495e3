//! The host of the class that a machine is made on: claimed by a Lease, then recorded in the status,
//! then used, and given back in the reverse order once the three objects are gone. So a Lease
//! outlives its record, and a record the objects, whatever is lost between two writes.

use fivespot_api::condition::Reason;
use fivespot_api::host_claim::{Holder, HostClaim};
use fivespot_api::name;
use fivespot_capi::one_line;

use crate::decide::case::Case;
use crate::why::Why;
use crate::{StoredClaim, Unknown};

/// What has to happen before the objects are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostNeed<'a> {
    /// Nothing: the machine needs no host, or has one.
    Nothing,
    /// The claims are unknown.
    Unknown(&'a Unknown),
    /// The host is recorded, and its claim is gone.
    ClaimAgain(&'a str),
    /// The recorded host must not be used.
    GiveBack(&'a str),
    /// The host is claimed and has to be recorded.
    Record(&'a str),
    /// The host is free.
    Claim(&'a str),
    /// No host is free.
    Wait(Why),
}

/// What has to happen before the objects are created.
pub(crate) fn need<'a>(case: &Case<'a>) -> HostNeed<'a> {
    let desired = &case.desired.host;
    let recorded = case.subject.status.host.as_deref();
    if case.desired.is_audited || desired.pool.is_none() && recorded.is_none() {
        return HostNeed::Nothing;
    }
    if let Some(unknown) = &case.observed.hosts.unknown {
        return HostNeed::Unknown(unknown);
    }
    match recorded {
        Some(host) if is_lost(case) => HostNeed::GiveBack(host),
        Some(host) if is_claimed(case, host) => HostNeed::Nothing,
        Some(host) => HostNeed::ClaimAgain(host),
        None => {
            let offered = case.memory.offered_host();
            let offered = offered.filter(|host| desired.allows(host));
            match (desired.current.as_deref(), offered) {
                (Some(claimed), _) => HostNeed::Record(claimed),
                (None, Some(offered)) => HostNeed::Claim(offered),
                (None, None) => none_free(case),
            }
        }
    }
}

/// Whether the recorded host must not be used any more: it is not one of the class, another one is
/// named, or another ScheduledMachine has it.
pub(crate) fn is_lost(case: &Case<'_>) -> bool {
    let Some(host) = &case.subject.status.host else {
        return false;
    };
    let is_others = case.observed.hosts.holder.is_some() && !is_claimed(case, host);
    !case.desired.is_audited && (!case.desired.host.allows(host) || is_others)
}

fn none_free(case: &Case<'_>) -> HostNeed<'static> {
    let desired = &case.desired.host;
    let class = one_line(&desired.class);
    let Some(host) = &desired.named else {
        let message = format!(
            "no host of ScheduledMachineClass {class} is free; the machine takes the next one"
        );
        return HostNeed::Wait(Why::new(Reason::NoHostFree, message));
    };
    let holder = case.observed.hosts.holder.as_deref().map_or_else(
        || "another ScheduledMachine".to_owned(),
        |of| format!("ScheduledMachine {}", one_line(of)),
    );
    let host = one_line(host);
    let message =
        format!("host {host} of ScheduledMachineClass {class} is used by {holder}");
    HostNeed::Wait(Why::new(Reason::HostTaken, message))
}

fn is_claimed(case: &Case<'_>, host: &str) -> bool {
    let class = &case.desired.host.class;
    case.observed.hosts.claim(class, host).is_some()
}

/// The claim of a host for the machine.
pub(crate) fn claim(case: &Case<'_>, host: &str) -> HostClaim {
    let subject = case.subject;
    HostClaim {
        class: case.desired.host.class.clone(),
        host: host.to_owned(),
        holder: Holder {
            namespace: subject.namespace.clone(),
            name: subject.name.clone(),
            uid: subject.uid.clone(),
        },
    }
}

/// The recorded host if somebody has deleted its claim. It is claimed again also just before it is
/// given back: the deletion of the Lease tells who waits for the host.
pub(crate) fn unclaimed<'a>(case: &Case<'a>) -> Option<&'a str> {
    let hosts = &case.observed.hosts;
    let recorded = case.subject.status.host.as_deref();
    let is_claimed = |host: &str| hosts.claims.iter().any(|of| of.claim.host == host);
    let is_ours = hosts.holder.is_none()
        && !case.desired.host.class.is_empty()
        && !case.desired.is_audited;
    recorded.filter(|host| is_ours && !is_claimed(host))
}

/// The claims of the machine for other hosts than the recorded one and the one that it uses.
pub(crate) fn spare<'a>(case: &Case<'a>, used: Option<&str>) -> Vec<&'a StoredClaim> {
    let class = &case.desired.host.class;
    let recorded = case.subject.status.host.as_deref();
    let is_gone = case.owned.is_gone();
    let is_kept = |of: &HostClaim| {
        let is_own = of.class == *class;
        recorded == Some(&of.host) && (is_own || !is_gone)
            || used == Some(&of.host) && is_own
    };
    let claims = case.observed.hosts.claims.iter();
    claims.filter(|of| !is_kept(&of.claim)).collect()
}

/// The host that the existing objects are for.
pub(crate) fn made_on(case: &Case<'_>) -> Option<String> {
    let machine = case.owned.our_machine().map(|of| &of.meta);
    let providers = case.owned.providers().into_iter().map(|(_, of)| &of.meta);
    let mut all = machine.into_iter().chain(providers);
    all.find_map(|meta| meta.annotations.get(name::HOST_ANNOTATION).cloned())
}

/// Whether a host is recorded or claimed, so that the finalizer stays.
pub(crate) fn is_held(case: &Case<'_>) -> bool {
    case.subject.status.host.is_some() || !case.observed.hosts.claims.is_empty()
}
