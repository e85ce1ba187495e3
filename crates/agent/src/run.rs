//! The agent at work: configuration and Node are followed, processes are watched, and what is
//! seen is written on the Node.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;

use fivespot_api::name::{RECLAIM_CONFIG_KEY, SYSTEM_NAMESPACE, reclaim_config_map};
use fivespot_api::reclaim::{Report, config_hash};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, PartialObjectMeta};
use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::confinement::{Confinement, Proof};
use crate::connector::Refused;
use crate::detect::{Detection, Means, told};
use crate::follow::{Seen, backoff, follow};
use crate::node::{
    Annotations, Asked, Attempt, Error as NodeError, OwnNode, Told, Wanted, is_requested,
};
use crate::proc::Proc;
use crate::sight::Sighting;

/// What the agent works with.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The Node that this host is.
    pub node: OwnNode,
    /// The processes of this host.
    pub proc: Proc,
    /// By what means they may be seen.
    pub means: Means,
    /// Whether the agent has to show that it can write to no other Node before it does anything.
    pub proof: Proof,
    /// What time it is.
    pub now: fn() -> Timestamp,
}

/// Why the agent stopped by itself. Started anew it scans, so that nothing is missed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not tell of processes, and scanning was not allowed.
    #[error("watching processes")]
    Refused(#[from] Refused),
    /// Processes cannot be watched any more.
    #[error("watching processes")]
    Broken(#[from] io::Error),
}

/// What has happened.
enum Happening {
    Config,
    Node,
    Sighting(Sighting),
    Due,
    Proof,
}

/// Works until `stop` is done.
///
/// # Errors
/// Processes cannot be watched. What concerns the API server is retried for ever.
pub async fn run(agent: Agent, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let name = agent.node.name.clone();
    let mut nodes = follow(agent.node.api(), name.clone());
    let mut configs = follow(config_maps(&agent.node), reclaim_config_map(&name));
    let mut state = State::new(agent.proof);
    let mut detection = None;
    let mut stop = pin!(stop);
    loop {
        if !state.is_watching() {
            detection = None;
        } else if detection.is_none() {
            detection = Some(Detection::begin(agent.proc.clone(), agent.means).await?);
        }
        let happening = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            Ok(()) = configs.seen.changed() => Happening::Config,
            Ok(()) = nodes.seen.changed() => Happening::Node,
            sighting = sighting(&mut detection, state.config.as_ref()) => {
                Happening::Sighting(sighting?)
            }
            () = sleep_until(state.due), if state.has_work() => Happening::Due,
            () = state.confinement.due() => Happening::Proof,
        };
        match happening {
            Happening::Config => {
                let seen = configs.seen.borrow_and_update().clone();
                if state.is_given(&seen)
                    && let Some(detection) = &mut detection
                {
                    detection.rescan();
                }
            }
            Happening::Node => state.sees_node(&nodes.seen.borrow_and_update()),
            Happening::Sighting(sighting) => state.has_seen(&sighting, (agent.now)()),
            Happening::Due => {}
            Happening::Proof => state.has_tried(agent.node.try_another().await),
        }
        if state.has_work() && state.due <= Instant::now() {
            let outcome = agent.node.write(&state.effective()).await;
            state.has_written(outcome);
        }
    }
}

/// Where the agents' configurations are.
pub(crate) fn config_maps(node: &OwnNode) -> Api<ConfigMap> {
    Api::namespaced(node.client.clone(), SYSTEM_NAMESPACE)
}

/// The configuration's text; none if the ConfigMap has none.
pub(crate) fn text_of(config_map: &ConfigMap) -> Option<&str> {
    let data = config_map.data.as_ref()?;
    data.get(RECLAIM_CONFIG_KEY).map(String::as_str)
}

/// Waits for a process that is meant; for ever while none can be.
async fn sighting(
    detection: &mut Option<Detection>,
    config: Option<&Config>,
) -> io::Result<Sighting> {
    match (detection, config) {
        (Some(detection), Some(config)) => detection.next(config).await,
        _ => pending().await,
    }
}

/// What the agent knows and wants.
#[derive(Debug)]
struct State {
    /// The last configuration that could be used.
    config: Option<Config>,
    /// The Node's annotations.
    node: Seen<Annotations>,
    wanted: Wanted,
    /// The next attempt to write, not before the Node has changed if none.
    due: Instant,
    /// This host is not the Node's machine; nothing is tried before the Node has changed.
    is_stranger: bool,
    failures: u32,
    confinement: Confinement,
}

impl State {
    fn new(proof: Proof) -> Self {
        Self {
            config: None,
            node: Seen::Unknown,
            wanted: Wanted::default(),
            due: Instant::now(),
            is_stranger: false,
            failures: 0,
            confinement: Confinement::new(proof),
        }
    }

    /// What is wanted on the Node by an agent that is confined to it; what one that is not has to
    /// say instead.
    fn effective(&self) -> Wanted {
        let report = match &self.wanted.report {
            Told::Report(report) => self.confinement.report(report),
            other => other.clone(),
        };
        let request = self.wanted.request.clone();
        Wanted {
            report,
            request: request.filter(|_| self.confinement.is_shown()),
        }
    }

    /// Takes what came of the attempt to write to a Node that is not the agent's.
    fn has_tried(&mut self, outcome: Result<Attempt, NodeError>) {
        let was_shown = self.confinement.is_shown();
        self.confinement.has_tried(outcome);
        if was_shown && !self.confinement.is_shown() {
            self.wanted.request = None;
        }
        self.due = Instant::now();
    }

    /// Whether processes are to be watched: something is meant, and nothing is asked for yet.
    fn is_watching(&self) -> bool {
        let is_asked = match &self.node {
            Seen::Unknown => false,
            Seen::Absent => true,
            Seen::Is(annotations) => is_requested(annotations),
        };
        let means_something = |config: &Config| !config.patterns.is_empty();
        !is_asked
            && self.confinement.is_shown()
            && self.wanted.request.is_none()
            && self.config.as_ref().is_some_and(means_something)
    }

    /// Whether something on the Node is not as it should be.
    fn has_work(&self) -> bool {
        match &self.node {
            Seen::Is(found) => {
                !self.is_stranger && !self.effective().changes(found).is_empty()
            }
            Seen::Unknown => self.effective().request.is_some(),
            Seen::Absent => false,
        }
    }

    /// Takes the ConfigMap as it is now. Says whether something else is meant than before.
    fn is_given(&mut self, seen: &Seen<ConfigMap>) -> bool {
        let report = match seen {
            Seen::Unknown => return false,
            Seen::Absent => {
                tracing::info!("no configuration: nothing is looked for");
                self.config = None;
                self.wanted.request = None;
                self.wanted.report = Told::Nothing;
                self.due = Instant::now();
                return false;
            }
            Seen::Is(config_map) => self.read(config_map),
        };
        let report = Told::Report(report);
        if self.wanted.report == report {
            return false;
        }
        self.wanted.report = report;
        self.due = Instant::now();
        true
    }

    fn read(&mut self, config_map: &ConfigMap) -> Report {
        let Some(text) = text_of(config_map) else {
            let why = format!("the ConfigMap has no key {RECLAIM_CONFIG_KEY}");
            tracing::error!(why, "configuration rejected, the last good one is kept");
            return Report::rejected(config_hash(""), &why);
        };
        match Config::parse(text) {
            Ok(config) => {
                let report = config.report();
                let patterns = config.patterns.texts().len();
                let hash = config.hash.as_str();
                if self.config.as_ref().is_none_or(|old| old.hash != hash) {
                    tracing::info!(hash, patterns, "configuration taken");
                }
                self.config = Some(config);
                report
            }
            Err(rejected) => {
                tracing::error!(
                    hash = rejected.hash,
                    why = rejected.why,
                    kept = self.config.as_ref().map(|config| config.hash.as_str()),
                    "configuration rejected, the last good one is kept"
                );
                rejected.report()
            }
        }
    }

    /// Takes the Node as it is now.
    fn sees_node(&mut self, seen: &Seen<PartialObjectMeta<Node>>) {
        let was_asked = matches!(&self.node, Seen::Is(found) if is_requested(found));
        self.node = match seen {
            Seen::Unknown => Seen::Unknown,
            Seen::Absent => Seen::Absent,
            Seen::Is(node) => {
                Seen::Is(node.metadata.annotations.clone().unwrap_or_default())
            }
        };
        let is_asked = matches!(&self.node, Seen::Is(found) if is_requested(found));
        if is_asked {
            self.wanted.request = None;
        } else if was_asked && self.node != Seen::Absent {
            tracing::info!("the request is gone: looking for processes again");
        }
        if self.is_stranger {
            self.is_stranger = false;
            self.due = Instant::now();
        }
    }

    fn has_seen(&mut self, sighting: &Sighting, now: Timestamp) {
        tracing::warn!(
            pid = sighting.pid,
            started = sighting.started,
            process = %sighting.names,
            pattern = sighting.pattern,
            by = sighting.by.as_str(),
            "process matches: asking for the machine back"
        );
        self.wanted.request = Some(Asked {
            pattern: sighting.pattern.clone(),
            at: now,
        });
        self.due = Instant::now();
    }

    fn has_written(&mut self, outcome: Result<Annotations, NodeError>) {
        match outcome {
            Ok(annotations) => {
                self.failures = 0;
                if self.wanted.request.take().is_some() {
                    tracing::warn!("the Node asks for reclaim");
                }
                self.node = Seen::Is(annotations);
            }
            Err(error) => {
                self.failures += 1;
                self.is_stranger = matches!(error, NodeError::AnotherMachine);
                self.due = Instant::now() + backoff(self.failures);
                let error = told(&error);
                tracing::error!(
                    error,
                    attempt = self.failures,
                    "the Node was not written"
                );
            }
        }
    }
}
