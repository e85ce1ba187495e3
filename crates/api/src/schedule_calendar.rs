//! ScheduleCalendar: named dates, to which the exceptions of schedules refer.

use fivespot_schedule::{DateEntry, Dates, ParseError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name;
use crate::object::{named, with_spec};
use crate::scheduled_machine::null_is_default;
use crate::schema::MAX_NAME;

/// How many entries a calendar has at most.
pub const MAX_DATES: usize = 400;

/// Room for a date, and for an invalid one: a calendar has many entries.
const MAX_DATE: u32 = 24;

/// Dates, each a whole local day in the zone of the schedule that uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleCalendar {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// The dates.
    pub spec: ScheduleCalendarSpec,
}

/// The dates of the calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleCalendarSpec {
    /// The dates. Each is a whole local day in the time zone of the schedule that uses it.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_DATES), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub dates: Vec<CalendarDate>,
}

/// A date, or a range of dates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarDate {
    /// The name of the entry.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// The date: YYYY-MM-DD, or MM-DD for every year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DATE))]
    pub date: Option<String>,
    /// The first date of a range, YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DATE))]
    pub start_date: Option<String>,
    /// The last date of a range, YYYY-MM-DD, included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DATE))]
    pub end_date: Option<String>,
}

impl CalendarDate {
    /// The parsed dates. `None` if neither a date nor both ends are given.
    ///
    /// # Errors
    /// A text is not a date.
    pub fn entry(&self) -> Result<Option<DateEntry>, ParseError> {
        match (&self.date, &self.start_date, &self.end_date) {
            (Some(date), None, None) => DateEntry::parse(date).map(Some),
            (None, Some(first), Some(last)) => DateEntry::range(first, last).map(Some),
            _ => Ok(None),
        }
    }
}

impl ScheduleCalendarSpec {
    /// Every date. An entry that cannot be parsed is skipped, so that one mistake does not
    /// disable the whole calendar.
    pub fn dates(&self) -> Dates {
        let entries = self.dates.iter();
        entries
            .filter_map(|date| date.entry().ok().flatten())
            .collect()
    }
}

named!(
    ScheduleCalendar,
    scope: NamespaceResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::CALENDAR_PLURAL
);
with_spec!(ScheduleCalendar);
