//! How many of the objects that follow a schedule are blocked.

use fivespot_api::name;
use fivespot_api::verdict::{Lease, State, Verdict};
use serde_json::Value;

use super::Judge;
use super::finding::{Finding, Judged};
use crate::reader::Reader;

/// How many blocked objects are named.
const NAMED: usize = 3;

/// Lists all ScheduledCapacities.
///
/// # Errors
/// The server refuses to list them. The error is its message.
pub(super) async fn capacities(reader: &Reader) -> Result<Vec<Value>, String> {
    let (version, plural) = (name::API_VERSION, name::CAPACITY_PLURAL);
    reader
        .requests
        .list(&format!("/apis/{version}/{plural}"))
        .await
}

/// A kind whose objects are judged.
struct Kind {
    check: &'static str,
    /// Its plural in words.
    several: &'static str,
    /// What `5spot explain` is given.
    explained: &'static str,
    verdict: fn(&Judge, &Value) -> Verdict,
    lease: fn(&Judge) -> &Lease,
    about: fn(Finding, Vec<Judged>) -> Finding,
}

const MACHINES: Kind = Kind {
    check: "machines",
    several: "ScheduledMachines",
    explained: "NAME",
    verdict: Judge::machine,
    lease: |judge| &judge.lease,
    about: Finding::about,
};

const CAPACITIES: Kind = Kind {
    check: "capacities",
    several: "ScheduledCapacities",
    explained: "scap/NAME",
    verdict: Judge::capacity,
    lease: |judge| &judge.capacity_lease,
    about: Finding::about_capacities,
};

/// How many machines are blocked. `None` if they cannot be read, or if no operator runs, so that
/// nothing is known about them.
pub(super) fn among_machines(
    machines: &Result<Vec<Value>, String>,
    judge: &Judge,
) -> Option<Finding> {
    among(&MACHINES, machines.as_ref().ok()?, judge)
}

/// The same of ScheduledCapacities, if there are any. That they cannot be read is a finding.
pub(super) fn among_capacities(
    capacities: &Result<Vec<Value>, String>,
    judge: &Judge,
) -> Option<Finding> {
    match capacities {
        Ok(none) if none.is_empty() => None,
        Ok(capacities) => among(&CAPACITIES, capacities, judge),
        Err(why) => Some(Finding::unknown(CAPACITIES.check, why)),
    }
}

fn among(kind: &Kind, objects: &[Value], judge: &Judge) -> Option<Finding> {
    if matches!((kind.lease)(judge), Lease::NotHeld { .. }) {
        return None;
    }
    let judged = objects.iter().map(|it| {
        let text =
            |key: &str| it["metadata"][key].as_str().unwrap_or_default().to_owned();
        Judged {
            namespace: text("namespace"),
            name: text("name"),
            verdict: (kind.verdict)(judge, it),
        }
    });
    let blocked: Vec<_> = judged
        .filter(|it| it.verdict.state == State::Blocked)
        .collect();
    let (several, all) = (kind.several, objects.len());
    if blocked.is_empty() {
        let message = format!("none of {all} {several} is blocked");
        return Some(Finding::ok(kind.check, message));
    }
    let named = blocked.iter().take(NAMED);
    let named =
        named.map(|it| format!("{}/{} ({})", it.namespace, it.name, it.verdict.reason));
    let mut named: Vec<String> = named.collect();
    if blocked.len() > NAMED {
        named.push(format!("{} more", blocked.len() - NAMED));
    }
    let message = format!(
        "{} of {all} {several} are blocked: {}",
        blocked.len(),
        named.join(", ")
    );
    let remedy = format!(
        "`5spot status -A` lists them first, `5spot explain {}` says what to do",
        kind.explained
    );
    let finding = Finding::warning(kind.check, message).remedy(remedy);
    Some((kind.about)(finding, blocked))
}
