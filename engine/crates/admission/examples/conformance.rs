//! Measures the engine with Kubernetes' table of tests of validation rules.
//!
//! ```text
//! cargo run -p kubemu-admission --example conformance -- DIR
//! ```
//!
//! `DIR/kubernetes-crd-rules.jsonl` has one case per line: a structural schema with one rule,
//! an object, optionally its previous state, whether Kubernetes accepts it, a part of the error
//! if not, and the cost of the rule at run time (0 if it was not recorded). Prints the number
//! of cases that agree and each case that does not; exits with 1 if any verdict differs.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{ResourceRules, SchemaRoot};
use serde_json::Value;

const FILE: &str = "kubernetes-crd-rules.jsonl";

fn main() -> ExitCode {
    let Some(directory) = env::args().nth(1) else {
        eprintln!("error: no directory; specify the one that contains {FILE}");
        return ExitCode::from(2);
    };
    let path = format!("{directory}/{FILE}");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("error: reading {path}: {error}; specify its directory");
            return ExitCode::from(2);
        }
    };
    let mut counts = Counts::default();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(case) => counts.add(&case),
            Err(error) => eprintln!("error: a line is not JSON: {error}"),
        }
    }
    if env::args().any(|arg| arg == "--json") {
        counts.print_json();
    } else {
        counts.print();
    }
    ExitCode::from(u8::from(counts.verdicts != counts.cases))
}

#[derive(Default)]
struct Counts {
    cases: usize,
    verdicts: usize,
    refused: usize,
    texts: usize,
    recorded: usize,
    costs: usize,
    /// The number of verdicts that differ, by group.
    differing: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, case: &Value) {
        let text =
            |name: &str| case.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, rule, wanted) = (text("name"), text("rule"), text("errorContains"));
        let accepted = case.get("accepted") == Some(&Value::Bool(true));
        let cost = case.get("runtimeCost").and_then(Value::as_u64).unwrap_or(0);
        let (errors, spent) = run(case);
        self.cases += 1;
        if errors.is_empty() == accepted {
            self.verdicts += 1;
        } else {
            *self.differing.entry(name.to_owned()).or_default() += 1;
            println!("verdict  {name}: {rule}\n         {}", errors.join("; "));
        }
        if !accepted {
            self.refused += 1;
            if errors.iter().any(|error| error.contains(wanted)) {
                self.texts += 1;
            } else {
                println!("text     {name}: {rule}\n         wanted {wanted}");
                println!("         found  {}", errors.join("; "));
            }
        }
        if cost > 0 {
            self.recorded += 1;
            if spent == cost {
                self.costs += 1;
            } else {
                println!(
                    "cost     {name}: {rule}\n         wanted {cost}, found {spent}"
                );
            }
        }
    }

    /// Prints one line of JSON for each compared property.
    fn print_json(&self) {
        let rows = [
            ("verdicts", self.verdicts, self.cases),
            ("error texts", self.texts, self.refused),
            ("run-time costs", self.costs, self.recorded),
        ];
        for (suite, passed, cases) in rows {
            let line = serde_json::json!({"suite": suite, "cases": cases, "passed": passed,
                "outside": {}});
            println!("{line}");
        }
    }

    fn print(&self) {
        for (name, count) in &self.differing {
            println!("{count:5} verdicts differ in {name}");
        }
        println!("verdicts {}/{}", self.verdicts, self.cases);
        println!("texts    {}/{}", self.texts, self.refused);
        println!("costs    {}/{}", self.costs, self.recorded);
    }
}

/// The value with numbers of `format: float` as in Kubernetes' own table: 32-bit floats, for
/// which JSON has only the digits that distinguish one from the others. (A server that reads
/// those digits from a client parses a 64-bit float, and so does the engine.)
fn widened(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let property = schema.pointer(&format!("/properties/{name}"));
                let value = property.map_or(value.clone(), |it| widened(value, it));
                (name.clone(), value)
            })
            .collect(),
        Value::Number(number) if schema.get("format") == Some(&"float".into()) => {
            match number.to_string().parse::<f32>() {
                Ok(float) => f64::from(float).into(),
                Err(_) => value.clone(),
            }
        }
        other => other.clone(),
    }
}

/// The errors of a case, and the cost of its rules.
fn run(case: &Value) -> (Vec<String>, u64) {
    let null = Value::Null;
    let get = |name: &str| case.get(name).unwrap_or(&null);
    let root = if get("root") == &Value::Bool(true) {
        SchemaRoot::Resource
    } else {
        SchemaRoot::Value
    };
    let schema = get("schema");
    let rules = ResourceRules::compile(schema, root, KubeVersion::NEWEST);
    let rules = match rules {
        Ok(rules) => rules,
        Err(errors) => return (errors.iter().map(ToString::to_string).collect(), 0),
    };
    let old = widened(get("oldObject"), schema);
    let old = Some(&old).filter(|old| !old.is_null());
    let result = rules.run(&widened(get("object"), schema), old);
    let errors = result.errors.iter().map(ToString::to_string);
    (errors.collect(), result.cost)
}
