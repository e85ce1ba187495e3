//! Return: a machine whose host was reclaimed comes back once the host has been free of every
//! signal of its owner for a while, before the override of the reclaim ends.
//!
//! The host reports on the ScheduledMachine, because its Node does not exist while the machine is
//! away. A return is recorded in the status before the override is deleted, so that a crash leaves
//! none uncounted.

use fivespot_api::HostReturn;
use fivespot_api::time::whole_seconds;
use fivespot_schedule::{Override, OverrideMode};
use jiff::{SignedDuration, Timestamp};

use crate::ReclaimStop;
use crate::act::memory::after;
use crate::decide::case::Case;

/// How long a report of the host counts, and a record of a return whose override still exists.
const FRESH: SignedDuration = SignedDuration::from_mins(5);
/// How far the clock of the host may be ahead of the operator's.
const AHEAD: SignedDuration = SignedDuration::from_mins(1);
/// The time in which returns are counted.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What is known about the return of a machine that the override of a reclaim stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return<'a> {
    /// It has returned as often as it may; the next one is possible from then on.
    Exhausted { from: Timestamp },
    /// Its host has not reported that it is free, or is in use.
    NotFree,
    /// It returns then, if its host confirms that it is still free.
    At(Timestamp),
    /// Its host reports by a clock that is ahead, by so many minutes at least.
    Ahead { minutes: i64 },
    /// Its host has reported, but not lately; or its clock is behind.
    Old,
    /// It returns now: this override ends.
    Due(&'a ReclaimStop),
}

/// The return of the machine; `None` if no override of a reclaim decides about it, or if something
/// else keeps it away too.
pub(crate) fn of<'a>(case: &Case<'a>) -> Option<Return<'a>> {
    let wanted = case.desired.returning?;
    let (subject, now) = (case.subject, case.now);
    let is_kept_away = subject.is_deleting
        || subject.is_paused
        || case.desired.is_killed
        || case.desired.is_audited;
    let stop = case.override_in_force().filter(|_| !is_kept_away)?;
    let stop = of_reclaim(case, stop)?;
    let others = subject.status.returns.iter();
    let times = others
        .filter(|of| of.override_uid != stop.uid && after(of.time, DAY) > now)
        .map(|of| of.time);
    let times: Vec<_> = times.collect();
    if times.len() >= wanted.max_per_day {
        let mut newest = times.clone();
        newest.sort_unstable_by(|one, other| other.cmp(one));
        let oldest_that_counts = newest.get(wanted.max_per_day.saturating_sub(1));
        return Some(Return::Exhausted {
            from: after(*oldest_that_counts.unwrap_or(&now), DAY),
        });
    }
    let Some(free) = subject.free_host else {
        return Some(Return::NotFree);
    };
    let due = after(free.since.max(stop.begun), wanted.after);
    Some(if free.confirmed > after(now, AHEAD) {
        let minutes = free.confirmed.duration_since(now).as_mins();
        Return::Ahead { minutes }
    } else if after(free.confirmed, FRESH) <= now {
        Return::Old
    } else if free.confirmed >= due {
        Return::Due(stop)
    } else {
        Return::At(due)
    })
}

/// The override in force, if a reclaim has created it.
fn of_reclaim<'a>(case: &Case<'a>, in_force: &Override) -> Option<&'a ReclaimStop> {
    let mut stops = case.observed.schedule.reclaim_stops.iter();
    stops.find(|of| of.name == in_force.name && in_force.mode == OverrideMode::Stop)
}

/// The override that ends once everything is gone: a reclaim completes first.
pub(crate) fn due<'a>(case: &Case<'a>) -> Option<&'a ReclaimStop> {
    let Return::Due(stop) = of(case)? else {
        return None;
    };
    Some(stop)
}

/// Whether the status has recorded the return that ends this override.
pub(crate) fn is_recorded(case: &Case<'_>, stop: &ReclaimStop) -> bool {
    let mut all = case.subject.status.returns.iter();
    all.any(|of| of.override_uid == stop.uid && after(of.time, FRESH) > case.now)
}

/// The returns that the status records, with the one that is due if everything is gone. Those before
/// the last day are dropped when one is added.
pub(crate) fn records(case: &Case<'_>, is_gone: bool) -> Vec<HostReturn> {
    let recorded = &case.subject.status.returns;
    let stop = due(case).filter(|stop| is_gone && !is_recorded(case, stop));
    let Some(stop) = stop else {
        return recorded.clone();
    };
    let new = HostReturn {
        time: whole_seconds(case.now),
        override_uid: stop.uid.clone(),
    };
    let is_kept =
        |of: &&HostReturn| after(of.time, DAY) > case.now && of.override_uid != stop.uid;
    let kept = recorded.iter().filter(is_kept).cloned();
    kept.chain([new]).collect()
}

/// When what is said about the return changes although nothing is reported.
pub(crate) fn next_changes(case: &Case<'_>) -> impl Iterator<Item = Timestamp> {
    let confirmed = case.subject.free_host.map(|free| free.confirmed);
    let instants = match of(case) {
        Some(Return::At(due)) => [Some(due), confirmed.map(|last| after(last, FRESH))],
        Some(Return::Ahead { .. }) => [confirmed.map(|last| after(last, -AHEAD)), None],
        Some(Return::Exhausted { from }) => [Some(from), None],
        Some(Return::NotFree | Return::Old | Return::Due(_)) | None => [None; 2],
    };
    instants.into_iter().flatten()
}

/// When the machine returns, in words after those about the override in force. Empty if its
/// override is not that of a reclaim.
pub(crate) fn describe(case: &Case<'_>) -> String {
    match of(case) {
        None => String::new(),
        Some(Return::NotFree) => {
            "; it returns before that if its host reports that it is free".to_owned()
        }
        Some(Return::At(due)) if due > case.now => {
            format!("; back at {due} if the host stays free")
        }
        Some(Return::At(_)) => {
            "; back when the host confirms that it is still free".to_owned()
        }
        Some(Return::Ahead { minutes }) => format!(
            "; its host reports that it is free, by a clock that is {minutes} min ahead: it returns \
             once that clock is right"
        ),
        Some(Return::Old) => "; the last report of its host that it is free is more than five \
                              minutes old: its agent does not run or cannot reach the cluster, or \
                              the clock of the host is behind"
            .to_owned(),
        Some(Return::Due(_)) => "; the host is free, and the machine returns".to_owned(),
        Some(Return::Exhausted { from }) => format!(
            "; it has returned as often as spec.reclaim.return.maxPerDay allows, and may return \
             again from {from} on"
        ),
    }
}
