//! What the agent has observed, wants and has asked for.

use std::time::Duration;

use fivespot_api::name::{
    RECLAIM_CONFIG_KEY, RECLAIM_REASON_ANNOTATION, RECLAIM_REQUESTED_AT_ANNOTATION,
};
use fivespot_api::reclaim::{Report, config_hash};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::PartialObjectMeta;
use tokio::time::{Instant, timeout};

use super::text_of;
use crate::config::Config;
use crate::detect::with_causes;
use crate::hold::{Ended, Holder, Reach};
use crate::node::{
    Annotations, Attempt, DesiredAnnotations, Error as NodeError, OwnNode,
    ReclaimRequest, ReportState, is_requested,
};
use crate::policy_check::{PolicyCheck, PolicyRequirement, try_all};
use crate::proc::Proc;
use crate::reporting::OwnMachine;
use crate::run_directory::Requested;
use crate::scan::{ProcessMatch, scan};
use crate::signal::{Now, Signals};
use crate::watched::{Observed, backoff_while};

/// How often it is checked that the API server still answers, while it has accepted a request that the
/// operator has not acted on.
const CHECK: Duration = Duration::from_secs(1);

/// What a request to the API server has led to.
#[derive(Debug)]
pub(super) enum Answer {
    Written(Result<Annotations, NodeError>),
    /// The write was not waited for any longer.
    GivenUp,
    Tried(Result<Attempt, NodeError>),
    Asked(Result<(), NodeError>),
}

impl Answer {
    fn ended(&self) -> Ended {
        let error = match self {
            Self::GivenUp => return Ended::GivenUp,
            Self::Written(answer) => answer.as_ref().err(),
            Self::Tried(answer) => answer.as_ref().err(),
            Self::Asked(answer) => answer.as_ref().err(),
        };
        if error.is_none_or(NodeError::is_answer) {
            Ended::Answered
        } else {
            Ended::Failed
        }
    }
}

/// The observed and desired state.
#[derive(Debug)]
pub(super) struct State {
    /// The last valid configuration.
    pub(super) config: Option<Config>,
    /// The Node's annotations.
    node: Observed<Annotations>,
    desired: DesiredAnnotations,
    /// The time of the next attempt to write.
    due: Instant,
    /// This host is not the Node's machine; it is not written until the Node has changed.
    is_wrong_host: bool,
    failures: u32,
    policy_check: PolicyCheck,
    reach: Reach,
    holder: Option<Holder>,
    /// A process asks for the host, and its request has not been cleared.
    is_of_process: bool,
    /// When it is checked that the API server answers.
    check_due: Instant,
}

impl State {
    pub(super) fn new(requirement: PolicyRequirement, holder: Option<Holder>) -> Self {
        Self {
            reach: Reach::default(),
            holder,
            is_of_process: false,
            check_due: Instant::now(),
            config: None,
            node: Observed::Unknown,
            desired: DesiredAnnotations::default(),
            due: Instant::now(),
            is_wrong_host: false,
            failures: 0,
            policy_check: PolicyCheck::new(requirement),
        }
    }

    /// The desired annotations. Until the policy check is satisfied, they have no request, and the
    /// report is omitted or names the failed check.
    fn effective(&self) -> DesiredAnnotations {
        let report = match &self.desired.report {
            ReportState::Report(report) => self.policy_check.report(report),
            other => other.clone(),
        };
        let request = self.desired.request.clone();
        DesiredAnnotations {
            report,
            request: request.filter(|_| self.policy_check.is_satisfied()),
            account: self.account(),
        }
    }

    /// What was done with pods and has not been reported.
    pub(super) fn account(&self) -> Option<String> {
        self.holder.as_ref().and_then(Holder::account)
    }

    /// When there is something to send or to decide.
    pub(super) fn next(&self, is_idle: bool) -> Option<Instant> {
        let send = is_idle.then(|| {
            let write = self.has_work().then_some(self.due);
            let check = self.may_check().then_some(self.check_due);
            write
                .into_iter()
                .chain(check)
                .chain(self.policy_check.due())
        });
        let decide = self.holder.as_ref().and_then(Holder::due);
        send.into_iter().flatten().chain(decide).min()
    }

    /// The request that is due, if any.
    pub(super) fn send(
        &mut self,
        node: &OwnNode,
        machine: Option<&OwnMachine>,
    ) -> Option<BoxFuture<'static, Answer>> {
        let now = Instant::now();
        let node = node.clone();
        let request: BoxFuture<'static, Answer> =
            if self.policy_check.due().is_some_and(|due| due <= now) {
                let machine = machine.cloned();
                Box::pin(
                    async move { Answer::Tried(try_all(&node, machine.as_ref()).await) },
                )
            } else if self.has_work() && self.due <= now {
                let desired = self.effective();
                // The connection of the first try may be one that died unnoticed, as while the host was
                // suspended. Further tries leave a slow server the usual time.
                let is_first = desired.request.is_some() && self.failures == 0;
                let patience = is_first.then(|| self.reach.patience());
                Box::pin(async move {
                    let written = node.write(&desired);
                    match patience {
                        None => Answer::Written(written.await),
                        Some(patience) => timeout(patience, written)
                            .await
                            .map_or(Answer::GivenUp, Answer::Written),
                    }
                })
            } else if self.may_check() && self.check_due <= now {
                Box::pin(async move { Answer::Asked(node.ask().await) })
            } else {
                return None;
            };
        let is_held = self.holder.as_ref().is_some_and(Holder::is_holding);
        self.reach.send(now, is_held);
        Some(request)
    }

    pub(super) fn apply_answer(&mut self, answer: Answer, is_urgent: bool) {
        let now = Instant::now();
        self.reach.end(now, answer.ended());
        self.check_due = now + CHECK;
        match answer {
            Answer::Written(outcome) => self.apply_write(outcome),
            Answer::GivenUp => self.apply_write(Err(NodeError::Slow)),
            Answer::Asked(_) => {}
            Answer::Tried(tried) => {
                let was_satisfied = self.policy_check.is_satisfied();
                self.policy_check.update(tried, is_urgent);
                if was_satisfied && !self.policy_check.is_satisfied() {
                    self.desired.request = None;
                }
                self.due = now;
            }
        }
    }

    /// Whether it matters that the API server answers though there is nothing to write: it has
    /// accepted a request, and may have died before the operator has acted on it.
    fn may_check(&self) -> bool {
        self.holder.is_some() && self.requested().is_some() && !self.has_work()
    }

    /// Holds the pods of this host, or lets them go on.
    pub(super) fn hold(&mut self, signals: &Signals, proc: &Proc, now: Timestamp) {
        let Some(mut holder) = self.holder.take() else {
            return;
        };
        let standing = signals.standing().map(|signal| signal.reason.as_str());
        if standing.is_none() && self.is_of_process && holder.is_holding() {
            self.is_of_process = self.is_running(proc);
        }
        let is_possible = self.node != Observed::Absent && !self.is_wrong_host;
        let of_process = self.is_of_process.then_some("process-match");
        let asks = standing.or(of_process).filter(|_| is_possible);
        let was_holding = holder.is_holding();
        holder.update(asks, self.reach, Instant::now(), now);
        if was_holding && !holder.is_holding() && asks.is_none() {
            // Nobody needs the host any more, and nobody has been told.
            self.desired.request = None;
        }
        if let Some(requested) = self.requested() {
            holder.reported(&requested.reason);
        }
        self.holder = Some(holder);
    }

    /// Whether a listed program still runs, or that is not known.
    fn is_running(&self, proc: &Proc) -> bool {
        let Some(config) = &self.config else {
            return false;
        };
        scan(proc, &config.patterns).is_ok_and(|mut found| found.next().is_some())
    }

    /// The agent stops.
    pub(super) fn stop(&mut self) {
        if let Some(holder) = &mut self.holder {
            holder.stop();
        }
    }

    /// Whether processes must be watched: there are patterns, and no reclaim is requested yet.
    pub(super) fn is_watching(&self) -> bool {
        let has_patterns = |config: &Config| !config.patterns.is_empty();
        self.may_request() && self.config.as_ref().is_some_and(has_patterns)
    }

    /// The request on the Node.
    pub(super) fn requested(&self) -> Option<Requested> {
        let Observed::Is(found) = &self.node else {
            return None;
        };
        let value = |key| found.get(key).cloned().unwrap_or_default();
        is_requested(found).then(|| Requested {
            reason: value(RECLAIM_REASON_ANNOTATION),
            at: value(RECLAIM_REQUESTED_AT_ANNOTATION),
        })
    }

    /// Whether a reclaim may be requested, and is not requested yet.
    pub(super) fn may_request(&self) -> bool {
        let is_possible = match &self.node {
            Observed::Unknown => true,
            Observed::Absent => false,
            Observed::Is(annotations) => !is_requested(annotations),
        };
        is_possible && self.policy_check.is_satisfied() && self.desired.request.is_none()
    }

    /// Whether the Node's annotations differ from the desired ones.
    fn has_work(&self) -> bool {
        match &self.node {
            Observed::Is(found) => {
                !self.is_wrong_host && !self.effective().changes(found).is_empty()
            }
            Observed::Unknown => self.effective().request.is_some(),
            Observed::Absent => false,
        }
    }

    /// Applies the current ConfigMap. Returns whether the patterns may have changed.
    pub(super) fn apply_config(&mut self, observed: &Observed<ConfigMap>) -> bool {
        let report = match observed {
            Observed::Unknown => return false,
            Observed::Absent => {
                tracing::info!("no configuration: detection is off");
                self.config = None;
                self.desired.request = None;
                self.desired.report = ReportState::Nothing;
                self.due = Instant::now();
                return false;
            }
            Observed::Is(config_map) => self.read(config_map),
        };
        let report = ReportState::Report(report);
        if self.desired.report == report {
            return false;
        }
        self.desired.report = report;
        self.due = Instant::now();
        true
    }

    fn read(&mut self, config_map: &ConfigMap) -> Report {
        let Some(text) = text_of(config_map) else {
            let why = format!("the ConfigMap has no key {RECLAIM_CONFIG_KEY}");
            tracing::error!(why, "configuration rejected, keeping the last valid one");
            return Report::rejected(config_hash(""), &why);
        };
        match Config::parse(text) {
            Ok(config) => {
                let report = config.report();
                let patterns = config.patterns.texts().len();
                let hash = config.hash.as_str();
                if self.config.as_ref().is_none_or(|old| old.hash != hash) {
                    tracing::info!(hash, patterns, "configuration loaded");
                }
                self.config = Some(config);
                report
            }
            Err(rejected) => {
                tracing::error!(
                    hash = rejected.hash,
                    why = rejected.why,
                    kept = self.config.as_ref().map(|config| config.hash.as_str()),
                    "configuration rejected, keeping the last valid one"
                );
                rejected.report()
            }
        }
    }

    /// Applies the current Node.
    pub(super) fn apply_node(&mut self, observed: &Observed<PartialObjectMeta<Node>>) {
        let was_requested =
            matches!(&self.node, Observed::Is(found) if is_requested(found));
        if matches!(observed, Observed::Is(_)) && !matches!(self.node, Observed::Is(_)) {
            self.policy_check.node_appeared();
        }
        self.node = match observed {
            Observed::Unknown => Observed::Unknown,
            Observed::Absent => Observed::Absent,
            Observed::Is(node) => {
                Observed::Is(node.metadata.annotations.clone().unwrap_or_default())
            }
        };
        let is_requested_now =
            matches!(&self.node, Observed::Is(found) if is_requested(found));
        // What stands when the Node comes back is requested then, and not what has ended until then.
        if is_requested_now || self.node == Observed::Absent {
            self.desired.request = None;
            self.is_of_process &= is_requested_now;
        } else if was_requested {
            self.is_of_process = false;
            tracing::info!("the reclaim request was cleared: detection resumes");
        }
        if self.is_wrong_host {
            self.is_wrong_host = false;
            self.due = Instant::now();
        }
    }

    pub(super) fn request_reclaim(&mut self, process: &ProcessMatch, now: Timestamp) {
        tracing::warn!(
            pid = process.pid,
            started = process.started,
            process = %process.names,
            pattern = process.pattern,
            by = process.by,
            "process matches: requesting reclaim"
        );
        self.desired.request = Some(ReclaimRequest {
            reason: process.reason(),
            at: now,
        });
        self.is_of_process = true;
        self.due = Instant::now();
    }

    /// Reads the signals, and requests a reclaim if one stands.
    pub(super) fn apply_signals(&mut self, signals: &mut Signals, now: Timestamp) {
        let instant = Instant::now();
        signals.read(Now { time: now, instant });
        if signals.standing().is_some() {
            self.policy_check.hasten();
        }
        let Some(signal) = signals.standing().filter(|_| self.may_request()) else {
            return;
        };
        let reason = signal.reason.clone();
        tracing::warn!(reason, "signal stands: requesting reclaim");
        self.desired.request = Some(ReclaimRequest { reason, at: now });
        self.due = Instant::now();
    }

    fn apply_write(&mut self, outcome: Result<Annotations, NodeError>) {
        match outcome {
            Ok(annotations) => {
                self.failures = 0;
                if is_requested(&annotations) && self.desired.request.take().is_some() {
                    tracing::warn!("reclaim requested on the Node");
                }
                self.node = Observed::Is(annotations);
            }
            Err(error) => {
                self.failures += 1;
                self.is_wrong_host = matches!(error, NodeError::AnotherMachine);
                let is_urgent = self.desired.request.is_some();
                self.due = Instant::now() + backoff_while(is_urgent, self.failures);
                let error = with_causes(&error);
                tracing::error!(
                    error,
                    attempt = self.failures,
                    "patching the Node failed"
                );
            }
        }
    }
}
