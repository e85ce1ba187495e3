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

/// How many machines are blocked. `None` if they cannot be read, or if no operator runs, so that
/// nothing is known about them.
pub(super) fn among_machines(
    machines: &Result<Vec<Value>, String>,
    judge: &Judge,
) -> Option<Finding> {
    let objects = machines.as_ref().ok()?;
    let blocked = blocked(objects, &judge.lease, |it| judge.machine(it))?;
    let words = ["machines", "ScheduledMachines", "NAME"];
    let finding = finding(words, &blocked, objects.len());
    Some(finding.about(blocked))
}

/// The same of ScheduledCapacities, if there are any. That they cannot be read is a finding.
pub(super) fn among_capacities(
    capacities: &Result<Vec<Value>, String>,
    judge: &Judge,
) -> Option<Finding> {
    const CHECK: &str = "capacities";
    let objects = match capacities {
        Ok(none) if none.is_empty() => return None,
        Ok(capacities) => capacities,
        Err(why) => return Some(Finding::unknown(CHECK, why)),
    };
    let blocked = blocked(objects, &judge.capacity_lease, |it| judge.capacity(it))?;
    let words = [CHECK, "ScheduledCapacities", "scap/NAME"];
    let finding = finding(words, &blocked, objects.len());
    Some(finding.about_capacities(blocked))
}

/// The objects that are blocked. `None` if nothing is known about them.
fn blocked(
    objects: &[Value],
    lease: &Lease,
    verdict: impl Fn(&Value) -> Verdict,
) -> Option<Vec<Judged>> {
    if matches!(lease, Lease::NotHeld { .. }) {
        return None;
    }
    let judged = objects.iter().map(|it| {
        let text =
            |key: &str| it["metadata"][key].as_str().unwrap_or_default().to_owned();
        Judged {
            namespace: text("namespace"),
            name: text("name"),
            verdict: verdict(it),
        }
    });
    let blocked = judged.filter(|it| it.verdict.state == State::Blocked);
    Some(blocked.collect())
}

/// The finding of a check about `all` objects of a kind; the last of the words is what
/// `5spot explain` is given.
fn finding(
    [check, several, explained]: [&'static str; 3],
    blocked: &[Judged],
    all: usize,
) -> Finding {
    if blocked.is_empty() {
        return Finding::ok(check, format!("none of {all} {several} is blocked"));
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
    Finding::warning(check, message).remedy(format!(
        "`5spot status -A` lists them first, `5spot explain {explained}` says what to do"
    ))
}
