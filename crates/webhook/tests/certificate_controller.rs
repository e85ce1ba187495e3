//! The certificate controller with an API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fivespot_webhook::Certificate;
use fivespot_webhook::certificate_controller::{
    CertificateController, RenewalHealth, Settings,
};
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::{InProcess, Options, Server, User};
use kubemu_clock::Clock;
use serde_json::{Value, json};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const SECRETS: &str = "/api/v1/namespaces/5spot-system/secrets";
const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

struct TestCluster {
    clock: Clock,
    server: Server,
}

impl TestCluster {
    async fn new() -> Self {
        let clock = Clock::stopped_at("2026-03-06T21:30:00Z".parse().unwrap());
        let server = Server::new(Options::new(clock.clone())).unwrap();
        let cluster = Self { clock, server };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "5spot-system"}});
        cluster.create("/api/v1/namespaces", namespace).await;
        cluster
    }

    /// With the objects of the manifests.
    async fn installed() -> Self {
        let cluster = Self::new().await;
        cluster.create(SECRETS, secret()).await;
        cluster.create(CONFIGURATIONS, configuration()).await;
        cluster
    }

    async fn create(&self, path: &str, object: Value) {
        self.server.client().create(path, object).await.unwrap();
    }

    fn start(&self) -> (Certificate, RenewalHealth) {
        self.start_as(self.server.in_process())
    }

    /// Starts the controller as the user of `service`.
    fn start_as(&self, service: InProcess) -> (Certificate, RenewalHealth) {
        let certificate = Certificate::default();
        let client = kube::Client::new(service, "default");
        let controller = CertificateController::new(
            client,
            settings(),
            self.clock.clone(),
            &certificate,
        );
        let health = controller.health();
        tokio::spawn(controller.run());
        (certificate, health)
    }

    async fn advance(&self, span: SignedDuration) {
        self.clock.advance_to(self.clock.now() + span).await;
    }

    async fn get(&self, path: &str, name: &str) -> Value {
        let found = self.server.client().get(&format!("{path}/{name}")).await;
        Value::clone(&found.unwrap())
    }

    async fn secret(&self) -> Value {
        self.get(SECRETS, "5spot-webhook").await
    }

    async fn configuration(&self) -> Value {
        self.get(CONFIGURATIONS, "scheduledmachine-validation")
            .await
    }

    /// The bundle in the webhook configuration.
    async fn bundle(&self) -> String {
        decoded(&self.configuration().await["webhooks"][1]["clientConfig"]["caBundle"])
    }
}

fn decoded(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn settings() -> Settings {
    Settings {
        namespace: "5spot-system".to_owned(),
        secret: "5spot-webhook".to_owned(),
        configuration: "scheduledmachine-validation".to_owned(),
        webhooks: vec!["scheduledmachine-validation.5spot.finos.org".to_owned()],
        names: vec!["webhook.5spot-system.svc".to_owned()],
    }
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "5spot-webhook", "namespace": "5spot-system"}})
}

/// A configuration with another webhook before ours.
fn configuration() -> Value {
    let webhook = |name: &str| {
        json!({
            "name": name,
            "clientConfig": {"service": {"namespace": "5spot-system", "name": "webhook",
                "path": "/validate"}},
            "rules": [{"apiGroups": ["5spot.finos.org"], "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["scheduledmachines"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "scheduledmachine-validation"},
        "webhooks": [webhook("another.example.com"),
            webhook("scheduledmachine-validation.5spot.finos.org")],
    })
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

#[tokio::test]
async fn the_first_replica_creates_a_certificate_and_a_bundle_that_trusts_it() {
    let cluster = TestCluster::installed().await;
    let (certificate, health) = cluster.start();
    cluster.advance(SignedDuration::ZERO).await;
    assert!(certificate.is_set());
    assert_eq!(health.problems(), Vec::<String>::new());
    assert_eq!(
        health.expiry(),
        Some("2026-04-05T00:00:00Z".parse().unwrap())
    );
    assert_eq!(
        cluster.bundle().await.matches("BEGIN CERTIFICATE").count(),
        1
    );
    let (secret, found) = (cluster.secret().await, cluster.configuration().await);
    assert_eq!(decoded(&secret["data"]["ca.crt"]), cluster.bundle().await);
    let others = &found["webhooks"][0];
    assert_eq!(others["name"], "another.example.com");
    assert_eq!(others["clientConfig"].get("caBundle"), None);
    // Nothing is written while nothing is due.
    cluster.advance(DAY * 15).await;
    assert_eq!(version(&cluster.secret().await), version(&secret));
    assert_eq!(version(&cluster.configuration().await), version(&found));
}

#[tokio::test]
async fn replicas_that_start_together_agree_on_one_ca() {
    let cluster = TestCluster::installed().await;
    let all = [cluster.start(), cluster.start(), cluster.start()];
    cluster.advance(SignedDuration::from_mins(1)).await;
    for (certificate, health) in &all {
        assert!(certificate.is_set());
        assert_eq!(health.problems(), Vec::<String>::new());
    }
    assert_eq!(
        cluster.bundle().await.matches("BEGIN CERTIFICATE").count(),
        1
    );
    let secret = cluster.secret().await;
    assert_eq!(decoded(&secret["data"]["ca.crt"]), cluster.bundle().await);
    cluster.advance(DAY).await;
    assert_eq!(version(&cluster.secret().await), version(&secret));
}

#[tokio::test]
async fn a_new_ca_is_trusted_while_the_old_one_still_is() {
    let cluster = TestCluster::installed().await;
    let _running = [cluster.start(), cluster.start()];
    cluster.advance(SignedDuration::from_mins(1)).await;
    let first = cluster.bundle().await;
    // Ninety days before the first CA expires.
    let due: Timestamp = "2026-12-06T00:00:00Z".parse().unwrap();
    cluster
        .clock
        .advance_to(due - SignedDuration::from_secs(1))
        .await;
    assert_eq!(cluster.bundle().await, first);
    let served = cluster.secret().await["data"]["rotation.json"].clone();
    let issuer = |state: &Value| {
        let state: Value = serde_json::from_str(&decoded(state)).unwrap();
        state["serving"]["issuer"].clone()
    };
    cluster
        .clock
        .advance_to(due + SignedDuration::from_mins(1))
        .await;
    let both = cluster.bundle().await;
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(both.contains(&first));
    let signed = cluster.secret().await["data"]["rotation.json"].clone();
    assert_eq!(issuer(&signed), issuer(&served));
    // Now the second one signs, and both are trusted.
    cluster.advance(SignedDuration::from_mins(62)).await;
    assert_eq!(cluster.bundle().await, both);
    let signed = cluster.secret().await["data"]["rotation.json"].clone();
    assert_ne!(issuer(&signed), issuer(&served));
    cluster.advance(SignedDuration::from_mins(62)).await;
    let second = cluster.bundle().await;
    assert!(both.contains(&second) && !second.contains(&first));
}

#[tokio::test]
async fn an_overwritten_bundle_is_restored() {
    let cluster = TestCluster::installed().await;
    let _running = cluster.start();
    cluster.advance(SignedDuration::from_mins(1)).await;
    let bundle = cluster.bundle().await;
    let client = cluster.server.client();
    let path = format!("{CONFIGURATIONS}/scheduledmachine-validation");
    client
        .delete(&path, &kubemu_apiserver::Delete::default())
        .await
        .unwrap();
    cluster.create(CONFIGURATIONS, configuration()).await;
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert_eq!(cluster.bundle().await, bundle);
}

#[tokio::test]
async fn what_is_missing_is_named_and_used_once_it_is_there() {
    let cluster = TestCluster::new().await;
    let (certificate, health) = cluster.start();
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert!(!certificate.is_set());
    insta::assert_snapshot!(health.problems().join("\n"));
    cluster.create(SECRETS, secret()).await;
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert!(certificate.is_set());
    cluster.create(CONFIGURATIONS, configuration()).await;
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert_eq!(health.problems(), Vec::<String>::new());
    assert!(!cluster.bundle().await.is_empty());
}

#[tokio::test]
async fn a_damaged_secret_is_replaced() {
    let cluster = TestCluster::new().await;
    let mut damaged = secret();
    damaged["data"] = json!({"rotation.json": STANDARD.encode("five minutes")});
    cluster.create(SECRETS, damaged).await;
    cluster.create(CONFIGURATIONS, configuration()).await;
    let (certificate, _) = cluster.start();
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert!(certificate.is_set());
    assert!(!cluster.bundle().await.is_empty());
}

#[tokio::test]
async fn it_needs_no_permission_beyond_its_manifests() {
    let cluster = TestCluster::new().await;
    let namespaced = |kind: &str| {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        match kind {
            "Role" => format!("{rbac}/namespaces/5spot-system/roles"),
            "RoleBinding" => format!("{rbac}/namespaces/5spot-system/rolebindings"),
            "ClusterRole" => format!("{rbac}/clusterroles"),
            "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
            "Secret" => SECRETS.to_owned(),
            "ValidatingWebhookConfiguration" => CONFIGURATIONS.to_owned(),
            _ => String::new(),
        }
    };
    for document in fivespot_install::webhook::Settings::default().documents() {
        let path = namespaced(document["kind"].as_str().unwrap());
        if !path.is_empty() {
            cluster.create(&path, document).await;
        }
    }
    let account = User::service_account("5spot-system", "5spot-webhook");
    let (certificate, health) = cluster.start_as(cluster.server.in_process_as(account));
    cluster.advance(DAY * 300).await;
    assert_eq!(health.problems(), Vec::<String>::new());
    assert!(certificate.is_set());
    let webhook = cluster.configuration().await["webhooks"][0].clone();
    let bundle = decoded(&webhook["clientConfig"]["caBundle"]);
    assert_eq!(bundle, decoded(&cluster.secret().await["data"]["ca.crt"]));
    assert!(!bundle.is_empty());
    assert_eq!(webhook["clientConfig"]["service"]["path"], "/validate");
}

/// The permission to patch the configuration covers all of it; the policy restricts it.
#[tokio::test]
async fn where_policies_are_known_the_webhook_may_change_the_bundle_and_nothing_else() {
    let cluster = TestCluster::installed().await;
    for document in fivespot_install::webhook::webhook_restriction("5spot-system") {
        let plural = match document["kind"].as_str() {
            Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
            _ => "validatingadmissionpolicybindings",
        };
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        cluster.create(&path, document).await;
    }
    let account = "system:serviceaccount:5spot-system:5spot-webhook";
    let user = User::new(account, &["system:masters"]);
    let (_, health) = cluster.start_as(cluster.server.in_process_as(user.clone()));
    cluster.advance(SignedDuration::from_mins(1)).await;
    assert_eq!(health.problems(), Vec::<String>::new());
    assert!(cluster.bundle().await.contains("BEGIN CERTIFICATE"));

    let client = cluster.server.client_as(user);
    let path = format!("{CONFIGURATIONS}/scheduledmachine-validation");
    let found = cluster.configuration().await;
    let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["*"]}]);
    let own = "/webhooks/1";
    let edits = [
        (format!("{own}/rules"), everything),
        (format!("{own}/failurePolicy"), json!("Ignore")),
        (format!("{own}/clientConfig/service/name"), json!("another")),
        (
            format!("{own}/objectSelector"),
            json!({"matchLabels": {"a": "b"}}),
        ),
        (format!("{own}/timeoutSeconds"), json!(1)),
        ("/webhooks".to_owned(), json!([found["webhooks"][1]])),
        ("/metadata/labels".to_owned(), json!({"a": "b"})),
    ];
    for (place, value) in edits {
        let mut changed = found.clone();
        let (parent, field) = place.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[field] = value;
        let refused = client.update(&path, changed).await.unwrap_err();
        let message = "may only change the caBundle of its own webhook configuration";
        assert!(refused.message.contains(message), "{place}: {refused:?}");
    }
    let mut fresh = found.clone();
    fresh["webhooks"][1]["clientConfig"]["caBundle"] = json!("");
    client.update(&path, fresh).await.unwrap();
}
