//! The remedies for the conditions of a machine, from the table of reasons.

use std::io::{self, Write};

use fivespot_api::condition::{ConditionStatus, ConditionType, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use crate::plain;

/// The URL of the documentation pages.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");

/// The remedy for one reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remedy {
    reason: &'static str,
    text: String,
    /// The URL of the section with details.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// The remedies for the conditions that report a problem, in the order of the conditions, without
/// duplicates.
pub(super) fn of(conditions: &[Condition], namespace: &str) -> Vec<Remedy> {
    let mut all: Vec<Remedy> = Vec::new();
    for condition in conditions.iter().filter(|it| is_wrong(it)) {
        let Some(row) = Reason::row(&condition.reason) else {
            continue;
        };
        let Some(remedy) = row.remedy else { continue };
        let text = remedy.text.replace("NAMESPACE", namespace);
        if all.iter().all(|it| it.text != text) {
            all.push(Remedy {
                reason: row.name,
                text,
                url: remedy.section.map(|it| format!("{DOCS}{}", it.path)),
            });
        }
    }
    all
}

/// Whether a condition reports a problem.
///
/// `Stalled` reports one if it is true. `Scheduled` never does, because a machine does not run
/// outside its windows. `MachineReady` has the reasons of Cluster API.
fn is_wrong(condition: &Condition) -> bool {
    let is_true = condition.status == ConditionStatus::True.as_str();
    let is = |kind: ConditionType| condition.type_ == kind.as_str();
    match () {
        () if is(ConditionType::Stalled) => is_true,
        () if is(ConditionType::Scheduled) || is(ConditionType::MachineReady) => false,
        () => !is_true,
    }
}

/// Prints a line for each remedy, and one for its URL.
pub(super) fn text(out: &mut dyn Write, remedies: &[Remedy]) -> io::Result<()> {
    for Remedy { reason, text, url } in remedies {
        writeln!(out, "do: {} ({reason})", plain::line(text))?;
        if let Some(url) = url {
            writeln!(out, "    {url}")?;
        }
    }
    Ok(())
}
