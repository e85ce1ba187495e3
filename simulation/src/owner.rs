//! Owners of hosts, as the agents on their hosts report them.
//!
//! While an owner is there, the agent requests the host on its Node. Once the owner has left, it
//! reports on the ScheduledMachine since when the host is free, and confirms that every few minutes.

use fivespot_api::{name, reclaim};
use fivespot_testkit::{Cluster, machine_path, node_path};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::effective_schedule::length;
use crate::snapshot::{MachineSnapshot, instant};

/// How often an agent looks and reports.
const INTERVAL: SignedDuration = SignedDuration::from_mins(4);

/// How long a free host is reported.
const REPORTED: SignedDuration = SignedDuration::from_mins(90);

/// How long a report counts, by a clock that may be some minutes behind. An undisturbed operator
/// learns at once that an owner has come.
const REPORT_COUNTS: SignedDuration = SignedDuration::from_mins(20);

/// By how much the times of returns may be wrong because of clocks that are.
const CLOCK_ERROR: SignedDuration = SignedDuration::from_mins(40);

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What an agent sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Owner,
    FreeSince(Timestamp),
}

/// What the agent of one host sees, in order, if its owner is there during these spans.
pub(crate) fn sights(mut visits: Vec<(Timestamp, Timestamp)>) -> Vec<(Timestamp, Sight)> {
    visits.sort_unstable();
    let mut merged: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (from, until) in visits {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    let mut sights = Vec::new();
    for (at, (from, left)) in merged.iter().enumerate() {
        let next = merged.get(at + 1).map(|of| of.0);
        let last = (*left + REPORTED).min(next.unwrap_or(Timestamp::MAX));
        sights.extend(every_interval(*from, *left).map(|at| (at, Sight::Owner)));
        let free = every_interval(*left, last);
        sights.extend(free.map(|at| (at, Sight::FreeSince(*left))));
    }
    sights
}

fn every_interval(from: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    std::iter::successors(Some(from), |at| Some(*at + INTERVAL))
        .take_while(move |at| *at < until)
}

/// Writes what the agent of the host of this machine writes.
pub(crate) async fn report(cluster: &Cluster, name: &str, sight: Sight, now: Timestamp) {
    let (owner, path) = (machine_path(name), node_path(name));
    let node = cluster.get(&path).await;
    let is_machine = cluster.get(&owner).await.is_some();
    let is_there = node.is_some();
    let free = match sight {
        Sight::Owner => {
            let annotations = node.map(|node| node["metadata"]["annotations"].clone());
            let is_requested =
                |all: Value| !all[name::RECLAIM_REQUESTED_ANNOTATION].is_null();
            if annotations.is_some_and(|all| !is_requested(all)) {
                let request = json!({"metadata": {"annotations": {
                    name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
                    name::RECLAIM_REASON_ANNOTATION: "login-session: ada",
                    name::RECLAIM_REQUESTED_AT_ANNOTATION: now.to_string(),
                }}});
                let _ = cluster.try_patch(&path, &request).await;
            }
            None
        }
        Sight::FreeSince(since) if !is_there => Some(format!("{since} {now}")),
        Sight::FreeSince(_) => None,
    };
    if is_machine {
        let patch =
            json!({"metadata": {"annotations": {name::HOST_FREE_ANNOTATION: free}}});
        let _ = cluster.try_patch(&owner, &patch).await;
    }
}

/// What is known of a host and its owner, independently of the operator.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Since when it is free, if it is.
    free: Option<Timestamp>,
    /// The last span in which it was free.
    before: Option<(Timestamp, Timestamp)>,
    /// When overrides of its reclaims were ended early.
    returns: Vec<Timestamp>,
}

impl Host {
    pub(crate) fn see(&mut self, sight: Sight, now: Timestamp) {
        match sight {
            Sight::Owner => {
                if let Some(since) = self.free.take() {
                    self.before = Some((since, now));
                }
            }
            Sight::FreeSince(since) => self.free = Some(since),
        }
    }

    pub(crate) fn returns(&self) -> usize {
        self.returns.len()
    }

    /// Notes that the operator has ended the override of a reclaim of `machine` early. Returns
    /// which law that breaks, if it does.
    pub(crate) fn end(
        &mut self,
        machine: &Value,
        now: Timestamp,
        is_undisturbed: bool,
    ) -> Option<&'static str> {
        let counts = if is_undisturbed {
            SignedDuration::ZERO
        } else {
            REPORT_COUNTS
        };
        let returning = &machine["spec"]["reclaim"]["return"];
        let after = length(&returning["after"]);
        let ended = self.before.filter(|(_, until)| *until + counts >= now);
        let spans = self.free.map(|since| (since, now)).into_iter().chain(ended);
        let is_free = returning.is_object()
            && spans
                .into_iter()
                .any(|(since, until)| since + after <= until);
        let most = returning["maxPerDay"].as_u64().unwrap_or(0);
        let lately = self.returned_lately(now);
        self.returns.push(now);
        if !is_free {
            return Some(
                "a machine returns only to a host that has been free for long enough",
            );
        }
        (lately as u64 >= most)
            .then_some("a machine returns at most maxPerDay times in a day")
    }

    fn returned_lately(&self, now: Timestamp) -> usize {
        let mut returns = self.returns.iter();
        let of_today = returns.by_ref().filter(|at| **at + DAY - CLOCK_ERROR > now);
        of_today.count()
    }

    /// Whether a machine whose objects are these, and that nothing but the override of a reclaim
    /// stops, should have returned: its host has been reported as free for long enough, twice.
    pub(crate) fn is_overdue(&self, snapshot: &MachineSnapshot, now: Timestamp) -> bool {
        let returning = &snapshot.owner["spec"]["reclaim"]["return"];
        let schedule = snapshot.schedule();
        let in_force = schedule.as_ref().and_then(|of| of.in_force(now));
        let begun = in_force.and_then(reclaimed_at);
        let (Some(free), Some(begun)) = (self.free, begun) else {
            return false;
        };
        let due = free.max(begun) + length(&returning["after"]);
        let most = returning["maxPerDay"].as_u64().unwrap_or(0);
        let lately = self
            .returns
            .iter()
            .filter(|at| **at + DAY + CLOCK_ERROR > now);
        returning.is_object()
            && due + INTERVAL * 2 < now
            && (lately.count() as u64) < most
            && snapshot.ours().is_empty()
            && snapshot.node.is_null()
            && snapshot.phase() == "Inactive"
            && snapshot.is_enabled()
            && !snapshot.is_killed()
            && !snapshot.is_paused()
            && !snapshot.is_deleting()
    }
}

/// When the reclaim began that created this override; `None` if none did.
pub(crate) fn reclaimed_at(of: &Value) -> Option<Timestamp> {
    let is_stop = of["spec"]["mode"] == "Stop";
    instant(&of["metadata"]["annotations"][name::RECLAIMED_AT_ANNOTATION])
        .filter(|_| is_stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-06T{text}Z").parse().unwrap()
    }

    #[test]
    fn visits_that_overlap_are_one_and_the_host_is_free_after_them() {
        let visits = vec![
            (at("09:02:00"), at("09:08:00")),
            (at("09:00:00"), at("09:04:00")),
            (at("09:14:00"), at("09:15:00")),
        ];
        let sights = sights(visits);
        let left = Sight::FreeSince(at("09:08:00"));
        assert_eq!(
            sights[..5],
            [
                (at("09:00:00"), Sight::Owner),
                (at("09:04:00"), Sight::Owner),
                (at("09:08:00"), left),
                (at("09:12:00"), left),
                (at("09:14:00"), Sight::Owner),
            ]
        );
        let last = Sight::FreeSince(at("09:15:00"));
        assert_eq!(sights[5], (at("09:15:00"), last));
        assert_eq!(sights.last(), Some(&(at("10:43:00"), last)));
    }

    #[test]
    fn a_return_to_a_host_in_use_or_once_too_often_is_found() {
        let machine =
            json!({"spec": {"reclaim": {"return": {"after": "15m", "maxPerDay": 1}}}});
        let mut host = Host::default();
        host.see(Sight::Owner, at("09:00:00"));
        assert!(host.end(&machine, at("09:20:00"), true).is_some());
        let mut host = Host::default();
        host.see(Sight::FreeSince(at("09:00:00")), at("09:10:00"));
        assert!(host.end(&machine, at("09:14:59"), true).is_some());
        let mut host = Host::default();
        host.see(Sight::FreeSince(at("09:00:00")), at("09:10:00"));
        assert_eq!(host.end(&machine, at("09:15:00"), true), None);
        let again = host.end(&machine, at("10:00:00"), true);
        assert_eq!(
            again,
            Some("a machine returns at most maxPerDay times in a day")
        );
        // An operator that acts on an old report does so soon.
        let mut host = Host::default();
        host.see(Sight::FreeSince(at("09:00:00")), at("09:16:00"));
        host.see(Sight::Owner, at("09:17:00"));
        assert!(host.end(&machine, at("09:18:00"), true).is_some());
        host.returns.clear();
        assert_eq!(host.end(&machine, at("09:18:00"), false), None);
    }
}
