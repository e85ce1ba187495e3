//! Warnings about settings of a ScheduledMachine or a ScheduledCapacity that are valid but rarely intended, each with
//! a stable code.
//!
//! A warning rejects nothing. A rule checks a field on its own; a lint checks the combined
//! effect of several fields, and the calendar.

mod calendar;
mod capacity;
mod class;
mod provider;
mod shared;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fivespot_schedule::{Days, Duration, Hours, Schedule, Steps, Window};
use jiff::{SignedDuration, Timestamp};

use crate::manifest::{GeneratedFile, PAGE_HEADER};
use crate::{ScheduleSpec, ScheduledMachine};

pub use capacity::{of_capacity, shared_fields};
pub use class::hosts_of_classes;
pub use provider::{of_providers, shared_hosts};
pub use shared::of_shared;
pub use window::of_calendar;

/// The minimum length of an entry that is searched for in command lines without matching
/// unrelated commands.
const MIN_COMMAND_LENGTH: usize = 4;

/// How far ahead schedules are evaluated: a year, which covers both clock changes.
const A_YEAR: SignedDuration = SignedDuration::from_hours(366 * 24);

/// A kind of warning.
#[derive(Debug, PartialEq, Eq)]
pub struct Lint {
    /// The stable code, `SL001`; never reused for another lint.
    pub code: &'static str,
    /// A name of two or three words.
    pub name: &'static str,
    /// What it detects, and why.
    pub why: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// One warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintWarning {
    /// The kind.
    pub lint: &'static Lint,
    /// The field that it concerns.
    pub field: String,
    /// What was found, in one sentence.
    pub message: String,
    /// Whether the object can never have an effect: no machine is ever created for it.
    pub is_error: bool,
}

impl LintWarning {
    fn error(self) -> Self {
        Self {
            is_error: true,
            ..self
        }
    }
}

const NEVER_ACTIVE: &Lint = &LINTS[0];
const OVERNIGHT_TAIL: &Lint = &LINTS[1];
const TIME_ZONE: &Lint = &LINTS[2];
const CLOCK_CHANGE: &Lint = &LINTS[3];
const SHORT_WINDOW: &Lint = &LINTS[4];
const CRON_NEVER_FIRES: &Lint = &LINTS[5];
const SHORT_COMMAND: &Lint = &LINTS[6];
const NO_VERSION: &Lint = &LINTS[7];
const NO_SSH_KEY: &Lint = &LINTS[8];
const SHARED_HOST: &Lint = &LINTS[9];
const REDUNDANT_WINDOW: &Lint = &LINTS[10];
const EXCEPTION_OVER: &Lint = &LINTS[11];
const CALENDAR_OVER: &Lint = &LINTS[12];
const SHORT_FOR_PROVISIONING: &Lint = &LINTS[13];
const EMPTY_SPAN: &Lint = &LINTS[14];
const SAME_VALUES: &Lint = &LINTS[15];
const NEVER_DRAINED: &Lint = &LINTS[16];
const SHARED_FIELD: &Lint = &LINTS[17];
const UNKNOWN_HOST: &Lint = &LINTS[18];
const HOST_NAMED_TWICE: &Lint = &LINTS[19];

/// Every lint, in the order of the codes.
pub const LINTS: [Lint; 20] = [
    Lint {
        code: "SL001",
        name: "never active",
        why: "The schedule has no window in the next ten years, so no machine is ever created.",
        remedy: "check days, hours and cron with `5spot preview`",
    },
    Lint {
        code: "SL002",
        name: "overnight tail",
        why: "Hours that cross midnight apply to each listed day separately: `fri` with `22-6` \
              is Friday from 00:00 to 06:59 and from 22:00 to 23:59, not Saturday morning.",
        remedy: "for a window that starts in the evening, use windows, such as `start: 22:00` \
                 and `end: 07:00` on `fri`",
    },
    Lint {
        code: "SL003",
        name: "time zone",
        why: "The zone is not in the tz database, or it is an abbreviation or a fixed offset. \
              These are ambiguous or do not observe daylight saving time.",
        remedy: "use the name of a location, such as `Europe/Zurich`",
    },
    Lint {
        code: "SL004",
        name: "clock change",
        why: "Within the next year a daylight saving time change falls on the start or end of a \
              window. A skipped hour is never active, and a repeated hour is active twice. Cron \
              expressions that match in a skipped hour fire at its end; in a repeated hour they \
              fire twice.",
        remedy: "check that day with `5spot preview`, and move the start or end if it matters",
    },
    Lint {
        code: "SL005",
        name: "short window",
        why: "A window is shorter than the shutdown may take, so a machine may shut down for \
              longer than it ran.",
        remedy: "lengthen the window, or shorten gracefulShutdownTimeout or nodeDrainTimeout",
    },
    Lint {
        code: "SL006",
        name: "cron never fires",
        why: "The expression is syntactically valid, but its date does not exist in any year.",
        remedy: "check the day of the month against the month",
    },
    Lint {
        code: "SL007",
        name: "short command",
        why: "Entries of killIfCommands match anywhere in a command line. An entry with fewer \
              than four characters matches many unrelated processes.",
        remedy: "use a longer part of the command",
    },
    Lint {
        code: "SL008",
        name: "no version",
        why: "kubeadm reads the Kubernetes version from the Machine and cannot join without it. \
              The machine stays Pending.",
        remedy: "set spec.machineTemplate.version to the version of the cluster's nodes",
    },
    Lint {
        code: "SL009",
        name: "no SSH key",
        why: "k0smotron connects to the host of a RemoteMachine by SSH and needs the key to \
              provision it and to clean it up. Without the key the machine cannot join, and the \
              deletion of the Machine never finishes.",
        remedy: "set spec.infrastructureSpec.spec.sshKeyRef.name to a Secret with the private key",
    },
    Lint {
        code: "SL010",
        name: "shared host",
        why: "Two ScheduledMachines have the same address. When one is removed, the provider \
              resets the host that the other is using, possibly hours later if the clean-up was \
              delayed. Both have the same provider ID.",
        remedy: "use each host in one ScheduledMachine only, or use a pool of the provider",
    },
    Lint {
        code: "SL011",
        name: "redundant window",
        why: "A window lies within the others: without it, the machine runs at the same times.",
        remedy: "remove the window, or check its days and times with `5spot preview`",
    },
    Lint {
        code: "SL012",
        name: "exception is over",
        why: "The last date of an exception is in the past, so it never matches again.",
        remedy: "remove the exception, or correct its dates",
    },
    Lint {
        code: "SL013",
        name: "calendar is over",
        why: "No date of a ScheduleCalendar is in the future, so exceptions that refer to it \
              never match again.",
        remedy: "add the dates of the next years",
    },
    Lint {
        code: "SL014",
        name: "window shorter than provisioning and shutdown",
        why: "A window is shorter than the machine takes to be provisioned and to be shut down, \
              so it serves for less time than that.",
        remedy: "lengthen the window, or shorten leadTime or the shutdown timeouts",
    },
    Lint {
        code: "SL015",
        name: "empty span",
        why: "Under CompleteByWindowEnd the shutdown starts gracefulShutdownTimeout before the \
              end of the window. No machine is created for a window that is not longer than that.",
        remedy: "lengthen the window, or shorten gracefulShutdownTimeout",
    },
    Lint {
        code: "SL016",
        name: "same values",
        why: "The active and the inactive value of a ScheduledCapacity are equal, so the schedule \
              changes nothing.",
        remedy: "correct one of the two values",
    },
    Lint {
        code: "SL017",
        name: "never drained",
        why: "A kind leaves the number at `handback.drainedPath` out of its status while it is 0. \
              A number that is absent is not 0, so each hand-back ends as HandbackTimedOut.",
        remedy: "leave handback out, or await a number that is always there",
    },
    Lint {
        code: "SL018",
        name: "shared field",
        why: "Two ScheduledCapacities write the same field of the same object, and each undoes \
              what the other has written.",
        remedy: "use one ScheduledCapacity; several windows, exceptions and overrides are parts \
                 of one schedule",
    },
    Lint {
        code: "SL019",
        name: "unknown host",
        why: "A ScheduledMachine names a host that its class does not have, so no machine is \
              created for it.",
        remedy: "correct spec.classRef.host, or add the host to the class",
    },
    Lint {
        code: "SL020",
        name: "host named twice",
        why: "Two ScheduledMachines name the same host of a class. The second one waits until the \
              first one has left.",
        remedy: "name another host, or leave spec.classRef.host out: a free one is taken",
    },
];

/// How many steps the warnings about one object may take to evaluate its schedule: less than 20 ms.
/// A warning that needs more is left out.
const MAX_STEPS: u64 = 300_000;

/// Returns every warning about `object`, as of `now`, in the order of the codes. Cannot fail:
/// values that cannot be parsed are reported by the rules.
///
/// Conflicts between several objects are reported by [`shared_hosts`] and [`hosts_of_classes`].
pub fn check(object: &ScheduledMachine, now: Timestamp) -> Vec<LintWarning> {
    let mut warnings = of_schedule(object, now);
    warnings.extend(of_providers(object));
    warnings
}

/// The warnings about schedule, timeouts and commands, as of `now`: SL001 to SL007, SL011, SL012,
/// SL014 and SL015.
pub fn of_schedule(object: &ScheduledMachine, now: Timestamp) -> Vec<LintWarning> {
    of_schedule_within(object, now, &Steps::at_most(MAX_STEPS))
}

fn of_schedule_within(
    object: &ScheduledMachine,
    now: Timestamp,
    steps: &Steps,
) -> Vec<LintWarning> {
    let schedule = evaluated(&object.spec.schedule);
    let shortest = schedule
        .as_ref()
        .and_then(|schedule| calendar::shortest_window(schedule, now, steps));
    let mut warnings = of_spec(&object.spec.schedule, now, steps);
    if schedule.is_some() {
        warnings.extend(short_window(object, shortest));
        warnings.extend(window::short_window(object, shortest));
    }
    warnings.extend(short_commands(object));
    warnings.sort_by_key(|warning| warning.lint.code);
    warnings
}

/// `None` for one that cannot be parsed, or if it follows another one that is not known here.
fn evaluated(spec: &ScheduleSpec) -> Option<Schedule> {
    let is_known = spec.reference().is_none() || spec.resolved.is_some();
    spec.schedule().ok().filter(|_| is_known)
}

/// The warnings about a schedule at `spec.schedule`, whatever follows it, in the order of the codes.
fn of_spec(spec: &ScheduleSpec, now: Timestamp, steps: &Steps) -> Vec<LintWarning> {
    let mut warnings = Vec::new();
    let schedule = evaluated(spec);
    let cron = schedule.as_ref().and_then(Schedule::cron_expression);
    let fires = cron.is_none_or(|(cron, _)| cron.can_fire());
    let window = schedule.as_ref().map(|it| it.at_within(now, steps));
    if let Some(window) = window.filter(|_| fires) {
        warnings.extend(never_active(window, "spec.schedule"));
    }
    warnings.extend(overnight_tail(spec));
    warnings.extend(time_zone(&spec.timezone));
    if let Some(schedule) = &schedule {
        for message in calendar::clock_changes(spec, schedule, now, steps) {
            warnings.push(warning(CLOCK_CHANGE, "spec.schedule", message));
        }
        if !fires {
            let message = "the expression never fires".to_owned();
            warnings
                .push(warning(CRON_NEVER_FIRES, "spec.schedule.cron", message).error());
        }
        warnings.extend(window::redundant_windows(spec, now, steps));
        warnings.extend(window::past_exceptions(spec, schedule, now));
    }
    warnings
}

fn never_active(window: Window, field: &str) -> Option<LintWarning> {
    let is_never = !window.is_open() && window.until().is_none();
    let message = "the schedule has no window in the next ten years";
    is_never.then(|| warning(NEVER_ACTIVE, field, message.to_owned()))
}

fn warning(
    lint: &'static Lint,
    field: impl Into<String>,
    message: String,
) -> LintWarning {
    LintWarning {
        lint,
        field: field.into(),
        message,
        is_error: false,
    }
}

/// The warnings for several objects that have one thing, each with the place of the object that it
/// concerns: `having` gives each thing with the place and the name of an object that has it, and
/// `warn` is given another object's name. Objects of the same name count as one.
fn of_several<T: Ord>(
    having: impl IntoIterator<Item = (T, usize, String)>,
    warn: impl Fn(&T, &str) -> LintWarning,
) -> Vec<(usize, LintWarning)> {
    let mut by_thing: BTreeMap<T, Vec<(usize, String)>> = BTreeMap::new();
    for (thing, place, name) in having {
        by_thing.entry(thing).or_default().push((place, name));
    }
    let mut found = Vec::new();
    for (thing, all) in &by_thing {
        for (place, name) in all {
            // One other object is sufficient, however many there are.
            if let Some((_, other)) = all.iter().find(|(_, other)| other != name) {
                found.push((*place, warn(thing, other)));
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found
}

fn overnight_tail(schedule: &ScheduleSpec) -> Option<LintWarning> {
    let days: Vec<Days> = parsed(&schedule.days_of_week)?;
    let hours: Vec<Hours> = parsed(&schedule.hours_of_day)?;
    let days = days.into_iter().reduce(|one, other| one | other)?;
    let hours = hours.into_iter().reduce(|one, other| one | other)?;
    let is_split =
        schedule.cron.is_none() && hours.is_over_midnight() && !days.is_every_day();
    is_split.then(|| {
        let message = "the hours cross midnight; the hours after midnight apply to the listed days, not to the days after them";
        warning(
            OVERNIGHT_TAIL,
            "spec.schedule.hoursOfDay",
            message.to_owned(),
        )
    })
}

/// Every entry parsed. `None` if one cannot be parsed.
fn parsed<T: std::str::FromStr>(entries: &[String]) -> Option<Vec<T>> {
    entries.iter().map(|entry| entry.parse().ok()).collect()
}

fn time_zone(name: &str) -> Option<LintWarning> {
    let field = "spec.schedule.timezone";
    if fivespot_schedule::zone(name).is_none() {
        let message = format!("'{name}' is not in the tz database");
        return Some(warning(TIME_ZONE, field, message).error());
    }
    let is_universal = ["UTC", "Etc/UTC"]
        .iter()
        .any(|universal| name.eq_ignore_ascii_case(universal));
    let is_offset = name.to_ascii_lowercase().starts_with("etc/gmt");
    if is_universal || (name.contains('/') && !is_offset) {
        return None;
    }
    let what = if is_offset {
        "a fixed offset, with the opposite sign of ISO 8601"
    } else {
        "an abbreviation or an alias, not the name of a location"
    };
    Some(warning(TIME_ZONE, field, format!("'{name}' is {what}")))
}

fn short_window(
    object: &ScheduledMachine,
    shortest: Option<(Timestamp, Timestamp)>,
) -> Option<LintWarning> {
    let (grace, drain) = (
        &object.spec.graceful_shutdown_timeout,
        &object.spec.node_drain_timeout,
    );
    let length = |text: &str| text.parse::<Duration>().ok();
    // The earlier of the two timeouts ends the shutdown.
    let leaving = SignedDuration::from(length(grace)?.min(length(drain)?));
    let (opens, closes) = shortest?;
    (closes.duration_since(opens) < leaving).then(|| {
        let message = format!(
            "the window from {opens} to {closes} is shorter than the shutdown may take, which is \
             the shorter of gracefulShutdownTimeout ({grace}) and nodeDrainTimeout ({drain})"
        );
        warning(SHORT_WINDOW, "spec.schedule", message)
    })
}

fn short_commands(object: &ScheduledMachine) -> Vec<LintWarning> {
    let (field, commands) = object.spec.reclaim_commands();
    let commands = commands.iter().enumerate();
    commands
        .filter(|(_, command)| command.chars().count() < MIN_COMMAND_LENGTH)
        .map(|(place, command)| {
            let field = format!("{field}[{place}]");
            let message = format!("'{command}' matches many unrelated command lines");
            warning(SHORT_COMMAND, field, message)
        })
        .collect()
}

/// The reference page. Cannot fail.
pub fn page() -> GeneratedFile {
    let mut text = format!(
        "{PAGE_HEADER}# Lints\n\nLegal but suspicious settings. `5spot validate` warns about \
         them, and fails for an unknown time zone and a cron expression that never fires; with \
         `--lint error` it fails for all of them. No API server rejects them.\n\n\
         | code | name | what to do |\n|---|---|---|\n"
    );
    for lint in &LINTS {
        let _ = writeln!(text, "| {} | {} | {} |", lint.code, lint.name, lint.remedy);
    }
    for lint in &LINTS {
        let _ = write!(text, "\n## {}: {}\n\n{}\n", lint.code, lint.name, lint.why);
    }
    GeneratedFile {
        path: "lints.md".to_owned(),
        text,
    }
}
