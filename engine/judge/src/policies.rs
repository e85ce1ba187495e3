//! `cargo judge policies`: `kubemu test` on policies that others publish, and its cases on a real API
//! server.
//!
//! The policies are read from where they are published: Go modules, and checkouts of repositories. Only
//! the cases are ours, in `judge/policies/cases`.
//!
//! - [`source`]: where a policy is, and how it is read;
//! - `replay`: the cases on a real API server.

mod replay;
mod source;

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Faults, client, target, wait};
use source::Source;

/// Written by `cargo judge policies --record`.
const RESULTS: &str = "judge/policies/results.json";

/// How long changes are tried, and cases searched for, from the first cases of a policy.
const SECONDS: &str = "20";

/// What is to be run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    is_real: bool,
    is_recorded: bool,
    /// The policy to test; all if there is none.
    only: Option<String>,
    /// The folder with the checkouts of repositories.
    repositories: Option<PathBuf>,
}

impl Plan {
    /// Reads the flags; `None` for anything else.
    fn read(words: &[&str]) -> Option<Self> {
        let mut plan = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--real" => plan.is_real = true,
                "--record" => plan.is_recorded = true,
                "--only" => plan.only = Some((*words.next()?).to_owned()),
                "--repositories" => plan.repositories = Some(words.next()?.into()),
                _ => return None,
            }
        }
        Some(plan)
    }
}

/// What was measured with the cases of a policy.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// The module or the repository, with its version.
    pub(crate) source: String,
    pub(crate) cases: usize,
    /// How many results the policy's expressions have, and how many the cases reach.
    pub(crate) results: u64,
    pub(crate) reached: u64,
    /// How many changes of the policy were tried, and how many the cases detect.
    pub(crate) changes: u64,
    pub(crate) detected: u64,
    /// How many cases `--write-missing` wrote from the first case of each document, and how many
    /// changes are detected with them.
    pub(crate) written: usize,
    pub(crate) detected_by_written: u64,
    /// How many of all cases kube-apiserver answered, and how many with the same verdict and message.
    pub(crate) replayed: usize,
    pub(crate) equal: usize,
}

/// What is recorded, by the names of the policies.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn recorded(
    root: &Path,
) -> Result<BTreeMap<String, Measured>, Box<dyn Error>> {
    Ok(serde_json::from_str(&fs::read_to_string(
        root.join(RESULTS),
    )?)?)
}

/// Tests each policy, prints what was measured, and returns the cases that fail or that the real server
/// answers differently.
///
/// # Errors
/// A policy cannot be read, a program is missing, or a file cannot be written.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let plan = Plan::read(words).ok_or(
        "usage: cargo judge policies [--real] [--record] [--only NAME] [--repositories DIR]",
    )?;
    let mut faults = Faults::new();
    let mut results = recorded(root).unwrap_or_default();
    let sources = source::all(root)?;
    results.retain(|name, _| sources.iter().any(|it| it.name == *name));
    for source in sources {
        if plan.only.as_ref().is_some_and(|it| *it != source.name) {
            continue;
        }
        let folder = target().join("policies").join(&source.name);
        if !source.fetch(root, &folder, plan.repositories.as_deref())? {
            println!(
                "{}: not run; give a folder with a checkout of {} to --repositories",
                source.name,
                source.origin()
            );
            continue;
        }
        let report = test(&folder)?;
        let mut measured = measure(&source, &report, &mut faults);
        let (other, first) = write_cases(&folder)?;
        let written = test(&other)?;
        let with_written = measure(&source, &written, &mut faults);
        measured.written = with_written.cases - first;
        measured.detected_by_written = with_written.detected;
        if plan.is_real {
            let asked = async {
                let replay = replay::Replay::new(client().await?);
                let mut differences = replay.run(&folder, &report["cases"]).await?;
                differences.extend(replay.run(&other, &written["cases"]).await?);
                Ok(differences)
            };
            let differences = wait(asked)?;
            measured.replayed = measured.cases + with_written.cases;
            measured.equal = measured.replayed - differences.len();
            let named = differences
                .iter()
                .map(|it| format!("{}: {it}", source.name));
            faults.extend(named);
        }
        println!("{}", line(&source, &measured, plan.is_real));
        results.insert(source.name.clone(), measured);
    }
    if plan.is_recorded {
        let text = serde_json::to_string_pretty(&results)?;
        fs::write(root.join(RESULTS), format!("{text}\n"))?;
        println!("`cargo judge gen` writes the results to the documentation");
    }
    Ok(faults)
}

fn line(source: &Source, measured: &Measured, is_real: bool) -> String {
    let Measured {
        cases,
        results,
        reached,
        changes,
        detected,
        written,
        detected_by_written,
        replayed,
        equal,
        ..
    } = measured;
    let mut line = format!(
        "{:<32} {cases} cases, {reached} of {results} results, {detected} of {changes} changes, \
         {detected_by_written} with {written} written cases",
        source.name
    );
    if is_real {
        line = format!("{line}, {equal} of {replayed} equal on kube-apiserver");
    }
    line
}

/// Runs `kubemu test` on a folder, and returns its report.
fn test(folder: &Path) -> Result<Value, Box<dyn Error>> {
    let output = kubemu()?
        .args(["test", "--coverage", "--mutants", "-o", "json", "--rules"])
        .arg(folder.join(source::POLICY))
        .arg(folder)
        .stderr(Stdio::inherit())
        .output()?;
    Ok(serde_json::from_slice(&output.stdout).map_err(|error| {
        format!(
            "{}: `kubemu test` printed no report: {error}",
            folder.display()
        )
    })?)
}

/// Lets `kubemu test` write cases from the first case of each document alone. Returns the folder with
/// these and the written ones, and how many of the first there are.
fn write_cases(folder: &Path) -> Result<(PathBuf, usize), Box<dyn Error>> {
    let other = folder.with_extension("written");
    if other.exists() {
        fs::remove_dir_all(&other)?;
    }
    fs::create_dir_all(&other)?;
    let mut first = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let mut text = fs::read_to_string(&path)?;
        if name == source::CASES {
            let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
            text.clear();
            for document in &mut documents {
                if let Some(cases) = document["cases"].as_array_mut() {
                    cases.truncate(1);
                    first += cases.len();
                }
                // JSON is YAML.
                let _ = writeln!(text, "---\n{document}");
            }
        }
        fs::write(other.join(name), text)?;
    }
    let output = kubemu()?
        .args(["test", "--mutants", "--mutant-seconds", SECONDS, "--rules"])
        .arg(other.join(source::POLICY))
        .arg("--write-missing")
        .arg(other.join("written.yaml"))
        .arg(&other)
        .stderr(Stdio::inherit())
        .output()?;
    if output.status.success() {
        Ok((other, first))
    } else {
        Err(format!("{}: no cases were written", other.display()).into())
    }
}

/// The program, beside this one.
fn kubemu() -> Result<Command, Box<dyn Error>> {
    Ok(Command::new(env::current_exe()?.with_file_name("kubemu")))
}

/// The numbers of a report. Cases that fail are faults.
fn measure(source: &Source, report: &Value, faults: &mut Faults) -> Measured {
    let cases = report["cases"].as_array().map_or(&[][..], Vec::as_slice);
    for case in cases.iter().filter(|it| it["passed"] != true) {
        faults.push(format!(
            "{}: {}: expected {}, got {}",
            source.name, case["name"], case["expected"], case["got"]
        ));
    }
    let number = |pointer| {
        let found: Option<&Value> = report.pointer(pointer);
        found.and_then(Value::as_u64).unwrap_or_default()
    };
    let survivors = report
        .pointer("/mutants/survivors")
        .and_then(Value::as_array);
    let detected = number("/mutants/detected");
    Measured {
        source: source.origin(),
        cases: cases.len(),
        results: number("/coverage/results"),
        reached: number("/coverage/reached"),
        changes: detected + survivors.map_or(0, |it| it.len() as u64),
        detected,
        ..Measured::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_read_from_its_flags() {
        let plan = Plan::read(&["--real", "--only", "a", "--repositories", "b"]);
        let plan = plan.expect("a plan");
        assert!(plan.is_real && !plan.is_recorded);
        assert_eq!(plan.only.as_deref(), Some("a"));
        assert_eq!(plan.repositories.as_deref(), Some(Path::new("b")));
        assert_eq!(Plan::read(&["--only"]), None);
    }

    #[test]
    fn a_case_that_fails_is_a_fault_and_what_survives_is_a_change() {
        let report = json!({
            "cases": [{"name": "a", "passed": true}, {"name": "b", "passed": false}],
            "coverage": {"results": 4, "reached": 3},
            "mutants": {"detected": 5, "survivors": [{}]},
        });
        let mut faults = Faults::new();
        let measured = measure(&Source::default(), &report, &mut faults);
        assert_eq!(faults.len(), 1);
        assert_eq!((measured.cases, measured.reached), (2, 3));
        assert_eq!((measured.changes, measured.detected), (6, 5));
    }
}
