//! A ScheduledMachine with the schedule in force, from a file or a cluster.

use fivespot_api::{EnabledField, ScheduledMachine, rules};
use fivespot_schedule::{Error, Schedule};

use crate::document::Document;
use crate::preview::Context;
use crate::{Failure, undecodable};

/// A ScheduledMachine and its schedule.
#[derive(Debug)]
pub(crate) struct PlannedMachine {
    pub(crate) object: ScheduledMachine,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// With calendars and overrides, also those that have ended.
    pub(crate) schedule: Schedule,
    /// Why the schedule does not apply.
    pub(crate) off: Option<Off>,
    /// Calendars that exceptions refer to and that do not exist.
    pub(crate) missing_calendars: Vec<String>,
}

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
        let mut object: ScheduledMachine =
            serde_json::from_value(document.object.clone())
                .map_err(|error| undecodable(&document.origin, error))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let fault = |field: &str, why: String| {
            let location =
                format!("{}, ScheduledMachine {name}, {field}", document.origin);
            Failure::new(location, why).remedy("correct the schedule")
        };
        let of_object = object.metadata.namespace.as_deref();
        let namespace = of_object.or(namespace).unwrap_or("default").to_owned();
        let observed = object.status.as_ref();
        let observed = observed.and_then(|status| status.spot_schedule.as_ref());
        context
            .resolve(&mut object.spec.schedule, &namespace, observed)
            .map_err(|why| fault("spec.schedule", why))?;
        let calendars = context.calendars(&namespace);
        let schedule = object
            .spec
            .schedule(&calendars)
            .map_err(|error| fault(&field(&error), why(&error)))?
            .with_overrides(context.overrides(&object, &namespace))
            .looking_back();
        let violations = rules::check(&object);
        let violation = violations
            .iter()
            .find(|it| it.field.starts_with("spec.schedule"));
        if let Some(violation) = violation {
            return Err(fault(&violation.field, violation.message.to_owned()));
        }
        let missing = object.spec.schedule.calendars();
        let missing = missing.filter(|calendar| !calendars.contains_key(*calendar));
        Ok(Self {
            off: Off::of(&object),
            missing_calendars: missing.map(ToOwned::to_owned).collect(),
            object,
            namespace,
            name,
            schedule,
        })
    }

    /// A sentence for each calendar that does not exist, with the name of the machine.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let (namespace, name) = (&self.namespace, &self.name);
        let missing = self.missing_calendars.iter();
        missing
            .map(|calendar| format!("{namespace}/{name}: {}", not_found(calendar)))
            .collect()
    }

    /// The schedule, unless it does not apply.
    pub(crate) fn active_schedule(&self) -> Option<&Schedule> {
        active(&self.schedule, self.off)
    }
}

/// The schedule, unless it does not apply.
pub(super) fn active(schedule: &Schedule, off: Option<Off>) -> Option<&Schedule> {
    Some(schedule).filter(|_| off.is_none())
}

/// Why a schedule does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    /// The kill switch is set.
    Killed,
    /// The schedule is disabled by that field.
    Disabled(EnabledField),
}

impl Off {
    fn of(machine: &ScheduledMachine) -> Option<Self> {
        match &machine.spec {
            spec if spec.kill_switch => Some(Self::Killed),
            spec if !spec.is_enabled() => Some(Self::Disabled(spec.enabled_field())),
            _ => None,
        }
    }

    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Disabled(_) => "disabled",
        }
    }

    /// The sentence for it.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Killed => {
                "Never wanted: the kill switch is set (spec.killSwitch is true)."
            }
            Self::Disabled(EnabledField::Spec) => {
                "Never wanted: the machine is disabled (spec.enabled is false)."
            }
            Self::Disabled(EnabledField::Schedule) => {
                "Never wanted: the schedule is disabled (spec.schedule.enabled is false)."
            }
        }
    }
}

/// The sentence about a calendar that does not exist.
pub(super) fn not_found(calendar: &str) -> String {
    format!("ScheduleCalendar {calendar} was not found; its exceptions are left out.")
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
