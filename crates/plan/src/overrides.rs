//! What to do about one ScheduleOverride: its status, and its deletion after its end.

use fivespot_api::schedule_override::IGNORED;
use fivespot_api::{ScheduleOverride, ScheduleOverrideStatus};
use fivespot_capi::one_line;
use fivespot_schedule::{Override, OverrideMode};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::condition::Found;

/// How long after its end an override is deleted.
const ENDED_OVERRIDE_TTL: SignedDuration = SignedDuration::from_hours(1);

/// Whether an override makes machines run for longer than `most`, from its creation or its start on.
pub fn is_longer(of: &Override, most: SignedDuration) -> bool {
    let begins = of.start.max(of.created);
    of.mode == OverrideMode::Run
        && begins.is_some_and(|begins| of.end.duration_since(begins) > most)
}

/// The ScheduledMachines that an override applies to. They are not counted for one beyond the
/// limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// How many there are.
    pub machines: usize,
    /// Names of those whose schedule is disabled or invalid: an override has no effect on them.
    pub ignoring: Vec<String>,
    /// The classes of them that have a limit for overrides of mode Run.
    pub limiting: Vec<LimitingClass>,
    /// Whether the override exceeds the number that is considered in one namespace.
    pub is_beyond_limit: bool,
}

/// A class with a limit for overrides of mode Run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitingClass {
    /// Its name.
    pub name: String,
    /// The longest override that has an effect on its machines.
    pub max_override: SignedDuration,
}

/// What to do about a ScheduleOverride.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverridePlan {
    /// The new status; `None` if it is unchanged.
    pub status: Option<ScheduleOverrideStatus>,
    /// Whether it is deleted, guarded by its uid and resourceVersion.
    pub is_deleted: bool,
    /// When to requeue; `None` if the status does not change as time passes.
    pub requeue_at: Option<Timestamp>,
}

/// Decides what to do about `object`.
///
/// # Guarantees
/// Total and deterministic. An override is deleted no sooner than an hour after its end, and
/// never while it has the annotation that keeps it.
pub fn plan_override(
    object: &ScheduleOverride,
    matched: &Matched,
    now: Timestamp,
) -> OverridePlan {
    if object.metadata.deletion_timestamp.is_some() {
        return OverridePlan::default();
    }
    let before = object.status.clone().unwrap_or_default();
    let Some(override_) = object.in_schedule() else {
        let invalid = "spec.endTime or spec.startTime cannot be parsed, or the end is not after \
                       the start";
        let found = [
            Found::new("Active", false, "Invalid", invalid),
            Found::new(IGNORED, true, "Invalid", invalid),
        ];
        let after = status(object, &before, found, now);
        return planned(object, &before, after, matched);
    };
    let (start, end) = (override_.start, override_.end);
    let deletion = after(end, ENDED_OVERRIDE_TTL);
    if deletion <= now && !object.is_kept() {
        return OverridePlan {
            is_deleted: true,
            ..OverridePlan::default()
        };
    }
    let kept = (!object.is_kept()).then_some(deletion);
    if matched.is_beyond_limit {
        // One status for its whole life and no Event, so that however many there are cost little.
        let found = [beyond_limit("Active", false), beyond_limit(IGNORED, true)];
        let mut after = status(object, &before, found, now);
        after.matched_machines = None;
        return OverridePlan {
            status: (after != before).then_some(after),
            is_deleted: false,
            requeue_at: kept,
        };
    }
    let [active, expired] = in_force(&override_, now);
    let target = target_found(object, matched);
    let found = [active, expired, target, ignored(&override_, matched)];
    let after = status(object, &before, found, now);
    let mut plan = planned(object, &before, after, matched);
    let edges = start.into_iter().chain([end]).chain(kept);
    plan.requeue_at = edges.filter(|due| *due > now).min();
    plan
}

/// Whether the override is in force and whether it has ended, as conditions.
fn in_force(override_: &Override, now: Timestamp) -> [Found; 2] {
    let (start, until) = (override_.start, override_.end);
    let is_over = until <= now;
    let has_begun = start.is_none_or(|start| start <= now);
    let (reason, message) = match (has_begun, is_over) {
        (_, true) => ("Expired", format!("it ended at {until}")),
        (true, false) => ("InForce", format!("it is in force until {until}")),
        (false, false) => ("Pending", format!("it begins at {}", start.unwrap_or(now))),
    };
    let active = Found::new("Active", has_begun && !is_over, reason, message);
    let (reason, message) = if is_over {
        ("Expired", format!("it ended at {until}"))
    } else {
        ("NotExpired", format!("it ends at {until}"))
    };
    [active, Found::new("Expired", is_over, reason, message)]
}

fn target_found(object: &ScheduleOverride, matched: &Matched) -> Found {
    let is_found = matched.machines > 0;
    let reason = if is_found { "Found" } else { "NotFound" };
    let message = match (matched.machines, object.capacity()) {
        (0, Some(name)) => format!("there is no ScheduledCapacity {name}"),
        (_, Some(name)) => format!("it matches ScheduledCapacity {name}"),
        (0, None) => "no ScheduledMachine matches it".to_owned(),
        (1, None) => "it matches 1 machine".to_owned(),
        (many, None) => format!("it matches {many} machines"),
    };
    Found::new("TargetFound", is_found, reason, message)
}

/// How many names a message lists at most.
const NAMED: usize = 5;

/// The reason why an override is ignored that is longer than the class of machines allows.
const TOO_LONG: &str = "LongerThanClassAllows";

/// The reason why an override beyond the limit is ignored.
const TOO_MANY: &str = "TooMany";

/// The message of that reason.
fn too_many() -> String {
    format!(
        "at most {} overrides of a namespace are considered: those of mode Stop first, then Hold, \
         then Run, and the older ones first; delete those that are not needed",
        fivespot_api::schedule_override::MAX_OVERRIDES,
    )
}

/// A condition of an override beyond the limit.
fn beyond_limit(kind: &'static str, holds: bool) -> Found {
    Found::new(kind, holds, TOO_MANY, too_many())
}

fn ignored(override_: &Override, matched: &Matched) -> Found {
    let mut limiting = matched.limiting.iter();
    if let Some(class) = limiting.find(|of| is_longer(override_, of.max_override)) {
        let LimitingClass { name, max_override } = class;
        let message = format!(
            "it is longer than ScheduledMachineClass {} allows, {} minutes, and does not apply to \
             the machines of that class; create one that ends earlier",
            one_line(name),
            max_override.as_mins(),
        );
        return Found::new(IGNORED, true, TOO_LONG, message);
    }
    if matched.ignoring.is_empty() {
        let message = "it applies to every machine that it matches";
        return Found::new(IGNORED, false, "Considered", message);
    }
    let names: Vec<_> = matched.ignoring.iter().take(NAMED).cloned().collect();
    let message = format!(
        "overrides do not apply to a disabled or invalid schedule: {}",
        names.join(", ")
    );
    Found::new(IGNORED, true, "ScheduleDisabled", message)
}

fn planned(
    object: &ScheduleOverride,
    before: &ScheduleOverrideStatus,
    mut after: ScheduleOverrideStatus,
    matched: &Matched,
) -> OverridePlan {
    after.matched_machines = i32::try_from(matched.machines).ok();
    let is_new = object.status.is_none() || after != *before;
    OverridePlan {
        status: is_new.then_some(after),
        ..OverridePlan::default()
    }
}

fn status(
    object: &ScheduleOverride,
    before: &ScheduleOverrideStatus,
    found: impl IntoIterator<Item = Found>,
    now: Timestamp,
) -> ScheduleOverrideStatus {
    let generation = object.metadata.generation;
    let conditions = found.into_iter();
    let conditions = conditions.map(|of| of.after(&before.conditions, generation, now));
    ScheduleOverrideStatus {
        observed_generation: generation,
        matched_machines: before.matched_machines,
        conditions: conditions.collect(),
    }
}
