//! The schedule as users write it: days and hours, cron, or windows; and the dates of
//! exceptions.

use std::collections::BTreeMap;

use fivespot_schedule::{DateEntry, Dates, Schedule, WindowText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::null_is_default;
use crate::schema::{MAX_NAME, MAX_SHORT};
use crate::spot_schedule::{Resolved, SpotScheduleRef};

/// The default of `schedule.timezone`.
pub const DEFAULT_TIMEZONE: &str = "UTC";

pub(crate) fn default_timezone() -> String {
    DEFAULT_TIMEZONE.to_owned()
}

/// The maximum number of items of `daysOfWeek`, `hoursOfDay` and the days of a window.
const MAX_TEXTS: usize = 32;
/// The maximum number of windows and of exceptions of a schedule.
const MAX_ENTRIES: usize = 16;

/// When the machine runs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ScheduleSpec {
    /// Days on which the machine runs: mon, tue, wed, thu, fri, sat, sun, ranges such as mon-fri
    /// or fri-mon, or comma-separated lists of these.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TEXTS), inner(length(max = MAX_SHORT)))]
    pub days_of_week: Vec<String>,
    /// Hours in which the machine runs, both ends included: 9-17 is from 09:00:00 to 17:59:59.
    /// Ranges may cross midnight, such as 22-6, which for a single day means its first and its
    /// last hours. Entries may be comma-separated lists.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TEXTS), inner(length(max = MAX_SHORT)))]
    pub hours_of_day: Vec<String>,
    /// Five cron fields (minute, hour, day of month, month, day of week), instead of daysOfWeek
    /// and hoursOfDay. Each firing opens a window of the given duration; adjacent or overlapping
    /// windows are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub cron: Option<String>,
    /// Length of the window that each firing of cron opens, from 1m to 168h; 1h if absent. Only
    /// allowed with cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub duration: Option<String>,
    /// Windows in which the machine runs, instead of daysOfWeek, hoursOfDay and cron. Adjacent or
    /// overlapping windows are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = MAX_ENTRIES),
        extend("x-kubernetes-list-map-keys" = ["name"])
    )]
    pub windows: Option<Vec<ScheduleWindow>>,
    /// Group and version of a schedule that the machine follows, instead of daysOfWeek,
    /// hoursOfDay, cron and windows: spotschedules.5spot.finos.org and any version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub api_version: Option<String>,
    /// Kind of the schedule that the machine follows: TimeBasedSpotSchedule,
    /// CapitalMarketsSchedule, or a kind of another provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub kind: Option<String>,
    /// Name of the schedule that the machine follows, in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub name: Option<String>,
    // What the reference resolves to, for whoever evaluates the schedule. It is no field of the
    // API. Without it, no machine is wanted.
    #[serde(skip)]
    #[schemars(skip)]
    #[allow(
        missing_docs,
        reason = "the documentation of a field is what `kubectl explain` prints"
    )]
    pub resolved: Option<Resolved>,
    /// Dates on which the schedule does not apply. The first exception that matches the local
    /// date decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_ENTRIES), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub exceptions: Option<Vec<ScheduleException>>,
    /// The IANA time zone of days, hours, cron, windows and exceptions, such as Europe/Zurich. At
    /// daylight saving time changes, a skipped hour is never active and a repeated hour is active
    /// twice.
    #[schemars(length(max = MAX_SHORT))]
    pub timezone: String,
    /// Whether the schedule is enabled. Disabling it does not remove a running machine.
    pub enabled: bool,
}

impl Default for ScheduleSpec {
    fn default() -> Self {
        Self {
            days_of_week: Vec::new(),
            hours_of_day: Vec::new(),
            cron: None,
            duration: None,
            windows: None,
            api_version: None,
            kind: None,
            name: None,
            resolved: None,
            exceptions: None,
            timezone: DEFAULT_TIMEZONE.to_owned(),
            enabled: true,
        }
    }
}

impl ScheduleSpec {
    /// The parsed schedule, without the exceptions that refer to a calendar. `enabled` is left
    /// to the caller.
    ///
    /// # Errors
    /// The errors of the constructor of [`Schedule`] for the form that is set, and dates of
    /// exceptions that cannot be parsed. Rules that only admission checks, such as that cron
    /// excludes days, are not checked.
    pub fn schedule(&self) -> Result<Schedule, fivespot_schedule::Error> {
        self.schedule_with(&BTreeMap::new())
    }

    /// As [`ScheduleSpec::schedule`], with the calendars of the namespace by name. An exception
    /// does not apply if its calendar does not exist.
    ///
    /// # Errors
    /// As [`ScheduleSpec::schedule`].
    pub fn schedule_with(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Schedule, fivespot_schedule::Error> {
        let exceptions = self.exceptions.iter().flatten();
        let exceptions: Result<Vec<_>, _> = exceptions
            .filter_map(|exception| exception.in_schedule(calendars).transpose())
            .collect();
        let exceptions = exceptions?;
        if self.reference().is_none() {
            return Ok(self.base()?.with_exceptions(exceptions));
        }
        let zone = &self.timezone;
        let shared = match &self.resolved {
            Some(Resolved::Shared { schedule, .. }) => schedule.schedule(calendars)?,
            Some(Resolved::Provided {
                published: Ok(provided),
                ..
            }) => provided.schedule(zone)?,
            Some(Resolved::Held { active: true }) => Schedule::always(zone)?,
            Some(Resolved::Held { active: false } | Resolved::Provided { .. }) | None => {
                Schedule::never(zone)?
            }
        };
        if exceptions.is_empty() {
            // As an inline schedule, so that it costs no more than one.
            return Ok(shared);
        }
        Ok(Schedule::following(shared, zone)?.with_exceptions(exceptions))
    }

    /// Whether neither its `enabled` nor the one of the spec beside it is false.
    pub fn is_enabled_beside(&self, spec_enabled: Option<bool>) -> bool {
        self.enabled && spec_enabled != Some(false)
    }

    /// The object that the machine follows. `None` if the schedule is inline.
    pub fn reference(&self) -> Option<SpotScheduleRef> {
        let kind = self.kind.as_ref()?;
        Some(SpotScheduleRef {
            api_version: self.api_version.clone().unwrap_or_default(),
            kind: kind.clone(),
            name: self.name.clone().unwrap_or_default(),
        })
    }

    /// The names of the calendars that exceptions refer to, also those of the schedule that is
    /// followed.
    pub fn calendars(&self) -> impl Iterator<Item = &str> {
        let exceptions = self.exceptions.iter().flatten();
        let references = exceptions.filter_map(|it| it.calendar_ref.as_ref());
        let own = references.map(|reference| reference.name.as_str());
        let shared = match &self.resolved {
            Some(Resolved::Shared { schedule, .. }) => schedule.calendars(),
            Some(Resolved::Held { .. } | Resolved::Provided { .. }) | None => Vec::new(),
        };
        own.chain(shared)
    }

    /// The schedule without its exceptions.
    fn base(&self) -> Result<Schedule, fivespot_schedule::Error> {
        let zone = &self.timezone;
        if let Some(windows) = &self.windows {
            let windows: Vec<_> = windows.iter().map(ScheduleWindow::text).collect();
            return Schedule::windows(&windows, zone);
        }
        match &self.cron {
            Some(cron) => Schedule::cron(cron, self.duration.as_deref(), zone),
            None => Schedule::weekly(&self.days_of_week, &self.hours_of_day, zone),
        }
    }
}

/// A window. It belongs to the local day on which it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleWindow {
    /// The name of the window.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Days on which the window starts, as in daysOfWeek; every day if empty.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = MAX_TEXTS), inner(length(max = MAX_SHORT)))]
    pub days: Vec<String>,
    /// Time of day at which the window starts, HH:MM.
    #[schemars(length(max = MAX_SHORT))]
    pub start: String,
    /// Time of day at which the window ends, HH:MM. If it is not after start, the window ends on
    /// the next day; if it equals start, after 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub end: Option<String>,
    /// Length of the window, from 1m to 168h, instead of end. It is elapsed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub duration: Option<String>,
}

impl ScheduleWindow {
    fn text(&self) -> WindowText<'_, String> {
        WindowText {
            name: &self.name,
            days: &self.days,
            start: &self.start,
            end: self.end.as_deref(),
            duration: self.duration.as_deref(),
        }
    }
}

/// Dates on which something else applies, from 00:00 to 24:00 local time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleException {
    /// The name of the exception.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// What happens on these dates: Run (the machine runs all day) or Stop (it does not run).
    pub action: ExceptionAction,
    /// The ScheduleCalendar with the dates, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar_ref: Option<CalendarRef>,
    /// The first date, YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub start_date: Option<String>,
    /// The last date, YYYY-MM-DD, included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub end_date: Option<String>,
}

impl ScheduleException {
    /// The exception for [`fivespot_schedule`], with the dates of its calendar. `None` if that
    /// calendar does not exist.
    ///
    /// # Errors
    /// A text is not a date.
    fn in_schedule(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Option<fivespot_schedule::Exception>, fivespot_schedule::Error> {
        let dates = match (&self.calendar_ref, &self.start_date, &self.end_date) {
            (Some(calendar), _, _) => calendars.get(&calendar.name).cloned(),
            (None, Some(first), Some(last)) => {
                let entry = DateEntry::range(first, last);
                let entry =
                    entry.map_err(|error| fivespot_schedule::Error::Exception {
                        exception: self.name.clone(),
                        error,
                    })?;
                Some([entry].into_iter().collect())
            }
            (None, _, _) => Some(Dates::default()),
        };
        Ok(dates.map(|dates| fivespot_schedule::Exception {
            name: self.name.clone(),
            action: match self.action {
                ExceptionAction::Run => fivespot_schedule::ExceptionAction::Run,
                ExceptionAction::Stop => fivespot_schedule::ExceptionAction::Stop,
            },
            dates,
        }))
    }
}

/// A ScheduleCalendar of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct CalendarRef {
    /// Name of the ScheduleCalendar.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
}

/// What happens on the dates of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum ExceptionAction {
    /// The machine is wanted all day.
    Run,
    /// The machine is not wanted.
    Stop,
}

impl ExceptionAction {
    /// Every action, in the order in which the schema lists them.
    pub const ALL: [Self; 2] = [Self::Run, Self::Stop];

    /// The action as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Stop => "Stop",
        }
    }
}
