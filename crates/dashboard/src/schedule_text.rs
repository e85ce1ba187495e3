//! Descriptions of schedules and of their causes.

use fivespot_api::scheduled_machine::ScheduleWindow;
use fivespot_api::{CapitalMarketsScheduleSpec, ScheduleSpec, SharedSpec};
use fivespot_schedule::Cause;

/// A one-line description of the schedule as written: `mon-fri 9-17 in Europe/Zurich`.
pub fn schedule(spec: &ScheduleSpec) -> String {
    if let Some(reference) = spec.reference() {
        return format!("follows {} {}", reference.kind, reference.name);
    }
    let when = match (&spec.windows, &spec.cron) {
        (Some(windows), _) => {
            let windows: Vec<String> = windows.iter().map(window).collect();
            windows.join(", ")
        }
        (None, Some(cron)) => {
            let duration = spec.duration.as_deref().unwrap_or("1h");
            format!("cron '{cron}' for {duration}")
        }
        (None, None) => format!(
            "{} {}",
            spec.days_of_week.join(","),
            spec.hours_of_day.join(",")
        ),
    };
    let exceptions = match spec.exceptions.as_ref().map_or(0, Vec::len) {
        0 => String::new(),
        1 => ", 1 exception".to_owned(),
        several => format!(", {several} exceptions"),
    };
    format!("{when} in {}{exceptions}", spec.timezone)
}

/// A one-line description of a schedule that objects share.
pub fn shared(spec: &SharedSpec) -> String {
    match spec {
        SharedSpec::TimeBased(spec) => schedule(spec),
        SharedSpec::CapitalMarkets(spec) => sessions(spec),
    }
}

/// `mon-fri 9-15 in America/New_York, 10 holidays, 1 early close`
fn sessions(spec: &CapitalMarketsScheduleSpec) -> String {
    let sessions = spec.sessions.iter();
    let sessions = sessions.map(|it| {
        format!(
            "{} {}",
            it.days_of_week.join(","),
            it.hours_of_day.join(",")
        )
    });
    let counted = |count: usize, one: &str, several: &str| match count {
        0 => String::new(),
        1 => format!(", 1 {one}"),
        count => format!(", {count} {several}"),
    };
    format!(
        "{} in {}{}{}",
        sessions.collect::<Vec<_>>().join("; "),
        spec.timezone,
        counted(spec.holidays.len(), "holiday", "holidays"),
        counted(spec.early_closes.len(), "early close", "early closes"),
    )
}

/// The cause of a change of the schedule, by the fields and objects of the user:
/// `daysOfWeek and hoursOfDay`, `override desk-run-x7f2`.
pub fn cause(cause: Cause<'_>) -> String {
    match cause {
        Cause::Window(name) => format!("window {name}"),
        Cause::Cron => "cron and duration".to_owned(),
        Cause::Lists => "daysOfWeek and hoursOfDay".to_owned(),
        Cause::Exception(name) => format!("exception {name}"),
        Cause::Override(name) => format!("override {name}"),
    }
}

fn window(window: &ScheduleWindow) -> String {
    let days = if window.days.is_empty() {
        "every day".to_owned()
    } else {
        window.days.join(",")
    };
    let start = &window.start;
    match (&window.end, &window.duration) {
        (Some(end), _) => format!("{days} {start}-{end}"),
        (None, Some(duration)) => format!("{days} {start} for {duration}"),
        (None, None) => format!("{days} {start}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cause_names_fields_and_objects_of_the_user() {
        for (of, expected) in [
            (Cause::Lists, "daysOfWeek and hoursOfDay"),
            (Cause::Cron, "cron and duration"),
            (Cause::Window("night"), "window night"),
            (Cause::Exception("holidays"), "exception holidays"),
            (Cause::Override("late"), "override late"),
        ] {
            assert_eq!(cause(of), expected);
        }
    }

    #[test]
    fn sessions_are_described_with_the_dates_on_which_they_differ() {
        let spec = serde_json::from_value(json!({
            "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}],
            "timezone": "America/New_York", "holidays": ["2026-12-25", "2027-01-01"],
            "earlyCloses": [{"date": "2026-12-24", "closeHour": 12}],
        }));
        let spec = SharedSpec::CapitalMarkets(Box::new(spec.unwrap()));
        assert_eq!(
            shared(&spec),
            "mon-fri 9-15 in America/New_York, 2 holidays, 1 early close"
        );
    }

    #[test]
    fn each_form_of_schedule_is_described_in_one_line() {
        for (spec, expected) in [
            (
                json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}),
                "mon-fri 9-17 in UTC",
            ),
            (
                json!({"cron": "0 9 * * *", "timezone": "Europe/Zurich"}),
                "cron '0 9 * * *' for 1h in Europe/Zurich",
            ),
            (
                json!({
                    "windows": [
                        {"name": "night", "days": ["mon-fri"], "start": "19:00", "end": "07:30"},
                        {"name": "weekend", "days": ["sat"], "start": "07:30", "duration": "48h"},
                    ],
                    "exceptions": [{"name": "a", "action": "Stop", "dates": ["2026-12-25"]}],
                }),
                "mon-fri 19:00-07:30, sat 07:30 for 48h in UTC, 1 exception",
            ),
        ] {
            let spec: ScheduleSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(schedule(&spec), expected);
        }
    }
}
