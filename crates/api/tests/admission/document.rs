//! The admission document's four examples, with its messages.

use super::evaluator::Evaluator;

fn example(file: &str) -> serde_json::Value {
    let path = format!(
        "{}/../../examples/admission/{file}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What `kubectl apply` prints for a single error of a custom resource.
fn kubectl(file: &str) -> String {
    let object = example(file);
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    match Evaluator::shipped().create(object).as_slice() {
        [] => format!("scheduledmachine.5spot.finos.org/{name} created"),
        [only] => format!("The ScheduledMachine \"{name}\" is invalid: {only}"),
        several => panic!("more than one error: {several:?}"),
    }
}

#[test]
fn the_valid_example_is_created() {
    assert_eq!(
        kubectl("valid"),
        "scheduledmachine.5spot.finos.org/test-valid created"
    );
}

#[test]
fn a_malformed_duration_is_named_with_its_field_and_value() {
    assert_eq!(
        kubectl("bad-duration"),
        "The ScheduledMachine \"test-bad-duration\" is invalid: spec.gracefulShutdownTimeout: \
         Invalid value: \"five minutes\": must be a duration string such as '5m', '30s', or '1h'"
    );
}

#[test]
fn a_forbidden_group_is_named_with_the_allowed_ones() {
    assert_eq!(
        kubectl("bad-api-group"),
        "The ScheduledMachine \"test-bad-apigroup\" is invalid: spec.bootstrapSpec.apiVersion: \
         Invalid value: \"rbac.authorization.k8s.io/v1\": must be from an allowed group: \
         bootstrap.cluster.x-k8s.io or k0smotron.io"
    );
}

#[test]
fn cron_beside_the_lists_is_a_conflict() {
    assert_eq!(
        kubectl("cron-conflict"),
        "The ScheduledMachine \"test-cron-conflict\" is invalid: spec.schedule: Invalid value: \
         cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the other, not both"
    );
}
