//! A ScheduledMachine or a ScheduledCapacity with the schedule in force, from a file or a cluster.

use std::collections::BTreeMap;

use fivespot_api::scheduled_machine::ScheduleSpec;
use fivespot_api::{
    EnabledField, ScheduledCapacity, ScheduledMachine, ScheduledMachineSpec, rules,
};
use fivespot_dashboard::NoSchedule;
use fivespot_plan::{MAX_STEPS, delay_of};
use fivespot_schedule::{Dates, Duration, Error, Schedule, Steps};
use jiff::Timestamp;
use serde::{Deserialize as _, Serialize};

use crate::document::Document;
use crate::preview::Context;
use crate::{Failure, undecodable};

/// An object that follows a schedule, with its schedule. It is serialized as a part of the JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned<K> {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Calendars that exceptions refer to and that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing_calendars: Vec<String>,
    #[serde(skip)]
    pub(crate) object: K,
    /// Of a machine with calendars and overrides, also those that have ended; of a capacity with
    /// the lead time too.
    #[serde(skip)]
    pub(crate) schedule: Schedule,
    /// Why the schedule does not apply.
    #[serde(skip)]
    pub(crate) off: Option<Off>,
}

impl<K> Planned<K> {
    /// The schedule, unless it does not apply.
    pub(crate) fn active_schedule(&self) -> Option<&Schedule> {
        Some(&self.schedule).filter(|_| self.off.is_none())
    }

    /// A sentence for each calendar that does not exist.
    pub(crate) fn calendar_notes(&self) -> impl Iterator<Item = String> {
        let missing = self.missing_calendars.iter();
        missing.map(|calendar| calendar_not_found(calendar))
    }

    /// A sentence about the object, with its name.
    pub(crate) fn about(&self, note: &str) -> String {
        format!("{}/{}: {note}", self.namespace, self.name)
    }
}

/// A ScheduledMachine and its schedule.
pub(crate) type PlannedMachine = Planned<ScheduledMachine>;

/// A ScheduledCapacity and its schedule.
pub(crate) type PlannedCapacity = Planned<ScheduledCapacity>;

impl PlannedMachine {
    /// Reads a document, with its calendars and overrides. `namespace` is that of an object without one.
    ///
    /// # Errors
    /// The object is not a ScheduledMachine, or its schedule is invalid. The failure names the document
    /// and the field.
    pub(crate) fn of(
        document: &Document,
        context: &Context,
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut object = ScheduledMachine::deserialize(&document.object)
            .map_err(|error| undecodable(&document.origin, error))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let fault = |field: &str, why: String| {
            let location =
                format!("{}, ScheduledMachine {name}, {field}", document.origin);
            Failure::new(location, why).remedy("correct the schedule")
        };
        let namespace = namespace_of(document, namespace).to_owned();
        let inputs = &context.inputs;
        let schedule = match inputs.schedule(&mut object, &namespace) {
            Ok(schedule) => schedule.looking_back(),
            Err(NoSchedule::Invalid(error)) => {
                return Err(fault(&field(&error), why(&error)));
            }
            Err(NoSchedule::Unresolved(why)) => return Err(fault("spec.schedule", why)),
        };
        if let Some(violation) = rules::check_schedule(&object.spec.schedule).first() {
            return Err(fault(&violation.field, violation.message.to_owned()));
        }
        Ok(Self {
            off: Off::of(&object),
            missing_calendars: missing(
                &object.spec.schedule,
                inputs.calendars(&namespace),
            ),
            object,
            namespace,
            name,
            schedule,
        })
    }

    /// The class of the machine, if it is not known what it sets.
    pub(crate) fn unknown_class(&self) -> Option<&str> {
        unknown_class(&self.object.spec)
    }

    /// A sentence for each calendar that does not exist, and for a class that is not known.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let class = self.unknown_class().map(class_not_known);
        self.calendar_notes().chain(class)
    }
}

impl PlannedCapacity {
    /// Reads a document, as [`PlannedMachine::of`] does.
    ///
    /// # Errors
    /// The object is not a ScheduledCapacity, or it violates a rule, so that the operator writes
    /// nothing. The failure names the document and the field.
    pub(crate) fn of(
        document: &Document,
        context: &Context,
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut object = ScheduledCapacity::deserialize(&document.object)
            .map_err(|error| undecodable(&document.origin, error))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let fault = |field: &str, why: String| {
            let location =
                format!("{}, ScheduledCapacity {name}, {field}", document.origin);
            Failure::new(location, why).remedy("correct it")
        };
        if let Some(violation) = rules::check_capacity(&object).first() {
            return Err(fault(&violation.field, violation.message.to_owned()));
        }
        let namespace = namespace_of(document, namespace).to_owned();
        let observed = object.status.as_ref();
        let observed = observed.and_then(|status| status.spot_schedule.as_ref());
        let inputs = &context.inputs;
        inputs
            .resolve(&mut object.spec.schedule, &namespace, observed)
            .map_err(|why| fault("spec.schedule", why))?;
        let calendars = inputs.calendars(&namespace);
        let lead_time = object.spec.lead_time.parse().unwrap_or(Duration::ZERO);
        let schedule = object
            .spec
            .schedule
            .schedule_with(calendars)
            .map_err(|error| fault(&field(&error), why(&error)))?
            .with_overrides(inputs.overrides_of_capacity(&name, &namespace))
            .with_lead_time(lead_time);
        Ok(Self {
            off: Off::of_capacity(&object),
            missing_calendars: missing(&object.spec.schedule, calendars),
            object,
            namespace,
            name,
            schedule,
        })
    }

    /// When the values change after `from` and before `to`, and whether they are active then.
    pub(crate) fn changes(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, bool)> {
        let spans = self
            .off
            .is_none()
            .then(|| self.schedule.needed_spans(from, to));
        let edges = spans.into_iter().flatten().flat_map(|span| {
            let end = span.end.map(|end| (end, false));
            [Some((span.start, true)), end]
        });
        edges
            .flatten()
            .filter(move |(at, _)| *at > from && *at < to)
    }

    /// Whether the active values apply at `now`.
    pub(crate) fn is_active_at(&self, now: Timestamp) -> bool {
        let steps = Steps::at_most(MAX_STEPS);
        self.off.is_none() && self.schedule.needed(now, &steps).is_needed()
    }
}

/// The namespace of an object; `otherwise` or `default` if it has none.
pub(crate) fn namespace_of<'d>(
    document: &'d Document,
    otherwise: Option<&'d str>,
) -> &'d str {
    match document.text("/metadata/namespace") {
        "" => otherwise.unwrap_or("default"),
        own => own,
    }
}

/// The calendars that exceptions of a schedule refer to and that do not exist.
fn missing(schedule: &ScheduleSpec, calendars: &BTreeMap<String, Dates>) -> Vec<String> {
    let named = schedule.calendars();
    let missing = named.filter(|calendar| !calendars.contains_key(*calendar));
    missing.map(ToOwned::to_owned).collect()
}

/// Why a schedule does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    /// The kill switch is set.
    Killed,
    /// The schedule is disabled by that field.
    Disabled(EnabledField),
    /// The Node of a capacity is that of a ScheduledMachine.
    Governed,
}

impl Off {
    fn of(machine: &ScheduledMachine) -> Option<Self> {
        match &machine.spec {
            spec if spec.kill_switch => Some(Self::Killed),
            spec if !spec.is_enabled() => Some(Self::Disabled(spec.enabled_field())),
            _ => None,
        }
    }

    fn of_capacity(capacity: &ScheduledCapacity) -> Option<Self> {
        let status = capacity.status.as_ref();
        match &capacity.spec {
            spec if spec.kill_switch => Some(Self::Killed),
            spec if !spec.enabled => Some(Self::Disabled(EnabledField::Spec)),
            spec if !spec.is_enabled() => Some(Self::Disabled(EnabledField::Schedule)),
            _ if status.is_some_and(|it| it.governed_node.is_some()) => {
                Some(Self::Governed)
            }
            _ => None,
        }
    }

    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Disabled(_) => "disabled",
            Self::Governed => "governed",
        }
    }

    /// The sentence for it, about a machine.
    pub(super) fn sentence(self) -> String {
        let what = match self {
            Self::Killed => "the kill switch is set",
            Self::Disabled(EnabledField::Spec) => "the machine is disabled",
            Self::Disabled(EnabledField::Schedule) => "the schedule is disabled",
            Self::Governed => "it is governed",
        };
        format!("Never wanted: {what} ({}).", self.cause())
    }

    /// The field that says so.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::Killed => "spec.killSwitch is true",
            Self::Disabled(EnabledField::Spec) => "spec.enabled is false",
            Self::Disabled(EnabledField::Schedule) => "spec.schedule.enabled is false",
            Self::Governed => "spec.nodeName is the Node of a ScheduledMachine",
        }
    }
}

/// The sentence about a calendar that does not exist.
pub(crate) fn calendar_not_found(calendar: &str) -> String {
    format!("ScheduleCalendar {calendar} was not found; its exceptions are left out.")
}

/// The class that has been read into the spec of a machine, if it is not known what that sets.
pub(crate) fn unknown_class(spec: &ScheduledMachineSpec) -> Option<&str> {
    let class = spec.class.as_ref().filter(|_| spec.is_class_unknown())?;
    Some(&class.name)
}

/// A sentence about a class that does not exist, or that the user may not read.
pub(crate) fn class_not_known(class: &str) -> String {
    format!(
        "ScheduledMachineClass {class} is not known here; its hosts, limits, lead time and end policy \
         are left out."
    )
}

/// A sentence about a machine whose windows open and close later because of the jitter of its class.
pub(super) fn jitter(machine: &ScheduledMachine) -> Option<String> {
    let class = machine.spec.class.as_ref()?;
    let text = match delay_of(machine) {
        Some(delay) if delay.is_zero() => return None,
        Some(delay) => format!(
            "Windows open and close {delay:#} later than shown: its part of the jitter of \
             ScheduledMachineClass {}.",
            class.name
        ),
        None => format!(
            "Windows open and close up to {:#} later than shown: the jitter of \
             ScheduledMachineClass {}, of which the part of a machine follows from its uid.",
            class.jitter, class.name
        ),
    };
    Some(text)
}

/// The field that an error of the schedule engine is about.
fn field(error: &Error) -> String {
    let field = match error {
        Error::Days { entry, .. } => format!("daysOfWeek[{entry}]"),
        Error::Hours { entry, .. } => format!("hoursOfDay[{entry}]"),
        Error::Cron { .. } => "cron".to_owned(),
        Error::Duration { .. } | Error::DurationOutOfBounds { .. } => {
            "duration".to_owned()
        }
        Error::UnknownTimeZone { .. } => "timezone".to_owned(),
        _ => return "spec.schedule".to_owned(),
    };
    format!("spec.schedule.{field}")
}

/// The message of an error without the field, which is shown next to it.
fn why(error: &Error) -> String {
    match error {
        Error::Days { error, .. }
        | Error::Hours { error, .. }
        | Error::Cron { error }
        | Error::Duration { error } => error.to_string(),
        Error::DurationOutOfBounds { error } => error.to_string(),
        Error::UnknownTimeZone { name } => format!("'{name}' is not an IANA time zone"),
        other => other.to_string(),
    }
}
