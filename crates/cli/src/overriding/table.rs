//! Overrides as a table.

use std::borrow::Cow;
use std::io::{self, Write};

use fivespot_api::ScheduleOverride;
use jiff::Timestamp;

use crate::{columns, plain};

/// Prints a line for each override, those that end first before the others.
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
    let rows: Vec<_> = sorted.into_iter().map(|it| row(it, now)).collect();
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

fn row(it: &ScheduleOverride, now: Timestamp) -> [Cow<'_, str>; 8] {
    let text =
        |text: Option<&str>| Cow::from(plain::line(text.unwrap_or("-")).into_owned());
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
        it.spec.mode.as_str().into(),
        text(target.or(Some("(selector)"))),
        text(start.as_deref()),
        text(end.as_deref()),
        state(it, now).into(),
        text(it.spec.reason.as_deref()),
    ]
}

fn state(it: &ScheduleOverride, now: Timestamp) -> &'static str {
    let status = it.status.as_ref();
    // Before the operator has seen it nothing is known of that.
    let has_no_machine = status.is_some_and(|status| status.matched_machines == Some(0));
    let is_ignored = status.is_some_and(|status| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == "Ignored" && it.status == "True")
    });
    match (it.start(), it.end()) {
        (_, Some(end)) if end <= now => "ended",
        (_, Some(_)) if has_no_machine => "no machine",
        (_, Some(_)) if is_ignored => "ignored",
        (Some(start), _) if now < start => "waiting",
        (_, Some(_)) => "in force",
        (_, None) => "invalid",
    }
}
