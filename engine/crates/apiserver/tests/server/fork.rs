//! A fork has the objects of its server, and changes apart from it.

use kubemu_apiserver::{Delete, ForkOptions, Selector, Server};
use kubemu_clock::Clock;
use serde_json::json;

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, at, definition, map, next, server, summary, thing,
};
use crate::persistence::{TestDirectory, stop};

async fn names(server: &Server) -> Vec<String> {
    let all = server
        .client()
        .list(MAPS, &Selector::default())
        .await
        .unwrap();
    let names = all
        .items
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn forks_and_their_server_do_not_see_each_others_writes() {
    let server = server();
    server.client().create(MAPS, map("shared")).await.unwrap();
    let (one, other) = (server.fork(), server.fork());
    let mut watch = server
        .client()
        .watch(MAPS, &Selector::default(), "")
        .unwrap();
    assert_eq!(summary(&next(&mut watch).await), "ADDED shared");

    one.client().create(MAPS, map("one")).await.unwrap();
    other
        .client()
        .delete(&at("shared"), &Delete::default())
        .await
        .unwrap();
    server.client().create(MAPS, map("own")).await.unwrap();

    assert_eq!(names(&one).await, ["one", "shared"]);
    assert!(names(&other).await.is_empty());
    assert_eq!(names(&server).await, ["own", "shared"]);
    assert_eq!(summary(&next(&mut watch).await), "ADDED own");
    let uid = |server: &Server| {
        let client = server.client();
        async move { client.create(MAPS, map("x")).await.unwrap()["metadata"]["uid"].clone() }
    };
    assert_ne!(uid(&one).await, uid(&other).await);
}

#[tokio::test]
async fn a_watch_of_a_fork_continues_from_a_version_before_the_fork() {
    let server = server();
    let before = server.version().to_string();
    server.client().create(MAPS, map("old")).await.unwrap();
    let fork = server.fork();
    let mut watch = fork
        .client()
        .watch(MAPS, &Selector::default(), &before)
        .unwrap();
    fork.client().create(MAPS, map("new")).await.unwrap();
    assert_eq!(summary(&next(&mut watch).await), "ADDED old");
    assert_eq!(summary(&next(&mut watch).await), "ADDED new");
}

#[tokio::test]
async fn a_definition_is_served_and_published_only_where_it_was_created() {
    let server = server();
    let (one, other) = (server.fork(), server.fork());
    one.client()
        .create(DEFINITIONS, definition())
        .await
        .unwrap();
    let mut elsewhere = definition();
    elsewhere["metadata"]["name"] = json!("jobs.example.org");
    elsewhere["spec"]["group"] = json!("example.org");
    elsewhere["spec"]["names"] = json!({"kind": "Job", "plural": "jobs"});
    other.client().create(DEFINITIONS, elsewhere).await.unwrap();
    one.client().create(THINGS, thing("a")).await.unwrap();
    assert_eq!(
        other
            .client()
            .create(THINGS, thing("a"))
            .await
            .unwrap_err()
            .code,
        404
    );
    for (server, group, is_served) in [
        (&one, "example.com", true),
        (&other, "example.com", false),
        (&other, "example.org", true),
    ] {
        let found = server.registry().groups().any(|it| it == group);
        assert_eq!(found, is_served, "{group}");
        let document = server
            .client()
            .get(&format!("/openapi/v3/apis/{group}/v1"))
            .await;
        assert_eq!(document.is_ok(), is_served, "{group}");
    }
}

#[tokio::test]
async fn the_controllers_of_a_fork_work_for_the_fork() {
    let server = server();
    let client = server.client();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let mut dependent = map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"],
    }]);
    client.create(MAPS, dependent).await.unwrap();
    let fork = server.fork();
    fork.client()
        .delete(&at("owner"), &Delete::default())
        .await
        .unwrap();
    fork.clock().wait_until_idle().await;
    assert!(names(&fork).await.is_empty());
    assert_eq!(names(&server).await, ["dependent", "owner"]);
}

#[tokio::test]
async fn a_fork_has_the_clock_and_the_seed_that_it_is_given() {
    let server = server();
    let created = |server: &Server| {
        let client = server.client();
        async move { client.create(MAPS, map("x")).await.unwrap()["metadata"].clone() }
    };
    let with = |start: &str, seed| ForkOptions {
        clock: Some(Clock::stopped_at(start.parse().unwrap())),
        seed: Some(seed),
        ..ForkOptions::default()
    };
    let one = created(&server.fork_with(with("2027-01-01T00:00:00Z", 7))).await;
    let same = created(&server.fork_with(with("2027-01-01T00:00:00Z", 7))).await;
    let other = created(&server.fork_with(with("2028-01-01T00:00:00Z", 8))).await;
    assert_eq!(one["uid"], same["uid"]);
    assert_ne!(one["uid"], other["uid"]);
    assert_eq!(one["creationTimestamp"], "2027-01-01T00:00:00Z");
    assert_eq!(other["creationTimestamp"], "2028-01-01T00:00:00Z");
    // The time of a virtual clock advances in the fork alone.
    let fork = server.fork();
    let now = server.clock().now();
    assert_eq!(fork.clock().now(), now);
    fork.clock()
        .advance_to("2029-01-01T00:00:00Z".parse().unwrap())
        .await;
    assert_eq!(server.clock().now(), now);
}

#[tokio::test]
async fn a_fork_of_a_server_with_a_storage_writes_nothing_there() {
    let directory = TestDirectory::new();
    let first = Server::new(directory.options()).unwrap();
    first.client().create(MAPS, map("kept")).await.unwrap();
    let fork = first.fork();
    fork.client().create(MAPS, map("lost")).await.unwrap();
    assert_eq!(names(&fork).await, ["kept", "lost"]);
    stop(first, fork).await;
    let second = Server::new(directory.options()).unwrap();
    assert_eq!(names(&second).await, ["kept"]);
}
