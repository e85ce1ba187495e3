//! The webhook over TLS, as an API server calls it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod support;

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fivespot_api::name::WEBHOOK_PATH as PATH;
use fivespot_webhook::Certificate;
use fivespot_webhook::serve::{MAX_BYTES, ReviewObserver};
use fivespot_webhook::validator::Verdict;
use serde_json::{Value, json};
use support::{Client, Webhook, authority, review};

#[tokio::test]
async fn each_example_is_refused_in_the_words_of_the_policy() {
    let webhook = Webhook::start().await;
    let mut printed = String::new();
    for file in ["valid", "bad-duration", "bad-api-group", "cron-conflict"] {
        let (code, answer) = webhook.client().send_review(&review(file)).await;
        assert_eq!(code, 200);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let response = &answer["response"];
        let message = response["status"]["message"].as_str().unwrap_or("-");
        writeln!(printed, "{file}: {} {message}", response["allowed"]).unwrap();
    }
    insta::assert_snapshot!(printed);
}

#[tokio::test]
async fn what_is_no_question_is_answered_with_a_failure() {
    let webhook = Webhook::start().await;
    let good = review("valid").to_string();
    let older = good.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let huge = " ".repeat(MAX_BYTES + 1);
    let json = "application/json";
    let mut printed = String::new();
    for (what, method, path, media, body) in [
        ("no JSON", "POST", PATH, json, "five minutes"),
        ("another version", "POST", PATH, json, older.as_str()),
        ("too large", "POST", PATH, json, huge.as_str()),
        ("another path", "POST", "/", json, good.as_str()),
        ("another method", "GET", PATH, json, ""),
        ("another type", "POST", PATH, "text/yaml", good.as_str()),
    ] {
        let (code, body) = webhook.client().send(method, path, media, body).await;
        write!(printed, "{what}: {code} {body}").unwrap();
    }
    insta::assert_snapshot!(printed);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_bounded_as_well() {
    let webhook = Webhook::start().await;
    let (code, _) = webhook.client().send_in_pieces(MAX_BYTES + 1).await;
    assert_eq!(code, 413);
}

#[tokio::test]
async fn without_a_certificate_there_is_no_handshake() {
    let authority = authority("first");
    let webhook = Webhook::with(Certificate::default(), &authority).await;
    assert!(webhook.client().try_connect().await.is_err());
}

#[tokio::test]
async fn a_client_that_trusts_another_ca_does_not_connect() {
    let webhook = Webhook::start().await;
    let untrusting = webhook.client().trusting(&authority("other").bundle);
    assert!(untrusting.try_connect().await.is_err());
}

#[tokio::test]
async fn a_new_certificate_is_used_for_new_connections_and_open_ones_continue() {
    let (first, second) = (authority("first"), authority("second"));
    let certificate = Certificate::default();
    first.install(&certificate);
    let webhook = Webhook::with(certificate.clone(), &first).await;
    let mut open_connection = webhook.client().connect().await;
    second.install(&certificate);
    let (code, _) = open_connection.send_review(&review("valid")).await;
    assert_eq!(code, 200);
    assert!(webhook.client().try_connect().await.is_err());
    let client = webhook.client().trusting(&second.bundle);
    assert_eq!(client.send_review(&review("valid")).await.0, 200);
}

#[tokio::test]
async fn a_review_that_is_under_way_is_answered_before_the_server_stops() {
    let webhook = Webhook::start().await;
    let mut asking = webhook.client().connect().await;
    let text = review("bad-duration").to_string();
    let (first, rest) = text.split_at(text.len() / 2);
    asking.begin(text.len(), first).await;
    // The first half has been received: another connection was served after it.
    assert_eq!(webhook.client().send_review(&review("valid")).await.0, 200);
    let stopping = webhook.stop();
    let (code, answer) = asking.end(rest).await;
    assert_eq!(code, 200);
    assert!(answer.contains("must be a duration string"), "{answer}");
    stopping.await;
}

#[tokio::test]
async fn a_mounted_certificate_is_served_and_reloaded_when_it_changes() {
    let directory = support::Directory::new("mounted");
    let (first, second) = (authority("first"), authority("second"));
    directory.link(&first, "1");
    let certificate = Certificate::default();
    let mounted = fivespot_webhook::mounted::MountedCertificate::open(
        directory.path(),
        &certificate,
    )
    .unwrap();
    tokio::spawn(mounted.reload_on_change());
    let webhook = Webhook::with(certificate, &first).await;
    assert_eq!(webhook.client().send_review(&review("valid")).await.0, 200);
    // A chain with a key that does not match is never served.
    std::fs::write(directory.path().join("..data/tls.key"), "no key").unwrap();
    assert_eq!(webhook.client().send_review(&review("valid")).await.0, 200);
    // As the kubelet does it.
    directory.link(&second, "2");
    let client = webhook.client().trusting(&second.bundle);
    support::eventually(async || client.try_connect().await.is_ok()).await;
    assert_eq!(client.send_review(&review("valid")).await.0, 200);
}

#[test]
fn what_cannot_be_mounted_is_reported_with_its_path() {
    let directory = support::Directory::new("unmounted");
    let printed = |made: &Certificate| {
        let opened =
            fivespot_webhook::mounted::MountedCertificate::open(directory.path(), made);
        let path = directory.path().display().to_string();
        opened.unwrap_err().to_string().replace(&path, "DIR")
    };
    let certificate = Certificate::default();
    let mut all = vec![printed(&certificate)];
    std::fs::write(directory.path().join("tls.crt"), "text").unwrap();
    std::fs::write(directory.path().join("tls.key"), "text").unwrap();
    all.push(printed(&certificate));
    std::fs::write(directory.path().join("tls.crt"), authority("a").bundle).unwrap();
    all.push(printed(&certificate));
    insta::assert_snapshot!(all.join("\n"));
    assert!(!certificate.is_set());
}

#[tokio::test]
async fn concurrent_reviews_are_answered() {
    let webhook = Webhook::start().await;
    let asking = (0..40).map(|_| async {
        let client: Client = webhook.client();
        client.send_review(&review("bad-duration")).await.0
    });
    let codes = futures::future::join_all(asking).await;
    assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
}

/// How long an API server waits for a response.
const API_SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a review is answered in time.
async fn is_answered(webhook: &Webhook) -> bool {
    let client = webhook.client();
    let answered = async {
        let mut connection = client.try_connect().await.ok()?;
        Some(connection.send_review(&review("valid")).await.0)
    };
    let answered = tokio::time::timeout(API_SERVER_TIMEOUT, answered).await;
    matches!(answered, Ok(Some(200)))
}

#[tokio::test]
async fn a_question_is_answered_in_time_beside_64_bodies_that_never_end() {
    let webhook = Webhook::start().await;
    let mut slow = Vec::new();
    for _ in 0..64 {
        let mut connection = webhook.client().connect().await;
        connection.begin(1000, "{").await;
        slow.push(connection);
    }
    assert!(is_answered(&webhook).await);
}

#[tokio::test]
async fn a_question_is_answered_in_time_beside_256_idle_http_2_connections() {
    let webhook = Webhook::start().await;
    let mut idle = Vec::new();
    for _ in 0..256 {
        idle.push(webhook.client().connect_http_2().await);
    }
    assert!(is_answered(&webhook).await);
}

#[tokio::test]
async fn a_question_is_answered_in_time_beside_256_connections_that_say_nothing() {
    let webhook = Webhook::start().await;
    let mut silent = Vec::new();
    for _ in 0..256 {
        silent.push(webhook.client().connect_tcp().await);
    }
    assert!(is_answered(&webhook).await);
}

#[tokio::test]
async fn of_bodies_that_are_too_large_together_the_oldest_is_given_up() {
    let webhook = Webhook::start().await;
    let part = " ".repeat(6 << 20);
    let mut asking = Vec::new();
    for _ in 0..6 {
        let mut connection = webhook.client().connect().await;
        connection.begin(part.len() + 1, &part).await;
        asking.push(connection);
    }
    let answer = tokio::time::timeout(API_SERVER_TIMEOUT, asking.remove(0).end("")).await;
    assert_eq!(answer.map(|(code, _)| code), Ok(503));
    assert!(is_answered(&webhook).await);
}

/// Counts the reviews that are refused, and holds each of them up until the gate opens.
#[derive(Debug, Default)]
struct Gate {
    refused: Mutex<usize>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl ReviewObserver for Gate {
    fn reviewed(&self, verdict: Verdict, _: Duration) {
        if verdict == Verdict::Refused {
            *self.refused.lock().unwrap() += 1;
            let is_open = self.is_open.lock().unwrap();
            drop(self.opened.wait_while(is_open, |is_open| !*is_open));
        }
    }
}

/// Opens the gate when it is dropped.
struct Opening(Arc<Gate>);

impl Drop for Opening {
    fn drop(&mut self) {
        *self.0.is_open.lock().unwrap() = true;
        self.0.opened.notify_all();
    }
}

/// A review of 250 KB with far more annotations than the schema allows.
fn large_review() -> Value {
    let mut review = review("valid");
    let long = "v".repeat(100);
    let annotations = (0..2_000).map(|at| (format!("key-{at}"), json!(long)));
    review["request"]["object"]["spec"]["machineTemplate"]["annotations"] =
        annotations.collect::<serde_json::Map<_, _>>().into();
    review
}

/// Sends 16 large reviews from these addresses, of which none ends, and then small ones: from an
/// address of their own and from the first of these.
async fn send_small_reviews_beside_large_ones(addresses: &[Ipv4Addr]) {
    let gate = Arc::new(Gate::default());
    let webhook = Webhook::observed(gate.clone()).await;
    let opening = Opening(gate.clone());
    let large = Arc::new(large_review());
    let send_large = |at: usize| {
        let address = addresses[at % addresses.len()];
        let (client, large) = (webhook.client().sent_from(address), large.clone());
        tokio::spawn(async move { client.send_review(&large).await })
    };
    let hostile: Vec<_> = (0..16).map(send_large).collect();
    let refused = || *gate.refused.lock().unwrap();
    support::eventually(async || refused() > 0).await;
    for own in [Ipv4Addr::new(127, 0, 1, 1), addresses[0]] {
        let client = webhook.client().sent_from(own);
        assert_eq!(client.send_review(&review("valid")).await.0, 200);
    }
    assert_eq!(refused(), 1);
    drop(opening);
    for sent in hostile {
        let (code, answer) = sent.await.unwrap();
        assert_eq!(code, 200);
        assert!(
            answer.contains("Too many: 2000: must have at most"),
            "{answer}"
        );
    }
    assert_eq!(refused(), 16);
}

#[tokio::test]
async fn a_small_review_does_not_wait_for_large_ones_of_one_address() {
    send_small_reviews_beside_large_ones(&[Ipv4Addr::LOCALHOST]).await;
}

#[tokio::test]
async fn a_small_review_does_not_wait_for_large_ones_of_many_addresses() {
    let addresses: Vec<_> = (2..18).map(|it| Ipv4Addr::new(127, 0, 0, it)).collect();
    send_small_reviews_beside_large_ones(&addresses).await;
}

#[tokio::test]
async fn an_object_out_of_the_bounds_of_its_schema_is_refused_in_its_words() {
    let webhook = Webhook::start().await;
    let (_, answer) = webhook.client().send_review(&large_review()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let status = &answer["response"]["status"];
    let message = status["message"].as_str().unwrap();
    insta::assert_snapshot!(message, @r#"ScheduledMachine.5spot.finos.org "test-valid" is invalid: spec.machineTemplate.annotations: Too many: 2000: must have at most 64 items"#);
    assert_eq!(status["code"], 422);
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "FieldValueTooMany"
    );
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "spec.machineTemplate.annotations"
    );
}
