//! The sequence of upgrades and downgrades.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use kubemu_golang::process;
use serde_json::{Value, json};

use super::machine::{CASES, MachineState, NAMESPACE, NEW_MACHINE, add_cluster};
use super::operator::Operator;
use super::program::{Programs, Version};
use super::server::Server;
use Version::{Newer, Older};

/// A pair of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// The version of the definitions, policies and roles.
    manifests: Version,
    operator: Version,
}

const fn pair(manifests: Version, operator: Version) -> Pair {
    Pair {
        manifests,
        operator,
    }
}

/// Every change of one of the two versions, in both directions.
const STEPS: [Pair; 9] = [
    pair(Older, Older),
    // As documented: manifests first, then the operator; and back the same way.
    pair(Newer, Older),
    pair(Newer, Newer),
    pair(Newer, Older),
    pair(Older, Older),
    // In the wrong order, and back.
    pair(Older, Newer),
    pair(Newer, Newer),
    pair(Older, Newer),
    pair(Older, Older),
];

/// The observations after one step.
pub(super) struct Step {
    /// The versions that run, as fields of the result.
    runs: Value,
    /// Whether a new machine is allowed to wait.
    may_wait: bool,
    /// A verdict for each of [`CASES`].
    machines: Vec<String>,
    new_machine: String,
}

impl Step {
    /// Compares every machine with its state at the beginning, and tries a new one.
    ///
    /// # Errors
    /// The server cannot be queried.
    pub(super) fn observe(
        server: &Server,
        before: &[MachineState],
        (runs, may_wait): (Value, bool),
    ) -> Result<Self, Box<dyn Error>> {
        let now = observe(server)?;
        let machines = before.iter().zip(&now).map(|(it, now)| verdict(it, now));
        Ok(Self {
            runs,
            may_wait,
            machines: machines.collect(),
            new_machine: try_new_machine(server)?,
        })
    }
}

/// The observations of the whole sequence.
#[derive(Default)]
pub(super) struct Results {
    pub(super) steps: Vec<Step>,
    /// The phase of each of [`CASES`] at the end, or an error.
    ends: Vec<String>,
}

/// The verdict about an unchanged machine.
const UNCHANGED: &str = "kept";

/// The verdict about a machine that was opened and removed.
const SERVED: &str = "opened and removed";

impl Results {
    /// The results as JSON, for the table.
    pub(super) fn result(&self) -> Value {
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let mut result = step.runs.clone();
                result["machines"] = json!(step.machines);
                result["newMachine"] = json!(step.new_machine);
                result
            })
            .collect();
        let cases: Vec<Value> = CASES
            .iter()
            .map(|case| json!({"name": case.name, "phase": case.phase}))
            .collect();
        json!({"cases": cases, "steps": steps, "ends": self.ends})
    }

    /// Changes every machine, waits for the expected phase, and removes the machine.
    ///
    /// # Errors
    /// A machine remains.
    pub(super) fn finish(&mut self, server: &Server) -> Result<(), Box<dyn Error>> {
        for case in &CASES {
            let end = case.finish(server).map(|()| case.end.to_owned());
            self.ends.push(end.unwrap_or_else(|why| why.to_string()));
        }
        for case in &CASES {
            case.remove(server)?;
        }
        Ok(())
    }

    /// The verdicts that differ from the expected ones.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for step in &self.steps {
            let names = CASES.iter().map(|case| case.name);
            for (name, verdict) in names.zip(&step.machines) {
                if verdict != UNCHANGED {
                    faults.push(format!("{}: {name}: {verdict}", step.runs));
                }
            }
            let waits = step
                .new_machine
                .contains("CustomResourceDefinitionOutdated");
            if step.new_machine != SERVED && !(step.may_wait && waits) {
                faults.push(format!("{}: new machine: {}", step.runs, step.new_machine));
            }
        }
        for (case, end) in CASES.iter().zip(&self.ends) {
            if end != case.end {
                faults.push(format!("at the end: {}: {end}", case.name));
            }
        }
        faults
    }
}

/// Runs the sequence, and cleans up before and after it.
///
/// # Errors
/// The server cannot be queried or changed; a machine that was not kept is in the result.
pub(super) fn run(
    programs: &Programs,
    server: &Server,
    folder: &Path,
) -> Result<Results, Box<dyn Error>> {
    clear(server)?;
    let mut results = Results::default();
    let mut operator = None;
    let mut before = Vec::new();
    let mut standing = None;
    for pair in STEPS {
        eprintln!(
            "manifests {}, operator {}",
            pair.manifests.name(),
            pair.operator.name()
        );
        let is_other = |of: fn(Pair) -> Version| standing.map(of) != Some(of(pair));
        if is_other(|it| it.manifests) {
            install(programs.path(pair.manifests), server)?;
        }
        if is_other(|it| it.operator) {
            // When this returns, the previous operator has released its Lease.
            drop(operator.take());
            operator = Some(Operator::start(programs, pair.operator, server, folder)?);
        }
        let running = operator.as_ref().ok_or("no operator runs")?;
        if before.is_empty() {
            begin(server)?;
            running.settle()?;
            before = observe(server)?;
        }
        running.settle()?;
        let runs = json!({
            "manifests": pair.manifests.name(),
            "operator": pair.operator.name(),
        });
        // An operator creates no machine under older definitions, which would drop fields.
        let may_wait = pair == self::pair(Older, Newer);
        results
            .steps
            .push(Step::observe(server, &before, (runs, may_wait))?);
        standing = Some(pair);
    }
    install(programs.path(Newer), server)?;
    drop(operator.take());
    let running = Operator::start(programs, Newer, server, folder)?;
    results.finish(server)?;
    drop(running);
    clear(server)?;
    Ok(results)
}

/// Brings every machine to its phase.
///
/// # Errors
/// A machine does not reach its phase.
pub(super) fn begin(server: &Server) -> Result<(), Box<dyn Error>> {
    add_cluster(server)?;
    for case in &CASES {
        case.create(server)?;
    }
    for case in &CASES {
        case.bring(server)?;
    }
    Ok(())
}

/// Returns the current state of every machine.
///
/// # Errors
/// The server does not respond.
pub(super) fn observe(server: &Server) -> Result<Vec<MachineState>, Box<dyn Error>> {
    CASES.iter().map(|case| case.observe(server)).collect()
}

/// The change of a machine since the beginning.
fn verdict(before: &MachineState, now: &MachineState) -> String {
    if before.machine != now.machine || before.is_deleting != now.is_deleting {
        return "another Machine".to_owned();
    }
    if before.phase != now.phase {
        return format!("{}, {}", now.phase, now.reason);
    }
    if before.shutdown != now.shutdown {
        return format!("another shutdown: {}", now.shutdown);
    }
    UNCHANGED.to_owned()
}

/// The verdict about the new machine: opened and removed, or the reason why not.
fn try_new_machine(server: &Server) -> Result<String, Box<dyn Error>> {
    NEW_MACHINE.create(server)?;
    let opened = super::operator::until("the new machine is Active, or refused", || {
        let seen = NEW_MACHINE.observe(server)?;
        Ok(seen.phase == "Active" || seen.reason == "CustomResourceDefinitionOutdated")
    });
    let seen = NEW_MACHINE.observe(server)?;
    NEW_MACHINE.remove(server)?;
    if seen.phase == "Active" {
        return Ok(SERVED.to_owned());
    }
    match opened {
        Ok(()) => Ok(format!("waits: {}", seen.reason)),
        Err(_) => Ok(format!("{}: {}", seen.phase, seen.reason)),
    }
}

/// Applies the manifests of a version, as a user does.
///
/// # Errors
/// The server rejects them.
pub(super) fn install(program: &Path, server: &Server) -> Result<(), Box<dyn Error>> {
    let manifests = process::output(
        Command::new(program)
            .args(["generate", "manifests"])
            .args(["--image", "registry.example/5spot:0"])
            .args(["--provider", "k0smotron", "--kubeconfig"])
            .arg(format!("{NAMESPACE}/production,{NAMESPACE}/late")),
    )?;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
    });
    for api in [&server.management, &server.workload] {
        api.apply(&namespace.to_string())?;
    }
    server.management.apply(&manifests)?;
    let words = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd/scheduledmachines.5spot.finos.org",
        "crd/scheduleoverrides.5spot.finos.org",
    ];
    server.management.kubectl(&words).map(drop)
}

/// Removes the objects of an earlier run, and the definitions that a development server has from
/// the start.
fn clear(server: &Server) -> Result<(), Box<dyn Error>> {
    let words = ["delete", "--ignore-not-found", "--timeout=120s"];
    let found = server.management.kubectl(&["get", "crd", "-o", "name"])?;
    let ours: Vec<&str> = found
        .lines()
        .filter(|name| name.ends_with(".5spot.finos.org"))
        .collect();
    for object in left(server).lines() {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        let words = [
            "patch",
            object,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            patch,
        ];
        server.management.kubectl(&words)?;
    }
    if !ours.is_empty() {
        server.management.kubectl(&[&words[..], &ours].concat())?;
    }
    for api in [&server.management, &server.workload] {
        api.kubectl(&[&words[..], &["namespace", NAMESPACE]].concat())?;
    }
    Ok(())
}

/// The names of the ScheduledMachines of a failed run; empty if the kind is not served.
fn left(server: &Server) -> String {
    let words = ["get", "sm", "-n", NAMESPACE, "-o", "name"];
    server.management.kubectl(&words).unwrap_or_default()
}
