//! `5spot validate`: validates manifests as an API server would, offline, with the CRDs, policies,
//! rules and lints of 5-Spot.

mod shared;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use fivespot_api::lint::{self, LINTS, LintWarning};
use fivespot_api::rules::{self, Rule};
use fivespot_api::vap::{self, Action};
use fivespot_api::{
    ScheduleCalendar, ScheduledMachine, ScheduledMachineSet, SharedSchedule, manifest,
    name, older,
};
use jiff::Timestamp;
use kubemu::validate::{Description, Extension, Level, Lint, Program};
use kubemu_admission::KubeVersion;
use kubemu_clock::Clock;
use serde::Deserialize as _;
use serde_json::Value;

use crate::document::Document;
use crate::{Failure, Outcome};
use shared::{scheduled_capacity, scheduled_machine};

/// The examples of the command's help.
const EXAMPLES: &str = "\
Examples:
  5spot validate -f machine.yaml
  5spot validate -f manifests/ -o json
  5spot validate -f new.yaml --old stored.yaml
  5spot validate -f machines/ --explain --lint error -o sarif
  5spot validate -f machines/ --policy policies/ --type-check
  5spot validate --no-builtin --crd crd.yaml --policy policies/ -f -";

/// Arguments of `5spot validate`.
#[derive(Debug, clap::Args)]
#[command(
    about = "Validate manifests as an API server would, offline",
    long_about = None,
    after_help = EXAMPLES
)]
pub(crate) struct Args {
    #[command(flatten)]
    manifests: kubemu::validate::Args,
    /// Do not use the built-in CRD and policy of ScheduledMachine
    #[arg(long, display_order = 0)]
    no_builtin: bool,
    /// Severity of lint warnings about legal but suspicious settings. An unknown time zone and a cron
    /// expression that never fires are errors unless it is off
    #[arg(long, value_enum, default_value_t, display_order = 13)]
    lint: LintLevel,
}

/// The severity of lint warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LintLevel {
    /// No lint warnings
    Off,
    /// Print them
    #[default]
    Warn,
    /// Print them, and exit with 1 if there are any
    Error,
}

/// What 5-Spot adds to the validation of manifests.
struct FiveSpot {
    has_builtin: bool,
    lint: LintLevel,
    now: Timestamp,
    /// Lint warnings by the fields that they depend on, because many machines share a schedule.
    known_lints: Mutex<HashMap<String, Vec<LintWarning>>>,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let now = Clock::system().now();
    kubemu::validate::run(&args.manifests, &FiveSpot::new(&args, now), out)
}

impl FiveSpot {
    fn new(args: &Args, now: Timestamp) -> Self {
        Self {
            has_builtin: !args.no_builtin,
            lint: args.lint,
            now,
            known_lints: Mutex::default(),
        }
    }

    fn lint(&self, found: LintWarning) -> Lint {
        let is_error = found.is_error || self.lint == LintLevel::Error;
        Lint {
            code: found.lint.code,
            field: found.field,
            message: found.message,
            remedy: found.lint.remedy,
            level: if is_error {
                Level::Error
            } else {
                Level::Warning
            },
        }
    }

    /// The lint warnings for an object, if it is a ScheduledMachine, a set of them, a
    /// ScheduledCapacity, a ScheduleCalendar or a schedule that objects share.
    fn warnings(&self, object: &Value) -> Vec<LintWarning> {
        if object["kind"] == name::CALENDAR_KIND {
            let calendar = ScheduleCalendar::deserialize(object);
            return calendar.map_or(Vec::new(), |it| lint::of_calendar(&it, self.now));
        }
        if let Some(capacity) = scheduled_capacity(object) {
            return lint::of_capacity(&capacity, self.now);
        }
        if let Some(shared) = SharedSchedule::of_object(object) {
            return shared.map_or(Vec::new(), |it| lint::of_shared(it.spec(), self.now));
        }
        if object["kind"] == name::SET_KIND {
            return self.warnings_of_set(object);
        }
        let Some(machine) = scheduled_machine(object) else {
            return Vec::new();
        };
        let mut lints = self.schedule_warnings(object, &machine);
        lints.extend(lint::of_providers(&machine));
        lints
    }

    /// Those about the schedule of the machines of a set.
    fn warnings_of_set(&self, object: &Value) -> Vec<LintWarning> {
        let Ok(set) = ScheduledMachineSet::deserialize(object) else {
            return Vec::new();
        };
        let machine = fivespot_plan::set::machine(&set, 0);
        let Some(typed) = scheduled_machine(&machine) else {
            return Vec::new();
        };
        let mut lints = self.schedule_warnings(&machine, &typed);
        for lint in &mut lints {
            lint.field = lint.field.replacen("spec", "spec.template.spec", 1);
        }
        lints
    }

    /// The lint warnings about its schedule.
    fn schedule_warnings(
        &self,
        object: &Value,
        machine: &ScheduledMachine,
    ) -> Vec<LintWarning> {
        // The fields that these lints depend on.
        let cache_key = [
            "schedule",
            "gracefulShutdownTimeout",
            "nodeDrainTimeout",
            "killIfCommands",
            "provisioning",
            "shutdown",
        ]
        .map(|field| object["spec"][field].to_string())
        .join("\n");
        let known = || {
            self.known_lints
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(lints) = known().get(&cache_key) {
            return lints.clone();
        }
        let lints = lint::of_schedule(machine, self.now);
        known().insert(cache_key, lints.clone());
        lints
    }
}

impl Extension for FiveSpot {
    fn program(&self) -> Program {
        Program {
            name: "5spot",
            version: env!("CARGO_PKG_VERSION"),
            repository: env!("CARGO_PKG_REPOSITORY"),
        }
    }

    fn definitions(&self, version: KubeVersion) -> Vec<Value> {
        if self.has_builtin {
            manifest::definitions(version.minor())
        } else {
            Vec::new()
        }
    }

    fn policies(&self, version: KubeVersion) -> Vec<Value> {
        // Before 1.30, ValidatingAdmissionPolicy is not enabled by default.
        if !self.has_builtin || !version.is_at_least(30) {
            return Vec::new();
        }
        let mut all = manifest::policies();
        all.extend(manifest::bindings(Action::Deny));
        // Who may use a class is not asked: a file has no user.
        all.extend(vap::class::only());
        all
    }

    fn to_current_group(&self, object: &mut Value) {
        older::to_current_group(object);
    }

    fn lints(&self, object: &Value) -> Vec<Lint> {
        if self.lint == LintLevel::Off {
            return Vec::new();
        }
        let found = self.warnings(object).into_iter();
        found.map(|it| self.lint(it)).collect()
    }

    fn lints_of_all(
        &self,
        documents: &[Document],
        namespace: &str,
    ) -> Vec<(usize, Lint)> {
        if self.lint == LintLevel::Off {
            return Vec::new();
        }
        let found = shared::warnings(documents, namespace).into_iter();
        found.map(|(at, it)| (at, self.lint(it))).collect()
    }

    fn rule(&self, field: &str, message: &str) -> Option<&'static str> {
        // In a policy, the message contains the field.
        let matches = |rule: &&'static Rule| {
            message.ends_with(rule.requirement.message)
                && (field.starts_with(rule.field())
                    || message.ends_with(&rule.full_message()))
        };
        rules::all().find(matches).map(|rule| rule.id)
    }

    fn description(&self, id: &str) -> Option<Description> {
        let rule = Rule::find(id).map(|rule| (rule.requirement.message, rule.why));
        let lint = LINTS.iter().find(|lint| lint.code == id);
        let known = rule.or(lint.map(|lint| (lint.name, lint.why)));
        known.map(|(short, full)| Description { short, full })
    }
}
