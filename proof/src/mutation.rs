//! What `cargo mutants` makes of the operator's crates: mechanical changes, one at a time, of a
//! sample that is drawn evenly. Those that the crate's own tests do not detect are recorded, each
//! with the reason why it may live.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

/// A crate, and how many of its mutants are tried.
pub(crate) struct Sample {
    /// The folder below `crates`.
    pub(crate) name: &'static str,
    /// One of so many mutants, in their order in the source, is tried.
    every: usize,
}

/// So many that all take an hour and a half on two cores.
pub(crate) const SAMPLES: &[Sample] = &[
    sample("capi", 1),
    sample("usage", 1),
    sample("schedule", 8),
    sample("plan", 60),
    sample("runtime", 60),
    sample("controller", 80),
];

const fn sample(name: &'static str, every: usize) -> Sample {
    Sample { name, every }
}

/// Where results are recorded, relative to this crate.
const STORED: &str = "results/mutation.json";

impl Sample {
    /// Tries the sample, and waits for the end.
    ///
    /// # Errors
    /// `cargo mutants` is not installed, or the tests fail without a mutant.
    fn run(&self, root: &Path) -> io::Result<()> {
        let mut command = self.command(root);
        command.args(["--jobs=1", "--output"]);
        command.arg(self.output(root));
        let shard = format!("--shard=0/{}", self.every);
        command.args([&shard, "--sharding=round-robin"]);
        fs::create_dir_all(self.output(root))?;
        // Missed mutants and timeouts have exit codes of their own.
        match command.status()?.code() {
            Some(0 | 2 | 3) => Ok(()),
            code => Err(io::Error::other(format!("cargo mutants: {code:?}"))),
        }
    }

    /// How many mutants the crate has.
    fn count(&self, root: &Path) -> io::Result<usize> {
        let output = self.command(root).args(["--list", "--json"]).output()?;
        let all: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        Ok(all.len())
    }

    fn command(&self, root: &Path) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["mutants", "--package"]).current_dir(root);
        command.arg(format!("fivespot-{}", self.name));
        command
    }

    fn output(&self, root: &Path) -> PathBuf {
        root.join("target/mutation").join(self.name)
    }

    /// The outcomes of the last run, by the name of the mutant.
    fn outcomes(&self, root: &Path) -> io::Result<BTreeMap<String, String>> {
        let file = self.output(root).join("mutants.out/outcomes.json");
        let all: Value = serde_json::from_slice(&fs::read(file)?)?;
        Ok(outcomes(&all))
    }
}

/// Tries mutants of a crate and records the result; returns what is missed without a reason.
///
/// # Errors
/// `cargo mutants` fails, or a file cannot be read or written.
pub(crate) fn record(sample: &Sample) -> io::Result<Vec<String>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("..").canonicalize()?;
    let stored = here.join(STORED);
    sample.run(&root)?;
    let mut new = json!({"every": sample.every, "mutants": sample.count(&root)?});
    let old = &stored_results(&stored)?[sample.name];
    add_outcomes(&mut new, &sample.outcomes(&root)?, old);
    let unexplained = unexplained(&new);
    // Another crate may have been recorded meanwhile.
    let mut all = stored_results(&stored)?;
    all[sample.name] = new;
    // In the order of the table.
    let kept = SAMPLES.iter().filter_map(|sample| {
        let of = all.get(sample.name).filter(|of| of.is_object())?;
        Some((sample.name.to_owned(), of.clone()))
    });
    let all: Map<String, Value> = kept.collect();
    fs::write(&stored, format!("{:#}\n", Value::Object(all)))?;
    Ok(unexplained)
}

fn stored_results(file: &Path) -> io::Result<Value> {
    match fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(json!({})),
        Err(error) => Err(error),
    }
}

/// What `cargo mutants` has written, without its run of the tests without a mutant.
fn outcomes(written: &Value) -> BTreeMap<String, String> {
    let all = written["outcomes"].as_array().into_iter().flatten();
    let of = |outcome: &Value| {
        let name = outcome["scenario"]["Mutant"]["name"].as_str()?;
        Some((name.to_owned(), outcome["summary"].as_str()?.to_owned()))
    };
    all.filter_map(of).collect()
}

/// Adds the outcomes of a sample to its result, with the reasons of the last result.
fn add_outcomes(new: &mut Value, outcomes: &BTreeMap<String, String>, old: &Value) {
    let with = |summary| outcomes.iter().filter(move |(_, of)| *of == summary);
    let count = |summary| json!(with(summary).count());
    let explained = with("MissedMutant").map(|(name, _)| {
        let (at, mutation) = name.split_once(": ").unwrap_or((name, ""));
        let is_same = |known: &&Value| {
            file(text(known, "at")) == file(at) && known["mutation"] == mutation
        };
        let reason = missed(old)
            .find(is_same)
            .map(|known| known["reason"].clone());
        json!({"at": at, "mutation": mutation, "reason": reason})
    });
    let explained: Vec<Value> = explained.collect();
    new["tried"] = json!(outcomes.len());
    new["caught"] = count("CaughtMutant");
    new["unviable"] = count("Unviable");
    new["timeouts"] = count("Timeout");
    new["missed"] = json!(explained);
}

/// What a result misses.
fn missed(result: &Value) -> impl Iterator<Item = &Value> {
    result["missed"].as_array().into_iter().flatten()
}

/// What a result misses without a reason.
fn unexplained(result: &Value) -> Vec<String> {
    let all = missed(result).filter(|of| text(of, "reason").is_empty());
    all.map(name).collect()
}

/// The name that `cargo mutants` gives to a mutant.
fn name(of: &Value) -> String {
    format!("{}: {}", text(of, "at"), text(of, "mutation"))
}

/// The file of a place such as `crates/capi/src/line.rs:43:43`.
fn file(at: &str) -> &str {
    at.split(':').next().unwrap_or_default()
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS: &str = "crates/a/src/lib.rs:3:5: replace < with <= in one";
    const EQUAL: &str = "crates/a/src/lib.rs:4:5: replace == with != in one";
    const ABSENT: &str = "crates/a/src/lib.rs:9:1: replace one with ()";

    /// What `cargo mutants` writes after the mutants had these outcomes.
    fn run(mutants: &[(&str, &str)]) -> BTreeMap<String, String> {
        let of = |(name, summary): &(&str, &str)| json!({"scenario": {"Mutant": {"name": name}}, "summary": summary});
        let baseline = json!({"scenario": "Baseline", "summary": "Success"});
        let all = std::iter::once(baseline).chain(mutants.iter().map(of));
        outcomes(&json!({"outcomes": all.collect::<Vec<_>>()}))
    }

    fn result(mutants: &[(&str, &str)], old: &Value) -> Value {
        let mut new = json!({});
        add_outcomes(&mut new, &run(mutants), old);
        new
    }

    #[test]
    fn every_mutant_of_a_run_is_counted_once() {
        let outcomes = [
            (LESS, "MissedMutant"),
            (EQUAL, "CaughtMutant"),
            (ABSENT, "Timeout"),
        ];
        let result = result(&outcomes, &json!({}));
        assert_eq!(result["tried"], 3);
        assert_eq!(
            (&result["caught"], &result["timeouts"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(unexplained(&result), [LESS]);
    }

    #[test]
    fn a_reason_is_kept_where_the_lines_of_its_file_have_moved() {
        let mut old = result(&[(LESS, "MissedMutant")], &json!({}));
        old["missed"][0]["reason"] = json!("both are the same instant");
        let moved = LESS.replace(":3:", ":7:");
        let outcomes = [(&*moved, "MissedMutant"), (EQUAL, "MissedMutant")];
        let new = result(&outcomes, &old);
        assert_eq!(unexplained(&new), [EQUAL]);
        assert_eq!(new["missed"][1]["reason"], "both are the same instant");
    }

    #[test]
    fn every_mutant_that_is_recorded_as_missed_has_a_reason() {
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(STORED);
        let all = stored_results(&stored).unwrap();
        for sample in SAMPLES {
            assert!(
                all[sample.name]["tried"].as_u64() > Some(0),
                "{}",
                sample.name
            );
            assert_eq!(unexplained(&all[sample.name]), [""; 0]);
        }
    }
}
