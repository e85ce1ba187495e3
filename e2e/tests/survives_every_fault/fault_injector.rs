//! Injects one fault between the operator and its servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_testkit::{Delivery, ProxiedRequest, Proxy, RequestOutcome, WatchStart};
use jiff::SignedDuration;

/// The fault of a write or a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    CrashBefore,
    CrashAfter,
    Conflict,
    Error,
    Lost,
    Dropped,
    Delayed,
    Old,
}

impl Fault {
    pub(super) const OF_WRITES: [Self; 5] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Conflict,
        Self::Error,
        Self::Lost,
    ];
    pub(super) const OF_WATCHES: [Self; 3] = [Self::Dropped, Self::Delayed, Self::Old];

    fn as_str(self) -> &'static str {
        match self {
            Self::CrashBefore => "a crash before",
            Self::CrashAfter => "a crash after",
            Self::Conflict => "a conflict at",
            Self::Error => "an error at",
            Self::Lost => "a lost answer to",
            Self::Dropped => "an end of",
            Self::Delayed => "a delay of",
            Self::Old => "an old start of",
        }
    }
}

/// The target of a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A write of this verb and resource, and how many of them came before it.
    Write(String, usize),
    /// A watch of this resource, from its first event or its start on.
    Watch(String),
}

/// One fault and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InjectedFault {
    pub(super) target: Target,
    pub(super) fault: Fault,
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.fault.as_str();
        match &self.target {
            Target::Write(kind, before) => {
                write!(formatter, "{fault} write {} of `{kind}`", before + 1)
            }
            Target::Watch(watch) => write!(formatter, "{fault} the watch of `{watch}`"),
        }
    }
}

/// Injects one fault, and records the requests.
pub(super) struct FaultInjector {
    injected_fault: Option<InjectedFault>,
    /// The versions from which an earlier operator's watches started.
    old: BTreeMap<String, String>,
    /// The Node of the scenario. A shared server also has other Nodes.
    node: String,
    log: Mutex<TrafficLog>,
}

#[derive(Debug, Default)]
pub(super) struct TrafficLog {
    /// The number of writes by verb and resource.
    pub(super) writes: BTreeMap<String, usize>,
    /// The versions from which watches started.
    pub(super) began: BTreeMap<String, String>,
    /// The watches that have delivered an event.
    pub(super) reported: BTreeSet<String>,
    pub(super) is_injected: bool,
}

/// The delay of a watch: longer than the start of a host.
const DELAY: SignedDuration = SignedDuration::from_secs(40);

impl FaultInjector {
    /// Injects `injected_fault`, if any, in a scenario with this Node.
    pub(super) fn new(
        injected_fault: Option<InjectedFault>,
        old: BTreeMap<String, String>,
        node: String,
    ) -> Arc<Self> {
        Arc::new(Self {
            injected_fault,
            old,
            node,
            log: Mutex::default(),
        })
    }

    pub(super) fn log(&self) -> MutexGuard<'_, TrafficLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the watch can start from an older version than it did.
    pub(super) fn knows_older(&self, watch: &str) -> bool {
        let began = self.log().began.get(watch).cloned();
        let old = self.old.get(watch);
        old.is_some() && old != began.as_ref()
    }

    fn outcome(&self, request: &ProxiedRequest) -> RequestOutcome {
        if !request.event.is_write() || request.event.resource == "events" {
            return RequestOutcome::Pass;
        }
        let kind = kind(request);
        let mut log = self.log();
        let count = log.writes.entry(kind.clone()).or_default();
        let written = Target::Write(kind, *count);
        *count += 1;
        match &self.injected_fault {
            Some(InjectedFault { target, fault }) if *target == written => {
                log.is_injected = true;
                match fault {
                    Fault::CrashBefore => RequestOutcome::CrashBefore,
                    Fault::CrashAfter => RequestOutcome::CrashAfter,
                    Fault::Conflict => RequestOutcome::Refuse(409, None),
                    Fault::Error => RequestOutcome::Refuse(500, None),
                    _ => RequestOutcome::Lose,
                }
            }
            _ => RequestOutcome::Pass,
        }
    }

    fn fault_of(&self, watch: &str) -> Option<Fault> {
        let InjectedFault { target, fault } = self.injected_fault.as_ref()?;
        (*target == Target::Watch(watch.to_owned())).then_some(*fault)
    }

    /// Whether an event belongs to this scenario.
    fn is_of_scenario(&self, request: &ProxiedRequest, line: &[u8]) -> bool {
        let has =
            |text: &str| line.windows(text.len()).any(|part| part == text.as_bytes());
        let is_bookmark = has("\"type\":\"BOOKMARK\"");
        !is_bookmark && (request.event.resource != "nodes" || has(&self.node))
    }
}

/// The kind of a write, without names.
fn kind(request: &ProxiedRequest) -> String {
    let event = &request.event;
    let subresource = match event.subresource.as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    format!("{} {}{subresource}", event.verb, event.resource)
}

/// The kind of a watch, without names.
fn watch(request: &ProxiedRequest) -> String {
    let selector = request
        .query
        .split('&')
        .find_map(|word| word.strip_prefix("fieldSelector="));
    let field = selector.and_then(|text| text.split(['=', '%']).next());
    match field {
        Some(field) => format!("{} by {field}", request.event.resource),
        None => request.event.resource.clone(),
    }
}

impl Proxy for FaultInjector {
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        Box::pin(std::future::ready(self.outcome(request)))
    }

    fn watch_start(&self, request: &ProxiedRequest) -> WatchStart {
        let key = watch(request);
        let version = request
            .query
            .split('&')
            .find_map(|word| word.strip_prefix("resourceVersion="));
        let mut log = self.log();
        if let Some(version) = version {
            let began = log.began.entry(key.clone());
            began.or_insert_with(|| version.to_owned());
        }
        match self.old.get(&key) {
            Some(old) if self.fault_of(&key) == Some(Fault::Old) && !log.is_injected => {
                log.is_injected = true;
                WatchStart::From(old.clone())
            }
            _ => WatchStart::Pass,
        }
    }

    fn event(&self, request: &ProxiedRequest, line: &[u8]) -> Delivery {
        if !self.is_of_scenario(request, line) {
            return Delivery::Pass;
        }
        let key = watch(request);
        let mut log = self.log();
        log.reported.insert(key.clone());
        if log.is_injected {
            return Delivery::Pass;
        }
        let delivery = match self.fault_of(&key) {
            Some(Fault::Dropped) => Delivery::End,
            Some(Fault::Delayed) => Delivery::Late(DELAY),
            _ => return Delivery::Pass,
        };
        log.is_injected = true;
        delivery
    }
}
