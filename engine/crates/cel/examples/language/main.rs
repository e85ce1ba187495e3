//! Runs the cases of a directory of conformance data and prints the results.
//!
//! `cargo run -p kubemu-cel --example language -- DIR [--show] [--json]`, or with the directory
//! in `FIVESPOT_CONFORMANCE_DATA`. Reads `cel-spec.json` (the CEL specification's tests) and
//! `kubernetes-crd-rules.jsonl` (Kubernetes' table of validation rules with their costs).

mod excluded;
mod kubernetes;
mod schema;
mod spec;

use std::path::PathBuf;

/// The results of the cases of one kind.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
    /// Cases that Kubernetes' dialect does not cover, by reason.
    pub(crate) outside: std::collections::BTreeMap<String, usize>,
}

impl Counts {
    pub(crate) fn record(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failed.push(format!("{name}: {why}")),
        }
    }

    /// Prints the results as one line of JSON.
    fn print_json(&self, title: &str) {
        let all = self.passed + self.failed.len();
        let line = serde_json::json!({"suite": title, "cases": all, "passed": self.passed,
            "outside": self.outside});
        println!("{line}");
    }

    fn print(&self, title: &str, show: bool) {
        let all = self.passed + self.failed.len();
        println!("{title}: {}/{all}", self.passed);
        if show {
            for failed in &self.failed {
                println!("    {failed}");
            }
        }
        for (reason, count) in &self.outside {
            println!("    outside: {count} {reason}");
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let json = args.iter().any(|arg| arg == "--json");
    let show = args.iter().any(|arg| arg == "--show");
    let named = args
        .iter()
        .find(|arg| !arg.starts_with("--"))
        .map(PathBuf::from);
    let known = std::env::var_os("FIVESPOT_CONFORMANCE_DATA").map(PathBuf::from);
    let Some(data) = named.or(known) else {
        println!(
            "no conformance data; specify its directory, or set FIVESPOT_CONFORMANCE_DATA"
        );
        return Ok(());
    };
    if json {
        let text = std::fs::read_to_string(data.join("cel-spec.json"))?;
        for (file, counts) in spec::run(&text)? {
            counts.print_json(&file);
        }
        return Ok(());
    }
    let text = std::fs::read_to_string(data.join("kubernetes-crd-rules.jsonl"))?;
    let [verdicts, errors, costs] = kubernetes::run(&text)?;
    verdicts.print("kubernetes verdicts", show);
    errors.print("kubernetes error texts", show);
    costs.print("kubernetes costs", show);
    let text = std::fs::read_to_string(data.join("cel-spec.json"))?;
    for (file, counts) in spec::run(&text)? {
        counts.print(&format!("cel-spec {file}"), show);
    }
    Ok(())
}
