//! Prints overrides as a table.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fivespot_api::ScheduleOverride;
use fivespot_schedule::Override;
use jiff::Timestamp;

use crate::columns;

/// Prints a line for each override, ordered by end.
pub(super) fn print(
    out: &mut dyn Write,
    overrides: &[ScheduleOverride],
    now: Timestamp,
) -> io::Result<()> {
    if overrides.is_empty() {
        return writeln!(out, "no ScheduleOverride");
    }
    let mut sorted: Vec<&ScheduleOverride> = overrides.iter().collect();
    sorted.sort_by_key(|it| it.end());
    let machines = by_machine(overrides);
    let rows: Vec<_> = sorted
        .into_iter()
        .map(|it| row(it, &machines, now))
        .collect();
    columns::table(out, HEADS, &rows)
}

const HEADS: [&str; 8] = [
    "NAMESPACE",
    "NAME",
    "MODE",
    "TARGET",
    "FROM",
    "UNTIL",
    "STATE",
    "REASON",
];

fn row(it: &ScheduleOverride, machines: &ByMachine<'_>, now: Timestamp) -> [String; 8] {
    let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let target = it
        .spec
        .target_ref
        .as_ref()
        .map(|target| target.name.as_str());
    let start = it.start().map(|start| start.to_string());
    let end = it.end().map(|end| end.to_string());
    [
        text(it.metadata.namespace.as_deref()),
        text(it.metadata.name.as_deref()),
        it.spec.mode.as_str().to_owned(),
        text(target.or(Some("(selector)"))),
        text(start.as_deref()),
        text(end.as_deref()),
        state(it, machines, now).to_owned(),
        text(it.spec.reason.as_deref()),
    ]
}

/// The overrides that name a ScheduledMachine and are not ignored, by its namespace and name.
type ByMachine<'o> = BTreeMap<(Option<&'o str>, &'o str), Vec<Override>>;

fn by_machine(overrides: &[ScheduleOverride]) -> ByMachine<'_> {
    let mut all = ByMachine::new();
    for it in overrides.iter().filter(|it| !it.is_ignored()) {
        if let (Some(machine), Some(of)) = (machine(it), it.in_schedule()) {
            all.entry(machine).or_default().push(of);
        }
    }
    all
}

/// The namespace and name of the ScheduledMachine. `None` for a selector and for a
/// ScheduledCapacity.
fn machine(it: &ScheduleOverride) -> Option<(Option<&str>, &str)> {
    if it.capacity().is_some() {
        return None;
    }
    let target = it.spec.target_ref.as_ref()?;
    Some((it.metadata.namespace.as_deref(), target.name.as_str()))
}

/// Whether another override that names the same ScheduledMachine takes precedence. Overrides with
/// a selector are not compared.
fn is_superseded(
    it: &ScheduleOverride,
    machines: &ByMachine<'_>,
    now: Timestamp,
) -> bool {
    let all = machine(it).and_then(|machine| machines.get(&machine));
    let strongest = all.and_then(|all| Override::strongest(all, now));
    strongest.is_some_and(|of| Some(of.name.as_str()) != it.metadata.name.as_deref())
}

fn state(
    it: &ScheduleOverride,
    machines: &ByMachine<'_>,
    now: Timestamp,
) -> &'static str {
    let status = it.status.as_ref();
    // The status has no count before the operator has reconciled the override.
    let has_no_machine = status.is_some_and(|status| status.matched_machines == Some(0));
    match (it.start(), it.end()) {
        (_, Some(end)) if end <= now => "ended",
        (_, Some(_)) if has_no_machine => "no machine",
        (_, Some(_)) if it.is_ignored() => "ignored",
        (Some(start), _) if now < start => "waiting",
        (_, Some(_)) if is_superseded(it, machines, now) => "superseded",
        (_, Some(_)) => "in force",
        (_, None) => "invalid",
    }
}
