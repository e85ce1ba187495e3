//! SARIF 2.1.0, the format of code scanning tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::extension::{Extension, Program};
use super::object_result::{Finding, ObjectResult};

/// The log: one run with a result for each finding.
pub(super) fn log(object_results: &[ObjectResult], extension: &dyn Extension) -> Value {
    let Program {
        name,
        version,
        repository,
    } = extension.program();
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
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": name,
                "version": version,
                "informationUri": repository,
                "rules": rules.into_values().collect::<Vec<_>>(),
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
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": source.file},
            "region": {"startLine": source.line_of(&finding.field)},
        });
    }
    json!({
        "ruleId": finding.rule,
        "level": finding.level.as_str(),
        "message": {"text": finding.text()},
        "locations": [location],
    })
}
