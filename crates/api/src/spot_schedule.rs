//! Schedules that many objects share: TimeBasedSpotSchedule and CapitalMarketsSchedule.
//!
//! Both are compiled by one pure function each to the [`Schedule`] that an inline
//! `spec.schedule` is compiled to, so that nothing else distinguishes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use fivespot_schedule::{
    DateEntry, Dates, Error, Exception, ExceptionAction, Override, OverrideMode,
    Schedule, SessionText,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name;
use crate::object::{named, with_spec};
use crate::scheduled_machine::{ScheduleSpec, default_timezone, null_is_default};
use crate::schema::{self, MAX_SHORT, NO_GENERATION};
use crate::status::written_generation;

/// The maximum number of items of `daysOfWeek` and `hoursOfDay`.
const MAX_TEXTS: usize = 32;
/// The maximum number of sessions.
const MAX_SESSIONS: usize = 16;
/// The maximum number of holidays, and of early closes.
const MAX_DATES: usize = 400;
/// Room for a date, and for an invalid one: there are many.
const MAX_DATE: u32 = 24;

/// The name of the exception that holidays are.
const HOLIDAYS: &str = "holidays";

/// A schedule of days and hours, cron or windows that many objects share.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBasedSpotSchedule {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// The schedule, in the form of `spec.schedule` of a ScheduledMachine.
    pub spec: ScheduleSpec,
    /// What it publishes; absent before the first reconcile.
    pub status: Option<SpotScheduleStatus>,
}

/// The sessions of a market, its holidays and its early closes.
#[derive(Clone, Debug, PartialEq)]
pub struct CapitalMarketsSchedule {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// The sessions.
    pub spec: CapitalMarketsScheduleSpec,
    /// What it publishes; absent before the first reconcile.
    pub status: Option<SpotScheduleStatus>,
}

/// What a schedule publishes for everything that follows it. It is written once for each
/// transition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpotScheduleStatus {
    /// Whether what follows it is wanted. While the schedule cannot be evaluated, it is what was
    /// published last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// When active last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// When active changes next; absent if it does not within ten years.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition_time: Option<Timestamp>,
    /// The generation that was last evaluated.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = NO_GENERATION))]
    pub observed_generation: Option<i64>,
    /// Conditions, one per type.
    // Ready.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "schema::conditions_of_spot_schedule")]
    pub conditions: Vec<Condition>,
}

/// When a market is open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapitalMarketsScheduleSpec {
    /// The IANA time zone of sessions, holidays and early closes, such as America/New_York.
    #[serde(default = "default_timezone")]
    #[schemars(length(max = MAX_SHORT))]
    pub timezone: String,
    /// When the market is open. Several sessions are merged.
    #[schemars(length(min = 1, max = MAX_SESSIONS))]
    pub sessions: Vec<Session>,
    /// Dates on which the market is closed all day, YYYY-MM-DD.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_DATES), inner(length(max = MAX_DATE)))]
    pub holidays: Vec<String>,
    /// Dates on which the market closes early.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_DATES), extend("x-kubernetes-list-map-keys" = ["date"]))]
    pub early_closes: Vec<EarlyClose>,
}

/// Hours of days in which a market is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Days: mon, tue, wed, thu, fri, sat, sun, ranges such as mon-fri, or comma-separated lists.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TEXTS), inner(length(max = MAX_SHORT)))]
    pub days_of_week: Vec<String>,
    /// Hours, both ends included: 9-15 is from 09:00:00 to 15:59:59.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TEXTS), inner(length(max = MAX_SHORT)))]
    pub hours_of_day: Vec<String>,
}

/// A date on which a market closes early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlyClose {
    /// The date, YYYY-MM-DD.
    #[schemars(length(max = MAX_DATE))]
    pub date: String,
    /// The last hour in which the market is open: with 12 it closes at 13:00.
    #[schemars(range(max = 23))]
    pub close_hour: u8,
}

impl CapitalMarketsScheduleSpec {
    /// The schedule: sessions are days and hours, holidays are dates without any, and an early
    /// close ends its date at the end of its hour.
    ///
    /// # Errors
    /// No session, an entry that cannot be parsed, a date that does not exist, a time zone that is
    /// not in the tz database.
    pub fn schedule(&self) -> Result<Schedule, Error> {
        let sessions: Vec<_> = self
            .sessions
            .iter()
            .map(|session| SessionText {
                days: &session.days_of_week,
                hours: &session.hours_of_day,
            })
            .collect();
        let schedule = Schedule::sessions(&sessions, &self.timezone)?;
        let holidays = self.holidays.iter().map(|date| entry(HOLIDAYS, date));
        let holidays = Exception {
            name: HOLIDAYS.to_owned(),
            action: ExceptionAction::Stop,
            dates: holidays.collect::<Result<Dates, _>>()?,
        };
        let mut exceptions = vec![holidays];
        let hours: BTreeSet<u8> =
            self.early_closes.iter().map(|of| of.close_hour).collect();
        for hour in hours {
            let name = format!("early close after {hour}");
            let of_hour = self.early_closes.iter().filter(|of| of.close_hour == hour);
            let dates = of_hour.map(|of| entry(&name, &of.date));
            exceptions.push(Exception {
                dates: dates.collect::<Result<Dates, _>>()?,
                name,
                action: ExceptionAction::StopFrom {
                    hour: hour.saturating_add(1),
                },
            });
        }
        Ok(schedule.with_exceptions(exceptions))
    }
}

fn entry(exception: &str, date: &str) -> Result<DateEntry, Error> {
    DateEntry::range(date, date).map_err(|error| Error::Exception {
        exception: exception.to_owned(),
        error,
    })
}

/// A schedule that an object follows, in its own namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpotScheduleRef {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl SpotScheduleRef {
    /// Whether the kind is one that is evaluated here.
    pub fn is_known(&self) -> bool {
        name::SPOT_KINDS.contains(&self.kind.as_str())
    }
}

/// What a reference to a schedule resolves to.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// The object.
    Shared {
        /// Its schedule.
        schedule: Arc<SharedSchedule>,
        /// Its generation.
        generation: Option<i64>,
    },
    /// An object of another provider.
    Provided {
        /// What it publishes, or why that may not be followed.
        published: Result<Provided, Unfollowable>,
        /// Whether it changes too often and is followed once a minute.
        is_flapping: bool,
    },
    /// The object cannot be read: what was decided last holds on.
    Held {
        /// Whether a machine is wanted.
        active: bool,
    },
}

/// What a schedule of another provider publishes. Of its spec nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// Whether a machine is wanted.
    pub active: bool,
    /// When that changes. `None` if only the present is known.
    pub until: Option<Timestamp>,
    /// The generation that the status is about, or else that of the object.
    pub generation: Option<i64>,
}

/// Why the status of a provider's object may not be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfollowable {
    /// It has no `active`.
    ActiveMissing,
    /// Its condition Ready is not true; with its message.
    NotReady(String),
}

impl Provided {
    /// Reads the status of a provider's object. What is of another type counts as absent.
    ///
    /// # Errors
    /// No `active`, or a condition Ready that is not `True`.
    pub fn of_object(object: &Value) -> Result<Self, Unfollowable> {
        let status = &object["status"];
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let ready = conditions.find(|of| of["type"] == "Ready");
        if let Some(ready) = ready.filter(|of| of["status"] != "True") {
            let [reason, message] = ["reason", "message"]
                .map(|field| ready[field].as_str().unwrap_or_default());
            return Err(Unfollowable::NotReady(format!("{reason}: {message}")));
        }
        let active = status["active"].as_bool();
        let next = status["nextTransitionTime"].as_str();
        let generations = [
            &status["observedGeneration"],
            &object["metadata"]["generation"],
        ];
        Ok(Self {
            active: active.ok_or(Unfollowable::ActiveMissing)?,
            until: next.and_then(|text| text.parse().ok()),
            generation: generations.into_iter().find_map(Value::as_i64),
        })
    }

    /// The schedule that this is: open or closed until the next transition, and the opposite after
    /// it; without one for ever.
    ///
    /// # Errors
    /// The time zone is not in the tz database.
    pub fn schedule(&self, zone: &str) -> Result<Schedule, Error> {
        let (now, then) = if self.active {
            (Schedule::always(zone)?, OverrideMode::Stop)
        } else {
            (Schedule::never(zone)?, OverrideMode::Run)
        };
        let Some(until) = self.until else {
            return Ok(now);
        };
        let after = Override {
            name: "nextTransitionTime".to_owned(),
            mode: then,
            start: Some(until),
            end: Timestamp::MAX,
            created: None,
        };
        // As the schedule of another object, so that overrides of the machine do not replace it.
        Schedule::following(now.with_overrides(vec![after]), zone)
    }
}

/// A schedule that other objects follow. It is checked and compiled once, however many follow it.
#[derive(Debug)]
pub struct SharedSchedule {
    spec: SharedSpec,
    fault: OnceLock<Option<String>>,
    /// Of sessions, which have no calendars.
    sessions: OnceLock<Result<Schedule, Error>>,
}

/// The spec of an object that other objects may follow.
#[derive(Clone, Debug, PartialEq)]
pub enum SharedSpec {
    /// Of a TimeBasedSpotSchedule.
    TimeBased(Box<ScheduleSpec>),
    /// Of a CapitalMarketsSchedule.
    CapitalMarkets(Box<CapitalMarketsScheduleSpec>),
}

impl PartialEq for SharedSchedule {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl From<SharedSpec> for SharedSchedule {
    fn from(spec: SharedSpec) -> Self {
        Self {
            spec,
            fault: OnceLock::new(),
            sessions: OnceLock::new(),
        }
    }
}

impl SharedSchedule {
    /// The spec of an object of one of the two kinds. `None` if the object is of another kind.
    ///
    /// # Errors
    /// A field has another type.
    pub fn of_object(object: &Value) -> Option<serde_json::Result<Self>> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_shared =
            version == name::SPOT_API_VERSION && name::SPOT_KINDS.contains(&kind);
        is_shared.then(|| Self::of_spec(kind, &object["spec"]))
    }

    /// The spec of an object of that kind; of any kind but CapitalMarketsSchedule it is read as a
    /// TimeBasedSpotSchedule's.
    ///
    /// # Errors
    /// A field has another type.
    pub fn of_spec(kind: &str, spec: &Value) -> serde_json::Result<Self> {
        let spec = if kind == name::CAPITAL_MARKETS_KIND {
            SharedSpec::CapitalMarkets(Deserialize::deserialize(spec)?)
        } else {
            SharedSpec::TimeBased(Deserialize::deserialize(spec)?)
        };
        Ok(Self::from(spec))
    }

    /// The spec.
    pub fn spec(&self) -> &SharedSpec {
        &self.spec
    }

    /// What `find` says is wrong with the spec; it is only asked the first time.
    pub(crate) fn fault_or(
        &self,
        find: impl FnOnce(&SharedSpec) -> Option<String>,
    ) -> Option<&str> {
        self.fault.get_or_init(|| find(&self.spec)).as_deref()
    }

    /// The schedule that it is compiled to, given the calendars of its namespace. A disabled one
    /// is never open.
    ///
    /// # Errors
    /// As [`ScheduleSpec::schedule_with`] and [`CapitalMarketsScheduleSpec::schedule`].
    pub fn schedule(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Schedule, Error> {
        match &self.spec {
            SharedSpec::TimeBased(spec) if spec.enabled => spec.schedule_with(calendars),
            SharedSpec::TimeBased(spec) => Schedule::never(&spec.timezone),
            SharedSpec::CapitalMarkets(spec) => {
                self.sessions.get_or_init(|| spec.schedule()).clone()
            }
        }
    }

    /// The names of the calendars that its exceptions refer to.
    pub fn calendars(&self) -> Vec<&str> {
        match &self.spec {
            SharedSpec::TimeBased(spec) => spec.calendars().collect(),
            SharedSpec::CapitalMarkets(_) => Vec::new(),
        }
    }
}

named!(
    TimeBasedSpotSchedule,
    scope: NamespaceResourceScope,
    api_version: name::SPOT_API_VERSION,
    group: name::SPOT_GROUP,
    plural: name::TIME_BASED_PLURAL
);
with_spec!(TimeBasedSpotSchedule, status);
named!(
    CapitalMarketsSchedule,
    scope: NamespaceResourceScope,
    api_version: name::SPOT_API_VERSION,
    group: name::SPOT_GROUP,
    plural: name::CAPITAL_MARKETS_PLURAL
);
with_spec!(CapitalMarketsSchedule, status);

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shared(spec: serde_json::Value) -> SharedSchedule {
        SharedSpec::TimeBased(serde_json::from_value(spec).unwrap()).into()
    }

    #[test]
    fn a_disabled_schedule_is_never_open() {
        let spec = json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]});
        let mut off = spec.clone();
        off["enabled"] = json!(false);
        let at = "2026-03-06T12:00:00Z".parse().unwrap();
        let is_open = |spec| {
            shared(spec)
                .schedule(&BTreeMap::new())
                .unwrap()
                .at(at)
                .is_open()
        };
        assert!(is_open(spec));
        assert!(!is_open(off));
    }

    #[test]
    fn a_provider_that_publishes_its_next_transition_is_followed_beyond_it() {
        let object = json!({
            "metadata": {"generation": 3},
            "status": {"active": true, "nextTransitionTime": "2026-03-06T23:00:00Z"},
        });
        let provided = Provided::of_object(&object).unwrap();
        assert_eq!(provided.generation, Some(3));
        let schedule = provided.schedule("Asia/Tokyo").unwrap();
        let [before, after] = ["2026-03-06T22:59:59Z", "2026-03-06T23:00:00Z"]
            .map(|at| schedule.at(at.parse().unwrap()));
        assert!(before.is_open() && !after.is_open());
        assert_eq!(
            before.until(),
            Some("2026-03-06T23:00:00Z".parse().unwrap())
        );
        assert_eq!(after.until(), None);
        let closed = Provided {
            active: false,
            until: None,
            generation: None,
        };
        let closed = closed.schedule("UTC").unwrap();
        let at = closed.at("2026-03-06T22:59:59Z".parse().unwrap());
        assert!(!at.is_open() && at.until().is_none());
    }

    #[test]
    fn a_provider_is_not_followed_without_active_or_while_it_is_not_ready() {
        let of =
            |status: serde_json::Value| Provided::of_object(&json!({"status": status}));
        assert_eq!(of(json!({})), Err(Unfollowable::ActiveMissing));
        assert_eq!(
            of(json!({"active": "yes"})),
            Err(Unfollowable::ActiveMissing)
        );
        let ready = |status: &str| {
            json!([
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": status, "reason": "Down", "message": "no feed"},
            ])
        };
        for status in ["False", "Unknown"] {
            let found = of(json!({"active": true, "conditions": ready(status)}));
            assert_eq!(
                found,
                Err(Unfollowable::NotReady("Down: no feed".to_owned()))
            );
        }
        assert!(of(json!({"active": true, "conditions": ready("True")})).is_ok());
    }

    #[test]
    fn an_early_close_ends_its_date_at_the_end_of_its_hour() {
        let spec: CapitalMarketsScheduleSpec = serde_json::from_value(json!({
            "timezone": "America/New_York",
            "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}],
            "holidays": ["2026-11-26"],
            "earlyCloses": [{"date": "2026-11-27", "closeHour": 12}],
        }))
        .unwrap();
        let schedule = spec.schedule().unwrap();
        let (from, to) = ("2026-11-25T12:00:00Z", "2026-11-29T00:00:00Z");
        let changes = schedule.transitions(from.parse().unwrap(), to.parse().unwrap());
        let changes: Vec<_> = changes.map(|(at, open)| format!("{at} {open}")).collect();
        assert_eq!(
            changes,
            [
                "2026-11-25T14:00:00Z true",
                "2026-11-25T21:00:00Z false",
                "2026-11-27T14:00:00Z true",
                "2026-11-27T18:00:00Z false",
            ]
        );
    }

    #[test]
    fn a_date_that_does_not_exist_is_an_error_that_names_its_list() {
        let spec = |field: &str, value: serde_json::Value| {
            let mut spec =
                json!({"sessions": [{"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}]});
            spec[field] = value;
            let spec: CapitalMarketsScheduleSpec = serde_json::from_value(spec).unwrap();
            spec.schedule().unwrap_err().to_string()
        };
        let text = spec("holidays", json!(["2026-02-30"]));
        assert!(text.starts_with("exceptions[holidays]: "), "{text}");
        let text = spec("earlyCloses", json!([{"date": "x", "closeHour": 12}]));
        assert!(
            text.starts_with("exceptions[early close after 12]: "),
            "{text}"
        );
    }

    /// A schedule in any of the forms, as JSON.
    fn any_form() -> impl Strategy<Value = serde_json::Value> {
        let day = proptest::sample::select(vec!["mon-fri", "fri-mon", "tue,thu", "sun"]);
        let hour = (0..24_u8, 0..24_u8).prop_map(|(from, to)| format!("{from}-{to}"));
        let lists = (day.clone(), hour)
            .prop_map(|(day, hour)| json!({"daysOfWeek": [day], "hoursOfDay": [hour]}));
        let cron = (0..60_u8, 0..24_u8, 1..9_u8).prop_map(|(minute, hour, length)| {
            json!({"cron": format!("{minute} {hour} * * 1-5"), "duration": format!("{length}h")})
        });
        let windows = (day, 0..24_u8, 0..60_u8, 1..30_u16).prop_map(
            |(day, hour, minute, length)| {
                let start = format!("{hour:02}:{minute:02}");
                let duration = format!("{length}h");
                json!({"windows": [
                    {"name": "w", "days": [day], "start": start, "duration": duration}
                ]})
            },
        );
        let form = prop_oneof![lists, cron, windows];
        let zone = proptest::sample::select(vec![
            "UTC",
            "America/New_York",
            "Asia/Kathmandu",
            "Australia/Lord_Howe",
        ]);
        (form, zone, 1..28_u8, any::<bool>()).prop_map(|(mut form, zone, date, runs)| {
            let date = format!("2026-03-{date:02}");
            let action = if runs { "Run" } else { "Stop" };
            form["timezone"] = json!(zone);
            form["exceptions"] = json!([
                {"name": "a", "action": action, "startDate": date, "endDate": date},
                {"name": "b", "action": "Stop", "calendarRef": {"name": "holidays"}},
            ]);
            form
        })
    }

    /// The instants of what follows a provider that publishes this schedule, half a minute after
    /// each change, with the next one.
    fn by_another_provider(
        schedule: &Schedule,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<(Timestamp, bool)> {
        let mut found = Vec::new();
        let mut published = from;
        while published < to {
            let window = schedule.at(published);
            let object = json!({"status": {
                "active": window.is_open(),
                "nextTransitionTime": window.until().map(|until| until.to_string()),
            }});
            let followed = Provided::of_object(&object).unwrap();
            let followed = followed.schedule("UTC").unwrap();
            let next = window
                .until()
                .map(|until| until + SignedDuration::from_secs(30));
            let next = next.unwrap_or(to).min(to);
            found.extend(followed.transitions(published, next));
            published = next;
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_schedule_has_the_same_instants_inline_as_an_object_and_by_another_provider(
            spec in any_form(),
        ) {
            let christmas = DateEntry::parse("03-17").unwrap();
            let calendars = BTreeMap::from([(
                "holidays".to_owned(),
                [christmas].into_iter().collect::<Dates>(),
            )]);
            let inline: ScheduleSpec = serde_json::from_value(spec.clone()).unwrap();
            let object = json!({
                "apiVersion": name::SPOT_API_VERSION, "kind": name::TIME_BASED_KIND,
                "metadata": {"name": "shared"}, "spec": spec,
            });
            let object: TimeBasedSpotSchedule = serde_json::from_value(object).unwrap();
            let (from, to) = (
                "2026-03-01T00:00:00Z".parse().unwrap(),
                "2026-04-15T00:00:00Z".parse().unwrap(),
            );
            let inline = inline.schedule_with(&calendars).unwrap();
            let instants: Vec<_> = inline.transitions(from, to).collect();
            let shared = SharedSchedule::from(SharedSpec::TimeBased(Box::new(object.spec)));
            let shared = shared.schedule(&calendars).unwrap();
            prop_assert_eq!(&shared.transitions(from, to).collect::<Vec<_>>(), &instants);
            prop_assert_eq!(by_another_provider(&inline, from, to), instants);
        }
    }
}
