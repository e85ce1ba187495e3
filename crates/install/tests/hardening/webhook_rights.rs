//! The rights of the webhook in its cluster, by the manager of its certificate.

use fivespot_install::webhook::{CertificateManager, Settings};
use serde_json::{Value, json};

fn kinds(settings: &Settings) -> Vec<String> {
    let kind = |it: &Value| it["kind"].as_str().unwrap_or_default().to_owned();
    settings.documents().iter().map(kind).collect()
}

#[test]
fn with_cert_manager_the_webhook_has_no_rights() {
    let settings = Settings {
        certificate_manager: CertificateManager::CertManager,
        kube_minor: 30,
        ..Settings::default()
    };
    for kind in kinds(&settings) {
        assert!(!kind.contains("Role") && kind != "Secret", "{kind}");
    }
    let pod = &settings.deployment()["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["containers"][0]["args"],
        json!([
            "--validation-actions=Deny",
            "--certificate-dir=/etc/5spot/certificate"
        ])
    );
    let documents = settings.documents();
    let of_kind = |kind: &str| documents.iter().find(|it| it["kind"] == kind).unwrap();
    let secret = &pod["volumes"][0]["secret"]["secretName"];
    assert_eq!(of_kind("Certificate")["spec"]["secretName"], *secret);
    assert_eq!(of_kind("NetworkPolicy")["spec"]["egress"], json!([]));
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
