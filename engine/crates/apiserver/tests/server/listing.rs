//! The resourceVersion, paging and order of lists.

use kubemu_apiserver::Delete;
use serde_json::{Value, json};

use crate::fixture::{MAPS, map, send_json, server};

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_page_of_a_list_has_exactly_the_requested_version() {
    let server = server();
    let client = server.client();
    let mut versions = Vec::new();
    for name in ["a", "b", "c"] {
        let created = client.create(MAPS, map(name)).await.unwrap();
        versions.push(created["metadata"]["resourceVersion"].clone());
    }
    let at = versions[1].as_str().unwrap();
    let path = format!("{MAPS}?limit=2&resourceVersion={at}");
    let (_, list) = send_json(&server, "GET", &path, Value::Null).await;
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["metadata"], json!({"resourceVersion": at}));
    let whole = format!("{MAPS}?resourceVersion={at}");
    let (_, list) = send_json(&server, "GET", &whole, Value::Null).await;
    assert_eq!(names(&list), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_list_at_any_version_is_not_paged() {
    let server = server();
    let client = server.client();
    let events = "/api/v1/namespaces/default/events";
    for name in ["a", "b", "c"] {
        client.create(MAPS, map(name)).await.unwrap();
        let event = json!({"metadata": {"name": name},
            "involvedObject": {"kind": "ConfigMap", "name": name, "namespace": "default"}});
        client.create(events, event).await.unwrap();
    }
    let query = "limit=2&resourceVersion=0";
    let (_, list) =
        send_json(&server, "GET", &format!("{MAPS}?{query}"), Value::Null).await;
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!(list["metadata"].get("continue"), None);
    let (_, list) =
        send_json(&server, "GET", &format!("{events}?{query}"), Value::Null).await;
    assert_eq!(
        names(&list),
        ["a", "b"],
        "events are never served from a cache"
    );
}

#[tokio::test]
async fn lists_are_in_key_order_so_team_a_precedes_team() {
    let server = server();
    let client = server.client();
    for namespace in ["team", "team-a"] {
        let created = json!({"metadata": {"name": namespace}});
        client.create("/api/v1/namespaces", created).await.unwrap();
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        for name in ["x", "y"] {
            let named = map(&format!("{namespace}-{name}"));
            client.create(&maps, named).await.unwrap();
        }
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/configmaps?limit=1".to_owned();
    loop {
        let (_, list) = send_json(&server, "GET", &path, Value::Null).await;
        seen.extend(names(&list));
        let Some(token) = list["metadata"]["continue"].as_str() else {
            break;
        };
        path = format!("/api/v1/configmaps?limit=1&continue={token}");
    }
    seen.retain(|it| it.starts_with("team"));
    assert_eq!(seen, ["team-a-x", "team-a-y", "team-x", "team-y"]);
}

#[tokio::test]
async fn a_continue_token_is_read_before_a_version_beside_it_is_refused() {
    let server = server();
    let client = server.client();
    let list = async |token: &str| {
        let path = format!("{MAPS}?resourceVersion=1&continue={token}");
        let (_, answer) = send_json(&server, "GET", &path, Value::Null).await;
        answer["message"].as_str().unwrap_or_default().to_owned()
    };
    let bad = list("x").await;
    assert!(bad.starts_with("invalid continue token: "), "{bad}");
    client.create(MAPS, map("a")).await.unwrap();
    client.create(MAPS, map("b")).await.unwrap();
    let path = format!("{MAPS}?limit=1");
    let (_, page) = send_json(&server, "GET", &path, Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        list(token).await,
        "specifying resource version is not allowed when using continue"
    );
}

#[tokio::test]
async fn a_deletion_with_a_limit_deletes_one_page_and_returns_it() {
    let server = server();
    let client = server.client();
    for name in ["a", "b", "c", "d", "e"] {
        client.create(MAPS, map(name)).await.unwrap();
    }
    let listed = server.version().to_string();
    let path = format!("{MAPS}?limit=2");
    let (code, page) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(
        (code, names(&page)),
        (200, vec!["a".to_owned(), "b".to_owned()])
    );
    let metadata = &page["metadata"];
    assert_eq!(metadata["resourceVersion"], listed.as_str(), "of the list");
    assert_eq!(metadata["remainingItemCount"], 3);
    let rest = metadata["continue"].as_str().unwrap();
    let (_, left) = send_json(&server, "GET", MAPS, Value::Null).await;
    assert_eq!(names(&left), ["c", "d", "e"]);
    client
        .delete(&format!("{MAPS}/c"), &Delete::default())
        .await
        .unwrap();
    let path = format!("{MAPS}?limit=2&continue={rest}");
    let (_, page) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(names(&page), ["c", "d"], "of the same snapshot");
    let (_, left) = send_json(&server, "GET", MAPS, Value::Null).await;
    assert_eq!(names(&left), ["e"]);
}

#[tokio::test]
async fn a_deletion_at_a_version_deletes_what_existed_then() {
    let server = server();
    let client = server.client();
    let first = client.create(MAPS, map("a")).await.unwrap();
    client.create(MAPS, map("b")).await.unwrap();
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?resourceVersion={version}");
    let (_, page) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(names(&page), ["a"]);
    let (_, left) = send_json(&server, "GET", MAPS, Value::Null).await;
    assert_eq!(names(&left), ["b"]);
    let path = format!("{MAPS}?resourceVersion=1000000");
    let (code, _) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(code, 504);
    let path = format!("{MAPS}?resourceVersionMatch=Exact");
    let (code, _) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(code, 422);
    let path = format!("{MAPS}?limit=1&resourceVersion=0");
    let (_, page) = send_json(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(names(&page), ["b"], "a list at any version is not paged");
}
