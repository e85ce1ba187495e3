//! Tests what an agent reports to the ScheduledMachine of its host, whose Node is away.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fivespot_agent::run_directory::RunDirectory;
use fivespot_api::crd::SHIPPED_MINOR;
use fivespot_api::manifest::definitions;
use fivespot_api::reclaim::FreeHost;
use fivespot_install::agent::host::{Host, Part};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::{Delete, Patch, Selector, User};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api_server::{BINDINGS, Fixture, NEVER, NODE, POLICIES, config_text};
use crate::program::unique;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MACHINES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/team-a/scheduledmachines";
pub(crate) const MACHINE: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/team-a/scheduledmachines/desk";
const HOST: &str = "system:serviceaccount:team-a:5spot-host-desk";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const FREE: &str = "5spot.finos.org/host-free";

std::thread_local! {
    static START: Instant = Instant::now();
}

/// Noon when the test starts, and then as the clock of the test.
pub(crate) fn now() -> Timestamp {
    let passed = START.with(Instant::elapsed);
    let noon: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
    noon + SignedDuration::try_from(passed).unwrap()
}

/// The identity of the agent.
fn host() -> Host {
    Host {
        namespace: "team-a".to_owned(),
        machine: "desk".to_owned(),
        node: "worker-1".to_owned(),
        part: Part::Both,
    }
}

/// A server with a ScheduledMachine whose Node is away, and the agent of its host.
pub(crate) struct Desk {
    pub(crate) fixture: Fixture,
    directory: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Desk {
    pub(crate) async fn new() -> Self {
        now();
        let mut fixture = Fixture::new().await;
        let client = fixture.client();
        for definition in definitions(SHIPPED_MINOR) {
            client.create(CRDS, definition).await.unwrap();
        }
        client.delete(NODE, &Delete::default()).await.unwrap();
        let namespace = json!({"metadata": {"name": "team-a"}});
        client
            .create("/api/v1/namespaces", namespace)
            .await
            .unwrap();
        let machine = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {"name": "desk"},
            "spec": {
                "clusterName": "prod",
                "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]},
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                    "kind": "K0sWorkerConfig",
                    "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                    "kind": "RemoteMachine",
                    "spec": {},
                },
                "reclaim": {"commands": ["steam"], "return": {"after": "30m"}},
            },
        });
        client.create(MACHINES, machine).await.unwrap();
        let [policy, binding] = fivespot_install::agent::host::policy();
        client.create(POLICIES, policy).await.unwrap();
        client.create(BINDINGS, binding).await.unwrap();
        fixture.user = User::new(HOST, &["system:serviceaccounts"]);
        for object in host().documents() {
            let plural = match object["kind"].as_str().unwrap() {
                "ServiceAccount" => {
                    "/api/v1/namespaces/team-a/serviceaccounts".to_owned()
                }
                kind => {
                    let namespace = object["metadata"]["namespace"].as_str();
                    let within = namespace
                        .map(|of| format!("/namespaces/{of}"))
                        .unwrap_or_default();
                    format!("{RBAC}{within}/{}s", kind.to_lowercase())
                }
            };
            client.create(&plural, object).await.unwrap();
        }
        fixture.machine = Some("desk");
        fixture.now = now;
        let directory = std::env::temp_dir().join(unique("5spot-agent-run-"));
        fixture.run_directory = Some(directory.clone());
        Self { fixture, directory }
    }

    /// Stops the machine as a reclaim does, or ends that, as the operator reports it.
    pub(crate) async fn is_stopped(&self, reason: &str) {
        let condition = json!({
            "type": "Scheduled", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2026-03-06T12:00:00Z",
        });
        let status = json!({"status": {"conditions": [condition]}});
        let path = format!("{MACHINE}/status");
        let client = self.fixture.client();
        client.patch(&path, Patch::Merge(status)).await.unwrap();
    }

    /// Waits until the report satisfies `holds`.
    async fn wait_for(
        &self,
        holds: impl Fn(Option<FreeHost>) -> bool,
    ) -> Option<FreeHost> {
        let read = |machine: &Value| -> Option<FreeHost> {
            let text = machine["metadata"]["annotations"][FREE].as_str()?;
            Some(text.parse().unwrap())
        };
        let client = self.fixture.client();
        let all = Selector::default();
        let list = client.list(MACHINES, &all).await.unwrap();
        let mut found = read(&list.items[0]);
        let mut events = client.watch(MACHINES, &all, &list.version).unwrap();
        while !holds(found) {
            let event = tokio::time::timeout(NEVER, events.next()).await;
            let event = event.unwrap_or_else(|_| panic!("still {found:?}")).unwrap();
            found = read(&event.unwrap().object);
        }
        found
    }

    pub(crate) async fn is_free(&self) -> FreeHost {
        self.wait_for(|found| found.is_some()).await.unwrap()
    }

    pub(crate) async fn is_in_use(&self) {
        self.wait_for(|found| found.is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_host_is_reported_while_its_machine_waits_and_confirmed_every_minute() {
    let mut desk = Desk::new().await;
    desk.is_stopped("ScheduleActive").await;
    desk.fixture.start_agent();
    tokio::time::sleep(Duration::from_mins(3)).await;
    desk.is_in_use().await;
    desk.is_stopped("OverrideStop").await;
    let first = desk.is_free().await;
    assert!(first.since >= "2026-03-06T12:03:00Z".parse().unwrap());
    let is_later = |found: Option<FreeHost>| {
        found.is_some_and(|found| found.confirmed > first.confirmed)
    };
    let second = desk.wait_for(is_later).await.unwrap();
    assert_eq!(second.since, first.since);
    let passed = second.confirmed.duration_since(first.confirmed);
    assert!(passed >= SignedDuration::from_mins(1), "{passed}");
    desk.is_stopped("ScheduleActive").await;
    desk.is_in_use().await;
}

#[tokio::test(start_paused = true)]
async fn a_listed_program_takes_the_report_back_and_its_end_begins_a_new_one() {
    let mut desk = Desk::new().await;
    desk.is_stopped("OverrideStop").await;
    desk.fixture.start_agent();
    let first = desk.is_free().await;
    // There is neither a Node nor a ConfigMap that lists it.
    desk.fixture.fake.start(7, "steam");
    desk.is_in_use().await;
    let ended = now();
    desk.fixture.fake.end(7);
    let second = desk.is_free().await;
    assert!(
        second.since >= first.since
            && second.since <= ended + SignedDuration::from_secs(3)
    );
    assert_eq!(second.since, second.confirmed);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_its_user_asks_for_or_whose_requests_cannot_be_read_is_not_free() {
    let mut desk = Desk::new().await;
    desk.is_stopped("OverrideStop").await;
    desk.fixture.start_agent();
    desk.is_free().await;
    let directory = RunDirectory::new(desk.directory.clone());
    directory.switch().reclaim(None).unwrap();
    desk.is_in_use().await;
    directory.switch().take_back().unwrap();
    desk.is_free().await;
    directory.switch().reclaim(None).unwrap();
    let own = fs::read_dir(desk.directory.join("owner")).unwrap();
    let own = own.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::write(own, "tomorrow").unwrap();
    desk.is_in_use().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_again_begins_anew() {
    let mut desk = Desk::new().await;
    desk.is_stopped("OverrideStop").await;
    let annotation = json!({FREE: "2026-03-06T08:00:00Z 2026-03-06T11:59:30Z"});
    let earlier = json!({"metadata": {"annotations": annotation}});
    let client = desk.fixture.client();
    client.patch(MACHINE, Patch::Merge(earlier)).await.unwrap();
    desk.fixture.start_agent();
    let noon: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
    desk.wait_for(|found| found.is_some_and(|found| found.since >= noon))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_could_write_more_than_its_annotations_says_so() {
    for selected in ["nodes", "scheduledmachines"] {
        let mut desk = Desk::new().await;
        let text = config_text(&["steam"]);
        desk.fixture.configure(&text).await;
        let client = desk.fixture.client();
        let node = json!({"metadata": {"name": "worker-1"}});
        client.create("/api/v1/nodes", node).await.unwrap();
        let status = json!({"status": {"nodeInfo": {"machineID": "c0ffee"}}});
        let path = format!("{NODE}/status");
        client.patch(&path, Patch::Merge(status)).await.unwrap();
        // The policy is in force for the other one of the two.
        let spared = format!("request.resource.resource != '{selected}'");
        let conditions = json!([
            {"name": "spared", "expression": spared},
        ]);
        let path = format!("{POLICIES}/5spot-host");
        let change = json!({"spec": {"matchConditions": conditions}});
        client.patch(&path, Patch::Merge(change)).await.unwrap();
        desk.fixture.start_agent();
        let hash = fivespot_api::reclaim::config_hash(&text);
        let report = format!("{hash} rejected: the policy 5spot-host is not in force");
        desk.fixture.wait_for_report(&report).await;
        let [policy, _] = fivespot_install::agent::host::policy();
        let change =
            json!({"spec": {"matchConditions": policy["spec"]["matchConditions"]}});
        client.patch(&path, Patch::Merge(change)).await.unwrap();
        desk.fixture.wait_for_report(&format!("{hash} ok")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_may_list_all_nodes_does_not_take_its_role_for_the_policy() {
    let mut desk = Desk::new().await;
    let text = config_text(&["steam"]);
    desk.fixture.configure(&text).await;
    let client = desk.fixture.client();
    for name in ["worker-1", "another"] {
        let node = json!({"metadata": {"name": name}});
        client.create("/api/v1/nodes", node).await.unwrap();
    }
    let status = json!({"status": {"nodeInfo": {"machineID": "c0ffee"}}});
    let path = format!("{NODE}/status");
    client.patch(&path, Patch::Merge(status)).await.unwrap();
    let role = json!({
        "metadata": {"name": "watcher"},
        "rules": [{
            "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"],
        }],
    });
    let roles = format!("{RBAC}/clusterroles");
    client.create(&roles, role).await.unwrap();
    let binding = json!({
        "metadata": {"name": "watcher"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "watcher",
        },
        "subjects": [{
            "kind": "ServiceAccount", "namespace": "team-a", "name": "5spot-host-desk",
        }],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    client.create(&bindings, binding).await.unwrap();
    // The policy is in force for ScheduledMachines alone.
    let path = format!("{POLICIES}/5spot-host");
    let [policy, _] = fivespot_install::agent::host::policy();
    let spared = "request.resource.resource != 'nodes'";
    let conditions = json!([{"name": "spared", "expression": spared}]);
    let change = json!({"spec": {"matchConditions": conditions}});
    client.patch(&path, Patch::Merge(change)).await.unwrap();
    desk.fixture.start_agent();
    let hash = fivespot_api::reclaim::config_hash(&text);
    let report = format!("{hash} rejected: the policy 5spot-host is not in force");
    desk.fixture.wait_for_report(&report).await;
    let change = json!({"spec": {"matchConditions": policy["spec"]["matchConditions"]}});
    client.patch(&path, Patch::Merge(change)).await.unwrap();
    desk.fixture.wait_for_report(&format!("{hash} ok")).await;
}

#[tokio::test(start_paused = true)]
async fn the_host_of_a_machine_with_a_class_is_not_free() {
    let mut desk = Desk::new().await;
    desk.is_stopped("OverrideStop").await;
    desk.fixture.start_agent();
    desk.is_free().await;
    // From now on other commands may count, which the agent cannot read.
    let change = json!({"spec": {
        "classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null,
    }});
    let client = desk.fixture.client();
    client.patch(MACHINE, Patch::Merge(change)).await.unwrap();
    desk.is_in_use().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    desk.is_in_use().await;
}
