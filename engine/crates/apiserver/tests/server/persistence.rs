//! Objects that are stored on disk exist after a restart of the server.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use kubemu_apiserver::{
    Credentials, Delete, Options, Patch, Selector, Server, Storage, User, write_private,
};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, at, definition, map, name_of, options, thing,
};

/// A separate directory for each test; removed at the end.
pub(crate) struct TestDirectory(PathBuf);

impl TestDirectory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kept-{}-{count}", id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn server(&self) -> Server {
        Server::new(self.options()).unwrap()
    }

    /// Options for a server that stores its objects in this directory.
    pub(crate) fn options(&self) -> Options {
        Options {
            storage: Some(Storage::open(&self.0).unwrap()),
            ..options()
        }
    }
}

/// Drops a server when its queued work is done; the work holds a reference to it.
pub(crate) async fn stop<T>(server: Server, client: T) {
    server.clock().wait_until_idle().await;
    drop((server, client));
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // A leftover directory does not affect other tests.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn objects_and_resource_versions_persist_across_a_restart() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let client = first.client();
    client.create(MAPS, map("kept")).await.unwrap();
    client.create(MAPS, map("gone")).await.unwrap();
    client
        .delete(&at("gone"), &Delete::default())
        .await
        .unwrap();
    let paint = Patch::Merge(json!({"data": {"a": "2"}}));
    let retained = client.patch(&at("kept"), paint).await.unwrap();
    let version = first.version();
    stop(first, client).await;

    let second = directory.server();
    assert_eq!(second.version(), version, "a restart writes nothing");
    let client = second.client();
    assert_eq!(client.get(&at("kept")).await.unwrap(), retained);
    assert_eq!(client.get(&at("gone")).await.unwrap_err().code, 404);
    let later = client.create(MAPS, map("later")).await.unwrap();
    assert_eq!(
        later["metadata"]["resourceVersion"],
        (version + 1).to_string()
    );
    let uids: Vec<Value> = [retained, later]
        .iter()
        .map(|it| it["metadata"]["uid"].clone())
        .collect();
    assert_ne!(uids[0], uids[1]);
}

#[tokio::test]
async fn uids_are_unique_across_restarts() {
    let directory = TestDirectory::new();
    let mut all = Vec::new();
    for round in 0..3 {
        let server = directory.server();
        for number in 0..5 {
            let name = format!("x{round}-{number}");
            let created = server.client().create(MAPS, map(&name)).await.unwrap();
            all.push(created["metadata"]["uid"].to_string());
        }
        stop(server, ()).await;
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[tokio::test]
async fn a_watch_from_a_version_before_the_restart_is_expired() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let old = first.client().create(MAPS, map("a")).await.unwrap();
    first.client().create(MAPS, map("b")).await.unwrap();
    let now = first.version();
    stop(first, ()).await;
    let second = directory.server();
    let client = second.client();
    let old = old["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = client.watch(MAPS, &Selector::default(), old).unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.code, 410);
    let now = now.to_string();
    client.watch(MAPS, &Selector::default(), &now).unwrap();
}

#[tokio::test]
async fn definitions_roles_and_pending_deletions_are_restored() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let client = first.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    first.clock().wait_until_idle().await;
    client.create(THINGS, thing("t")).await.unwrap();
    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"verbs": ["list"], "apiGroups": ["example.com"], "resources": ["things"]}]});
    let group = "/apis/rbac.authorization.k8s.io/v1";
    client
        .create(&format!("{group}/clusterroles"), role)
        .await
        .unwrap();
    let bound = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    client
        .create(&format!("{group}/clusterrolebindings"), bound)
        .await
        .unwrap();
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    client.create(MAPS, held).await.unwrap();
    client
        .delete(&at("held"), &Delete::default())
        .await
        .unwrap();
    stop(first, client).await;

    let second = directory.server();
    let jane = second.client_as(User::new("jane", &[]));
    let things = jane.list(THINGS, &Selector::default()).await.unwrap();
    let names: Vec<&str> = things.items.iter().map(name_of).collect();
    assert_eq!(names, ["t"]);
    let client = second.client();
    let too_small = json!({"metadata": {"name": "x"}, "spec": {"size": 0},
        "apiVersion": "example.com/v1", "kind": "Thing"});
    assert_eq!(
        client.create(THINGS, too_small).await.unwrap_err().code,
        422
    );
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&at("held"), free).await.unwrap();
    assert_eq!(client.get(&at("held")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn only_one_server_can_open_a_directory() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let refused = Storage::open(&directory.0).unwrap_err().to_string();
    assert_eq!(
        refused,
        format!(
            "{} is in use by another process; stop that process, or specify another \
             directory",
            directory.0.display()
        )
    );
    drop(first);
    Storage::open(&directory.0).unwrap();
}

#[test]
fn credential_files_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = TestDirectory::new();
    let storage = Storage::open(&directory.0).unwrap();
    let first = Credentials::load_or_generate(storage.directory()).unwrap();
    let second = Credentials::load_or_generate(storage.directory()).unwrap();
    assert_eq!(first.token(), second.token());
    assert_eq!(first.authority_pem(), second.authority_pem());
    let address = "127.0.0.1:6443".parse().unwrap();
    let kubeconfig = first.kubeconfig(address, "dev");
    assert_eq!(kubeconfig, second.kubeconfig(address, "dev"));
    let file = directory.0.join("credentials.json");
    let mut older: Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    older.as_object_mut().unwrap().remove("client");
    std::fs::write(&file, older.to_string()).unwrap();
    let third = Credentials::load_or_generate(storage.directory()).unwrap();
    assert_eq!(first.token(), third.token());
    let fourth = Credentials::load_or_generate(storage.directory()).unwrap();
    assert_eq!(
        third.kubeconfig(address, "x"),
        fourth.kubeconfig(address, "x")
    );
    for entry in std::fs::read_dir(&directory.0).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
    std::fs::write(directory.0.join("credentials.json"), "x").unwrap();
    let error = Credentials::load_or_generate(&directory.0)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.ends_with("does not contain credentials; remove it to create new ones"),
        "{error}"
    );
}

#[tokio::test]
async fn the_deepest_accepted_object_can_be_read_after_a_restart() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let client = first.client();
    let mut loose = definition();
    let schema = &mut loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client.create(DEFINITIONS, loose).await.unwrap();
    first.clock().wait_until_idle().await;
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    let mut levels = 150;
    let created = loop {
        let mut deep = thing("deep");
        deep["spec"] = nested(levels);
        match client.create(THINGS, deep).await {
            Ok(created) => break created,
            Err(refused) => assert_eq!(refused.code, 422),
        }
        levels -= 1;
    };
    assert!(levels > 100, "{levels} levels");
    let path = format!("{THINGS}/deep");
    let merge = Patch::Merge(json!({"spec": nested(levels + 1)}));
    assert_eq!(client.patch(&path, merge).await.unwrap_err().code, 422);
    let apply = Patch::Apply {
        body: json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "spec": nested(levels + 1)}),
        manager: "m".to_owned(),
        force: true,
    };
    assert_eq!(client.patch(&path, apply).await.unwrap_err().code, 422);
    let inside = format!("/spec{}", "/a".repeat(levels));
    let add = json!([{"op": "add", "path": inside, "value": {"a": {"a": {}}}}]);
    let refused = client.patch(&path, Patch::Json(add)).await.unwrap_err();
    assert_eq!(refused.code, 422);
    stop(first, client).await;

    let second = directory.server();
    assert_eq!(second.client().get(&path).await.unwrap(), created);
}

#[test]
fn a_directory_that_other_users_may_write_to_is_rejected() {
    let directory = TestDirectory::new();
    fs::create_dir_all(&directory.0).unwrap();
    for (mode, name) in [(0o777, "777"), (0o1777, "1777"), (0o770, "770")] {
        fs::set_permissions(&directory.0, Permissions::from_mode(mode)).unwrap();
        let refused = Storage::open(&directory.0).unwrap_err().to_string();
        let path = directory.0.display();
        assert_eq!(
            refused,
            format!(
                "users other than the owner may write to {path} (mode {name}); run \
                 `chmod go-w {path}`, or specify another directory"
            )
        );
    }
    fs::set_permissions(&directory.0, Permissions::from_mode(0o755)).unwrap();
    Storage::open(&directory.0).unwrap();
}

#[test]
fn writing_a_private_file_replaces_a_symlink_and_does_not_follow_it() {
    let directory = TestDirectory::new();
    fs::create_dir_all(&directory.0).unwrap();
    let (path, elsewhere) = (
        directory.0.join("kubeconfig"),
        directory.0.join("elsewhere"),
    );
    fs::write(&elsewhere, "before").unwrap();
    symlink(&elsewhere, &path).unwrap();
    // Links that a writer with a predictable draft name would follow.
    for draft in [
        "kubeconfig.draft".to_owned(),
        format!("kubeconfig.{}", id()),
    ] {
        symlink(&elsewhere, directory.0.join(draft)).unwrap();
    }
    write_private(&path, b"secret").unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "before");
    assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
    let meta = fs::symlink_metadata(&path).unwrap();
    assert!(meta.is_file());
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let remaining = fs::read_dir(&directory.0).unwrap().count();
    assert_eq!(remaining, 4, "no other file is left");
}

#[tokio::test]
async fn a_definition_whose_names_were_refused_is_refused_after_a_restart() {
    let directory = TestDirectory::new();
    let first = directory.server();
    let client = first.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let mut other = definition();
    other["metadata"]["name"] = "others.example.com".into();
    other["spec"]["names"] = json!({"kind": "Thing", "plural": "others"});
    client.create(DEFINITIONS, other).await.unwrap();
    let refused = format!("{DEFINITIONS}/others.example.com");
    let before = client.get(&refused).await.unwrap();
    assert_eq!(before["status"]["conditions"][1]["status"], "False");
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let accepted = format!("{DEFINITIONS}/things.example.com");
    client.patch(&accepted, label).await.unwrap();
    let version = first.version();
    stop(first, client).await;

    let second = directory.server();
    let client = second.client();
    assert_eq!(client.get(&refused).await.unwrap(), before);
    let others = "/apis/example.com/v1/others";
    let listed = client.list(others, &Selector::default()).await;
    assert_eq!(listed.unwrap_err().code, 404);
    client.list(THINGS, &Selector::default()).await.unwrap();
    assert_eq!(second.version(), version, "a restart writes nothing");
}
