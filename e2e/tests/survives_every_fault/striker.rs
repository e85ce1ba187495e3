//! Strikes one fault between the operator and its servers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_testkit::{Asked, Delivery, Fate, Opening, Proxy};
use jiff::SignedDuration;

/// What becomes of a write or a watch.
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
}

/// What a fault strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The write of that number, from 0.
    Write(usize),
    /// The first event of that watch.
    Watch(String),
}

/// Strikes one fault, and remembers what passes.
pub(super) struct Striker {
    strike: Option<(Target, Fault)>,
    /// The versions that an earlier operator's watches began from.
    pub(super) old: BTreeMap<String, String>,
    passed: Mutex<Passed>,
}

#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) writes: usize,
    /// The versions that watches began from.
    pub(super) began: BTreeMap<String, String>,
    /// The watches that have delivered something.
    pub(super) told: BTreeSet<String>,
    pub(super) has_struck: bool,
}

/// For how long a watch is delayed: longer than a host takes to come up.
const DELAY: SignedDuration = SignedDuration::from_secs(40);

impl Striker {
    pub(super) fn new(
        strike: Option<(Target, Fault)>,
        old: BTreeMap<String, String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            strike,
            old,
            passed: Mutex::default(),
        })
    }

    pub(super) fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, asked: &Asked) -> Fate {
        if !asked.event.is_write() || asked.event.resource == "events" {
            return Fate::Pass;
        }
        let mut passed = self.passed();
        let number = passed.writes;
        passed.writes += 1;
        match &self.strike {
            Some((Target::Write(struck), fault)) if *struck == number => {
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
}

/// A watch, whatever the names in the cluster.
fn watch(asked: &Asked) -> String {
    let selector = asked
        .query
        .split('&')
        .find_map(|word| word.strip_prefix("fieldSelector="));
    let field = selector.and_then(|text| text.split(['=', '%']).next());
    format!("{} {}", asked.event.resource, field.unwrap_or_default())
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
        let is_struck = self.strike == Some((Target::Watch(key.clone()), Fault::Old));
        match self.old.get(&key) {
            Some(old) if is_struck && !passed.has_struck => {
                passed.has_struck = true;
                Opening::From(old.clone())
            }
            _ => Opening::Pass,
        }
    }

    fn event(&self, asked: &Asked, _: &[u8]) -> Delivery {
        let key = watch(asked);
        let mut passed = self.passed();
        passed.told.insert(key.clone());
        let fault = match &self.strike {
            Some((Target::Watch(struck), fault)) if *struck == key => *fault,
            _ => return Delivery::Pass,
        };
        if passed.has_struck {
            return Delivery::Pass;
        }
        match fault {
            Fault::Dropped => {
                passed.has_struck = true;
                Delivery::End
            }
            Fault::Delayed => {
                passed.has_struck = true;
                Delivery::Late(DELAY)
            }
            _ => Delivery::Pass,
        }
    }
}
