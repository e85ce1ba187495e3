//! Admission reviews, as the webhook gets them.

use std::sync::OnceLock;

use fivespot_api::name;
use fivespot_api::rules::{RULES, Rule};
use fivespot_webhook::Validator;
use fivespot_webhook::validator::Verdict;
use serde_json::{Value, json};

pub(crate) const WORDS: &[&str] = &[
    "\"uid\":",
    "\"operation\":\"DELETE\"",
    "\"operation\":\"UPDATE\"",
    "\"object\":null",
    "\"oldObject\":null",
    "\"subResource\":\"status\"",
    "\"spec\":{",
    "\"schedule\":{",
    "\"cron\":\"* * * * *\"",
    "\"daysOfWeek\":[\"mon\"]",
    "\"hoursOfDay\":[9]",
    "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
    "\"killSwitch\":true",
    "null",
    "true",
    "[]",
    "{}",
    "1e400",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\u0000",
    "\\ud800",
];

/// A review of a valid object and one of an invalid object for each rule.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let examples = RULES.iter().flat_map(|rule| {
        let rejected = rule.requirement.examples.rejects().iter().take(1);
        let accepted = rule.requirement.examples.accepts().iter().take(1);
        accepted
            .chain(rejected)
            .map(move |example| admission_review(rule, example))
    });
    examples.map(|it| it.to_string().into_bytes()).collect()
}

fn admission_review(rule: &Rule, example: &str) -> Value {
    let object = rule.example(example);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": name::GROUP, "version": name::VERSION, "kind": name::KIND},
            "resource": {"group": name::GROUP, "version": name::VERSION,
                "resource": name::PLURAL},
            "name": object["metadata"]["name"],
            "namespace": "default",
            "operation": if rule.before(example).is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "jane"},
            "oldObject": rule.before(example),
            "object": object,
        },
    })
}

/// The response is an AdmissionReview or status 400; an unreadable request is never admitted.
pub(crate) fn review(bytes: &[u8]) -> String {
    static VALIDATOR: OnceLock<Option<Validator>> = OnceLock::new();
    let validator = VALIDATOR.get_or_init(|| Validator::new(&["Deny"]).ok());
    let Some(validator) = validator else {
        return "the validator cannot be built".to_owned();
    };
    let response = validator.review(bytes);
    let body: Option<Value> = serde_json::from_str(&response.body).ok();
    let admission = body.as_ref().map(|it| &it["response"]);
    match response.verdict {
        Verdict::Malformed => {
            assert_eq!(response.code, 400, "{}", response.body);
            assert!(
                admission.is_none_or(|it| it["allowed"] != true),
                "{}",
                response.body
            );
        }
        Verdict::Admitted | Verdict::Refused => {
            assert_eq!(response.code, 200, "{}", response.body);
            let allowed = response.verdict == Verdict::Admitted;
            assert_eq!(admission.map(|it| &it["allowed"]), Some(&json!(allowed)));
        }
    }
    response.body
}
