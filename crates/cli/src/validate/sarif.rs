//! SARIF 2.1.0, the format of code scanning tools.

use std::collections::BTreeMap;

use fivespot_api::lint::LINTS;
use fivespot_api::rules::Rule;
use serde_json::{Value, json};

use super::LintLevel;
use super::answer::{Answer, Finding};

/// The log: one run with a result for each finding.
pub(super) fn log(answers: &[Answer], lint: LintLevel) -> Value {
    let mut rules = BTreeMap::new();
    let mut results = Vec::new();
    for answer in answers {
        for finding in answer.findings(lint) {
            results.push(result(answer, &finding));
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

fn result(answer: &Answer, finding: &Finding) -> Value {
    let subject = &answer.subject;
    let mut location = json!({
        "logicalLocations": [{
            "fullyQualifiedName": format!("{}/{}", subject.namespace, subject.handle()),
        }],
    });
    if let Some(place) = &subject.place {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": place.file},
            "region": {"startLine": place.line_of(&finding.field)},
        });
    }
    json!({
        "ruleId": finding.rule,
        "level": finding.level.as_str(),
        "message": {"text": finding.text()},
        "locations": [location],
    })
}
