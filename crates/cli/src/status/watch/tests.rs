use std::time::Duration;

use fivespot_testkit::{
    Cluster, Coordination, Lease, LeaseTiming, instant, path_of, scheduled_machine,
};
use kubemu_apiserver::User;

use super::*;
use crate::check::Operator;
use crate::named::SHOWN;

const NOON: &str = "2026-03-06T12:00:00Z";

/// A cluster with a machine and a capacity that is written.
async fn cluster_with_both() -> (Cluster, fivespot_testkit::Operator) {
    let cluster = Cluster::start(instant(NOON)).await;
    let operator = cluster.operator_with(|options| {
        options.coordination = Coordination::Leader(Lease {
            namespace: "5spot-system".to_owned(),
            name: "5spot-leader".to_owned(),
            timing: LeaseTiming::default(),
        });
    });
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    });
    cluster.create(&quota).await.unwrap();
    cluster.create(&scheduled_machine("worker")).await.unwrap();
    let capacity = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
            "target": {"apiVersion": "v1", "kind": "ResourceQuota", "name": "team"},
            "capacity": {"field": "hard.pods", "activeValue": "4", "inactiveValue": "0"},
        },
    });
    cluster.apply(&capacity).await;
    let is_active = |found: &Value| found["status"]["phase"] == "Active";
    cluster.wait_briefly(&path_of(&capacity), is_active).await;
    (cluster, operator)
}

/// What a watch prints within a moment.
async fn watched(client: Client, form: Form, name: Option<&str>) -> String {
    let named = name.map(|it| Named::of(it, SHOWN).unwrap());
    let watches = Watches::start(&client, false, named);
    let operator = Operator {
        namespace: "5spot-system".to_owned(),
        account: "5spot-controller".to_owned(),
        lease: "5spot-leader".to_owned(),
    };
    let judge = || Judge::read(&client, &operator);
    let mut out = Vec::new();
    let watching = follow(form, watches, &client, judge, &mut out);
    let ended = tokio::time::timeout(Duration::from_secs(2), watching).await;
    assert!(ended.is_err(), "{ended:?}");
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn a_capacity_is_watched_among_the_machines_with_its_value() {
    let (cluster, _operator) = cluster_with_both().await;
    let text = watched(cluster.client(), Form::Wide, None).await;
    let line = |name: &str| {
        let found = text.lines().find(|it| it.contains(name));
        let words = found.unwrap_or_else(|| panic!("{name}: {text}"));
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line(" worker ").starts_with("default worker "), "{text}");
    assert_eq!(
        line(" scap/team "),
        "default scap/team Serving Active - 2026-03-06T18:00:00Z hard.pods=4; ResourceQuota team \
         has the active values until 2026-03-06T18:00:00Z"
    );
    let json = watched(cluster.client(), Form::Json, Some("scap/team")).await;
    let document: Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(document["name"], "team");
    assert_eq!(document["value"], "hard.pods=4");
    assert_eq!(document["target"]["kind"], "ResourceQuota");
}

#[tokio::test]
async fn of_a_set_its_machines_are_watched_and_no_others() {
    let (cluster, _operator) = cluster_with_both().await;
    let mut desk = scheduled_machine("desks-0");
    desk["metadata"]["labels"] =
        json!({"5spot.finos.org/scheduled-machine-set": "desks"});
    cluster.create(&desk).await.unwrap();
    let text = watched(cluster.client(), Form::Wide, Some("smset/desks")).await;
    assert!(text.contains("desks-0"), "{text}");
    assert!(!text.contains("worker") && !text.contains("team"), "{text}");
}

#[tokio::test]
async fn machines_are_watched_by_a_user_who_may_not_read_capacities() {
    let (cluster, _operator) = cluster_with_both().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "machines"},
        "rules": [{
            "apiGroups": ["5spot.finos.org"], "resources": ["scheduledmachines"],
            "verbs": ["get", "list", "watch"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "machines"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "machines",
        },
        "subjects": [{"kind": "User", "name": "developer"}],
    });
    cluster.create(&role).await.unwrap();
    cluster.create(&binding).await.unwrap();
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    let text = watched(developer, Form::Wide, None).await;
    assert!(
        text.contains(" worker ") && !text.contains("scap/"),
        "{text}"
    );
}
