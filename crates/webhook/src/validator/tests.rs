use fivespot_api::rules::RULES;
use serde_json::{Value, json};

use super::*;
use crate::bounds::tests::largest_spec;

/// The review that an API server sends before it writes `object`, over `old` if there is one.
pub(crate) fn review(operation: &str, object: &Value, old: &Value) -> Value {
    let subject = if object.is_null() { old } else { object };
    let text = |pointer: &str| subject.pointer(pointer).cloned().unwrap_or_default();
    let kind = json!({"group": "5spot.finos.org", "version": "v1alpha1",
        "kind": "ScheduledMachine"});
    let resource = json!({"group": "5spot.finos.org", "version": "v1alpha1",
        "resource": "scheduledmachines"});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7f0b2891-916f-4ed6-b7cd-27bff1815a8c",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": text("/metadata/name"),
            "namespace": text("/metadata/namespace"),
            "operation": operation,
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": old,
            "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

fn validator() -> Validator {
    Validator::new(&["Deny"]).unwrap()
}

fn review_response(validator: &Validator, admission_review: &Value) -> Value {
    let response = validator.review(admission_review.to_string().as_bytes());
    assert_eq!(response.code, 200, "{}", response.body);
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(
        answer["response"]["uid"],
        admission_review["request"]["uid"]
    );
    let is_admitted = answer["response"]["allowed"] == true;
    assert_eq!(is_admitted, response.verdict == Verdict::Admitted);
    answer["response"].clone()
}

#[test]
fn every_example_is_decided_as_by_the_policy() {
    let validator = validator();
    for rule in RULES {
        let examples = |list: &'static [&'static str], allowed: bool| {
            list.iter().map(move |example| (*example, allowed))
        };
        let accepted = examples(rule.requirement.examples.accepts(), true);
        let rejected = examples(rule.requirement.examples.rejects(), false);
        for (example, allowed) in accepted.chain(rejected) {
            let object = rule.example(example);
            let admission_review = match rule.before(example) {
                Some(before) => review("UPDATE", &object, &before),
                None => review("CREATE", &object, &Value::Null),
            };
            let response = review_response(&validator, &admission_review);
            assert_eq!(response["allowed"], allowed, "{} {example}", rule.id);
            if !allowed {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let why = format!(
                    "ValidatingAdmissionPolicy 'scheduledmachine-validation' with binding \
                     'scheduledmachine-validation-binding' denied request: {}",
                    rule.full_message()
                );
                let message = format!(
                    "scheduledmachines.5spot.finos.org \"{name}\" is forbidden: {why}"
                );
                let expected = json!({
                    "status": "Failure",
                    "code": 422,
                    "reason": "Invalid",
                    "message": message,
                    "details": {"name": name, "group": "5spot.finos.org",
                        "kind": "scheduledmachines", "causes": [{"message": why}]},
                });
                assert_eq!(response["status"], expected, "{} {example}", rule.id);
            }
        }
    }
}

fn wrong() -> Value {
    let mut object = RULES[1].example("5m");
    object["spec"]["gracefulShutdownTimeout"] = json!("five minutes");
    object
}

#[test]
fn an_update_is_validated_by_what_it_changes() {
    let validator = validator();
    let old = wrong();
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let mut killed = old.clone();
    killed["spec"]["killSwitch"] = json!(true);
    for harmless in [&labelled, &killed] {
        assert_eq!(
            review_response(&validator, &review("UPDATE", harmless, &old))["allowed"],
            true
        );
    }
    let mut worse = old.clone();
    worse["spec"]["gracefulShutdownTimeout"] = json!("six minutes");
    assert_eq!(
        review_response(&validator, &review("UPDATE", &worse, &old))["allowed"],
        false
    );
}

#[test]
fn a_machine_can_be_switched_off_although_an_older_definition_prunes_its_schedule() {
    let validator = validator();
    let is_allowed = |new: &Value, old: &Value| {
        review_response(&validator, &review("UPDATE", new, old))["allowed"] == true
    };
    let mut old = RULES[1].example("5m");
    old["spec"]["schedule"] = json!({
        "timezone": "UTC", "windows": [{"name": "day", "start": "08:00", "end": "16:00"}],
    });
    let mut pruned = old.clone();
    pruned["spec"]["schedule"] = json!({"timezone": "UTC"});
    assert!(!is_allowed(&pruned, &old));
    let mut killed = pruned.clone();
    killed["spec"]["killSwitch"] = json!(true);
    assert!(is_allowed(&killed, &old));
    let mut disabled = pruned.clone();
    disabled["spec"]["schedule"]["enabled"] = json!(false);
    assert!(is_allowed(&disabled, &old));
    // Nothing else passes with it, and not after it.
    for (field, value) in [
        ("/spec/gracefulShutdownTimeout", json!("soon")),
        ("/spec/schedule/timezone", json!("not a zone")),
        ("/spec/bootstrapSpec/apiVersion", json!("v1")),
    ] {
        for off in [&killed, &disabled] {
            let mut other = off.clone();
            *other.pointer_mut(field).unwrap() = value.clone();
            assert!(!is_allowed(&other, &old), "{field}");
        }
    }
    let mut added = killed.clone();
    added["spec"]["schedule"]["daysOfWeek"] = json!(["today"]);
    assert!(!is_allowed(&added, &old));
    let mut was_off = old.clone();
    was_off["spec"]["killSwitch"] = json!(true);
    assert!(!is_allowed(&killed, &was_off));
}

#[test]
fn a_deletion_and_an_update_of_a_terminating_object_are_admitted() {
    let validator = validator();
    let old = wrong();
    assert_eq!(
        review_response(&validator, &review("DELETE", &Value::Null, &old))["allowed"],
        true
    );
    let mut going = wrong();
    going["metadata"]["deletionTimestamp"] = json!("2026-03-06T21:30:00Z");
    assert_eq!(
        review_response(&validator, &review("UPDATE", &going, &old))["allowed"],
        true
    );
}

#[test]
fn what_the_policy_does_not_match_is_admitted() {
    let validator = validator();
    let mut status = review("UPDATE", &wrong(), &RULES[1].example("5m"));
    status["request"]["subResource"] = json!("status");
    assert_eq!(review_response(&validator, &status)["allowed"], true);
    let mut other = review("CREATE", &wrong(), &Value::Null);
    other["request"]["resource"]["resource"] = json!("machines");
    assert_eq!(review_response(&validator, &other)["allowed"], true);
}

#[test]
fn audit_and_warn_admit_and_report() {
    let admission_review = review("CREATE", &wrong(), &Value::Null);
    let audited =
        review_response(&Validator::new(&["Audit"]).unwrap(), &admission_review);
    assert_eq!(audited["allowed"], true);
    let audit = audited["auditAnnotations"]["validation_failure"].as_str();
    let audit: Value = serde_json::from_str(audit.unwrap()).unwrap();
    assert_eq!(audit[0]["policy"], "scheduledmachine-validation");
    let warned = review_response(
        &Validator::new(&["Warn", "Audit"]).unwrap(),
        &admission_review,
    );
    assert_eq!(warned["allowed"], true);
    assert_eq!(
        warned["warnings"],
        json!([
            "Validation failed for ValidatingAdmissionPolicy 'scheduledmachine-validation' \
             with binding 'scheduledmachine-validation-binding': \
             spec.gracefulShutdownTimeout: must be a duration string such as '5m', '30s', or \
             '1h'"
        ])
    );
}

#[test]
fn what_is_no_question_is_never_an_admission() {
    let validator = validator();
    let good = review("UPDATE", &RULES[1].example("5m"), &RULES[1].example("1h"));
    let without = |pointer: &str, key: &str| {
        let mut admission_review = good.clone();
        admission_review.pointer_mut(pointer).unwrap()[key].take();
        admission_review.to_string()
    };
    let with = |key: &str, value: Value| {
        let mut admission_review = good.clone();
        admission_review["request"][key] = value;
        admission_review.to_string()
    };
    let mut older = good.clone();
    older["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let deep = "[".repeat(200_000);
    let rows = [
        String::new(),
        "five minutes".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        deep,
        json!({"apiVersion": "v1", "kind": "Pod"}).to_string(),
        older.to_string(),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
            .to_string(),
        without("/request", "object"),
        without("/request", "oldObject"),
        with("uid", json!("")),
        with("uid", json!("u".repeat(257))),
        with("operation", json!("PATCH")),
        with("object", json!("text")),
        with("userInfo", json!({"groups": "one"})),
    ];
    let mut audit = String::new();
    for row in rows {
        let response = validator.review(row.as_bytes());
        assert_eq!(
            (response.code, response.verdict),
            (400, Verdict::Malformed),
            "{row:.80}"
        );
        audit.push_str(&response.body);
    }
    insta::assert_snapshot!(audit);
}

#[test]
fn no_bytes_make_it_panic() {
    use proptest::prelude::*;
    let validator = validator();
    let good = review("UPDATE", &wrong(), &RULES[1].example("1h")).to_string();
    proptest!(ProptestConfig::with_cases(256), |(
        at in 0..good.len(), bytes in proptest::collection::vec(any::<u8>(), 0..8)
    )| {
        let mut body = good.clone().into_bytes();
        body.splice(at..(at + bytes.len()).min(good.len()), bytes);
        let response = validator.review(&body);
        prop_assert!(response.code == 200 || response.code == 400);
    });
}

/// The response to an update of a machine with this number of labels for its Machine, which before
/// had that number.
fn labelled(validator: &Validator, number: usize, before: usize) -> Value {
    let object = |number: usize| {
        let labels = (0..number).map(|at| (format!("key-{at}"), json!("v")));
        let mut object = RULES[1].example("5m");
        object["spec"]["machineTemplate"]["labels"] =
            labels.collect::<serde_json::Map<_, _>>().into();
        object
    };
    let review = review("UPDATE", &object(number), &object(before));
    review_response(validator, &review)
}

#[test]
fn a_spec_beyond_the_bounds_of_its_schema_is_refused_and_an_unchanged_one_is_not() {
    let validator = validator();
    assert_eq!(labelled(&validator, 2, 1)["allowed"], true);
    assert_eq!(labelled(&validator, 1_000, 1_000)["allowed"], true);
    for (number, before, path) in [(1_000, 1, "spec"), (1, 1_000, "oldObject.spec")] {
        let response = labelled(&validator, number, before);
        assert_eq!(response["allowed"], false);
        let message = response["status"]["message"].as_str().unwrap();
        let why =
            format!(" is invalid: {path}.machineTemplate.labels: Too many: 1000: must ");
        assert!(message.contains(&why), "{message}");
    }
}

#[test]
fn a_webhook_that_warns_only_admits_a_spec_beyond_its_bounds() {
    let warning = labelled(&Validator::new(&["Warn"]).unwrap(), 1_000, 1);
    assert_eq!(warning["allowed"], true);
    let text = warning["warnings"][0].as_str().unwrap();
    assert!(text.contains("Too many: 1000"), "{text}");
}

#[test]
fn the_largest_specs_cost_less_than_kubernetes_allows_one_expression() {
    /// `PerCallLimit` of `k8s.io/apiserver/pkg/apis/cel`.
    const MAX_COST: u64 = 1_000_000;
    let validator = validator();
    for resource in &RESOURCES {
        let object = |letter| {
            json!({
                "metadata": {"name": "a", "namespace": "b"},
                "spec": largest_spec(resource, letter),
            })
        };
        for old in [Value::Null, object("b")] {
            let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
            let mut review = review(operation, &object("a"), &old);
            review["request"]["resource"]["group"] = resource.group.into();
            review["request"]["resource"]["resource"] = resource.plural.into();
            review["request"]["kind"]["kind"] = resource.kind.into();
            let body = review.to_string();
            let request = AdmissionRequest::read(body.as_bytes()).unwrap();
            assert_eq!(validator.excess(&request), None);
            let decision = validator.policies.decide(&request.request(), &());
            let cost: u64 = decision.evaluations.iter().map(|it| it.cost).sum();
            assert!((100..MAX_COST).contains(&cost), "{} {cost}", resource.kind);
        }
    }
}
