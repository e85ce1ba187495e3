//! What one process remembers about one ScheduledMachine between passes.
//!
//! All of it may be lost at any moment: a restart tries at once what was being held back, and
//! counts the ten minutes of a stalled removal anew. Nothing that matters is only here.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroU32;

use fivespot_capi::Meta;
use jiff::{SignedDuration, Timestamp};

use crate::act::repeat::Repeats;
use crate::{Action, Freshness, Observed, Plan, Step};

/// How long until an eviction that was refused is tried again, as `kubectl drain` does.
const EVICTION_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// The longest backoff of a failed step. A retry further ahead was noted by a clock that was ahead.
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// How long after it was due a failed step is forgotten: nobody calls for it any more.
const STALE: SignedDuration = SignedDuration::from_mins(1);

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Of the uids and versions of what was there.
    fingerprint: u64,
    changed_at: Option<Timestamp>,
    /// The uid of the Machine that is being deleted, and since when.
    deleting: Option<(String, Timestamp)>,
    generation: Option<i64>,
    refusals: BTreeMap<String, Refusal>,
    failures: BTreeMap<Step, Failure>,
    /// Since when each of these steps has been failing.
    failing_since: BTreeMap<Step, Timestamp>,
    /// Since when something may not be read.
    forbidden_since: Option<Timestamp>,
    repeats: Repeats,
    /// The agent's configuration, and since when it has been there.
    projected: Option<(String, Timestamp)>,
    status_written_at: Option<Timestamp>,
    was_progress: bool,
    has_created: bool,
    start_delay: Option<StartDelay>,
}

/// When a machine may start that has to wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartDelay {
    /// When to ask again.
    pub(crate) due: Timestamp,
    /// When it was asked for.
    asked: Timestamp,
    /// How many machines may start in a minute.
    pub(crate) per_minute: NonZeroU32,
}

/// An eviction that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// When the next try is due.
    pub(crate) due: Timestamp,
    /// The server's words.
    pub(crate) message: String,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which step.
    pub step: Step,
    /// What kind of failure it was.
    pub cause: Cause,
    /// The API server's words, or the client's.
    pub message: String,
    /// How often this step has failed in a row; see [`Memory::attempts`].
    pub attempts: u32,
    /// When to try again: at most five minutes after the failure.
    pub retry_at: Timestamp,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The operator lacks a permission (403).
    Forbidden,
    /// The namespace is being deleted (403 with that cause).
    NamespaceTerminating,
    /// The server, a schema, a policy or a webhook refuses the object (400, 422, or 403 of an
    /// admission plugin).
    Rejected,
    /// The kind is not served (404 of a create).
    NotServed,
    /// Everything else: no answer, overload, an error of the server (5xx).
    Unavailable,
}

impl Memory {
    /// Takes notice of what a pass saw. Call it once a pass, before planning.
    ///
    /// `generation` is the ScheduledMachine's: an edited spec is tried at once.
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
        self.forget_the_future(now);
        let is_edited = self.generation != generation;
        self.generation = generation;
        if is_edited {
            self.repeats = Repeats::default();
        }
        self.failures
            .retain(|_, failure| !is_edited && after(failure.retry_at, STALE) >= now);
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

    /// Drops what a clock has noted that was ahead and has been set back since: a retry that is
    /// further ahead than any wait, and instants that have not come yet.
    fn forget_the_future(&mut self, now: Timestamp) {
        self.repeats.forget_after(now);
        let latest = after(now, LONGEST_BACKOFF);
        self.failures
            .retain(|_, failure| failure.retry_at <= latest);
        let latest = after(now, EVICTION_RETRY);
        self.refusals.retain(|_, refusal| refusal.due <= latest);
        self.start_delay = self.start_delay.filter(|delay| delay.asked <= now);
        self.status_written_at = self.status_written_at.filter(|written| *written <= now);
        self.changed_at = self.changed_at.map(|changed| changed.min(now));
        if let Some((_, since)) = &mut self.deleting {
            *since = now.min(*since);
        }
        if let Some((_, since)) = &mut self.projected {
            *since = now.min(*since);
        }
    }

    /// Notes since when the Machine is being deleted.
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

    /// Notes since when the agent has been given its configuration.
    fn observe_agent(&mut self, observed: &Observed, now: Timestamp) {
        let Some(config) = observed.workload.agent_config.known() else {
            return;
        };
        let text = config.as_ref().and_then(|config| config.text.as_deref());
        if text != self.projected.as_ref().map(|(text, _)| text.as_str()) {
            self.projected = text.map(|text| (text.to_owned(), now));
        }
    }

    /// An eviction was refused (429): it is due again after 5 s.
    pub fn refused(&mut self, pod_uid: &str, message: &str, now: Timestamp) {
        let refusal = Refusal {
            due: after(now, EVICTION_RETRY),
            message: message.to_owned(),
        };
        self.refusals.insert(pod_uid.to_owned(), refusal);
    }

    /// How often this step has failed in a row. Steps are counted apart, so that one that fails
    /// for ever delays no other.
    pub fn attempts(&self, step: Step) -> u32 {
        let failure = self.failures.get(&step);
        failure.map_or(0, |failure| failure.attempts)
    }

    /// A step failed. The backoff behind `retry_at` is the caller's, who has the random numbers.
    pub fn failed(&mut self, failure: Failure) {
        self.failures.insert(failure.step, failure);
    }

    /// All of `actions` were sent and succeeded.
    pub fn succeeded(&mut self, actions: &[Action]) {
        for action in actions {
            self.failures.remove(&action.step);
            self.has_created |= action.step == Step::CreateMachine;
        }
    }

    /// All of `actions` were sent and succeeded, at `now`. A step that succeeds and is needed again
    /// and again, because somebody undoes it, waits longer each time, until the spec is edited.
    pub fn repeated(&mut self, actions: &[Action], now: Timestamp) {
        self.repeats.note(actions, now);
    }

    /// Until when a step waits that has succeeded again and again; none if it does not.
    pub(crate) fn repeats_until(&self, step: Step) -> Option<Timestamp> {
        self.repeats.due(step)
    }

    /// Whether the Machine that caches show can be none of an earlier time: this process has made
    /// one, and a cache is asked only once it shows that.
    pub(crate) fn has_created(&self) -> bool {
        self.has_created
    }

    /// The machine may not start for `span` from `now` on, because others come first: at most
    /// `per_minute` start in a minute. Until then nothing is planned that would start it.
    pub fn delay_start(
        &mut self,
        span: SignedDuration,
        now: Timestamp,
        per_minute: NonZeroU32,
    ) {
        self.start_delay = Some(StartDelay {
            due: after(now, span),
            asked: now,
            per_minute,
        });
    }

    /// When the machine may start, as the start limit said last; it may be over.
    pub(crate) fn start_delay(&self) -> Option<StartDelay> {
        self.start_delay
    }

    /// The status of `plan` was written.
    pub fn status_written(&mut self, plan: &Plan, now: Timestamp) {
        self.status_written_at = Some(now);
        self.was_progress = plan.is_progress;
    }

    /// Whether the last status that was written said nothing but how far a machine had come.
    pub(crate) fn was_progress(&self) -> bool {
        self.was_progress
    }

    /// When a status was written last.
    pub(crate) fn status_written_at(&self) -> Option<Timestamp> {
        self.status_written_at
    }

    /// How a step failed last, if it did and has not succeeded since.
    pub fn failure(&self, step: Step) -> Option<&Failure> {
        self.failures.get(&step)
    }

    /// Since when the operator may not read something that it needs; none if it may.
    pub(crate) fn forbidden_since(&self) -> Option<Timestamp> {
        self.forbidden_since
    }

    /// Since when a step has been failing, as far as this process saw; none if it is not.
    pub(crate) fn failing_since(&self, step: Step) -> Option<Timestamp> {
        self.failing_since.get(&step).copied()
    }

    /// Whether some step has failed and not succeeded since.
    pub fn is_failing(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The refusal of a pod's last eviction.
    pub(crate) fn refusal(&self, pod_uid: &str) -> Option<&Refusal> {
        self.refusals.get(pod_uid)
    }

    /// Since when the agent has had its present configuration, as far as this process saw.
    pub(crate) fn projected_since(&self) -> Option<Timestamp> {
        self.projected.as_ref().map(|(_, since)| *since)
    }

    /// Since when the Machine is being deleted, as far as this process saw; none if it is not.
    pub(crate) fn deleting_since(&self) -> Option<Timestamp> {
        self.deleting.as_ref().map(|(_, since)| *since)
    }

    /// Since when the three objects have not changed, as far as this process saw.
    pub(crate) fn unchanged_since(&self) -> Option<Timestamp> {
        self.changed_at
    }
}

/// `now` and a pause, or the end of time.
pub(crate) fn after(now: Timestamp, pause: SignedDuration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// The uids and versions of the three objects; none while one could not be read.
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
    fn a_clock_that_was_an_hour_ahead_holds_nothing_up_when_it_is_set_right() {
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
        memory.delay_start(SignedDuration::from_secs(1), ahead, NonZeroU32::MIN);
        memory.observe(None, &observed, now);
        assert!(!memory.is_failing());
        assert!(memory.refusal("pod").is_none());
        assert_eq!(memory.status_written_at(), None);
        assert!(memory.start_delay().is_none());
        assert_eq!(memory.unchanged_since(), Some(now));
    }

    #[test]
    fn a_pod_that_is_gone_is_forgotten() {
        let mut memory = Memory::default();
        memory.refused("pod", "no", at(100));
        let mut observed = Observed::default();
        memory.observe(None, &observed, at(101));
        assert!(memory.refusal("pod").is_some(), "nobody looked");
        observed.workload.pods = crate::Fact::Known(Vec::new());
        memory.observe(None, &observed, at(102));
        assert!(memory.refusal("pod").is_none());
    }

    #[test]
    fn a_failure_is_forgotten_when_the_spec_is_edited_or_nobody_calls_for_it() {
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
    fn what_could_not_be_read_is_no_change() {
        let mut memory = Memory::default();
        let known = Observed {
            machine: crate::Fact::Known(None),
            ..Observed::default()
        };
        memory.observe(None, &known, at(0));
        memory.observe(None, &Observed::default(), at(5));
        memory.observe(None, &known, at(9));
        assert_eq!(memory.unchanged_since(), Some(at(0)));
    }
}
