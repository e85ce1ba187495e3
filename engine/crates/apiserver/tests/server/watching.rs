//! Paged lists, and watches that continue from a list.

use kubemu_apiserver::{Delete, Options, Patch, Selector, Server};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::fixture::{
    MAPS, at, client, map, name_of, next, options, read, request, send, send_json,
    server, summary,
};

#[tokio::test]
async fn a_watch_has_the_changes_after_the_list() {
    let client = client();
    client.create(MAPS, map("old")).await.unwrap();
    let list = client.list(MAPS, &Selector::default()).await.unwrap();
    let mut watch = client
        .watch(MAPS, &Selector::default(), &list.version)
        .unwrap();
    client.create(MAPS, map("new")).await.unwrap();
    client
        .patch(&at("new"), Patch::Merge(json!({"data": {"a": "2"}})))
        .await
        .unwrap();
    client.delete(&at("old"), &Delete::default()).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(summary(&next(&mut watch).await));
    }
    assert_eq!(seen, ["ADDED new", "MODIFIED new", "DELETED old"]);
}

#[tokio::test]
async fn a_watch_from_an_earlier_version_replays_missed_events() {
    let client = client();
    let list = client.list(MAPS, &Selector::default()).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    client.delete(&at("x"), &Delete::default()).await.unwrap();
    let mut watch = client
        .watch(MAPS, &Selector::default(), &list.version)
        .unwrap();
    assert_eq!(summary(&next(&mut watch).await), "ADDED x");
    assert_eq!(summary(&next(&mut watch).await), "DELETED x");
}

#[tokio::test]
async fn an_object_that_no_longer_matches_is_a_deleted_event() {
    let client = client();
    let red = Selector::labels("color=red");
    let mut watch = client.watch(MAPS, &red, "").unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    let paint = |color| Patch::Merge(json!({"metadata": {"labels": {"color": color}}}));
    client.patch(&at("x"), paint("red")).await.unwrap();
    let blue = client.patch(&at("x"), paint("blue")).await.unwrap();
    assert_eq!(summary(&next(&mut watch).await), "ADDED x");
    let gone = next(&mut watch).await;
    assert_eq!(summary(&gone), "DELETED x");
    assert_eq!(gone.object["metadata"]["labels"]["color"], "red");
    let version = &gone.object["metadata"]["resourceVersion"];
    assert_eq!(*version, blue["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn all_pages_of_a_list_have_the_same_version() {
    let server = server();
    let client = server.client();
    for name in ["a", "b", "c", "d"] {
        client.create(MAPS, map(name)).await.unwrap();
    }
    let (_, first) =
        send_json(&server, "GET", &format!("{MAPS}?limit=3"), Value::Null).await;
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    client.delete(&at("d"), &Delete::default()).await.unwrap();
    client.create(MAPS, map("e")).await.unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let path = format!("{MAPS}?limit=3&continue={token}");
    let (_, rest) = send_json(&server, "GET", &path, Value::Null).await;
    let names: Vec<_> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["metadata"]["name"])
        .collect();
    assert_eq!(names, ["d"]);
    let versions = [&first, &rest].map(|it| &it["metadata"]["resourceVersion"]);
    assert_eq!(versions[0], versions[1]);
    assert!(rest["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn versions_that_are_not_retained_are_expired() {
    let short = Options {
        history: 2,
        ..options()
    };
    let server = Server::new(short).unwrap();
    let client = server.client();
    let list = client.list(MAPS, &Selector::default()).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    client.create(MAPS, map("z")).await.unwrap();
    let (_, first) =
        send_json(&server, "GET", &format!("{MAPS}?limit=1"), Value::Null).await;
    for name in ["y", "u", "v"] {
        client.create(MAPS, map(name)).await.unwrap();
    }
    let since = &list.version;
    let path = format!("{MAPS}?watch=1&resourceVersion={since}");
    let (code, text) =
        read(send(&server, request("GET", &path, &Value::Null)).await).await;
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 200);
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    let oldest = server.version() - 2;
    let message = format!("too old resource version: {since} ({oldest})");
    assert_eq!(event["object"]["message"], message);

    let token = first["metadata"]["continue"].as_str().unwrap();
    let path = format!("{MAPS}?limit=1&continue={token}");
    let (code, refused) = send_json(&server, "GET", &path, Value::Null).await;
    assert_eq!((code, &refused["reason"]), (410, &"Expired".into()));
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with("The provided continue parameter is too old"),
        "{message}"
    );
    let token = refused["metadata"]["continue"].as_str().unwrap();
    let path = format!("{MAPS}?continue={token}");
    let (code, rest) = send_json(&server, "GET", &path, Value::Null).await;
    let rest = rest["items"].as_array().unwrap();
    let names: Vec<_> = rest.iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(code, 200);
    assert_eq!(names, ["y", "z"]);
}

#[tokio::test]
async fn a_streamed_list_ends_with_an_initial_events_end_bookmark() {
    let server = server();
    server.client().create(MAPS, map("x")).await.unwrap();
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan"
    );
    let mut body = send(&server, request("GET", &path, &Value::Null))
        .await
        .into_body();
    let mut events = Vec::new();
    for _ in 0..2 {
        let frame = http_body_util::BodyExt::frame(&mut body)
            .await
            .unwrap()
            .unwrap();
        let event: Value = serde_json::from_slice(frame.data_ref().unwrap()).unwrap();
        events.push(event);
    }
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[1]["type"], "BOOKMARK");
    let marks = &events[1]["object"]["metadata"]["annotations"];
    assert_eq!(marks["k8s.io/initial-events-end"], "true");
    let version = events[1]["object"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap();
    assert_eq!(version, server.version().to_string());
}

#[tokio::test]
async fn a_future_version_is_a_timeout() {
    let server = server();
    let path = format!("{MAPS}?resourceVersion=1000&resourceVersionMatch=NotOlderThan");
    let (code, refused) = send_json(&server, "GET", &path, Value::Null).await;
    assert_eq!((code, &refused["reason"]), (504, &"Timeout".into()));
    assert_eq!(
        refused["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let server = server();
    let path = format!("{MAPS}?watch=1&timeoutSeconds=5&allowWatchBookmarks=true");
    let (_, text) = read(send(&server, request("GET", &path, &Value::Null)).await).await;
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["type"], "BOOKMARK");
    assert!(event["object"]["metadata"].get("annotations").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_is_resumed_after_more_writes_to_others_than_are_retained() {
    let server = Server::new(Options {
        history: 2,
        ..options()
    });
    let server = server.unwrap();
    let path = format!("{MAPS}?watch=1&timeoutSeconds=5&allowWatchBookmarks=true");
    let from = format!("{path}&resourceVersion={}", server.version());
    let idle = send(&server, request("GET", &from, &Value::Null)).await;
    for number in 0..4 {
        let secret = json!({"metadata": {"name": format!("s-{number}")}});
        let secrets = "/api/v1/namespaces/default/secrets";
        server.client().create(secrets, secret).await.unwrap();
    }
    let (_, text) = read(idle).await;
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["type"], "BOOKMARK");
    let version = event["object"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap();
    let from = format!("{path}&resourceVersion={version}");
    let (_, text) = read(send(&server, request("GET", &from, &Value::Null)).await).await;
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["type"], "BOOKMARK", "{event}");
}

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Update(u8, u8),
    Delete(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4u8).prop_map(Step::Create),
        ((0..4u8), (0..3u8)).prop_map(|(name, color)| Step::Update(name, color)),
        (0..4u8).prop_map(Step::Delete),
    ]
}

/// The names and versions of the selected objects.
type ObjectVersions = BTreeMap<String, String>;

fn insert_version(versions: &mut ObjectVersions, object: &std::sync::Arc<Value>) {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
    versions.insert(name_of(object).to_owned(), version.to_owned());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_list_and_its_watch_result_in_the_same_state_as_a_later_list(
        before in proptest::collection::vec(step(), 0..12),
        after in proptest::collection::vec(step(), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = client();
            let red = Selector::labels("color=0");
            let take = async |step: &Step| {
                let name = |it: &u8| format!("x{it}");
                // Invalid steps are rejected and change nothing.
                let _ = match step {
                    Step::Create(it) => client.create(MAPS, map(&name(it))).await,
                    Step::Delete(it) => {
                        client.delete(&at(&name(it)), &Delete::default()).await
                    }
                    Step::Update(it, color) => {
                        let labels = json!({"color": color.to_string()});
                        let patch = json!({"metadata": {"labels": labels}});
                        client.patch(&at(&name(it)), Patch::Merge(patch)).await
                    }
                };
            };
            for step in &before {
                take(step).await;
            }
            let first = client.list(MAPS, &red).await.unwrap();
            let mut versions = ObjectVersions::new();
            first.items.iter().for_each(|it| insert_version(&mut versions, it));
            let mut watch = client.watch(MAPS, &red, &first.version).unwrap();
            for step in &after {
                take(step).await;
            }
            // A last event, which marks the end of the stream.
            let mut last = map("last");
            last["metadata"]["labels"] = json!({"color": "0"});
            client.create(MAPS, last).await.unwrap();
            loop {
                let event = next(&mut watch).await;
                let object = &event.object;
                match event.kind.as_str() {
                    "ADDED" => {
                        prop_assert!(!versions.contains_key(name_of(object)));
                        insert_version(&mut versions, object);
                    }
                    "MODIFIED" => {
                        prop_assert!(versions.contains_key(name_of(object)));
                        insert_version(&mut versions, object);
                    }
                    _ => prop_assert!(versions.remove(name_of(object)).is_some()),
                }
                if name_of(object) == "last" {
                    break;
                }
            }
            let mut expected = ObjectVersions::new();
            let end = client.list(MAPS, &red).await.unwrap();
            end.items.iter().for_each(|it| insert_version(&mut expected, it));
            prop_assert_eq!(versions, expected);
            Ok(())
        })?;
    }
}
