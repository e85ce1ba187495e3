//! What a machine uses if it follows its schedule exactly.

use std::ops::Range;

use fivespot_drawing::planned;
use fivespot_schedule::Schedule;
use jiff::Timestamp;

use crate::Figures;

impl Figures {
    /// The counts from `from` to `to` of a machine that has a Ready Node exactly while `schedule`
    /// wants it, and that is provisioned during the lead time before. Without a schedule it does not
    /// exist.
    ///
    /// A shutdown that begins at the end of a window is not counted: how long it takes depends on the
    /// pods.
    pub fn planned(schedule: Option<&Schedule>, from: Timestamp, to: Timestamp) -> Self {
        let wanted = schedule.map_or_else(Vec::new, |it| wanted(it, from, to));
        let needed = schedule.map_or_else(Vec::new, |it| needed(it, from, to));
        let wanted_seconds = seconds(wanted.clone());
        let used_seconds = seconds([wanted, needed].concat());
        Self {
            wanted_seconds,
            active_seconds: wanted_seconds,
            provisioning_seconds: used_seconds - wanted_seconds,
            used_seconds,
            always_on_seconds: to.duration_since(from).as_secs().max(0),
            ..Self::default()
        }
    }
}

/// When the schedule wants a machine, in seconds.
fn wanted(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Range<i64>> {
    let spans = planned::spans(schedule, from, to).into_iter();
    let wanted = spans.filter(|span| span.kind.is_wanted());
    wanted
        .map(|span| span.since.as_second()..span.until.as_second())
        .collect()
}

/// When it needs one: from the lead time before.
fn needed(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Range<i64>> {
    let spans = schedule.needed_spans(from, to);
    let end = |end: Option<Timestamp>| end.unwrap_or(to).min(to).as_second();
    spans
        .map(|span| span.start.as_second()..end(span.end))
        .collect()
}

/// The number of seconds that are in at least one of the ranges.
fn seconds(mut ranges: Vec<Range<i64>>) -> i64 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut sum, mut counted_until) = (0, i64::MIN);
    for Range { start, end } in ranges {
        sum += (end - start.max(counted_until)).max(0);
        counted_until = counted_until.max(end);
    }
    sum
}
