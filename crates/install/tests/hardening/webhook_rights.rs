//! The rights of the webhook in its cluster, by the manager of its certificate.

use fivespot_install::capacity_policy::kinds_in;
use fivespot_install::role::Rights;
use fivespot_install::webhook::{CertificateManager, Settings};
use serde_json::{Value, json};

fn kinds(settings: &Settings) -> Vec<String> {
    let kind = |it: &Value| it["kind"].as_str().unwrap_or_default().to_owned();
    settings.documents().iter().map(kind).collect()
}

#[test]
fn with_cert_manager_the_webhook_may_only_ask_who_may_do_what() {
    let settings = Settings {
        certificate_manager: CertificateManager::CertManager,
        kube_minor: 30,
        ..Settings::default()
    };
    let documents = settings.documents();
    let of_kind = |kind: &str| documents.iter().find(|it| it["kind"] == kind);
    assert_eq!(of_kind("Role").or(of_kind("Secret")), None);
    let rules = json!([{
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["subjectaccessreviews"],
        "verbs": ["create"],
    }]);
    assert_eq!(of_kind("ClusterRole").unwrap()["rules"], rules);
    let pod = &settings.deployment()["spec"]["template"]["spec"];
    assert_ne!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["containers"][0]["args"],
        json!([
            "--validation-actions=Deny",
            "--classes",
            "--certificate-dir=/etc/5spot/certificate"
        ])
    );
    let of_kind = |kind: &str| of_kind(kind).unwrap();
    let secret = &pod["volumes"][0]["secret"]["secretName"];
    assert_eq!(of_kind("Certificate")["spec"]["secretName"], *secret);
    let annotations =
        &of_kind("ValidatingWebhookConfiguration")["metadata"]["annotations"];
    assert_eq!(
        annotations["cert-manager.io/inject-ca-from"],
        "5spot-system/5spot-webhook"
    );
}

#[test]
fn if_policies_are_supported_one_precedes_the_webhooks_rights() {
    let of_minor = |kube_minor: u32| {
        kinds(&Settings {
            kube_minor,
            ..Settings::default()
        })
    };
    let known = of_minor(30);
    let place = |kind: &str| known.iter().position(|it| it == kind).unwrap();
    let binding = place("ValidatingAdmissionPolicyBinding");
    assert!(place("ValidatingAdmissionPolicy") < binding);
    assert!(binding < place("ClusterRoleBinding"));
    assert!(!of_minor(29).contains(&"ValidatingAdmissionPolicy".to_owned()));
}

#[test]
fn a_webhook_that_asks_about_targets_may_ask_and_read_the_kinds_alone() {
    let settings = Settings {
        certificate_manager: CertificateManager::CertManager,
        capacity_targets: Some(kinds_in("5spot-system")),
        ..Settings::default()
    };
    let rules: Vec<Value> = settings
        .documents()
        .into_iter()
        .filter(|it| it["kind"] == "Role" || it["kind"] == "ClusterRole")
        .map(|it| it["rules"].clone())
        .collect();
    let expected = [
        json!([{
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["subjectaccessreviews"],
            "verbs": ["create"],
        }]),
        json!([{
            "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
            "resourceNames": ["5spot-controller-capacity-targets"],
        }]),
    ];
    assert_eq!(rules, expected);
    let pod = &settings.deployment()["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], true);
}

#[test]
fn where_policies_are_not_supported_the_kinds_of_targets_are_still_written() {
    let rights = Rights {
        capacity_targets: ["deployments.apps/scale".parse().unwrap()].into(),
        namespace: "ops".to_owned(),
        ..Rights::default()
    };
    let kinds = rights.capacity_kinds();
    assert_eq!(kinds["kind"], "ConfigMap");
    assert_eq!(kinds["metadata"]["name"], kinds_in("ops"));
    assert_eq!(kinds["data"]["Deployment.apps"], "deployments");
    let none = Rights::default().capacity_kinds();
    assert_eq!(none["data"], json!({"clusterScoped": ""}));
}
