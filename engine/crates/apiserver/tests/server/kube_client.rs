//! The `kube` crate's client and watcher work with the in-process service.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{
    Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::fixture::{DEFINITIONS, create_running_pod, definition, pod, server, thing};

fn client(server: &kubemu_apiserver::Server) -> Client {
    Client::new(server.in_process(), "default")
}

fn config(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}}))
        .unwrap()
}

#[tokio::test]
async fn typed_objects_are_created_updated_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server()));
    let created = api
        .create(&PostParams::default(), &config("x"))
        .await
        .unwrap();
    assert!(created.uid().is_some());
    let patch = json!({"data": {"a": "2"}});
    let merge = Patch::Merge(&patch);
    let changed = api
        .patch("x", &PatchParams::default(), &merge)
        .await
        .unwrap();
    assert_eq!(changed.data.unwrap()["a"], "2");
    let applied = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"b": "3"},
    });
    let apply = Patch::Apply(&applied);
    let applied = api
        .patch("x", &PatchParams::apply("me"), &apply)
        .await
        .unwrap();
    assert_eq!(applied.data.unwrap().len(), 2);
    assert_eq!(
        api.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    api.delete("x", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn errors_are_kube_api_errors() {
    let api: Api<Node> = Api::all(client(&server()));
    let Err(kube::Error::Api(status)) = api.get("n1").await else {
        unreachable!("there is no such node");
    };
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
}

#[tokio::test]
async fn both_kinds_of_watcher_follow_a_collection() {
    for config_of_watcher in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let api: Api<ConfigMap> = Api::default_namespaced(client(&server()));
        api.create(&PostParams::default(), &config("old"))
            .await
            .unwrap();
        let mut events = Box::pin(watcher(api.clone(), config_of_watcher));
        let mut seen = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            match event {
                Event::Init => seen.push("init".to_owned()),
                Event::InitApply(it) => seen.push(format!("had {}", it.name_any())),
                Event::InitDone => {
                    seen.push("ready".to_owned());
                    api.create(&PostParams::default(), &config("new"))
                        .await
                        .unwrap();
                }
                Event::Apply(it) => {
                    seen.push(format!("applied {}", it.name_any()));
                    api.delete("old", &DeleteParams::default()).await.unwrap();
                }
                Event::Delete(it) => {
                    seen.push(format!("deleted {}", it.name_any()));
                    break;
                }
            }
        }
        assert_eq!(
            seen,
            ["init", "had old", "ready", "applied new", "deleted old"]
        );
    }
}

#[tokio::test]
async fn dynamic_objects_are_found_by_discovery() {
    let server = server();
    server
        .client()
        .create(DEFINITIONS, definition())
        .await
        .unwrap();
    let client = client(&server);
    let kind = GroupVersionKind::gvk("example.com", "v1", "Thing");
    let (resource, capabilities) =
        kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    assert_eq!(resource.plural, "things");
    assert!(
        capabilities
            .subresources
            .iter()
            .any(|(it, _)| it.plural == "status")
    );
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let object: DynamicObject = serde_json::from_value(thing("x")).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    let status = Patch::Merge(json!({"status": {"phase": "Good"}}));
    let changed = api
        .patch_status("x", &PatchParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(changed.data["status"]["phase"], "Good");
}

#[tokio::test]
async fn pods_are_evicted_and_owners_deleted_in_the_foreground() {
    let server = server();
    create_running_pod(&server.client(), pod("a", "n1", "web")).await;
    let pods: Api<Pod> = Api::default_namespaced(client(&server));
    pods.evict("a", &EvictParams::default()).await.unwrap();
    let leaving = pods.get("a").await.unwrap();
    assert!(leaving.metadata.deletion_timestamp.is_some());
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    api.create(&PostParams::default(), &config("x"))
        .await
        .unwrap();
    let foreground = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    api.delete("x", &foreground).await.unwrap();
    server.clock().wait_until_idle().await;
    assert!(api.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn an_idle_kube_watcher_does_not_stop_the_clock() {
    let server = server();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let events = watcher(api, watcher::Config::default());
    let follower = tokio::spawn(events.for_each(|_| std::future::ready(())));
    let later = server.clock().now() + jiff::SignedDuration::from_hours(24);
    server.clock().advance_to(later).await;
    assert_eq!(server.clock().now(), later);
    follower.abort();
}
