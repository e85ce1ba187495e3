//! Which openings of a coming time cannot be kept, and why: no host of the class is free, a limit of
//! the class is reached, too many of its machines begin within a minute, or the lead time is shorter
//! than provisioning takes.
//!
//! A forecast goes through the instants at which machines are needed and leave, in order, and gives
//! out hosts as the operator does: the highest priority first, then the first name; each takes the
//! first free host by name, or the one that it names. It assumes that nobody edits or reclaims
//! anything, and that a machine leaves its host when its `gracefulShutdownTimeout` is over. Under a
//! Hold nothing begins to wait for a host or leaves one. `stopsPerMinute` and `minimumActive` of a
//! class are not counted: a machine that they keep leaves its host later.

mod hosts;
mod limits;
mod message;
mod opening;
mod starts;

use std::collections::BTreeMap;

use fivespot_api::condition::Reason;
use fivespot_api::{ClassProblem, LimitsOfClass, ResolvedClass, ScheduledMachine};
use fivespot_plan::limits::Limit;
use fivespot_schedule::Schedule;
use jiff::{SignedDuration, Timestamp};

use opening::{Needs, Opening};

/// How many openings a forecast has at most: seven weeks of 10,000 machines that open once a day.
pub const MAX_OPENINGS: usize = 500_000;

/// A ScheduledMachine whose openings are forecast.
#[derive(Clone, Copy, Debug)]
pub struct FleetMachine<'m> {
    /// Its namespace.
    pub namespace: &'m str,
    /// The object, with what it takes from its class. A host in its status is in use at the
    /// beginning.
    pub object: &'m ScheduledMachine,
    /// The schedule in force, with lead time, early end and overrides. `None` if no machine is ever
    /// needed, because it is disabled for example.
    pub schedule: Option<&'m Schedule>,
}

/// The time of a forecast, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastSpan {
    /// When the machines have the hosts that their status says; not after `from`.
    pub since: Timestamp,
    /// The first instant whose openings are reported.
    pub from: Timestamp,
    /// The end, exclusive.
    pub to: Timestamp,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetForecast {
    /// How many openings there are from the beginning to the end.
    pub openings: usize,
    /// Those that cannot be kept, by time, namespace and name.
    pub broken: Vec<BrokenOpening>,
    /// How many machines have no lead time, and were measured to need some.
    pub without_lead_time: usize,
    /// The longest time that one of these took to become ready.
    pub longest_provisioning: SignedDuration,
}

/// An opening that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenOpening {
    /// The place of the machine in the fleet.
    pub machine: usize,
    /// When the window opens.
    pub opens: Timestamp,
    /// How long after that the machine is there. `None` if it is not before the window ends.
    pub late: Option<SignedDuration>,
    /// Why.
    pub cause: BrokenBy,
}

/// Why an opening cannot be kept. Machines are given by their places in the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokenBy {
    /// Every host of the class is in use.
    NoHostFree {
        /// How many hosts the class has.
        hosts: usize,
        /// Some of the machines that have them.
        holders: Vec<usize>,
    },
    /// The host that the machine names is in use.
    HostTaken {
        /// Its name.
        host: String,
        /// The machine that has it.
        holder: usize,
    },
    /// The class does not have the host that the machine names.
    HostNotFound {
        /// The name.
        host: String,
    },
    /// The class does not allow the Cluster of the machine.
    ClusterNotAllowed {
        /// The Clusters that it allows.
        allowed: Vec<String>,
    },
    /// The class does not select the namespace of the machine.
    NamespaceNotSelected,
    /// As many machines of the class begin as may within a minute.
    StartsReached {
        /// How many may.
        most: u32,
    },
    /// A limit of the class for the machines of a namespace is reached.
    LimitReached {
        /// Which one.
        limit: Limit,
        /// The number of machines, or of hours a week.
        most: u32,
    },
    /// Provisioning takes longer than the lead time.
    LeadTimeTooShort {
        /// The lead time.
        lead_time: SignedDuration,
        /// How long the last provisioning took.
        took: SignedDuration,
    },
}

impl BrokenBy {
    /// The reason as one word, that of the condition where there is one.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoHostFree { .. } => Reason::NoHostFree.as_str(),
            Self::HostTaken { .. } => Reason::HostTaken.as_str(),
            Self::HostNotFound { .. } => Reason::HostNotFound.as_str(),
            Self::ClusterNotAllowed { .. } | Self::NamespaceNotSelected => {
                Reason::ClassNotAllowed.as_str()
            }
            Self::StartsReached { .. } | Self::LimitReached { .. } => {
                Reason::LimitReached.as_str()
            }
            Self::LeadTimeTooShort { .. } => "LeadTimeTooShort",
        }
    }
}

/// There are more openings than [`MAX_OPENINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than 500,000 openings")]
pub struct TooManyOpenings;

/// Finds the openings of a fleet that cannot be kept.
///
/// # Errors
/// The machines open too often in that time.
pub fn forecast(
    fleet: &[FleetMachine<'_>],
    span: ForecastSpan,
) -> Result<FleetForecast, TooManyOpenings> {
    let mut left = MAX_OPENINGS;
    let needs = fleet
        .iter()
        .map(|machine| Needs::of(machine, span, &mut left));
    let mut needs: Vec<Needs<'_>> = needs.collect::<Result<_, _>>()?;
    for (limits, places) in limited(fleet) {
        limits::keep(fleet, &mut needs, limits, places, span);
    }
    let mut found = Findings::new(fleet, &needs, span);
    let mut pools: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, machine) in fleet.iter().enumerate() {
        let Some(class) = &machine.object.spec.class else {
            found.all_on_time(place);
            continue;
        };
        if let Some(cause) = fault(class) {
            found.all_never(place, &cause);
            continue;
        }
        found.refused(place);
        if class.pool.is_some() || class.rates.starts.is_some() {
            pools.entry(&class.name).or_default().push(place);
        } else {
            found.all_on_time(place);
        }
    }
    for members in pools.into_values() {
        hosts::give_out(fleet, &needs, members, span, &mut found);
    }
    let mut forecast = found.forecast;
    let name = |place: usize| {
        let machine = fleet.get(place)?;
        Some((machine.namespace, machine.object.metadata.name.as_deref()))
    };
    forecast
        .broken
        .sort_by_key(|broken| (broken.opens, name(broken.machine)));
    Ok(forecast)
}

/// The machines of each class that limits openings, by class and namespace.
fn limited<'m>(
    fleet: &[FleetMachine<'m>],
) -> impl Iterator<Item = (&'m LimitsOfClass, Vec<usize>)> + use<'m> {
    let mut groups: BTreeMap<_, (_, Vec<usize>)> = BTreeMap::new();
    for (place, machine) in fleet.iter().enumerate() {
        let class = machine.object.spec.class.as_ref();
        let class = class.filter(|class| fault(class).is_none());
        let limits = class.and_then(|class| class.limits.as_deref());
        let limits = limits.filter(|limits| limits.limits_openings());
        if let Some((class, limits)) = class.zip(limits) {
            let key = (class.name.as_str(), machine.namespace);
            let group = groups.entry(key).or_insert((limits, Vec::new()));
            group.1.push(place);
        }
    }
    groups.into_values()
}

/// Why no machine is ever made from its class. A class that is not known is not part of a forecast.
fn fault(class: &ResolvedClass) -> Option<BrokenBy> {
    if class.problem == Some(ClassProblem::NamespaceNotSelected) {
        return Some(BrokenBy::NamespaceNotSelected);
    }
    if let Some(ClassProblem::ClusterNotAllowed(allowed)) = &class.problem {
        let allowed = allowed.clone();
        return Some(BrokenBy::ClusterNotAllowed { allowed });
    }
    let is_known = class.problem != Some(ClassProblem::NotFound);
    let has = |host: &String| class.pool.as_ref().is_some_and(|pool| pool.has(host));
    let missing = class.host.as_ref().filter(|host| is_known && !has(host));
    missing.map(|host| BrokenBy::HostNotFound { host: host.clone() })
}

/// Collects what becomes of the openings.
struct Findings<'f, 'm> {
    fleet: &'f [FleetMachine<'m>],
    needs: &'f [Needs<'m>],
    span: ForecastSpan,
    forecast: FleetForecast,
}

impl<'f, 'm> Findings<'f, 'm> {
    fn new(
        fleet: &'f [FleetMachine<'m>],
        needs: &'f [Needs<'m>],
        span: ForecastSpan,
    ) -> Self {
        let mut forecast = FleetForecast::default();
        for needs in needs {
            let reported = needs.openings.iter().filter(|it| it.is_within(span));
            let reported = reported.count();
            forecast.openings += reported;
            let took = needs.took.filter(|_| needs.lead_time == 0 && reported > 0);
            if let Some(took) = took.filter(|took| *took > 0) {
                forecast.without_lead_time += 1;
                let longest = &mut forecast.longest_provisioning;
                *longest = (*longest).max(SignedDuration::from_secs(took));
            }
        }
        Self {
            fleet,
            needs,
            span,
            forecast,
        }
    }

    /// Reports the openings that the limits of the class never allow.
    fn refused(&mut self, machine: usize) {
        let openings = self.needs.get(machine).map_or(&[][..], |of| &of.openings);
        for opening in openings.iter().filter(|it| it.is_refused()) {
            if let Some(cause) = self.limit(machine, opening) {
                self.broken(machine, opening, None, cause);
            }
        }
    }

    /// The limit of the class that has moved the start of an opening.
    fn limit(&self, machine: usize, opening: &Opening) -> Option<BrokenBy> {
        let limit = opening.limit?;
        let class = self.fleet.get(machine)?.object.spec.class.as_ref()?;
        let limits = class.limits.as_ref()?;
        let most = match limit {
            Limit::Machines => limits.machines?,
            Limit::Hours => limits.hours?,
        };
        Some(BrokenBy::LimitReached { limit, most })
    }

    /// The machine is created whenever it is needed.
    fn all_on_time(&mut self, machine: usize) {
        let openings = self.needs.get(machine).map_or(&[][..], |of| &of.openings);
        for opening in openings.iter().filter(|it| !it.is_refused()) {
            self.created(machine, opening, opening.start, None);
        }
    }

    /// The machine is never created.
    fn all_never(&mut self, machine: usize, cause: &BrokenBy) {
        let openings = self.needs.get(machine).map_or(&[][..], |of| &of.openings);
        for opening in openings {
            self.broken(machine, opening, None, cause.clone());
        }
    }

    /// The machine is created at an instant, until which it had to wait because of `cause`.
    fn created(
        &mut self,
        machine: usize,
        opening: &Opening,
        at: i64,
        cause: Option<BrokenBy>,
    ) {
        let Some(needs) = self.needs.get(machine) else {
            return;
        };
        // Without a lead time, nobody expects it to be ready when the window opens.
        let took = needs.took.filter(|_| needs.lead_time > 0);
        let late = at + took.unwrap_or(0) - opening.opens;
        if late <= 0 {
            return;
        }
        let lead_time_too_short = || BrokenBy::LeadTimeTooShort {
            lead_time: SignedDuration::from_secs(needs.lead_time),
            took: SignedDuration::from_secs(took.unwrap_or(0)),
        };
        let cause = cause.or_else(|| self.limit(machine, opening));
        let cause = cause.unwrap_or_else(lead_time_too_short);
        let late = SignedDuration::from_secs(late);
        self.broken(machine, opening, Some(late), cause);
    }

    fn broken(
        &mut self,
        machine: usize,
        opening: &Opening,
        late: Option<SignedDuration>,
        cause: BrokenBy,
    ) {
        if !opening.is_within(self.span) {
            return;
        }
        self.forecast.broken.push(BrokenOpening {
            machine,
            opens: Timestamp::from_second(opening.opens).unwrap_or_default(),
            late,
            cause,
        });
    }
}
