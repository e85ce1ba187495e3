//! The machine that an override is for, with what decides when it runs.

use fivespot_api::ScheduledMachine;
use fivespot_dashboard::{NoSchedule, ScheduleInputs};
use fivespot_plan::overrides::is_longer;
use fivespot_schedule::{Override, OverrideMode, Schedule};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cluster::Connection;
use crate::preview::{Context, class_not_known, source, unknown_class};
use crate::{Failure, output};

/// A machine with its schedule.
#[derive(Debug)]
pub(super) struct Target {
    /// With what its class and the schedule that it follows set, as far as that can be read.
    pub(super) machine: ScheduledMachine,
    /// `None` if they cannot be read.
    pub(super) inputs: Option<ScheduleInputs>,
    /// The schedule in force, with calendars and overrides; or why it is not known.
    pub(super) schedule: Result<Schedule, Failure>,
}

impl Target {
    /// Reads the ScheduledMachine of this name in the selected namespace, and what it depends on. A
    /// warning is printed about each object that is left out because it cannot be decoded.
    ///
    /// # Errors
    /// The machine cannot be read, or cannot be decoded.
    pub(super) async fn read(cluster: &Connection, name: &str) -> Result<Self, Failure> {
        let Connection {
            client, address, ..
        } = cluster;
        let (machine, context) = source::machine(client, address, name).await?;
        let read = Self::of(machine, context);
        let class = unknown_class(&read.machine.spec);
        output::notes("warning", &class.map(class_not_known));
        Ok(read)
    }

    /// The target with what it depends on; or why that cannot be read.
    pub(super) fn of(
        mut machine: ScheduledMachine,
        context: Result<Context, Failure>,
    ) -> Self {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let namespace = machine.metadata.namespace.clone().unwrap_or_default();
        let (inputs, schedule) = match context {
            Err(failure) => (None, Err(failure)),
            Ok(context) => {
                output::notes("warning", context.warnings());
                let inputs = context.inputs;
                let schedule = inputs.schedule(&mut machine, &namespace);
                let of = format!("the schedule of ScheduledMachine {name}");
                let schedule = schedule.map_err(|none| match none {
                    NoSchedule::Unresolved(why) => {
                        Failure::new(of, why).remedy("create it")
                    }
                    NoSchedule::Invalid(error) => {
                        Failure::new(of, error).remedy("correct the schedule")
                    }
                });
                (Some(inputs), schedule)
            }
        };
        Self {
            machine,
            inputs,
            schedule,
        }
    }

    /// The time zone of the schedule. UTC if an inline schedule has none that exists.
    ///
    /// # Errors
    /// The schedule that the machine follows is not known.
    pub(super) fn zone(&self) -> Result<TimeZone, Failure> {
        let spec = &self.machine.spec.schedule;
        match &self.schedule {
            Ok(schedule) => Ok(schedule.time_zone().clone()),
            Err(failure) if spec.reference().is_some() => {
                let why = format!("the time zone of a date is not known: {failure}");
                let remedy = "or give a time such as 2026-03-08T07:00:00Z";
                Err(Failure::new("--until", why).remedy(remedy))
            }
            Err(_) => {
                let zone = fivespot_schedule::zone(&spec.timezone);
                Ok(zone.unwrap_or(TimeZone::UTC))
            }
        }
    }

    /// The class and its limit, if that does not allow an override of this mode from `now` until
    /// `end`, so that the operator does not apply it.
    pub(super) fn forbidding_class(
        &self,
        mode: OverrideMode,
        now: Timestamp,
        end: Timestamp,
    ) -> Option<(&str, SignedDuration)> {
        let class = self.machine.spec.class.as_ref()?;
        let most = class.limits.as_ref()?.max_override?;
        let of = Override {
            name: String::new(),
            mode,
            start: None,
            end,
            created: Some(now),
        };
        is_longer(&of, most).then_some((class.name.as_str(), most))
    }
}
