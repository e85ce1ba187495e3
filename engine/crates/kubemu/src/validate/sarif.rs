//! SARIF 2.1.0, the format of code scanning tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::builtin::path_segment;
use super::extension::{Extension, Program};
use super::object_result::{Finding, ObjectResult};

/// The log: one run with a result for each finding.
pub(super) fn log(object_results: &[ObjectResult], extension: &dyn Extension) -> Value {
    let mut rules = BTreeMap::new();
    let mut results = Vec::new();
    for object_result in object_results {
        for finding in object_result.findings(extension) {
            results.push(result(object_result, &finding));
            rules
                .entry(finding.rule.clone())
                .or_insert_with(|| rule(&finding.rule, extension));
        }
    }
    run_log(
        extension,
        (&rules.into_values().collect::<Vec<_>>(), &results),
    )
}

/// A log with one run of the program: its rules, and the results.
pub(crate) fn run_log(
    extension: &dyn Extension,
    (rules, results): (&[Value], &[Value]),
) -> Value {
    let Program {
        name,
        version,
        repository,
    } = extension.program();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": name,
                "version": version,
                "informationUri": repository,
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn rule(id: &str, extension: &dyn Extension) -> Value {
    match extension.description(id) {
        Some(known) => json!({
            "id": id,
            "shortDescription": {"text": known.short},
            "fullDescription": {"text": known.full},
        }),
        None => json!({"id": id}),
    }
}

fn result(object_result: &ObjectResult, finding: &Finding) -> Value {
    let subject = &object_result.subject;
    let mut location = json!({
        "logicalLocations": [{
            "fullyQualifiedName": subject.full_handle(),
        }],
    });
    if let Some(source) = &subject.location {
        location["physicalLocation"] =
            place(&source.file, source.line_of(&finding.field));
    }
    json!({
        "ruleId": finding.rule,
        "level": finding.level.as_str(),
        "message": {"text": finding.text()},
        "locations": [location],
    })
}

/// A line of a file.
pub(crate) fn place(file: &str, line: usize) -> Value {
    // A reference to a URI, in which a space or a percent sign has another form.
    let segments: Vec<String> = file.split('/').map(path_segment).collect();
    json!({
        "artifactLocation": {"uri": segments.join("/")},
        "region": {"startLine": line},
    })
}
