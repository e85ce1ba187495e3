//! What a machine uses if it follows its schedule exactly.

use fivespot_schedule::Schedule;
use jiff::Timestamp;

use crate::Figures;

/// A time range in seconds; the end is exclusive.
#[derive(Clone, Copy, Debug)]
struct Range {
    since: i64,
    until: i64,
}

impl Figures {
    /// The counts from `from` to `to` of a machine that has a Ready Node exactly while `schedule`
    /// wants it, and that is provisioned during the lead time before. Without a schedule it does not
    /// exist.
    ///
    /// A shutdown that begins at the end of a window is not counted: how long it takes depends on the
    /// pods.
    pub fn planned(schedule: Option<&Schedule>, from: Timestamp, to: Timestamp) -> Self {
        let wanted =
            schedule.map_or_else(Vec::new, |schedule| wanted(schedule, from, to));
        let needed =
            schedule.map_or_else(Vec::new, |schedule| needed(schedule, from, to));
        let wanted_seconds = seconds(wanted.clone());
        let used_seconds = seconds([wanted, needed].concat());
        Self {
            wanted_seconds,
            active_seconds: wanted_seconds,
            provisioning_seconds: used_seconds - wanted_seconds,
            late_seconds: 0,
            audited_seconds: 0,
            used_seconds,
            always_on_seconds: to.duration_since(from).as_secs().max(0),
            reclaims: 0,
        }
    }
}

fn wanted(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Range> {
    let begin = schedule.at(from).is_open().then_some((from, true));
    let changes = begin
        .into_iter()
        .chain(schedule.transitions(from, to))
        .chain([(to, false)]);
    let mut all = Vec::new();
    let mut since = None;
    for (at, is_wanted) in changes {
        match (since, is_wanted) {
            (None, true) => since = Some(at.as_second()),
            (Some(begun), false) => {
                since = None;
                all.push(Range {
                    since: begun,
                    until: at.as_second(),
                });
            }
            _ => {}
        }
    }
    all
}

fn needed(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Range> {
    let spans = schedule.needed_spans(from, to);
    spans
        .map(|span| Range {
            since: span.start.as_second(),
            until: span.end.unwrap_or(to).min(to).as_second(),
        })
        .collect()
}

/// The number of seconds that are in at least one of the ranges.
fn seconds(mut ranges: Vec<Range>) -> i64 {
    ranges.sort_unstable_by_key(|range| range.since);
    let (mut sum, mut counted_until) = (0, i64::MIN);
    for Range { since, until } in ranges {
        sum += (until - since.max(counted_until)).max(0);
        counted_until = counted_until.max(until);
    }
    sum
}
