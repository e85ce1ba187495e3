//! `kubemu diff`: differences that are put into definitions and policies are found, and none is
//! invented.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod pages;
mod policies;
mod seeds;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use kubemu::diff;
use kubemu::validate::{Extension, Program};
use kubemu_terminal::{Failure, Outcome};
use serde_json::Value;

// Without words of its own, the command has those of its arguments.
#[derive(Parser)]
#[command(name = "kubemu diff")]
struct Cli {
    #[command(flatten)]
    args: diff::Args,
}

struct Kubernetes;

impl Extension for Kubernetes {
    fn program(&self) -> Program {
        Program {
            name: "kubemu",
            version: "0",
            repository: "",
        }
    }
}

/// Files that are removed when dropped.
struct Files(PathBuf);

impl Files {
    fn of(contents: &[(&str, String)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kubemu-diff-{}-{number}", std::process::id());
        let files = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&files.0).unwrap();
        for (name, text) in contents {
            fs::write(files.0.join(name), text).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the command with the old and the new file, and further arguments.
fn run(old: String, new: String, further: &[&str]) -> (Result<Outcome, Failure>, String) {
    let files = Files::of(&[("old.yaml", old), ("new.yaml", new)]);
    let paths = [files.path("old.yaml"), files.path("new.yaml")];
    let words = ["diff", &paths[0], &paths[1]].into_iter();
    let cli = Cli::try_parse_from(words.chain(further.iter().copied())).unwrap();
    let mut out = Vec::new();
    let outcome = diff::run(&cli.args, &Kubernetes, &mut out);
    let text = String::from_utf8(out).unwrap();
    (
        outcome,
        text.replace(&files.0.display().to_string(), "files"),
    )
}

/// The report in JSON.
fn report(old: &str, new: &str, further: &[&str]) -> Value {
    let further: Vec<&str> = further.iter().copied().chain(["-o", "json"]).collect();
    let (outcome, text) = run(old.to_owned(), new.to_owned(), &further);
    let outcome = outcome.unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let is_found = report["found"] != 0;
    assert_eq!(outcome == Outcome::No, is_found, "{report:#}");
    report
}

/// The words of all differences that are found.
fn differences(report: &Value) -> Vec<&str> {
    let items = report["items"].as_array().unwrap().iter();
    let lists = items.filter_map(|it| it["differences"].as_array());
    let words = lists.flatten().map(|it| it["difference"].as_str().unwrap());
    words.collect()
}

fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/diff/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let document = kubemu::document::parse(name, &text).unwrap().remove(0);
    document.object
}

/// A definition with the parts in another order, and other words.
fn reworded(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let reversed = fields.iter().rev();
            let mut all: serde_json::Map<String, Value> = reversed
                .map(|(name, value)| (name.clone(), reworded(value)))
                .collect();
            if all.contains_key("description") {
                all.insert("description".to_owned(), "Other words.".into());
            }
            if all.contains_key("rule") {
                all.insert("message".to_owned(), "other words".into());
            }
            Value::Object(all)
        }
        Value::Array(items) => items.iter().map(reworded).collect(),
        other => other.clone(),
    }
}

const FIXTURES: [&str; 4] = [
    "certificates",
    "routes",
    "fleets",
    "../../../admission/tests/sample/definition",
];

#[test]
fn other_words_and_another_order_are_no_difference() {
    for name in FIXTURES {
        let old = fixture(name);
        let report = report(&old.to_string(), &reworded(&old).to_string(), &[]);
        assert_eq!(report["items"], serde_json::json!([]), "{name}: {report:#}");
    }
}

#[test]
fn an_expression_that_is_only_written_differently_is_searched_in_vain() {
    for name in ["certificates", "routes", "fleets"] {
        let old = fixture(name).to_string();
        let new = old.replace(" && ", "  &&  ").replace("!has(", "! has(");
        assert_ne!(old, new, "{name}");
        let report = report(&old, &new, &["--budget", "3000"]);
        assert_eq!(differences(&report), [""; 0], "{name}: {report:#}");
        assert!(
            report["items"][0]["requests"].as_u64() > Some(100),
            "{report:#}"
        );
    }
}

#[test]
fn reordered_and_absent_constraints_are_no_difference() {
    let old = fixture("certificates");
    let changes: [(&str, Value); 6] = [
        ("/spec/properties/isCA/nullable", false.into()),
        (
            "/spec/properties/issuerRef/properties/kind/enum",
            serde_json::json!(["ClusterIssuer", "Issuer"]),
        ),
        (
            "/spec/required",
            serde_json::json!(["issuerRef", "secretName"]),
        ),
        ("/spec/properties/commonName/minLength", 0.into()),
        ("/spec/properties/revisionHistoryLimit/multipleOf", 1.into()),
        (
            "/spec/properties/secretTemplate/properties/labels/x-kubernetes-map-type",
            "atomic".into(),
        ),
    ];
    for (pointer, value) in changes {
        let mut new = old.clone();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = format!("{schema}{parent}");
        new.pointer_mut(&parent).unwrap()[name] = value;
        let report = report(&old.to_string(), &new.to_string(), &["--budget", "2000"]);
        assert_eq!(differences(&report), [""; 0], "{pointer}: {report:#}");
    }
}

#[test]
fn what_is_served_where_is_a_difference() {
    let old = fixture("routes");
    let changes: [(&str, Value, &str); 5] = [
        ("/spec/versions/1/served", false.into(), "refused"),
        ("/spec/versions/1/name", "v1beta2".into(), "refused"),
        ("/spec/scope", "Cluster".into(), "stored"),
        ("/spec/names/kind", "Way".into(), "admitted"),
        (
            "/spec/versions/0/subresources",
            serde_json::json!({"status": {}}),
            "none",
        ),
    ];
    for (pointer, value, wanted) in changes {
        let mut new = old.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[name] = value;
        let report = report(&old.to_string(), &new.to_string(), &["--budget", "2000"]);
        let found = differences(&report);
        let is_right = match wanted {
            "none" => found.is_empty(),
            wanted => found.contains(&wanted),
        };
        assert!(is_right, "{pointer}: {report:#}");
    }
}
