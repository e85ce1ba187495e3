//! Resolves the raw spec into the desired state. No decision reads a string of the spec; only
//! [`Locations`](crate::Locations) also takes names from it, to read those objects.

use std::borrow::Cow;
use std::sync::Arc;

use fivespot_api::condition::Reason;
use fivespot_api::rules::{self, Violation};
use fivespot_api::scheduled_machine::{
    DEFAULT_PROVISIONING_TIMEOUT, DEFAULT_TIMEOUT, NO_TIME,
};
use fivespot_api::spec_hash::SpecHash;
use fivespot_api::{
    EnabledField, EndPolicy, Enforcement, FollowedSchedule, InlineMetadata, InlineObject,
    LimitsOfClass, MachineTemplate, NodeTaint, RatesOfClass, Resolved, ScheduleSpec,
    ScheduledMachine, ScheduledMachineSpec, SpotScheduleRef, Unfollowable, merge, name,
};
use fivespot_capi::Reference;
use fivespot_schedule::{Duration, Error, Override, Schedule, Window};
use jiff::SignedDuration;
use serde_json::{Map, Value};

use crate::decide::class::ClassFault;
use crate::decide::jitter;
use crate::observed::hosts::DesiredHost;
use crate::overrides::is_longer;
use crate::why::Why;
use crate::{Hosts, ScheduleInputs, Specs};

/// The longest grace period or drain timeout that a stored spec can request.
const MAX_TIMEOUT: Duration = Duration::hours(24);

/// What a ScheduledMachine requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    /// When the machine is wanted, or why the schedule is invalid.
    pub(crate) schedule: Result<Schedule, Why>,
    /// The schedule that the machine follows; `None` if its own is inline.
    pub(crate) followed: Option<Followed>,
    /// The name of a calendar that an exception refers to and that does not exist.
    pub(crate) missing_calendar: Option<String>,
    /// Whether the Machine is deleted by the end of its window.
    pub(crate) completes_by_window_end: bool,
    /// How long until a Node that is not ready is reported as Stalled.
    pub(crate) provisioning_timeout: SignedDuration,
    /// The shortest remaining time for which a machine is created.
    pub(crate) minimum_run: SignedDuration,
    /// How long before the end of the need for a machine the last call is put on its Node; zero
    /// for never.
    pub(crate) last_call: SignedDuration,
    /// Whether the schedule is in force.
    pub(crate) is_enabled: bool,
    /// The field that disables the machine.
    pub(crate) enabled_field: EnabledField,
    /// Whether the kill switch is set.
    pub(crate) is_killed: bool,
    /// Whether what is decided is only reported.
    pub(crate) is_audited: bool,
    /// Name of the Cluster to join.
    pub(crate) cluster: String,
    /// Whether the spec has that name, so that changes of the Cluster are watched.
    pub(crate) is_cluster_named: bool,
    pub(crate) bootstrap: ProviderDraft,
    pub(crate) infrastructure: ProviderDraft,
    /// What the Machine gets in addition to our own fields.
    pub(crate) template: MachineTemplate,
    /// The timeout that is set on the Machine for Cluster API; `None` if it cannot be parsed.
    pub(crate) drain_timeout: Option<SignedDuration>,
    /// How long a shutdown may last from its record on: the shorter of grace and drain.
    pub(crate) shutdown_timeout: SignedDuration,
    /// The hash of what the objects are created from. Empty if the specs are too large to be
    /// read; no existing object has that hash.
    pub(crate) hash: String,
    /// The host of the class.
    pub(crate) host: DesiredHost,
    /// The taints for the Node, or the rule that they violate.
    pub(crate) taints: Result<Vec<NodeTaint>, String>,
    /// The commands that trigger a reclaim of the host, or the rule that they violate.
    pub(crate) commands: Result<Vec<String>, String>,
    /// When the machine returns after a reclaim; `None` if a person has to return it.
    pub(crate) returning: Option<Returning>,
    /// Its place among the machines of its class.
    pub(crate) turn: DesiredTurn,
    /// Why the provider specs are not read: they are too large.
    pub(crate) too_large: Option<Why>,
    /// Why nothing can be created from the class of the machine.
    pub(crate) class_fault: Option<ClassFault>,
    /// Why nothing can be created: `class_fault`, else `too_large`, else the first rule outside of
    /// the schedule that the spec violates.
    pub(crate) fault: Option<Why>,
    /// Whether the spec violates no rule at all and is not too large. Nothing is ever created
    /// otherwise.
    pub(crate) is_admissible: bool,
}

/// The schedule that a machine follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Followed {
    pub(crate) reference: SpotScheduleRef,
    /// The generation of the object.
    pub(crate) generation: Option<i64>,
    /// Whether it changes too often and is followed once a minute.
    pub(crate) is_flapping: bool,
    /// The object's own schedule, or why there is none.
    pub(crate) schedule: Result<Schedule, Why>,
}

impl Followed {
    /// What the status says of the object, whose schedule is now in this window.
    pub(crate) fn published(&self, window: Window) -> FollowedSchedule {
        let reference = self.reference.clone();
        FollowedSchedule {
            api_version: reference.api_version,
            kind: reference.kind,
            name: reference.name,
            active: window.is_open(),
            next_transition_time: window.until(),
            observed_generation: self.generation,
        }
    }

    pub(crate) fn of(spec: &ScheduleSpec, inputs: &ScheduleInputs) -> Option<Self> {
        let reference = spec.reference()?;
        let (schedule, generation) = match &spec.resolved {
            Some(Resolved::Shared {
                schedule: shared,
                generation,
            }) => {
                let compiled = shared.schedule(&inputs.calendars);
                let schedule = match (shared.fault(), compiled) {
                    (None, Ok(schedule)) => Ok(schedule),
                    (Some(why), _) => Err(why.to_owned()),
                    (None, Err(error)) => Err(error.to_string()),
                };
                let SpotScheduleRef { kind, name, .. } = &reference;
                let schedule = schedule.map_err(|why| {
                    let message = format!(
                        "{kind} {name} cannot be evaluated, what was decided last holds on: {why}"
                    );
                    Why::new(Reason::ProviderNotReady, message)
                });
                (schedule, *generation)
            }
            Some(Resolved::Provided {
                published: Ok(provided),
                ..
            }) => {
                let schedule = provided.schedule(&spec.timezone);
                let schedule = schedule.map_err(|error| {
                    Why::new(Reason::UnknownTimeZone, error.to_string())
                });
                (schedule, provided.generation)
            }
            Some(Resolved::Provided {
                published: Err(why),
                ..
            }) => (Err(unfollowable(&reference, why)), None),
            Some(Resolved::Held { .. }) | None => {
                (Err(missing(&reference, inputs.is_kind_missing)), None)
            }
        };
        let is_flapping = matches!(
            &spec.resolved,
            Some(Resolved::Provided {
                is_flapping: true,
                ..
            })
        );
        Some(Self {
            reference,
            generation,
            is_flapping,
            schedule,
        })
    }
}

fn unfollowable(reference: &SpotScheduleRef, why: &Unfollowable) -> Why {
    let SpotScheduleRef { kind, name, .. } = reference;
    let held = "what was decided last holds on";
    match why {
        Unfollowable::ActiveMissing => Why::new(
            Reason::StatusActiveMissing,
            format!("{kind} {name} has not published status.active, {held}"),
        ),
        Unfollowable::NotReady(why) => Why::new(
            Reason::ProviderNotReady,
            format!("{kind} {name} is not ready, {held}: {why}"),
        ),
    }
}

fn missing(reference: &SpotScheduleRef, is_kind_missing: bool) -> Why {
    let SpotScheduleRef { kind, name, .. } = reference;
    let (reason, why) = if is_kind_missing {
        (
            Reason::ProviderCRDNotInstalled,
            format!("the API server does not serve {kind}: install its CRD"),
        )
    } else {
        (
            Reason::ProviderNotFound,
            format!("there is no {kind} {name} in this namespace: create it"),
        )
    };
    Why::new(reason, format!("{why}; what was decided last holds on"))
}

/// The spec whose schedule is evaluated: where the schedule that it follows cannot be, what was
/// decided last holds on, and without that no machine is wanted.
fn evaluated<'a>(
    object: &'a ScheduledMachine,
    followed: Option<&Followed>,
) -> Cow<'a, ScheduledMachineSpec> {
    let Some(followed) = followed.filter(|it| it.schedule.is_err()) else {
        return Cow::Borrowed(&object.spec);
    };
    let status = object.status.as_ref();
    let last = status.and_then(|status| status.spot_schedule.as_ref());
    let active = last.is_some_and(|last| last.active && last.is_of(&followed.reference));
    let mut spec = object.spec.clone();
    spec.schedule.resolved = Some(Resolved::Held { active });
    Cow::Owned(spec)
}

/// When a reclaimed machine returns, according to its spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returning {
    pub(crate) after: SignedDuration,
    pub(crate) max_per_day: usize,
}

impl Returning {
    /// `None` if the spec violates the rules, which is reported.
    fn of(spec: &fivespot_api::ReturnSpec) -> Option<Self> {
        let after: Duration = spec.after.parse().ok()?;
        Some(Self {
            after: after.into(),
            max_per_day: spec.max_per_day.into(),
        })
    }
}

/// A provider object to be created.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderDraft {
    pub(crate) api_version: String,
    pub(crate) reference: Reference,
    /// Its labels and annotations in addition to our own.
    pub(crate) metadata: InlineMetadata,
    /// `None` if it was left out when the ScheduledMachine was read.
    pub(crate) spec: Option<Map<String, Value>>,
}

impl Desired {
    /// Why the schedule that it follows cannot be evaluated, so that what was decided last holds on.
    /// `None` if it can be, or if it has a schedule of its own.
    pub(crate) fn unresolved(&self) -> Option<&Why> {
        self.followed.as_ref()?.schedule.as_ref().err()
    }

    /// Reads a spec. Never fails: an invalid part is replaced by the reason why.
    pub(crate) fn of(
        object: &ScheduledMachine,
        specs: &Specs,
        inputs: &ScheduleInputs,
        hosts: &Hosts,
    ) -> Self {
        let spec = &object.spec;
        let host = DesiredHost::of(object, hosts);
        let patch = host.patch();
        let child = name::child(object.metadata.name.as_deref().unwrap_or_default());
        let (about_schedule, others): (Vec<_>, Vec<_>) = rules::check(object)
            .into_iter()
            .partition(|violation| violation.field.starts_with("spec.schedule"));
        let faults = Faults::of(spec, specs, others);
        let followed = Followed::of(&spec.schedule, inputs);
        let evaluated = evaluated(object, followed.as_ref());
        let drain = length(&spec.node_drain_timeout);
        let grace = length(&spec.graceful_shutdown_timeout);
        Self {
            schedule: schedule(&evaluated, about_schedule.first(), inputs),
            followed,
            missing_calendar: missing_calendar(&spec.schedule, inputs),
            completes_by_window_end: spec.shutdown.end_policy
                == EndPolicy::CompleteByWindowEnd,
            provisioning_timeout: provisioning_timeout(spec),
            minimum_run: length_or(&spec.provisioning.minimum_run, NO_TIME),
            last_call: length_or(&spec.shutdown.last_call, NO_TIME),
            is_enabled: spec.is_enabled(),
            enabled_field: spec.enabled_field(),
            is_killed: spec.kill_switch,
            is_audited: spec.enforcement == Enforcement::Audit,
            cluster: spec.cluster_name.clone(),
            is_cluster_named: true,
            bootstrap: ProviderDraft::of(&spec.bootstrap_spec, child, specs),
            infrastructure: ProviderDraft::of(&spec.infrastructure_spec, child, specs)
                .on_host(patch),
            template: spec.machine_template.clone(),
            drain_timeout: drain
                .filter(|_| faults.unknown().is_none())
                .map(SignedDuration::from),
            shutdown_timeout: drain
                .unwrap_or(DEFAULT_TIMEOUT)
                .min(grace.unwrap_or(DEFAULT_TIMEOUT))
                .into(),
            hash: hash(spec, specs, patch),
            host,
            taints: match faults.about("spec.nodeTaints") {
                Some(fault) => Err(fault),
                None => Ok(spec.node_taints.clone()),
            },
            commands: match faults.about(spec.reclaim_commands().0) {
                Some(fault) => Err(fault),
                None => commands(spec.reclaim_commands().1),
            },
            returning: spec.returning().and_then(Returning::of),
            turn: DesiredTurn::of(object),
            fault: faults.first(),
            is_admissible: about_schedule.is_empty() && faults.first().is_none(),
            too_large: faults.too_large,
            class_fault: faults.class,
        }
    }
}

/// What the class of a machine says about when it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DesiredTurn {
    /// The priority of the machine.
    pub(crate) priority: u8,
    /// The limits of the class, if they say when machines are made.
    pub(crate) limits: Option<Arc<LimitsOfClass>>,
    /// By how much its windows open and close later.
    pub(crate) delay: SignedDuration,
    /// The rates of the class; none without a class.
    pub(crate) rates: RatesOfClass,
}

impl DesiredTurn {
    fn of(object: &ScheduledMachine) -> Self {
        let spec = &object.spec;
        let class = spec.class.as_ref();
        Self {
            priority: spec.priority,
            limits: limits(spec)
                .filter(|limits| limits.limits_openings())
                .cloned(),
            delay: jitter::delay_of(object).unwrap_or(SignedDuration::ZERO),
            rates: class.map(|it| it.rates).unwrap_or_default(),
        }
    }
}

fn limits(spec: &ScheduledMachineSpec) -> Option<&Arc<LimitsOfClass>> {
    spec.class.as_ref()?.limits.as_ref()
}

/// The hash of what is created, on a host with this merge patch.
fn hash(
    spec: &ScheduledMachineSpec,
    specs: &Specs,
    patch: Option<&Map<String, Value>>,
) -> String {
    let hash = match specs {
        Specs::Included => SpecHash::of(spec),
        Specs::LeftOut { hash } => SpecHash::from_hex(hash),
        Specs::TooLarge { .. } => return String::new(),
    };
    match patch {
        Some(patch) => hash.on_host(patch).to_string(),
        None => hash.to_string(),
    }
}

impl ProviderDraft {
    fn of(inline: &InlineObject, name: &str, specs: &Specs) -> Self {
        Self {
            api_version: inline.api_version.clone(),
            reference: Reference::new(&inline.api_version, &inline.kind, name),
            metadata: inline.metadata.clone().unwrap_or_default(),
            spec: (*specs == Specs::Included).then(|| inline.spec.clone()),
        }
    }

    /// The same on a host with this merge patch.
    fn on_host(mut self, patch: Option<&Map<String, Value>>) -> Self {
        if let (Some(spec), Some(patch)) = (&mut self.spec, patch) {
            merge(spec, patch);
        }
        self
    }
}

/// What is wrong with a spec outside of its schedule.
struct Faults {
    class: Option<ClassFault>,
    too_large: Option<Why>,
    violations: Vec<Violation>,
}

impl Faults {
    fn of(
        spec: &ScheduledMachineSpec,
        specs: &Specs,
        violations: Vec<Violation>,
    ) -> Self {
        Self {
            class: ClassFault::of(spec),
            too_large: match specs {
                Specs::Included | Specs::LeftOut { .. } => None,
                Specs::TooLarge { message } => {
                    Some(Why::new(Reason::SpecTooLarge, message))
                }
            },
            violations,
        }
    }

    /// Why what the class sets is unknown.
    fn unknown(&self) -> Option<String> {
        let fault = self.class.as_ref().filter(|fault| fault.is_unknown)?;
        Some(fault.why.message.clone())
    }

    /// Why a field that a class may set is not known: the first rule that it violates.
    fn about(&self, field: &str) -> Option<String> {
        let mut below = self.violations.iter();
        let broken = below.find(|violation| violation.field.starts_with(field));
        self.unknown().or_else(|| broken.map(ToString::to_string))
    }

    /// The most fundamental one.
    fn first(&self) -> Option<Why> {
        let class = self.class.as_ref().map(|fault| fault.why.clone());
        let first = self.violations.first();
        let violation = || Some(Why::new(Reason::InvalidSpec, first?.to_string()));
        class.or_else(|| self.too_large.clone()).or_else(violation)
    }
}

/// The commands, unless they exceed the limits of the schema.
fn commands(commands: &[String]) -> Result<Vec<String>, String> {
    let is_fit = |command: &String| (1..=256).contains(&command.chars().count());
    if commands.len() <= 100 && commands.iter().all(is_fit) {
        Ok(commands.to_vec())
    } else {
        let bounds = "at most 100 commands of 1 to 256 characters";
        Err(format!("spec.killIfCommands: must be {bounds}"))
    }
}

/// A timeout, limited to the longest allowed; `None` if it cannot be parsed.
fn length(text: &str) -> Option<Duration> {
    text.parse::<Duration>()
        .ok()
        .map(|length| length.min(MAX_TIMEOUT))
}

fn provisioning_timeout(spec: &ScheduledMachineSpec) -> SignedDuration {
    length_or(&spec.provisioning.timeout, DEFAULT_PROVISIONING_TIMEOUT)
}

/// A timeout, or the default of its field if it cannot be parsed.
fn length_or(text: &str, default: Duration) -> SignedDuration {
    length(text).unwrap_or(default).into()
}

/// The first calendar that exceptions refer to and that does not exist.
fn missing_calendar(spec: &ScheduleSpec, inputs: &ScheduleInputs) -> Option<String> {
    let mut named = spec.calendars();
    let missing = named.find(|name| !inputs.calendars.contains_key(*name))?;
    Some(missing.to_owned())
}

/// The schedule, unless it cannot be parsed or violates a rule that the parser does not check.
fn schedule(
    spec: &ScheduledMachineSpec,
    violation: Option<&Violation>,
    inputs: &ScheduleInputs,
) -> Result<Schedule, Why> {
    let schedule = spec
        .schedule(&inputs.calendars)
        .map_err(|error| Why::new(reason(&error), format!("spec.schedule: {error}")))?;
    match violation {
        None => Ok(schedule.with_overrides(allowed_overrides(spec, inputs))),
        Some(violation) => {
            let reason = reason_of_field(&violation.field);
            Err(Why::new(reason, violation.to_string()))
        }
    }
}

/// The overrides without those that are longer than the class of the machine allows.
fn allowed_overrides(
    spec: &ScheduledMachineSpec,
    inputs: &ScheduleInputs,
) -> Vec<Override> {
    let most = limits(spec).and_then(|limits| limits.max_override);
    let overrides = inputs.overrides.iter();
    overrides
        .filter(|of| most.is_none_or(|most| !is_longer(of, most)))
        .cloned()
        .collect()
}

fn reason(error: &Error) -> Reason {
    match error {
        Error::Days { .. } | Error::Exception { .. } => Reason::InvalidDays,
        Error::Hours { .. }
        | Error::Window { .. }
        | Error::WindowOutOfBounds { .. }
        | Error::WindowEnd { .. } => Reason::InvalidHours,
        Error::UnknownTimeZone { .. } => Reason::UnknownTimeZone,
        Error::Incomplete { .. } | Error::NoSessions | Error::NoWindows => Reason::Incomplete,
        Error::Session { error, .. } => reason(error),
        Error::Cron { .. }
        | Error::Duration { .. }
        | Error::DurationOutOfBounds { .. }
        // The parser may add error kinds; the remaining ones are reported as an invalid cron.
        | _ => Reason::InvalidCron,
    }
}

fn reason_of_field(field: &str) -> Reason {
    if ["daysOfWeek", ".days", "exceptions"]
        .iter()
        .any(|of| field.contains(of))
    {
        Reason::InvalidDays
    } else if field.contains("hoursOfDay") || field.contains("windows") {
        Reason::InvalidHours
    } else if field.contains("timezone") {
        Reason::UnknownTimeZone
    } else {
        Reason::InvalidCron
    }
}
