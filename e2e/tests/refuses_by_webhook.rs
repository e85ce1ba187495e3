//! On a cluster without the policy, the webhook refuses what the policy refuses, with the same
//! messages.

use std::sync::Arc;

use fivespot_api::resource::{
    Resource, SCHEDULED_CAPACITY, SCHEDULED_MACHINE, SCHEDULED_MACHINE_SET,
};
use fivespot_api::rules::{RULES, Rule};
use fivespot_api::{crd, name};
use fivespot_testkit::{
    Cluster, User, instant, machine_path, path_of, scheduled_machine,
};
use fivespot_webhook::certificate_controller::{self, CertificateController};
use fivespot_webhook::{Authorization, Certificate, Reviewer, Validator, serve};
use kube::Client;
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::admits_exactly_the_table::{
    POLICY, answer, is_object_name, refusal, until_refused,
};
use crate::classes::{create_as, machine, rights_of_joe};
use crate::promise::{Promise, promise};
use crate::scales_on_schedule::{
    capacity_of_jane, create_as_jane, jane_writes_no_other_target_than_she_may,
    policy_about_targets, rights_of_jane,
};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_webhook_answers_as_the_policy_does).disruptive(),
    promise!(an_api_server_refuses_by_the_webhook).disruptive(),
    promise!(the_webhook_asks_who_may_write_a_target)
        .on_embedded_alone("refuses the ScheduledCapacities of all other promises"),
    promise!(the_webhook_asks_who_may_use_a_class)
        .on_embedded_alone("deletes the policy that asks"),
    promise!(the_webhook_asks_who_may_use_the_class_of_a_set)
        .on_embedded_alone("deletes the policy that asks"),
];

const NOW: &str = "2026-03-06T15:00:00Z";
const CONFIGURATION: &str = "5spot-e2e";
const DENIED: &str = "admission webhook \"scheduledmachine-validation.5spot.finos.org\" \
                      denied the request: ";

/// The rejected examples of all rules that can be sent to a server.
fn rejected() -> impl Iterator<Item = (&'static Rule, &'static str)> {
    let of_rule = |rule: &'static Rule| {
        let examples = rule.requirement.examples.rejects().iter();
        examples.map(move |example| (rule, *example))
    };
    let all = RULES.iter().flat_map(of_rule);
    all.filter(|(rule, example)| is_object_name(rule, example))
}

/// The admission review for the example of a rule.
fn review_of(rule: &Rule, example: &str) -> Value {
    let object = rule.example(example);
    let before = rule.before(example);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7f0b2891-916f-4ed6-b7cd-27bff1815a8c",
            "kind": {"group": name::GROUP, "version": name::VERSION, "kind": name::KIND},
            "resource": {"group": name::GROUP, "version": name::VERSION,
                "resource": name::PLURAL},
            "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"],
            "operation": if before.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {},
            "object": object,
            "oldObject": before,
        },
    })
}

async fn the_webhook_answers_as_the_policy_does() {
    let cluster = Cluster::start(instant(NOW)).await;
    cluster.apply(&crd::render_without_rules()).await;
    let by_policy = |refused: &str| refused.contains(": ValidatingAdmissionPolicy '");
    until_refused(&cluster, &wrong(), |it| by_policy(&it.message)).await;
    let validator = Validator::new(&["Deny"]).unwrap();
    for (rule, example) in rejected() {
        let by_policy = answer(&cluster, rule, example).await.unwrap();
        let response = validator.review(review_of(rule, example).to_string().as_bytes());
        let response: Value = serde_json::from_str(&response.body).unwrap();
        let status = &response["response"]["status"];
        assert_eq!(
            status["message"], by_policy.message,
            "{} {example}",
            rule.id
        );
        assert_eq!(status["reason"], by_policy.reason, "{} {example}", rule.id);
        assert_eq!(status["code"], by_policy.code, "{} {example}", rule.id);
    }
}

fn wrong() -> Value {
    let mut wrong = scheduled_machine("wrong");
    wrong["spec"]["nodeDrainTimeout"] = json!("five minutes");
    wrong
}

/// Starts a webhook in this process for a kind of ours, with a certificate that it stores in the
/// cluster, which asks whether a user may do what an object of that kind needs.
async fn start(
    cluster: &Cluster,
    of: &Resource,
    asked: Option<Authorization>,
) -> oneshot::Sender<()> {
    let namespace = cluster.namespace("default");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = fivespot_install::webhook::Settings::default();
    let mut configuration = settings.configuration();
    configuration["metadata"]["name"] = json!(CONFIGURATION);
    let webhooks = configuration["webhooks"].as_array_mut().unwrap();
    webhooks.retain(|it| it["name"] == of.webhook);
    let own = &mut webhooks[0];
    let path = of.webhook_path;
    own["clientConfig"] = json!({"url": format!("https://127.0.0.1:{port}{path}")});
    own["namespaceSelector"] =
        json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name::WEBHOOK, "namespace": "default"},
        }))
        .await;
    cluster.apply(&configuration).await;
    let certificate = Certificate::default();
    let settings = certificate_controller::Settings {
        namespace,
        secret: name::WEBHOOK.to_owned(),
        configuration: CONFIGURATION.to_owned(),
        webhooks: vec![of.webhook.to_owned()],
        names: vec!["127.0.0.1".to_owned()],
    };
    let controller = CertificateController::new(
        cluster.client(),
        settings,
        Clock::system(),
        &certificate,
    );
    tokio::spawn(controller.run());
    let reviewer = Reviewer {
        validator: Arc::new(Validator::new(&["Deny"]).unwrap()),
        targets: asked.clone(),
        classes: asked,
        observer: Arc::new(()),
    };
    let (stop, stopped) = oneshot::channel();
    let stopped = async { _ = stopped.await };
    tokio::spawn(async move { serve(listener, &certificate, reviewer, stopped).await });
    stop
}

async fn an_api_server_refuses_by_the_webhook() {
    let cluster = Cluster::start(instant(NOW)).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    let is_admitted = async || cluster.dry_run(&wrong()).await.is_ok();
    cluster.eventually(is_admitted).await;
    let stop = start(&cluster, SCHEDULED_MACHINE, None).await;
    until_refused(&cluster, &wrong(), |it| it.message.starts_with(DENIED)).await;
    for (rule, example) in rejected() {
        let refused = answer(&cluster, rule, example).await.unwrap();
        let expected = format!(
            "ValidatingAdmissionPolicy 'scheduledmachine-validation' with binding \
             'scheduledmachine-validation-binding' denied request: {}",
            rule.full_message()
        );
        assert!(refused.message.starts_with(DENIED), "{refused:?}");
        assert!(
            refused.message.ends_with(&expected),
            "{} {refused:?}",
            rule.id
        );
        // As kubectl prints it for an invalid object.
        assert_eq!(refused.causes, [format!(" : {expected}")], "{}", rule.id);
        let (code, reason) = (refused.code, refused.reason.as_str());
        assert_eq!((code, reason), (422, "Invalid"), "{}", rule.id);
    }
    let good = scheduled_machine("good");
    cluster.apply(&good).await;
    // Without a webhook, only requests that the policy does not match are admitted.
    drop(stop);
    let is_silent = |it: &crate::admits_exactly_the_table::Refusal| {
        it.message.contains("failed calling webhook")
    };
    until_refused(&cluster, &scheduled_machine("another"), is_silent).await;
    let path = machine_path("good");
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    assert_eq!(refusal(cluster.try_patch(&path, &label).await), None);
    cluster.delete(&path).await;
    let kind = "validatingwebhookconfigurations";
    let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/{CONFIGURATION}");
    cluster.delete(&path).await;
}

async fn the_webhook_asks_who_may_write_a_target() {
    let cluster = Cluster::start(instant(NOW)).await;
    for object in rights_of_jane() {
        cluster.create(&object).await.unwrap();
    }
    let refused_for = async |words: &str| {
        let mine = capacity_of_jane();
        cluster
            .eventually(async || {
                let refused = create_as_jane(&cluster, &mine).await;
                refused.is_err_and(|it| it.contains(words))
            })
            .await;
    };
    let mut stored = capacity_of_jane();
    stored["metadata"]["name"] = json!("stored");
    cluster.create(&stored).await.unwrap();
    // Started without the flag, it admits none, and what is stored can be switched off.
    let stop = start(&cluster, SCHEDULED_CAPACITY, None).await;
    let words = "this webhook does not ask who may write targets";
    refused_for(words).await;
    let change = async |spec: Value| {
        let spec = json!({"spec": spec});
        cluster.try_patch(&path_of(&stored), &spec).await
    };
    let longer = change(json!({"leadTime": "5m"})).await.unwrap_err();
    assert!(longer.to_string().contains(words), "{longer}");
    change(json!({"killSwitch": true})).await.unwrap();
    let on_again = change(json!({"killSwitch": false})).await.unwrap_err();
    assert!(on_again.to_string().contains(words), "{on_again}");
    drop(stop);
    let asking = async |client: Client| {
        let targets = Authorization::of_targets(client, ("default", "kinds")).unwrap();
        start(&cluster, SCHEDULED_CAPACITY, Some(targets)).await
    };
    // Without the kinds, none may be a target.
    let stop = asking(cluster.client()).await;
    refused_for("Deployment.apps is none of the kinds that the operator may change")
        .await;
    let mut kinds = policy_about_targets().pop().unwrap();
    kinds["metadata"] = json!({"name": "kinds", "namespace": "default"});
    cluster.create(&kinds).await.unwrap();
    jane_writes_no_other_target_than_she_may(&cluster).await;
    drop(stop);
    // Who cannot ask refuses, and says why.
    let nobody = User::new("nobody", &["system:authenticated"]);
    let nobody = Client::new(cluster.server().in_process_as(nobody), "default");
    let _stop = asking(nobody).await;
    refused_for("could not ask the API server whether you may write it; try again").await;
}

async fn the_webhook_asks_who_may_use_a_class() {
    let cluster = Cluster::start(instant(NOW)).await;
    for object in rights_of_joe() {
        cluster.create(&object).await.unwrap();
    }
    let asks =
        POLICY.replace("scheduledmachine-validation", "scheduledmachine-class-use");
    cluster.delete(&asks).await;
    let named = |name: &str, class: &str| {
        let mut object = machine();
        object["metadata"]["name"] = json!(name);
        object["spec"]["classRef"]["name"] = json!(class);
        object
    };
    let refused_for = async |object: &Value, words: &str| {
        cluster
            .eventually(async || {
                let refused = create_as(&cluster, object, Some("joe")).await;
                refused.is_err_and(|it| it.contains(words))
            })
            .await;
    };
    // Started without the flag, it admits none that names a class, and others.
    let stop = start(&cluster, SCHEDULED_MACHINE, None).await;
    let desk = named("desk", "desks");
    refused_for(&desk, "this webhook does not ask who may use classes").await;
    let inline = scheduled_machine("inline");
    create_as(&cluster, &inline, Some("joe")).await.unwrap();
    drop(stop);
    let classes = Authorization::of_classes(cluster.client()).unwrap();
    let _stop = start(&cluster, SCHEDULED_MACHINE, Some(classes)).await;
    let server = named("server", "servers");
    refused_for(&server, "spec.classRef.name: you may not use this class").await;
    create_as(&cluster, &desk, Some("joe")).await.unwrap();
    // Whoever may change it need not use its class.
    let disabled = json!({"spec": {"enabled": false}});
    cluster.patch(&machine_path("desk"), &disabled).await;
}

async fn the_webhook_asks_who_may_use_the_class_of_a_set() {
    let cluster = Cluster::start(instant(NOW)).await;
    for object in rights_of_joe() {
        cluster.create(&object).await.unwrap();
    }
    let asks = POLICY.replace(
        "scheduledmachine-validation",
        "scheduledmachineset-class-use",
    );
    cluster.delete(&asks).await;
    let named = |class: &str| {
        let mut set = SCHEDULED_MACHINE_SET.rules()[0].example("desks");
        set["spec"]["template"]["spec"]["classRef"]["name"] = json!(class);
        set
    };
    let refused_for = async |object: &Value, words: &str| {
        cluster
            .eventually(async || {
                let refused = create_as(&cluster, object, Some("joe")).await;
                refused.is_err_and(|it| it.contains(words))
            })
            .await;
    };
    let stop = start(&cluster, SCHEDULED_MACHINE_SET, None).await;
    refused_for(&named("desks"), "so it admits no set").await;
    drop(stop);
    let classes = Authorization::of_classes(cluster.client()).unwrap();
    let _stop = start(&cluster, SCHEDULED_MACHINE_SET, Some(classes)).await;
    let words = "spec.template.spec.classRef.name: you may not use this class";
    refused_for(&named("servers"), words).await;
    create_as(&cluster, &named("desks"), Some("joe"))
        .await
        .unwrap();
}
