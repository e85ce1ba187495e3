//! How the admission engine does in external test suites, and compared with Kubernetes' libraries.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

/// Written by `cargo judge conformance` and `cargo judge library --record`.
const RESULT: &str = "judge/oracle/agreement.json";
/// Files of the CEL specification about features that Kubernetes does not have.
const WHOLE_FILES: &str = "`bindings_ext`, `block_ext`, `encoders_ext`, `enums`, `math_ext`, \
    `network_ext`, `proto2`, `proto2_ext`, `proto3`, `wrappers`";

/// Runs the cases in `data`, keeps the results, and prints the section.
///
/// # Errors
/// The cases cannot be read, or the results cannot be written.
pub(crate) fn measure(root: &Path, data: &Path) -> Result<(), Box<dyn Error>> {
    for name in ["cel-spec.json", "kubernetes-crd-rules.jsonl"] {
        if !data.join(name).is_file() {
            let data = data.display();
            return Err(format!(
                "no {name} in {data}; give the folder of the conformance data with --data"
            )
            .into());
        }
    }
    let specification = example(root, "language", data)?;
    let rules = example(root, "conformance", data)?;
    update_result(root, |result| {
        result.insert("specification".to_owned(), specification);
        result.insert("rules".to_owned(), rules);
    })?;
    println!("{}", text(root)?);
    Ok(())
}

/// Keeps the result of a comparison with Kubernetes' libraries.
pub(crate) fn store_differential(
    root: &Path,
    found: Value,
) -> Result<(), Box<dyn Error>> {
    update_result(root, |result| {
        let kept = result.entry("differential").or_insert_with(|| json!({}));
        if let (Some(kept), Value::Object(found)) = (kept.as_object_mut(), found) {
            kept.extend(found);
        }
    })
}

fn update_result(
    root: &Path,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), Box<dyn Error>> {
    let path = root.join(RESULT);
    let mut result: Value = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => json!({}),
    };
    if let Some(result) = result.as_object_mut() {
        change(result);
    }
    fs::write(
        path,
        format!("{}\n", serde_json::to_string_pretty(&result)?),
    )?;
    Ok(())
}

/// The lines that an example prints, one per suite.
fn example(root: &Path, name: &str, data: &Path) -> Result<Value, Box<dyn Error>> {
    let done = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--example", name, "--"])
        .arg(data)
        .arg("--json")
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    let lines = String::from_utf8(done.stdout)?;
    let suites: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
    Ok(Value::Array(suites?))
}

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result: Value = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let mut text = "\
`cargo judge conformance --data DIR` runs the test suites of other projects.

Kubernetes' own table of validation rules for custom resources:

"
    .to_owned();
    suites(&mut text, &result["rules"]);
    text.push_str(
        "\nNumbers of `format: float` are 32-bit floats in that table, and JSON has only the digits
that distinguish them: they are converted to 32-bit floats again. Sent to a server as JSON, the
one case about `MaxFloat32` is rejected by Kubernetes and by the engine.\n",
    );
    text.push_str("\nThe conformance tests of the CEL specification:\n\n");
    suites(&mut text, &result["specification"]);
    let _ = writeln!(
        text,
        "\nNot run, because Kubernetes' dialect does not have these features: {WHOLE_FILES}."
    );
    differential(&mut text, &result["differential"]);
    text
}

fn suites(text: &mut String, suites: &Value) {
    let _ = write!(
        text,
        "| suite | passed | of | not compared, and why |\n|---|---:|---:|---|\n"
    );
    let mut sums = [0; 2];
    for suite in suites.as_array().into_iter().flatten() {
        let count = |name: &str| suite[name].as_u64().unwrap_or(0);
        let outside: Vec<String> = suite["outside"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(why, count)| format!("{count}: {why}"))
            .collect();
        sums = [sums[0] + count("passed"), sums[1] + count("cases")];
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            suite["suite"].as_str().unwrap_or_default(),
            count("passed"),
            count("cases"),
            outside.join("; ")
        );
    }
    let [passed, cases] = sums;
    let _ = writeln!(text, "| **all** | **{passed}** | **{cases}** | |");
}

fn differential(text: &mut String, found: &Value) {
    let _ = write!(
        text,
        "\n`cargo judge library --cases N --seed S` generates CRDs, objects, policies \
         and requests,\nsome of them with addresses, patterns, quantities, times, numbers and names \
         that are almost valid,\nand evaluates them with Kubernetes' own libraries (1.36), their \
         policy source included, and with the engine.\n`--questions FILE` does this with cases \
         from a file, one per line."
    );
    let (cases, seed) = (&found["cases"], &found["seed"]);
    let _ = write!(
        text,
        " The last recorded run had {cases} cases of seed {seed}:\n\n\
         | compared | answers | differing |\n|---|---:|---:|\n"
    );
    for row in found["rows"].as_array().into_iter().flatten() {
        let aspect = row["aspect"].as_str().unwrap_or_default();
        let (answers, differing) = (&row["answers"], &row["differing"]);
        let _ = writeln!(text, "| {aspect} | {answers} | {differing} |");
    }
    if let Some(count @ 1..) = found["unanswered"].as_u64() {
        let _ = writeln!(
            text,
            "\nKubernetes' libraries return no result for {count} of the cases: they take more than 20 \
             seconds, where\nan exponent makes them print a thousand million digits, or panic \
             (`type checks` of cel-go)."
        );
    }
    explained(text, &found["explained"]);
}

/// Writes the causes of the differences.
fn explained(text: &mut String, explained: &Value) {
    let matters = explained["matters"].as_array();
    if matters.is_some_and(|matters| !matters.is_empty()) {
        text.push_str(
            "\nWhat differed in text or cost when these cases were last reviewed \
             (`--among`):\n\n\
             | what | answers | why |\n|---|---:|---|\n",
        );
    }
    for matter in matters.into_iter().flatten() {
        let word = |field: &str| matter[field].as_str().unwrap_or_default();
        let (what, why) = (word("what"), word("why"));
        let _ = writeln!(text, "| {what} | {} | {why} |", matter["answers"]);
    }
    let unexplained = explained["unexplained"].as_array();
    let cases: Vec<_> = unexplained
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    if !cases.is_empty() {
        let _ = writeln!(
            text,
            "\nNot explained yet are {} cases: {}.",
            cases.len(),
            cases.join(", ")
        );
    }
    text.push_str(
        "\n`--case N` shows one of them. Expressions nest 250 deep, as in Kubernetes. `cargo judge gostd` \
         compares\n`crates/gostd` with Go's standard library itself: 20,000 generated texts for each \
         function, and every\nanswer and error text has to be the same.\n\n`cargo judge mutations` has \
         Kubernetes' own libraries carry out 600 generated mutations of\nMutatingAdmissionPolicies, merges \
         and JSON patches, valid and invalid ones, and keeps the results. A\ntest of the embedded server \
         (`mutations`) compares verdict, object and text of each. Texts about values that a\nmerge cannot \
         have are not compared: Kubernetes prints Go's internal form of the values.\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_a_row_and_all_are_summed() {
        let mut text = String::new();
        let outside = json!({"no such thing": 3});
        suites(
            &mut text,
            &json!([{"suite": "a", "passed": 1, "cases": 2, "outside": outside},
                {"suite": "b", "passed": 4, "cases": 4, "outside": {}}]),
        );
        assert!(text.contains("| a | 1 | 2 | 3: no such thing |"), "{text}");
        assert!(text.ends_with("| **all** | **5** | **6** | |\n"), "{text}");
    }
}
