//! What is allowed and rarely meant: remarks about a ScheduledMachine, each with a stable code.
//!
//! A remark refuses nothing. Rules say what is wrong in itself; a lint looks at what the parts
//! come to together, and at the calendar.

mod calendar;
mod provider;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use fivespot_schedule::{Days, Duration, Hours};
use jiff::Timestamp;

use crate::ScheduledMachine;
use crate::manifest::{GeneratedFile, PAGE_HEADER};

pub use provider::{of_providers, shared_hosts};

/// The fewest characters of an entry that is looked for in command lines without finding
/// something else.
const SHORTEST_COMMAND: usize = 4;

/// A kind of remark.
#[derive(Debug, PartialEq, Eq)]
pub struct Lint {
    /// The code by which people speak of it, `SL001`; never given to another lint.
    pub code: &'static str,
    /// A name of two or three words.
    pub name: &'static str,
    /// What it looks for, and why.
    pub why: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// One remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The kind.
    pub lint: &'static Lint,
    /// The field it is about.
    pub field: String,
    /// What was found, in one sentence.
    pub message: String,
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

/// Every lint, in the order of the codes.
pub const LINTS: [Lint; 10] = [
    Lint {
        code: "SL001",
        name: "never active",
        why: "No machine is wanted at any time of the next ten years, so that nothing will ever \
              happen.",
        remedy: "check days, hours and cron with `5spot preview`",
    },
    Lint {
        code: "SL002",
        name: "overnight tail",
        why: "Hours that reach over midnight belong to the day on which they are: `fri` with \
              `22-6` is on Friday from 00:00 to 06:59 and from 22:00 to 23:59, and not on \
              Saturday morning.",
        remedy: "write what begins in the evening as cron with a duration, such as \
                 `0 22 * * fri` for `9h`",
    },
    Lint {
        code: "SL003",
        name: "time zone",
        why: "The zone is not in the tz database, or it is an abbreviation or a fixed offset, \
              which follows no daylight saving time and often means several places.",
        remedy: "name a place, such as `Europe/Zurich`",
    },
    Lint {
        code: "SL004",
        name: "clock change",
        why: "Within the next year clocks are put forward or back while a window begins or \
              ends: an hour that is skipped never opens, an hour that is repeated is on twice. A \
              cron that is to fire in an hour that is skipped fires at its end; one that fires in \
              an hour that is repeated fires twice.",
        remedy: "look at that day with `5spot preview`, and move the edge if it matters",
    },
    Lint {
        code: "SL005",
        name: "short window",
        why: "A window is shorter than taking leave may last, so that a machine may be leaving \
              for longer than it served.",
        remedy: "lengthen the window, or shorten gracefulShutdownTimeout or nodeDrainTimeout",
    },
    Lint {
        code: "SL006",
        name: "cron never fires",
        why: "The expression can be read, and names a day that no month has.",
        remedy: "check the day of the month against the month",
    },
    Lint {
        code: "SL007",
        name: "short command",
        why: "Entries of killIfCommands are looked for anywhere in command lines. One of fewer \
              than four characters is found in many that it does not mean.",
        remedy: "write more of the command",
    },
    Lint {
        code: "SL008",
        name: "no version",
        why: "kubeadm reads the Kubernetes version from the Machine and cannot join without one, \
              so that the machine stays Pending.",
        remedy: "set spec.machineTemplate.version to the version of the cluster's nodes",
    },
    Lint {
        code: "SL009",
        name: "no SSH key",
        why: "k0smotron reaches the host of a RemoteMachine by SSH and reads the key before \
              anything else, also when the host is to be cleaned up. Without the key the machine \
              neither joins nor leaves: the Machine stays in deletion.",
        remedy: "name a Secret with the private key in spec.infrastructureSpec.spec.sshKeyRef.name",
    },
    Lint {
        code: "SL010",
        name: "shared host",
        why: "Two ScheduledMachines have the same address. When one leaves, the provider resets \
              the host under the other, also hours later if its clean-up was delayed; both have \
              the same provider identifier.",
        remedy: "give each host to one ScheduledMachine, or use a pool of the provider",
    },
];

/// Every remark about `object`, as of `now`, in the order of the codes. Cannot fail: what cannot
/// be read is for the rules to say.
///
/// What several objects have in common is found by [`shared_hosts`].
pub fn check(object: &ScheduledMachine, now: Timestamp) -> Vec<Remark> {
    let mut remarks = of_schedule(object, now);
    remarks.extend(of_providers(object));
    remarks
}

/// The remarks about schedule, timeouts and commands, as of `now`: SL001 to SL007.
pub fn of_schedule(object: &ScheduledMachine, now: Timestamp) -> Vec<Remark> {
    let spec = &object.spec;
    let mut remarks = Vec::new();
    let schedule = spec.schedule.schedule().ok();
    if let Some(schedule) = &schedule {
        let fires = schedule
            .cron_expression()
            .is_none_or(|(cron, _)| cron.can_fire());
        let window = schedule.at(now);
        if fires && !window.is_open() && window.until().is_none() {
            remarks.push(remark(
                NEVER_ACTIVE,
                "spec.schedule",
                "no machine is wanted in the next ten years".to_owned(),
            ));
        }
    }
    remarks.extend(overnight_tail(object));
    remarks.extend(time_zone(&spec.schedule.timezone));
    if let Some(schedule) = &schedule {
        for message in calendar::clock_changes(&spec.schedule, schedule, now) {
            remarks.push(remark(CLOCK_CHANGE, "spec.schedule", message));
        }
        remarks.extend(short_window(object, schedule, now));
        if schedule
            .cron_expression()
            .is_some_and(|(cron, _)| !cron.can_fire())
        {
            let message = "the expression fires on no day of any year".to_owned();
            remarks.push(remark(CRON_NEVER_FIRES, "spec.schedule.cron", message));
        }
    }
    remarks.extend(short_commands(object));
    remarks
}

fn remark(lint: &'static Lint, field: impl Into<String>, message: String) -> Remark {
    Remark {
        lint,
        field: field.into(),
        message,
    }
}

fn overnight_tail(object: &ScheduledMachine) -> Option<Remark> {
    let schedule = &object.spec.schedule;
    let days: Vec<Days> = parsed(&schedule.days_of_week)?;
    let hours: Vec<Hours> = parsed(&schedule.hours_of_day)?;
    let days = days.into_iter().reduce(|one, other| one | other)?;
    let hours = hours.into_iter().reduce(|one, other| one | other)?;
    let is_split =
        schedule.cron.is_none() && hours.is_over_midnight() && !days.is_every_day();
    is_split.then(|| {
        let message = "the hours reach over midnight, and those after it belong to the same \
                       days as those before it, not to the following ones";
        remark(
            OVERNIGHT_TAIL,
            "spec.schedule.hoursOfDay",
            message.to_owned(),
        )
    })
}

/// Every entry, unless one cannot be read.
fn parsed<T: std::str::FromStr>(entries: &[String]) -> Option<Vec<T>> {
    entries.iter().map(|entry| entry.parse().ok()).collect()
}

fn time_zone(name: &str) -> Option<Remark> {
    let field = "spec.schedule.timezone";
    if fivespot_schedule::zone(name).is_none() {
        let message = format!("'{name}' is not in the tz database");
        return Some(remark(TIME_ZONE, field, message));
    }
    let is_universal = ["UTC", "Etc/UTC"]
        .iter()
        .any(|universal| name.eq_ignore_ascii_case(universal));
    let is_offset = name.to_ascii_lowercase().starts_with("etc/gmt");
    if is_universal || (name.contains('/') && !is_offset) {
        return None;
    }
    let what = if is_offset {
        "a fixed offset, whose sign is the opposite of the usual one"
    } else {
        "an abbreviation or an alias, not the name of a place"
    };
    Some(remark(TIME_ZONE, field, format!("'{name}' is {what}")))
}

fn short_window(
    object: &ScheduledMachine,
    schedule: &fivespot_schedule::Schedule,
    now: Timestamp,
) -> Option<Remark> {
    let (grace, drain) = (
        &object.spec.graceful_shutdown_timeout,
        &object.spec.node_drain_timeout,
    );
    let length = |text: &str| text.parse::<Duration>().ok();
    // The earlier of the two is the latest that a machine leaves.
    let leaving = jiff::SignedDuration::from(length(grace)?.min(length(drain)?));
    let (opens, closes) = calendar::shortest_window(schedule, now)?;
    (closes.duration_since(opens) < leaving).then(|| {
        let message = format!(
            "the window from {opens} to {closes} is shorter than the machine may take to leave: \
             the shorter of gracefulShutdownTimeout ({grace}) and nodeDrainTimeout ({drain})"
        );
        remark(SHORT_WINDOW, "spec.schedule", message)
    })
}

fn short_commands(object: &ScheduledMachine) -> Vec<Remark> {
    let commands = object.spec.kill_if_commands.iter().flatten().enumerate();
    commands
        .filter(|(_, command)| command.chars().count() < SHORTEST_COMMAND)
        .map(|(place, command)| {
            let field = format!("spec.killIfCommands[{place}]");
            let message = format!(
                "'{command}' is found in many command lines that it does not mean"
            );
            remark(SHORT_COMMAND, field, message)
        })
        .collect()
}

/// The reference page. Cannot fail.
pub fn page() -> GeneratedFile {
    let mut text = format!(
        "{PAGE_HEADER}# Lints\n\nWhat is allowed and rarely meant. `5spot validate` tells it; \
         nothing is refused for it, unless `--lint error` is given.\n\n\
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
