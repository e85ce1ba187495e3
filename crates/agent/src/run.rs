//! The main loop of the agent: it watches its configuration, its Node and the processes, and
//! annotates the Node.

mod state;

use std::convert::Infallible;
use std::future::Future;
use std::io;

use fivespot_api::name::{RECLAIM_CONFIG_KEY, SYSTEM_NAMESPACE, reclaim_config_map};
use futures::future::{BoxFuture, OptionFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, PartialObjectMeta};
use state::{Answer, State};
use tokio::sync::watch::error::RecvError;
use tokio::time::sleep_until;

use crate::config::Config;
use crate::connector::SubscribeError;
use crate::detect::{Detection, DetectionMode, process};
use crate::hold::{HoldSettings, Holder};
use crate::node::OwnNode;
use crate::policy_check::PolicyRequirement;
use crate::proc::Proc;
use crate::reporting::{OwnMachine, Reporting};
use crate::run_directory::{Publisher, RunDirectory};
use crate::scan::ProcessMatch;
use crate::signal::{Settings, Signals, Source};
use crate::watched::{Watched, watch_object};

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
    /// What to do with pods while no API server answers. `None`: nothing.
    pub hold: Option<HoldSettings>,
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
    Answer(Answer),
    /// The time has changed at which this host is lent next.
    Opening,
    /// Something has to be sent or decided.
    Due,
}

/// Where inputs come from.
struct Inputs {
    configs: Watched<ConfigMap>,
    nodes: Watched<PartialObjectMeta<Node>>,
    detection: Option<Detection>,
    signals: Signals,
    /// What the agent has sent, one request at a time.
    request: Option<BoxFuture<'static, Answer>>,
    reporting: Option<Reporting>,
}

impl Inputs {
    /// Waits for the next one.
    async fn next(&mut self, state: &State) -> io::Result<Input> {
        let is_idle = self.request.is_none();
        Ok(tokio::select! {
            biased;
            Ok(()) = self.configs.observed.changed() => Input::Config,
            Some(answer) = OptionFuture::from(self.request.as_mut()) => Input::Answer(answer),
            // After the answer to a write, which must not replace what is observed later.
            Ok(()) = self.nodes.observed.changed(), if is_idle => Input::Node,
            Some(process) = process(&mut self.detection, state.config.as_ref()) => {
                Input::Process(process?)
            }
            () = self.signals.due() => Input::Signals,
            Some(Ok(())) = opening(&mut self.reporting) => Input::Opening,
            Some(()) = OptionFuture::from(state.next(is_idle).map(sleep_until)) => Input::Due,
        })
    }

    /// The configuration that is observed now.
    fn apply_config(&mut self, state: &mut State, proc: &Proc) {
        let is_kept = self.reporting.is_some();
        let observed = self.configs.observed.borrow_and_update().clone();
        if state.apply_config(&observed)
            && let Some(detection) = &mut self.detection
        {
            detection.rescan();
        }
        configure(&mut self.signals, state.config.as_ref(), is_kept, proc);
    }
}

/// Runs until `stop` completes.
///
/// # Errors
/// Processes cannot be detected. Requests to the API server are retried forever.
///
/// # Guarantees
/// When it ends, pods that it has frozen go on, also if it ends with an error.
pub async fn run(mut agent: Agent, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let name = agent.node.name.clone();
    let directory = agent.run_directory.as_ref();
    let publisher = Publisher::start(directory, &agent.proc, &name);
    let mut inputs = Inputs {
        nodes: watch_object(agent.node.api(), name.clone()),
        configs: watch_object(config_maps(&agent.node), reclaim_config_map(&name)),
        detection: None,
        signals: signals(std::mem::take(&mut agent.signals), directory),
        request: None,
        reporting: None,
    };
    inputs.signals.watch();
    let holder = holder(agent.hold.take(), &agent.proc, agent.now);
    let mut state = State::new(agent.requirement, holder);
    let host = (agent.proc.clone(), agent.mode);
    let absent = inputs.signals.are_absent();
    let machine = agent.machine.clone();
    inputs.reporting = machine.map(|it| Reporting::start(it, host, absent, agent.now));
    let ended = tokio::select! {
        biased;
        () = stop => Ok(()),
        Err(error) = follow(agent, inputs, &mut state, publisher) => Err(error),
    };
    state.stop();
    ended
}

/// Acts on every input until processes cannot be detected.
async fn follow(
    agent: Agent,
    mut inputs: Inputs,
    state: &mut State,
    mut publisher: Publisher,
) -> Result<Infallible, Error> {
    loop {
        if !state.is_watching() {
            inputs.detection = None;
        } else if inputs.detection.is_none() {
            let begun = Detection::begin(agent.proc.clone(), agent.mode).await?;
            inputs.detection = Some(begun);
        }
        let input = inputs.next(state).await?;
        let might_request = state.may_request();
        let signals = &mut inputs.signals;
        match input {
            Input::Config => inputs.apply_config(state, &agent.proc),
            Input::Node => state.apply_node(&inputs.nodes.observed.borrow_and_update()),
            Input::Process(process) => state.request_reclaim(&process, (agent.now)()),
            Input::Signals => state.apply_signals(signals, (agent.now)()),
            Input::Answer(answer) => {
                inputs.request = None;
                state.apply_answer(answer, signals.standing().is_some());
            }
            Input::Opening | Input::Due => {}
        }
        if inputs.request.is_none() {
            inputs.request = state.send(&agent.node, agent.machine.as_ref());
        }
        let signals = &mut inputs.signals;
        state.hold(signals, &agent.proc, (agent.now)());
        if !might_request && state.may_request() {
            // What stood may have ended.
            signals.hasten();
        }
        let opening = inputs
            .reporting
            .as_ref()
            .and_then(|it| *it.opening.borrow());
        publisher.publish(state.requested(), state.account(), opening, signals);
    }
}

/// Reads the signals of a configuration. It goes with the Node, and a host that reports has to be free
/// of the signals that it had: those are kept.
fn configure(signals: &mut Signals, config: Option<&Config>, is_kept: bool, proc: &Proc) {
    let none = Settings::default();
    match config {
        Some(config) => signals.configure(&config.signals, proc.root()),
        None if is_kept => {}
        None => signals.configure(&none, proc.root()),
    }
}

/// What holds the pods of this host, unless the agent is one of them.
fn holder(
    settings: Option<HoldSettings>,
    proc: &Proc,
    now: fn() -> Timestamp,
) -> Option<Holder> {
    if settings.is_some() && proc.is_in_pod() {
        tracing::info!("this agent is in a pod: it holds none");
        return None;
    }
    settings.map(|settings| Holder::start(settings, now()))
}

/// Waits until this host is lent at another time, if that can become known.
fn opening(
    reporting: &mut Option<Reporting>,
) -> OptionFuture<impl Future<Output = Result<(), RecvError>>> {
    reporting.as_mut().map(|it| it.opening.changed()).into()
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
