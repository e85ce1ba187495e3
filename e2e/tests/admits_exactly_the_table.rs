//! The API server admits what the rules accept and refuses what they reject, with their messages.
//! An object from before the rules can still be managed.

use fivespot_api::resource::{
    CAPITAL_MARKETS_SCHEDULE, Resource, SCHEDULED_MACHINE, TIME_BASED_SPOT_SCHEDULE,
};
use fivespot_api::rules::{Layer, Rule};
use fivespot_api::{crd, vap};
use fivespot_testkit::{Cluster, instant, machine_path, path_of};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_valid_example_is_created),
    promise!(a_malformed_duration_is_refused_with_its_field_and_value),
    promise!(a_forbidden_group_is_refused_with_the_allowed_ones),
    promise!(cron_beside_the_lists_is_a_conflict),
    promise!(every_rule_admits_and_refuses_its_own_examples),
    promise!(every_rule_about_a_shared_schedule_does_too),
    promise!(the_examples_of_shared_schedules_are_created),
    promise!(the_policy_alone_does_too).disruptive(),
    promise!(an_object_from_before_the_rules_stays_manageable).disruptive(),
];

const NOW: &str = "2026-03-06T15:00:00Z";
pub(crate) const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";

/// A refusal as clients see it: code, reason, message, and the causes as `field: message`.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
}

pub(crate) fn refusal(answer: Result<Value, kube::Error>) -> Option<Refusal> {
    match answer {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(Refusal {
            code: status.code,
            reason: status.reason.clone(),
            message: status.message.clone(),
            causes: status
                .details
                .iter()
                .flat_map(|details| &details.causes)
                .map(|cause| {
                    format!("{} {}: {}", cause.reason, cause.field, cause.message)
                })
                .collect(),
        }),
        Err(other) => panic!("no answer: {other}"),
    }
}

async fn example(file: &str) -> Option<Refusal> {
    let cluster = Cluster::start(instant(NOW)).await;
    example_on(&cluster, file).await
}

async fn example_on(cluster: &Cluster, file: &str) -> Option<Refusal> {
    let path = format!(
        "{}/../examples/admission/{file}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let answer = cluster.try_create_yaml(&text).await;
    refusal(answer)
}

/// A refusal by the definition for one reason.
fn invalid(name: &str, field: &str, rest: &str) -> Refusal {
    Refusal {
        code: 422,
        reason: "Invalid".to_owned(),
        message: format!(
            "ScheduledMachine.5spot.finos.org \"{name}\" is invalid: {field}: {rest}"
        ),
        causes: vec![format!("FieldValueInvalid {field}: {rest}")],
    }
}

async fn the_valid_example_is_created() {
    assert_eq!(example("valid").await, None);
}

/// A value as servers print it in such a refusal. Older servers print its type.
fn shown(cluster: &Cluster, text: &str) -> String {
    let is_old = cluster.kube_minor() < 34;
    format!("\"{}\"", if is_old { "string" } else { text })
}

async fn a_malformed_duration_is_refused_with_its_field_and_value() {
    let cluster = Cluster::start(instant(NOW)).await;
    let value = shown(&cluster, "five minutes");
    let rest = format!(
        "Invalid value: {value}: must be a duration string such as '5m', '30s', or '1h'"
    );
    let field = "spec.gracefulShutdownTimeout";
    assert_eq!(
        example_on(&cluster, "bad-duration").await,
        Some(invalid("test-bad-duration", field, &rest))
    );
}

async fn a_forbidden_group_is_refused_with_the_allowed_ones() {
    let cluster = Cluster::start(instant(NOW)).await;
    let value = shown(&cluster, "rbac.authorization.k8s.io/v1");
    let rest = format!(
        "Invalid value: {value}: must be from an allowed group: \
         bootstrap.cluster.x-k8s.io or k0smotron.io"
    );
    let field = "spec.bootstrapSpec.apiVersion";
    assert_eq!(
        example_on(&cluster, "bad-api-group").await,
        Some(invalid("test-bad-apigroup", field, &rest))
    );
}

async fn cron_beside_the_lists_is_a_conflict() {
    let cluster = Cluster::start(instant(NOW)).await;
    // Before 1.34, servers printed an object as this word.
    let value = if cluster.kube_minor() < 34 {
        "\"object\": "
    } else {
        ""
    };
    let rest = format!(
        "Invalid value: {value}cron is mutually exclusive with daysOfWeek and hoursOfDay \
         — set one or the other, not both"
    );
    assert_eq!(
        example_on(&cluster, "cron-conflict").await,
        Some(invalid("test-cron-conflict", "spec.schedule", &rest))
    );
}

/// The server's response to the example of a rule: to a creation or, for a rule about a change, to
/// the change.
pub(crate) async fn answer(
    cluster: &Cluster,
    rule: &Rule,
    example: &str,
) -> Option<Refusal> {
    let object = rule.example(example);
    let Some(before) = rule.before(example) else {
        return refusal(cluster.dry_run(&object).await);
    };
    let path = path_of(&before);
    cluster.apply(&before).await;
    let status = json!({"status": before["status"]});
    cluster.patch(&format!("{path}/status"), &status).await;
    let change = json!({"spec": object["spec"]});
    let refusal = refusal(cluster.try_patch(&path, &change).await);
    cluster.delete(&path).await;
    refusal
}

/// Whether the example's name is valid for an object.
pub(crate) fn is_object_name(rule: &Rule, example: &str) -> bool {
    let object = rule.example(example);
    let name = object["metadata"]["name"].as_str().unwrap();
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

async fn assert_table(cluster: &Cluster, resource: &Resource, has_crd_rules: bool) {
    for rule in resource.rules() {
        for example in rule.requirement.examples.accepts() {
            let answer = answer(cluster, rule, example).await;
            assert_eq!(answer, None, "{} {example}", rule.id);
        }
        for example in rule.requirement.examples.rejects() {
            if !is_object_name(rule, example) {
                continue;
            }
            let refusal = answer(cluster, rule, example).await.unwrap();
            assert_eq!(refusal.code, 422, "{} {example}", rule.id);
            if has_crd_rules && rule.requirement.layer != Layer::Policy {
                let [only] = refusal.causes.as_slice() else {
                    panic!("{} {example}: {refusal:?}", rule.id);
                };
                let field = rule.path.replace("[]", "[0]");
                let is_missing =
                    rule.requirement.message.starts_with("must be set, unless");
                let expected = if is_missing {
                    format!("FieldValueRequired {field}: Required value: ")
                } else {
                    format!("FieldValueInvalid {field}: Invalid value: ")
                };
                assert!(only.starts_with(&expected), "{} {only}", rule.id);
                assert!(
                    only.ends_with(rule.requirement.message),
                    "{} {only}",
                    rule.id
                );
            } else {
                let expected = format!(
                    "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}",
                    resource.policy,
                    resource.policy_binding,
                    rule.full_message(),
                );
                let refused = &refusal.message;
                assert!(refused.ends_with(&expected), "{} {refused}", rule.id);
            }
        }
    }
}

async fn every_rule_admits_and_refuses_its_own_examples() {
    let cluster = Cluster::start(instant(NOW)).await;
    assert_table(&cluster, SCHEDULED_MACHINE, true).await;
}

async fn every_rule_about_a_shared_schedule_does_too() {
    let cluster = Cluster::start(instant(NOW)).await;
    for resource in [TIME_BASED_SPOT_SCHEDULE, CAPITAL_MARKETS_SCHEDULE] {
        assert_table(&cluster, resource, true).await;
    }
}

async fn the_examples_of_shared_schedules_are_created() {
    let cluster = Cluster::start(instant(NOW)).await;
    for file in ["office-hours", "market-hours"] {
        let path = format!(
            "{}/../examples/shared-schedules/{file}.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        let answer = cluster.try_create_yaml(&text).await;
        assert_eq!(refusal(answer), None, "{file}");
    }
}

async fn the_policy_alone_does_too() {
    let cluster = Cluster::start(instant(NOW)).await;
    cluster.apply(&crd::render_without_rules()).await;
    let mut wrong = fivespot_testkit::scheduled_machine("wrong");
    wrong["spec"]["nodeDrainTimeout"] = json!("five minutes");
    let by_policy = |refused: &Refusal| refused.message.contains("AdmissionPolicy");
    until_refused(&cluster, &wrong, by_policy).await;
    assert_table(&cluster, SCHEDULED_MACHINE, false).await;
}

/// Repeats a request until an object is refused as expected. A real server takes a moment until a
/// change of a CRD or a policy is in force.
pub(crate) async fn until_refused(
    cluster: &Cluster,
    object: &Value,
    holds: impl Fn(&Refusal) -> bool,
) {
    let is_refused = async || {
        let answer = refusal(cluster.dry_run(object).await);
        answer.is_some_and(|refused| holds(&refused))
    };
    cluster.eventually(is_refused).await;
}

/// An object that breaks as many rules at once as possible.
fn object_breaking_rules() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {
            "name": "not.a.label",
            "namespace": "default",
            "finalizers": ["5spot.finos.org/scheduledmachine"],
        },
        "spec": {
            "schedule": {
                "cron": "60 24 0 13 8",
                "daysOfWeek": ["monday"],
                "hoursOfDay": ["9am", "24"],
                "duration": "soon",
                "timezone": "../etc/passwd",
            },
            "clusterName": "",
            "bootstrapSpec": {"apiVersion": "v1", "kind": "", "namespace": "other", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "v1", "kind": "bad-List", "namespace": "other", "spec": {}},
            "machineTemplate": {
                "labels": {"bad key": "bad value", "k8s.io/x": "y"},
                "annotations": {"cluster.x-k8s.io/cluster-name": "other"},
            },
            "gracefulShutdownTimeout": "five minutes",
            "nodeDrainTimeout": "25h",
            "killIfCommands": [" "],
            "nodeTaints": [{"key": "kubernetes.io/x", "effect": "NoExecute"}],
        },
    })
}

async fn an_object_from_before_the_rules_stays_manageable() {
    let cluster = Cluster::start(instant(NOW)).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    let is_created = async || cluster.create(&object_breaking_rules()).await.is_ok();
    cluster.eventually(is_created).await;
    cluster.apply(&crd::render(cluster.kube_minor())).await;
    cluster.apply(&vap::policy()).await;
    let mut another = object_breaking_rules();
    another["metadata"]["name"] = json!("another");
    let by_all = |refused: &Refusal| refused.causes.len() > 10;
    until_refused(&cluster, &another, by_all).await;

    let path = machine_path("not.a.label");
    for harmless in [
        json!({"metadata": {"labels": {"team": "a"}}}),
        json!({"spec": {"priority": 1}}),
        json!({"spec": {"schedule": {"enabled": false}}}),
        json!({"spec": {"killSwitch": true}}),
    ] {
        let answer = refusal(cluster.try_patch(&path, &harmless).await);
        assert_eq!(answer, None, "{harmless}");
    }
    for (harmful, field) in [
        (
            json!({"gracefulShutdownTimeout": "six minutes"}),
            "spec.gracefulShutdownTimeout",
        ),
        (json!({"clusterName": "-"}), "spec.clusterName"),
        (
            json!({"schedule": {"timezone": "Mars/Phobos 1"}}),
            "spec.schedule.timezone",
        ),
        (
            json!({"bootstrapSpec": {"apiVersion": "v2"}}),
            "spec.bootstrapSpec.apiVersion",
        ),
    ] {
        let patch = json!({"spec": harmful});
        let refused = refusal(cluster.try_patch(&path, &patch).await);
        let refused = refused.unwrap_or_else(|| panic!("{patch} was admitted"));
        assert_eq!(refused.code, 422);
        assert!(
            refused.causes.iter().all(|cause| cause.contains(field)),
            "{refused:?}"
        );
    }
    cluster.delete(&path).await;
    let released = json!({"metadata": {"finalizers": null}});
    let answer = refusal(cluster.try_patch(&path, &released).await);
    assert_eq!(answer, None);
    assert_eq!(cluster.get(&path).await, None);
}
