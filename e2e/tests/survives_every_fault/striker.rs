//! Injects one fault between the operator and its servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_testkit::{Asked, Delivery, Fate, Opening, Proxy};
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
pub(super) struct Strike {
    pub(super) target: Target,
    pub(super) fault: Fault,
}

impl fmt::Display for Strike {
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
pub(super) struct Striker {
    strike: Option<Strike>,
    /// The versions from which an earlier operator's watches started.
    old: BTreeMap<String, String>,
    /// The Node of the scenario. A shared server also has other Nodes.
    node: String,
    passed: Mutex<Passed>,
}

#[derive(Debug, Default)]
pub(super) struct Passed {
    /// The number of writes by verb and resource.
    pub(super) writes: BTreeMap<String, usize>,
    /// The versions from which watches started.
    pub(super) began: BTreeMap<String, String>,
    /// The watches that have delivered an event.
    pub(super) reported: BTreeSet<String>,
    pub(super) has_struck: bool,
}

/// The delay of a watch: longer than the start of a host.
const DELAY: SignedDuration = SignedDuration::from_secs(40);

impl Striker {
    /// Injects `strike`, if any, in a scenario with this Node.
    pub(super) fn new(
        strike: Option<Strike>,
        old: BTreeMap<String, String>,
        node: String,
    ) -> Arc<Self> {
        Arc::new(Self {
            strike,
            old,
            node,
            passed: Mutex::default(),
        })
    }

    pub(super) fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the watch can start from an older version than it did.
    pub(super) fn knows_older(&self, watch: &str) -> bool {
        let began = self.passed().began.get(watch).cloned();
        let old = self.old.get(watch);
        old.is_some() && old != began.as_ref()
    }

    fn fate(&self, asked: &Asked) -> Fate {
        if !asked.event.is_write() || asked.event.resource == "events" {
            return Fate::Pass;
        }
        let kind = kind(asked);
        let mut passed = self.passed();
        let count = passed.writes.entry(kind.clone()).or_default();
        let written = Target::Write(kind, *count);
        *count += 1;
        match &self.strike {
            Some(Strike { target, fault }) if *target == written => {
                passed.has_struck = true;
                match fault {
                    Fault::CrashBefore => Fate::CrashBefore,
                    Fault::CrashAfter => Fate::CrashAfter,
                    Fault::Conflict => Fate::Refuse(409, None),
                    Fault::Error => Fate::Refuse(500, None),
                    _ => Fate::Lose,
                }
            }
            _ => Fate::Pass,
        }
    }

    fn fault_of(&self, watch: &str) -> Option<Fault> {
        let Strike { target, fault } = self.strike.as_ref()?;
        (*target == Target::Watch(watch.to_owned())).then_some(*fault)
    }

    /// Whether an event belongs to this scenario.
    fn is_of_scenario(&self, asked: &Asked, line: &[u8]) -> bool {
        let has =
            |text: &str| line.windows(text.len()).any(|part| part == text.as_bytes());
        let is_bookmark = has("\"type\":\"BOOKMARK\"");
        !is_bookmark && (asked.event.resource != "nodes" || has(&self.node))
    }
}

/// The kind of a write, without names.
fn kind(asked: &Asked) -> String {
    let event = &asked.event;
    let subresource = match event.subresource.as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    format!("{} {}{subresource}", event.verb, event.resource)
}

/// The kind of a watch, without names.
fn watch(asked: &Asked) -> String {
    let selector = asked
        .query
        .split('&')
        .find_map(|word| word.strip_prefix("fieldSelector="));
    let field = selector.and_then(|text| text.split(['=', '%']).next());
    match field {
        Some(field) => format!("{} by {field}", asked.event.resource),
        None => asked.event.resource.clone(),
    }
}

impl Proxy for Striker {
    fn request<'a>(
        &'a self,
        asked: &'a Asked,
    ) -> Pin<Box<dyn Future<Output = Fate> + Send + 'a>> {
        Box::pin(std::future::ready(self.fate(asked)))
    }

    fn opening(&self, asked: &Asked) -> Opening {
        let key = watch(asked);
        let version = asked
            .query
            .split('&')
            .find_map(|word| word.strip_prefix("resourceVersion="));
        let mut passed = self.passed();
        if let Some(version) = version {
            let began = passed.began.entry(key.clone());
            began.or_insert_with(|| version.to_owned());
        }
        match self.old.get(&key) {
            Some(old)
                if self.fault_of(&key) == Some(Fault::Old) && !passed.has_struck =>
            {
                passed.has_struck = true;
                Opening::From(old.clone())
            }
            _ => Opening::Pass,
        }
    }

    fn event(&self, asked: &Asked, line: &[u8]) -> Delivery {
        if !self.is_of_scenario(asked, line) {
            return Delivery::Pass;
        }
        let key = watch(asked);
        let mut passed = self.passed();
        passed.reported.insert(key.clone());
        if passed.has_struck {
            return Delivery::Pass;
        }
        let delivery = match self.fault_of(&key) {
            Some(Fault::Dropped) => Delivery::End,
            Some(Fault::Delayed) => Delivery::Late(DELAY),
            _ => return Delivery::Pass,
        };
        passed.has_struck = true;
        delivery
    }
}
