//! SARIF 2.1.0, the format of code scanning tools.

use std::collections::BTreeMap;

use fivespot_api::lint::LINTS;
use fivespot_api::rules::Rule;
use serde_json::{Value, json};

use super::LintLevel;
use super::object_result::{Finding, ObjectResult};

/// The log: one run with a result for each finding.
pub(super) fn log(object_results: &[ObjectResult], lint: LintLevel) -> Value {
    let mut rules = BTreeMap::new();
    let mut results = Vec::new();
    for object_result in object_results {
        for finding in object_result.findings(lint) {
            results.push(result(object_result, &finding));
            rules
                .entry(finding.rule.clone())
                .or_insert_with(|| rule(&finding.rule));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "5spot",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    })
}

fn rule(id: &str) -> Value {
    let known = Rule::find(id).map(|rule| (rule.requirement.message, rule.why));
    let lint = LINTS.iter().find(|lint| lint.code == id);
    match known.or(lint.map(|lint| (lint.name, lint.why))) {
        Some((short, full)) => json!({
            "id": id,
            "shortDescription": {"text": short},
            "fullDescription": {"text": full},
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
