//! The main loop of the agent: it watches its configuration, its Node and the processes, and
//! annotates the Node.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;

use fivespot_api::name::{
    RECLAIM_CONFIG_KEY, RECLAIM_REASON_ANNOTATION, RECLAIM_REQUESTED_AT_ANNOTATION,
    SYSTEM_NAMESPACE, reclaim_config_map,
};
use fivespot_api::reclaim::{Report, config_hash};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, PartialObjectMeta};
use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::connector::SubscribeError;
use crate::detect::{Detection, DetectionMode, with_causes};
use crate::node::{
    Annotations, DesiredAnnotations, Error as NodeError, OwnNode, ReclaimRequest,
    ReportState, is_requested,
};
use crate::policy_check::{PolicyCheck, PolicyRequirement, try_all};
use crate::proc::Proc;
use crate::reporting::{OwnMachine, Reporting};
use crate::run_directory::{Publisher, Requested, RunDirectory};
use crate::scan::ProcessMatch;
use crate::signal::{Now, Settings, Signals, Source};
use crate::watched::{Observed, backoff_while, watch_object};

/// The inputs of the agent.
#[derive(Debug)]
pub struct Agent {
    /// The Node of this host.
    pub node: OwnNode,
    /// The processes of this host.
    pub proc: Proc,
    /// How they are detected.
    pub mode: DetectionMode,
    /// The signals of this host beside processes. They count even without a configuration.
    pub signals: Vec<Box<dyn Source>>,
    /// Where the users of this host ask for it, and see what the agent does.
    pub run_directory: Option<RunDirectory>,
    /// The ScheduledMachine of this host, which is told when the host is free.
    pub machine: Option<OwnMachine>,
    /// Whether the agent must verify that it cannot write to other Nodes before it does anything.
    pub requirement: PolicyRequirement,
    /// The current time.
    pub now: fn() -> Timestamp,
}

/// Why the agent stopped with an error. After a restart it scans, so that no process is missed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Process events are not available, and scans are not allowed.
    #[error("watching processes")]
    Subscribe(#[from] SubscribeError),
    /// The detection of processes has failed.
    #[error("watching processes")]
    Broken(#[from] io::Error),
}

/// An input of the main loop.
enum Input {
    Config,
    Node,
    Process(ProcessMatch),
    Signals,
    Due,
    PolicyCheck,
}

/// Runs until `stop` completes.
///
/// # Errors
/// Processes cannot be detected. Requests to the API server are retried forever.
pub async fn run(agent: Agent, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let name = agent.node.name.clone();
    let mut nodes = watch_object(agent.node.api(), name.clone());
    let mut configs = watch_object(config_maps(&agent.node), reclaim_config_map(&name));
    let mut state = State::new(agent.requirement);
    let directory = agent.run_directory.as_ref();
    let mut publisher = Publisher::start(directory, &agent.proc, &name);
    let mut signals = signals(agent.signals, directory);
    signals.watch();
    let host = (agent.proc.clone(), agent.mode);
    let absent = signals.are_absent();
    let machine = agent.machine.clone();
    let reporting = machine.map(|it| Reporting::start(it, host, absent, agent.now));
    let mut detection = None;
    let mut stop = pin!(stop);
    loop {
        if !state.is_watching() {
            detection = None;
        } else if detection.is_none() {
            detection = Some(Detection::begin(agent.proc.clone(), agent.mode).await?);
        }
        let input = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            Ok(()) = configs.observed.changed() => Input::Config,
            Ok(()) = nodes.observed.changed() => Input::Node,
            process = process(&mut detection, state.config.as_ref()) => {
                Input::Process(process?)
            }
            () = signals.due() => Input::Signals,
            () = sleep_until(state.due), if state.has_work() => Input::Due,
            () = state.policy_check.due() => Input::PolicyCheck,
        };
        let might_request = state.may_request();
        match input {
            Input::Config => {
                let observed = configs.observed.borrow_and_update().clone();
                if state.apply_config(&observed)
                    && let Some(detection) = &mut detection
                {
                    detection.rescan();
                }
                let configured = state.config.as_ref().map(|config| &config.signals);
                // The configuration goes with the Node, and a host that reports has to be free of
                // the signals that it had.
                if configured.is_some() || reporting.is_none() {
                    let none = Settings::default();
                    signals.configure(configured.unwrap_or(&none), agent.proc.root());
                }
            }
            Input::Node => state.apply_node(&nodes.observed.borrow_and_update()),
            Input::Process(process) => state.request_reclaim(&process, (agent.now)()),
            Input::Signals => state.apply_signals(&mut signals, (agent.now)()),
            Input::Due => {}
            Input::PolicyCheck => {
                let is_urgent = signals.standing().is_some();
                state
                    .check_policy(&agent.node, agent.machine.as_ref(), is_urgent)
                    .await;
            }
        }
        if state.has_work() && state.due <= Instant::now() {
            let outcome = agent.node.write(&state.effective()).await;
            state.apply_write(outcome);
        }
        if !might_request && state.may_request() {
            // What stood may have ended.
            signals.hasten();
        }
        publisher.publish(state.requested(), &signals);
    }
}

/// The signals of the host, and what its users ask for.
fn signals(
    mut sources: Vec<Box<dyn Source>>,
    directory: Option<&RunDirectory>,
) -> Signals {
    if let Some(directory) = directory {
        // Before the others: nothing says more about what the owner wants.
        sources.insert(0, Box::new(directory.switch()));
    }
    Signals::new(sources)
}

/// The API of the agents' ConfigMaps.
pub(crate) fn config_maps(node: &OwnNode) -> Api<ConfigMap> {
    Api::namespaced(node.client.clone(), SYSTEM_NAMESPACE)
}

/// The text of the configuration. `None` if the ConfigMap has none.
pub(crate) fn text_of(config_map: &ConfigMap) -> Option<&str> {
    let data = config_map.data.as_ref()?;
    data.get(RECLAIM_CONFIG_KEY).map(String::as_str)
}

/// Waits for a matching process; forever while none can match.
async fn process(
    detection: &mut Option<Detection>,
    config: Option<&Config>,
) -> io::Result<ProcessMatch> {
    match (detection, config) {
        (Some(detection), Some(config)) => detection.next(config).await,
        _ => pending().await,
    }
}

/// The observed and desired state.
#[derive(Debug)]
struct State {
    /// The last valid configuration.
    config: Option<Config>,
    /// The Node's annotations.
    node: Observed<Annotations>,
    desired: DesiredAnnotations,
    /// The time of the next attempt to write.
    due: Instant,
    /// This host is not the Node's machine; it is not written until the Node has changed.
    is_wrong_host: bool,
    failures: u32,
    policy_check: PolicyCheck,
}

impl State {
    fn new(requirement: PolicyRequirement) -> Self {
        Self {
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
        }
    }

    /// Tries to write what the agent must not, and applies the result.
    async fn check_policy(
        &mut self,
        node: &OwnNode,
        machine: Option<&OwnMachine>,
        is_urgent: bool,
    ) {
        let tried = try_all(node, machine).await;
        let was_satisfied = self.policy_check.is_satisfied();
        self.policy_check.update(tried, is_urgent);
        if was_satisfied && !self.policy_check.is_satisfied() {
            self.desired.request = None;
        }
        self.due = Instant::now();
    }

    /// Whether processes must be watched: there are patterns, and no reclaim is requested yet.
    fn is_watching(&self) -> bool {
        let has_patterns = |config: &Config| !config.patterns.is_empty();
        self.may_request() && self.config.as_ref().is_some_and(has_patterns)
    }

    /// The request on the Node.
    fn requested(&self) -> Option<Requested> {
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
    fn may_request(&self) -> bool {
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
    fn apply_config(&mut self, observed: &Observed<ConfigMap>) -> bool {
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
    fn apply_node(&mut self, observed: &Observed<PartialObjectMeta<Node>>) {
        let was_requested =
            matches!(&self.node, Observed::Is(found) if is_requested(found));
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
        } else if was_requested {
            tracing::info!("the reclaim request was cleared: detection resumes");
        }
        if self.is_wrong_host {
            self.is_wrong_host = false;
            self.due = Instant::now();
        }
    }

    fn request_reclaim(&mut self, process: &ProcessMatch, now: Timestamp) {
        tracing::warn!(
            pid = process.pid,
            started = process.started,
            process = %process.names,
            pattern = process.pattern,
            by = process.by.as_str(),
            "process matches: requesting reclaim"
        );
        self.desired.request = Some(ReclaimRequest {
            reason: process.reason(),
            at: now,
        });
        self.due = Instant::now();
    }

    /// Reads the signals, and requests a reclaim if one stands.
    fn apply_signals(&mut self, signals: &mut Signals, now: Timestamp) {
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
                if self.desired.request.take().is_some() {
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
