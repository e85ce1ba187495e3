//! What one process keeps in memory about one ScheduledMachine between reconciles.
//!
//! All of it may be lost at any moment: after a restart steps in backoff are retried at once, and
//! the ten minutes of a stalled removal are counted again. No decision that matters depends on it
//! alone.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroU32;

use fivespot_capi::Meta;
use jiff::{SignedDuration, Timestamp};

use crate::act::repeat::Repeats;
use crate::limits::Turn;
use crate::rates::Pace;
use crate::why::Why;
use crate::{Action, Freshness, Observed, Plan, Step};

/// How long until an eviction that was refused is retried, as in `kubectl drain`.
const EVICTION_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// The longest backoff of a failed step. A later retry was recorded with a clock that was ahead.
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// How long after its retry was due a failed step is dropped: it is no longer required.
const FAILURE_TTL: SignedDuration = SignedDuration::from_mins(1);

/// The state kept in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Hash of the uids and resourceVersions of the observed objects.
    fingerprint: u64,
    /// Since when the three objects are unchanged, as far as this process observed.
    pub(crate) changed_at: Option<Timestamp>,
    /// The uid of the Machine that is being deleted, and since when.
    deleting: Option<(String, Timestamp)>,
    generation: Option<i64>,
    refusals: BTreeMap<String, RefusedEviction>,
    failures: BTreeMap<Step, Failure>,
    /// Since when each of these steps has been failing.
    failing_since: BTreeMap<Step, Timestamp>,
    /// Since when a read that the operator needs is forbidden; `None` if all are allowed.
    pub(crate) forbidden_since: Option<Timestamp>,
    repeats: Repeats,
    /// The agent's configuration, and since when it exists.
    projected: Option<(String, Timestamp)>,
    pub(crate) status_written_at: Option<Timestamp>,
    /// Whether the last status that was written reported only progress.
    pub(crate) was_progress: bool,
    /// Whether the Machine in the caches cannot be an earlier one: this process has created a
    /// Machine, and a cache is used only once it contains that one.
    pub(crate) has_created: bool,
    /// When the machine may start; `None` if now.
    pub(crate) start_delay: Option<StartDelay>,
    offered_host: Option<String>,
    /// Whether the limits of its class let the machine be made.
    pub(crate) turn: Option<Turn>,
    /// Whether the rates of its class hold the machine.
    pub(crate) pace: Option<Pace>,
}

/// When a machine may start that waits because of the start limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartDelay {
    /// When to requeue.
    pub(crate) due: Timestamp,
    /// How many machines may start in a minute.
    pub(crate) per_minute: NonZeroU32,
}

/// An eviction that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedEviction {
    /// When the next try is due.
    pub(crate) due: Timestamp,
    /// The message of the API server.
    pub(crate) message: String,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// The kind of failure.
    pub cause: Cause,
    /// The message of the API server or of the client.
    pub message: String,
    /// How often this step has failed in a row; see [`Memory::attempts`].
    pub attempts: u32,
    /// When to retry: at most five minutes after the failure.
    pub retry_at: Timestamp,
}

impl Failure {
    /// What `Ready` says of it; `None` if that is not the business of `Ready`.
    pub(crate) fn why(&self) -> Option<Why> {
        self.step.failed(&self.message)
    }
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The operator lacks a permission (403).
    Forbidden,
    /// The namespace is being deleted (403 with that cause).
    NamespaceTerminating,
    /// The server, a schema, a policy or a webhook rejects the object (400, 422, or 403 of an
    /// admission plugin).
    Rejected,
    /// The kind is not served (404 of a create).
    NotServed,
    /// All other errors: no response, overload, an error of the server (5xx).
    Unavailable,
}

impl Memory {
    /// Records what a reconcile observed. Call it once for each reconcile, before planning.
    ///
    /// `generation` is that of the ScheduledMachine: an edit of the spec is tried at once.
    pub fn observe(
        &mut self,
        generation: Option<i64>,
        observed: &Observed,
        now: Timestamp,
    ) {
        if let Some(fingerprint) = fingerprint(observed)
            && (self.fingerprint != fingerprint || self.changed_at.is_none())
        {
            self.fingerprint = fingerprint;
            self.changed_at = Some(now);
        }
        self.forbidden_since = observed
            .is_forbidden()
            .then(|| self.forbidden_since.map_or(now, |since| since.min(now)));
        self.observe_agent(observed, now);
        self.observe_deletion(observed, now);
        if observed.freshness == Freshness::Live
            && observed.machine.known() == Some(&None)
        {
            self.has_created = false;
        }
        self.drop_future_entries(now);
        let is_edited = self.generation != generation;
        self.generation = generation;
        if is_edited {
            self.repeats = Repeats::default();
        }
        self.failures.retain(|_, failure| {
            !is_edited && after(failure.retry_at, FAILURE_TTL) >= now
        });
        let failures = &self.failures;
        self.failing_since
            .retain(|step, since| failures.contains_key(step) && *since <= now);
        for step in failures.keys() {
            self.failing_since.entry(*step).or_insert(now);
        }
        if let Some(pods) = observed.workload.pods.known() {
            self.refusals
                .retain(|uid, _| pods.iter().any(|pod| pod.uid == *uid));
        }
    }

    /// Drops what was recorded with a clock that was ahead and has been set back since: retries
    /// later than any backoff, and instants in the future.
    fn drop_future_entries(&mut self, now: Timestamp) {
        self.repeats.drop_after(now);
        let latest = after(now, MAX_BACKOFF);
        self.failures
            .retain(|_, failure| failure.retry_at <= latest);
        let latest = after(now, EVICTION_RETRY);
        self.refusals.retain(|_, refusal| refusal.due <= latest);
        self.status_written_at = self.status_written_at.filter(|written| *written <= now);
        self.changed_at = self.changed_at.map(|changed| changed.min(now));
        if let Some((_, since)) = &mut self.deleting {
            *since = now.min(*since);
        }
        if let Some((_, since)) = &mut self.projected {
            *since = now.min(*since);
        }
    }

    /// Records since when the Machine is being deleted.
    fn observe_deletion(&mut self, observed: &Observed, now: Timestamp) {
        let Some(machine) = observed.machine.known() else {
            return;
        };
        let deleting = machine.as_ref().filter(|found| found.meta.is_deleting);
        let uid = deleting.map(|found| found.meta.uid.as_str());
        if uid != self.deleting.as_ref().map(|(uid, _)| uid.as_str()) {
            self.deleting = uid.map(|uid| (uid.to_owned(), now));
        }
    }

    /// Records since when the agent has its configuration.
    fn observe_agent(&mut self, observed: &Observed, now: Timestamp) {
        let Some(config) = observed.workload.agent_config.known() else {
            return;
        };
        let text = config.as_ref().and_then(|config| config.text.as_deref());
        if text != self.projected.as_ref().map(|(text, _)| text.as_str()) {
            self.projected = text.map(|text| (text.to_owned(), now));
        }
    }

    /// Records that an eviction was refused (429): it is due again after 5 s.
    pub fn refused(&mut self, pod_uid: &str, message: &str, now: Timestamp) {
        let refusal = RefusedEviction {
            due: after(now, EVICTION_RETRY),
            message: message.to_owned(),
        };
        self.refusals.insert(pod_uid.to_owned(), refusal);
    }

    /// How often this step has failed in a row. Steps are counted separately, so that one that
    /// fails forever delays no other.
    pub fn attempts(&self, step: Step) -> u32 {
        let failure = self.failures.get(&step);
        failure.map_or(0, |failure| failure.attempts)
    }

    /// Records that a step failed. The caller computes `retry_at`, because the backoff needs
    /// random numbers.
    pub fn failed(&mut self, failure: Failure) {
        self.failures.insert(failure.step, failure);
    }

    /// Records that all of `actions` were sent and succeeded.
    pub fn succeeded(&mut self, actions: &[Action]) {
        for action in actions {
            self.failures.remove(&action.step);
            self.has_created |= action.step == Step::CreateMachine;
        }
    }

    /// Records that all of `actions` were sent and succeeded at `now`. A step that is required
    /// again and again after it succeeded, because another client undoes it, waits longer each
    /// time, until the spec is edited.
    pub fn repeated(&mut self, actions: &[Action], now: Timestamp) {
        self.repeats.note(actions, now);
    }

    /// Until when a step waits that has succeeded again and again; `None` if it does not.
    pub(crate) fn repeats_until(&self, step: Step) -> Option<Timestamp> {
        self.repeats.due(step)
    }

    /// Records that the start limit delays the machine until an instant: at most `per_minute`
    /// machines start in a minute. Until then no start is planned.
    pub fn delay_start(&mut self, due: Timestamp, per_minute: NonZeroU32) {
        self.start_delay = Some(StartDelay { due, per_minute });
    }

    /// Forgets such a delay, so that the start is planned and the limit asked again.
    pub fn end_start_delay(&mut self) {
        self.start_delay = None;
    }

    /// Records the host of its class that the machine may claim next; `None` if none is free.
    pub fn offer_host(&mut self, host: Option<String>) {
        self.offered_host = host;
    }

    /// The host that the machine may claim.
    pub(crate) fn offered_host(&self) -> Option<&str> {
        self.offered_host.as_deref()
    }

    /// Records whether the limits of its class let the machine be made; `None` if that is not known.
    /// Nothing is made then, if the class has limits. See [`rule`](crate::limits::rule).
    pub fn give_turn(&mut self, turn: Option<Turn>) {
        self.turn = turn;
    }

    /// Records whether the rates of its class hold the machine; `None` if that is not known. It is not
    /// made then, and does not leave by its schedule. See [`rule`](crate::rates::rule).
    pub fn give_pace(&mut self, pace: Option<Pace>) {
        self.pace = pace;
    }

    /// Records that the status of `plan` was written.
    pub fn status_written(&mut self, plan: &Plan, now: Timestamp) {
        self.status_written_at = Some(now);
        self.was_progress = plan.is_progress;
    }

    /// The last failure of a step; `None` if it has succeeded since.
    pub fn failure(&self, step: Step) -> Option<&Failure> {
        self.failures.get(&step)
    }

    /// Since when a step has been failing, as far as this process observed; `None` if it is not.
    pub(crate) fn failing_since(&self, step: Step) -> Option<Timestamp> {
        self.failing_since.get(&step).copied()
    }

    /// Whether some step has failed and not succeeded since.
    pub fn is_failing(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The refusal of a pod's last eviction.
    pub(crate) fn refusal(&self, pod_uid: &str) -> Option<&RefusedEviction> {
        self.refusals.get(pod_uid)
    }

    /// Since when the agent has had its current configuration, as far as this process observed.
    pub(crate) fn projected_since(&self) -> Option<Timestamp> {
        self.projected.as_ref().map(|(_, since)| *since)
    }

    /// Since when the Machine is being deleted, as far as this process observed; `None` if it is
    /// not.
    pub(crate) fn deleting_since(&self) -> Option<Timestamp> {
        self.deleting.as_ref().map(|(_, since)| *since)
    }
}

/// `now` plus `pause`, at most [`Timestamp::MAX`].
pub(crate) fn after(now: Timestamp, pause: SignedDuration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// Hash of the uids and resourceVersions of the three objects; `None` if one could not be read.
fn fingerprint(observed: &Observed) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut note = |meta: &Meta| (&meta.uid, &meta.resource_version).hash(&mut hasher);
    if let Some(machine) = observed.machine.known()? {
        note(&machine.meta);
    }
    for lookup in observed.bootstrap.iter().chain(&observed.infrastructure) {
        if let Some(found) = lookup.found.known()? {
            note(&found.meta);
        }
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn failure(retry_at: Timestamp) -> Failure {
        Failure {
            step: Step::CreateMachine,
            cause: Cause::Unavailable,
            message: "no answer".to_owned(),
            attempts: 1,
            retry_at,
        }
    }

    #[test]
    fn a_refused_eviction_is_due_again_every_five_seconds() {
        let mut memory = Memory::default();
        for second in [100, 105, 110, 115] {
            memory.refused("pod", "no", at(second));
            assert_eq!(memory.refusal("pod").unwrap().due, at(second + 5));
        }
        assert!(memory.refusal("another").is_none());
    }

    #[test]
    fn failures_are_counted_for_each_step_until_it_succeeds_or_the_spec_changes() {
        let mut memory = Memory::default();
        let fail = |memory: &mut Memory, step| {
            let attempts = memory.attempts(step) + 1;
            memory.failed(Failure {
                step,
                attempts,
                ..failure(at(10))
            });
        };
        for _ in 0..10 {
            fail(&mut memory, Step::TaintNode);
        }
        fail(&mut memory, Step::DeleteMachine);
        assert_eq!(memory.attempts(Step::TaintNode), 10);
        assert_eq!(memory.attempts(Step::DeleteMachine), 1);
        memory.observe(Some(2), &Observed::default(), at(1));
        assert_eq!(memory.attempts(Step::TaintNode), 0);
    }

    #[test]
    fn a_clock_that_was_an_hour_ahead_delays_nothing_once_it_is_corrected() {
        let (ahead, now) = (at(10_000), at(6_400));
        let mut memory = Memory::default();
        let observed = Observed {
            machine: crate::Fact::Known(None),
            ..Observed::default()
        };
        memory.observe(None, &observed, ahead);
        memory.failed(failure(after(ahead, SignedDuration::from_secs(1))));
        memory.refused("pod", "no", ahead);
        memory.status_written(&Plan::default(), ahead);
        memory.observe(None, &observed, now);
        assert!(!memory.is_failing());
        assert!(memory.refusal("pod").is_none());
        assert_eq!(memory.status_written_at, None);
        assert_eq!(memory.changed_at, Some(now));
    }

    #[test]
    fn the_refusal_of_a_pod_that_is_gone_is_dropped() {
        let mut memory = Memory::default();
        memory.refused("pod", "no", at(100));
        let mut observed = Observed::default();
        memory.observe(None, &observed, at(101));
        assert!(memory.refusal("pod").is_some(), "the pods were not listed");
        observed.workload.pods = crate::Fact::Known(Vec::new());
        memory.observe(None, &observed, at(102));
        assert!(memory.refusal("pod").is_none());
    }

    #[test]
    fn a_failure_is_dropped_when_the_spec_is_edited_or_the_step_is_not_required() {
        let observed = Observed::default();
        let mut memory = Memory::default();
        memory.observe(Some(1), &observed, at(0));
        memory.failed(failure(at(10)));
        memory.observe(Some(1), &observed, at(70));
        assert!(memory.is_failing());
        memory.observe(Some(1), &observed, at(71));
        assert!(!memory.is_failing());
        memory.failed(failure(at(100)));
        memory.observe(Some(2), &observed, at(72));
        assert!(!memory.is_failing());
    }

    #[test]
    fn each_step_has_a_failure_of_its_own() {
        let mut memory = Memory::default();
        memory.failed(failure(at(10)));
        memory.failed(Failure {
            step: Step::TaintNode,
            ..failure(at(20))
        });
        assert_eq!(
            memory.failure(Step::CreateMachine).unwrap().retry_at,
            at(10)
        );
        assert_eq!(memory.failure(Step::TaintNode).unwrap().retry_at, at(20));
        assert!(memory.failure(Step::EvictPod).is_none());
    }

    #[test]
    fn a_failed_read_is_not_a_change() {
        let mut memory = Memory::default();
        let known = Observed {
            machine: crate::Fact::Known(None),
            ..Observed::default()
        };
        memory.observe(None, &known, at(0));
        memory.observe(None, &Observed::default(), at(5));
        memory.observe(None, &known, at(9));
        assert_eq!(memory.changed_at, Some(at(0)));
    }
}
