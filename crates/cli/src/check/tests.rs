use fivespot_api::name::SHARD_LABEL;
use fivespot_api::verdict;
use fivespot_testkit::{
    Clock, Cluster, Coordination, Lease, LeaseTiming, instant, machine_path,
    scheduled_machine,
};
use jiff::SignedDuration;
use kube::Client;
use kubemu_apiserver::{Server, User};
use serde_json::{Value, json};

use super::{Judge, Operator, finding, findings, print};
use crate::output::Format;
use crate::reader::Reader;

const WITHIN: &str = "2026-03-06T15:00:00Z";

/// Enables leader election with the Lease that the check reads.
fn elected(options: &mut fivespot_controller::Options) {
    options.coordination = Coordination::Leader(Lease {
        namespace: "5spot-system".to_owned(),
        name: "5spot-leader".to_owned(),
        timing: LeaseTiming::default(),
    });
}
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

async fn reader(client: Client) -> Reader {
    Reader::of(client, "the test").await.unwrap()
}

fn operator() -> Operator {
    Operator {
        namespace: "5spot-system".to_owned(),
        account: "5spot-controller".to_owned(),
        lease: "5spot-leader".to_owned(),
    }
}

/// The printed output, and whether all findings are fine.
async fn checked(client: Client) -> (String, bool) {
    let findings = findings(&reader(client).await, &operator()).await;
    let mut out = Vec::new();
    print(&findings, Format::Text, &mut out).unwrap();
    let is_ok_or_warning = findings.iter().all(finding::Finding::is_ok_or_warning);
    let text = String::from_utf8(out).unwrap();
    let release = fivespot_schedule::embedded_release();
    (text.replace(release, "RELEASE"), is_ok_or_warning)
}

/// A cluster with an operator that holds its Lease, and a worker in service.
async fn with_worker() -> (Cluster, fivespot_testkit::Operator) {
    let cluster = Cluster::start(instant(WITHIN)).await;
    let replica = cluster.operator_with(elected);
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_until(instant("2026-03-06T15:01:00Z")).await;
    (cluster, replica)
}

#[tokio::test]
async fn a_cluster_in_which_all_is_well_says_so() {
    let (cluster, _replica) = with_worker().await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    insta::assert_snapshot!(text);
    assert!(is_ok_or_warning);
}

#[tokio::test]
async fn a_cluster_without_5spot_says_how_to_install_it() {
    let clock = Clock::stopped_at(instant(WITHIN));
    let server = Server::new(kubemu_apiserver::Options::new(clock)).unwrap();
    let (text, is_ok_or_warning) =
        checked(Client::new(server.in_process(), "default")).await;
    insta::assert_snapshot!(text);
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn whatever_is_wrong_is_named_with_what_to_do() {
    let (cluster, replica) = with_worker().await;
    let mut typo = scheduled_machine("typo");
    typo["spec"]["infrastructureSpec"]["kind"] = json!("RemoteMachin");
    cluster.apply(&typo).await;
    let mut foreign = scheduled_machine("foreign");
    foreign["spec"]["bootstrapSpec"] = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "spec": {},
    });
    foreign["spec"]["clusterName"] = json!("prod");
    cluster.apply(&foreign).await;
    for (kind, name) in [
        (
            "validatingadmissionpolicybindings",
            "scheduledmachine-validation-binding",
        ),
        ("clusterrolebindings", "5spot-controller-k0smotron"),
        ("clusterrolebindings", "5spot-controller-kubeconfigs"),
        ("clusterrolebindings", "5spot-controller-workload"),
    ] {
        let root = if kind == "clusterrolebindings" {
            "/apis/rbac.authorization.k8s.io/v1"
        } else {
            ADMISSION
        };
        cluster.delete(&format!("{root}/{kind}/{name}")).await;
    }
    drop(replica);
    cluster.advance_until(instant("2026-03-06T15:20:00Z")).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    insta::assert_snapshot!(text);
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn the_policy_about_the_targets_of_capacities_is_checked_in_the_operators_namespace()
 {
    let (cluster, _replica) = with_worker().await;
    let mut reader = reader(cluster.client()).await;
    let elsewhere = Operator {
        namespace: "team-b".to_owned(),
        ..operator()
    };
    let line = async |reader: &Reader, operator: &Operator| {
        let mut out = Vec::new();
        print(&findings(reader, operator).await, Format::Text, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = text
            .lines()
            .find(|it| it.contains("5spot-controller-capacity"));
        line.map(ToOwned::to_owned)
    };
    assert_eq!(line(&reader, &operator()).await, None, "an embedded server");
    reader.version = "v1.36.0".to_owned();
    let remedy =
        "apply `5spot generate rbac` with the --capacity-target of the installation";
    let name = "5spot-controller-capacity-targets";
    assert_eq!(
        line(&reader, &operator()).await.unwrap(),
        format!("error    admission   there is no policy {name}; {remedy}")
    );
    assert_eq!(
        line(&reader, &elsewhere).await.unwrap(),
        format!("error    admission   there is no policy {name}.team-b; {remedy}")
    );
    let rights = fivespot_install::role::Rights::default();
    let [policy, binding, kinds] = rights.capacity_policy().try_into().unwrap();
    cluster.apply(&policy).await;
    assert_eq!(
        line(&reader, &operator()).await.unwrap(),
        format!(
            "error    admission   policy {name} is not in force: there is no {name}; {remedy}"
        )
    );
    cluster.add_namespace("5spot-system").await;
    cluster.apply(&kinds).await;
    cluster.apply(&binding).await;
    assert_eq!(
        line(&reader, &operator()).await.unwrap(),
        format!("ok       admission   policy {name} is in force")
    );
}

#[tokio::test]
async fn an_operator_confined_to_namespaces_is_accepted_there() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let (cluster, _replica) = with_worker().await;
    let path = format!("{RBAC}/clusterrolebindings/5spot-controller-k0smotron");
    let binding = cluster.get(&path).await.unwrap();
    cluster.delete(&path).await;
    cluster
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "5spot-controller-k0smotron", "namespace": "default"},
            "roleRef": binding["roleRef"],
            "subjects": binding["subjects"],
        }))
        .await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    assert!(is_ok_or_warning, "{text}");

    cluster.add_namespace("other").await;
    let mut elsewhere = scheduled_machine("elsewhere");
    elsewhere["metadata"]["namespace"] = json!("other");
    cluster.apply(&elsewhere).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    assert!(
        text.contains("may not create remotemachines of infrastructure.cluster.x-k8s.io, named by other/elsewhere;"),
        "{text}"
    );
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_an_error_where_it_is_needed() {
    let (cluster, _replica) = with_worker().await;
    let commands = json!({"spec": {"killIfCommands": ["steam"]}});
    cluster.patch(&machine_path("worker"), &commands).await;
    cluster.advance_until(instant("2026-03-06T15:05:00Z")).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    let line = text.lines().find(|it| it.contains(" agent ")).unwrap();
    insta::assert_snapshot!(line);
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn a_crd_of_another_version_is_distinguished_from_one_of_this() {
    let (cluster, _replica) = with_worker().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledmachines.5spot.finos.org";
    let edited = async |edit: fn(&mut Value)| {
        let mut crd = cluster.get(path).await.unwrap();
        edit(
            &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
                ["properties"],
        );
        crd["metadata"]["managedFields"] = Value::Null;
        cluster.apply(&crd).await;
        let (text, _) = checked(cluster.client()).await;
        text.lines().nth(1).unwrap().to_owned()
    };
    let newer = edited(|fields| fields["colour"] = json!({"type": "string"})).await;
    assert!(
        newer.contains("newer than this 5spot: it has .spec.colour"),
        "{newer}"
    );
    let older = edited(|fields| {
        fields.as_object_mut().unwrap().remove("priority");
    });
    let older = older.await;
    assert!(
        older.contains("older than this 5spot: it lacks .spec.priority"),
        "{older}"
    );
}

/// A client of a user who may read the objects that the check reads, but no Secrets, and who may
/// not ask for the permissions of others.
async fn auditor(cluster: &Cluster) -> Client {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": "auditor"},
        "rules": [{
            "apiGroups": ["*"],
            "resources": [
                "customresourcedefinitions", "deployments", "leases", "scheduledmachines",
                "validatingadmissionpolicies", "validatingadmissionpolicybindings",
            ],
            "verbs": ["get", "list"],
        }, {"nonResourceURLs": ["/apis/*", "/version"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "auditor"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "auditor"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "auditor"}],
    });
    cluster.apply(&role).await;
    cluster.apply(&binding).await;
    let user = User::new("auditor", &["system:authenticated"]);
    Client::new(cluster.server().in_process_as(user), "default")
}

#[tokio::test]
async fn permissions_that_the_server_does_not_evaluate_for_the_user_are_not_called_ok() {
    let (cluster, _replica) = with_worker().await;
    let (text, is_ok_or_warning) = checked(auditor(&cluster).await).await;
    insta::assert_snapshot!(text);
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn a_user_who_may_read_nothing_is_told_once_for_each_kind() {
    let (cluster, _replica) = with_worker().await;
    let nobody = User::new("owner", &["system:authenticated"]);
    let client = Client::new(cluster.server().in_process_as(nobody), "default");
    let (text, is_ok_or_warning) = checked(client).await;
    let lines = |check: &str| {
        let of_check = text.lines().filter(|line| line.contains(check));
        of_check.map(str::to_owned).collect::<Vec<_>>()
    };
    let [crds] = <[String; 1]>::try_from(lines(" crd ")).unwrap();
    assert!(
        crds.contains("8 could not be read, such as scheduledmachines.5spot.finos.org: "),
        "{crds}"
    );
    assert_eq!(lines(" admission ").len(), 1, "{text}");
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn an_operator_that_may_not_list_crds_is_an_error() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let (cluster, _replica) = with_worker().await;
    let path = format!("{RBAC}/clusterrolebindings/5spot-controller-definitions");
    cluster.delete(&path).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    assert!(
        text.contains("the operator may not list CustomResourceDefinitions"),
        "{text}"
    );
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn a_webhook_without_endpoints_is_an_error_although_the_policies_are_in_force() {
    let (cluster, _replica) = with_worker().await;
    cluster
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "providers"},
            "webhooks": [{
                "name": "remote.example.com",
                "clientConfig": {
                    "service": {"namespace": "default", "name": "remote"},
                    "caBundle": "LS0tLS1CRUdJTg==",
                },
                "rules": [{
                    "apiGroups": ["infrastructure.cluster.x-k8s.io"], "apiVersions": ["*"],
                    "resources": ["remotemachines"], "operations": ["CREATE"],
                }],
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
            }],
        }))
        .await;
    let line = |text: &str| {
        let found = text.lines().find(|it| it.contains(" webhook "));
        found.unwrap().to_owned()
    };
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    assert!(!is_ok_or_warning, "{text}");
    assert_eq!(
        line(&text),
        "error    webhook     webhook remote.example.com: there is no Service default/remote: every \
         change that it is called for is rejected; start its pods (`kubectl get pods -n default`), \
         or delete the webhook configuration if it is no longer installed"
    );
    cluster
        .apply(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "remote-1", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "remote"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        }))
        .await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    assert!(is_ok_or_warning, "{text}");
    assert_eq!(
        line(&text),
        "ok       webhook     the admission webhook has endpoints"
    );
}

#[tokio::test]
async fn what_is_wrong_with_one_machine_is_counted_and_no_error() {
    let (cluster, _replica) = with_worker().await;
    let mut typo = scheduled_machine("typo");
    typo["spec"]["clusterName"] = json!("produktion");
    cluster.apply(&typo).await;
    cluster.advance_until(instant("2026-03-06T15:05:00Z")).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    let line = text.lines().find(|it| it.contains(" machines "));
    assert_eq!(
        line.unwrap(),
        "warning  machines    1 of 2 ScheduledMachines are blocked: default/typo (ClusterNotFound); \
         `5spot status -A` lists them first, `5spot explain NAME` says what to do"
    );
    assert!(is_ok_or_warning, "{text}");
}

#[tokio::test]
async fn capacities_are_counted_as_machines_are() {
    let (cluster, _replica) = with_worker().await;
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 3},
        },
    });
    let line = async || {
        let (text, is_ok_or_warning) = checked(cluster.client()).await;
        assert!(is_ok_or_warning, "{text}");
        let line = text.lines().find(|it| it.contains(" capacities "));
        line.map(ToOwned::to_owned)
    };
    assert_eq!(line().await, None);
    cluster.apply(&object).await;
    cluster.advance_until(instant("2026-03-06T15:05:00Z")).await;
    assert_eq!(
        line().await.unwrap(),
        "warning  capacities  1 of 1 ScheduledCapacities are blocked: default/web (TargetNotFound); \
         `5spot status -A` lists them first, `5spot explain scap/NAME` says what to do"
    );
}

/// The leader's Lease is left behind, released or not, when an operator is divided into shards.
#[tokio::test]
async fn an_operator_is_found_by_the_leases_of_its_shards_beside_an_old_one_of_a_leader()
{
    let cluster = Cluster::start(instant(WITHIN)).await;
    let lease = |name: &str, holder: &str, renewed: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": name, "namespace": "5spot-system",
                "labels": (name != "5spot-leader").then(|| json!({SHARD_LABEL: "0"})),
            },
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 15,
                "renewTime": format!("2026-03-06T{renewed}.000000Z"),
            },
        })
    };
    cluster
        .apply(&lease("5spot-shard-0-of-2", "5spot-0", "14:59:58"))
        .await;
    for (holder, renewed) in [("", "14:00:00"), ("5spot-1", "14:00:00")] {
        cluster.apply(&lease("5spot-leader", holder, renewed)).await;
        let judge = Judge::read(&cluster.client(), &operator()).await;
        assert_eq!(judge.lease, verdict::Lease::Held, "held by {holder:?}");
    }
}

#[tokio::test]
async fn the_lease_of_capacities_is_read_where_they_have_a_controller_of_their_own() {
    let (cluster, _replica) = with_worker().await;
    let client = cluster.client();
    let judge = Judge::read(&client, &operator()).await;
    assert_eq!(
        judge.capacity_lease,
        verdict::Lease::Held,
        "of the operator"
    );
    let lapsed = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "5spot-capacity", "namespace": "5spot-system"},
        "spec": {
            "holderIdentity": "capacity-0", "leaseDurationSeconds": 15,
            "renewTime": "2026-03-06T14:00:00.000000Z",
        },
    });
    cluster.apply(&lapsed).await;
    let judge = Judge::read(&client, &operator()).await;
    assert_eq!(judge.lease, verdict::Lease::Held);
    let lapsed = judge.capacity_lease;
    assert!(matches!(lapsed, verdict::Lease::NotHeld { .. }));
    let (text, is_ok_or_warning) = checked(client).await;
    let line = text.lines().find(|it| it.contains("of capacities: "));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.starts_with(
            "error    lease       of capacities: no operator runs: capacity-0"
        ),
        "{line}"
    );
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn a_clock_that_differs_is_reported_and_that_of_the_operator_is_an_error() {
    let (cluster, _replica) = with_worker().await;
    let now = cluster.clock().now();
    // The line about a server that is ahead of this host, and behind the operator, by so many
    // seconds.
    let line = async |version: &str, ahead: i64, behind_operator: i64| {
        let mut reader = reader(cluster.client()).await;
        version.clone_into(&mut reader.version);
        reader.clock_difference = Some(SignedDuration::from_secs(ahead));
        let told = now - SignedDuration::from_secs(behind_operator);
        reader.server_time = Some(told);
        let found = super::operator::clock(&reader, &operator()).await?;
        let mut out = Vec::new();
        print(&[found], Format::Text, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        Some(text.lines().next().unwrap().to_owned())
    };
    let kubernetes = "v1.36.0";
    assert_eq!(
        line(kubernetes, 5, 0).await.unwrap(),
        "ok       clock       the API server's clock agrees with that of this host"
    );
    assert_eq!(
        line(kubernetes, 6, 0).await.unwrap(),
        "warning  clock       the API server's clock is 6s ahead of that of this host; synchronize \
         the two"
    );
    assert_eq!(
        line(kubernetes, -90, 0).await.unwrap(),
        "warning  clock       the API server's clock is 90s behind that of this host; synchronize \
         the two"
    );
    // The operator renews its Lease every few seconds.
    for version in [kubernetes, "v1.36.0+5spot"] {
        let ahead = line(version, 0, 600).await.unwrap();
        assert!(ahead.starts_with("error    clock       the operator's clock"));
        assert!(
            ahead.contains(
                "s ahead of the API server's: windows open and close too early"
            ),
            "{ahead}"
        );
        assert!(
            ahead.ends_with("synchronize the clocks of the nodes"),
            "{ahead}"
        );
    }
    // A virtual clock differs on purpose.
    assert_eq!(line("v1.36.0+5spot", 9_999, 0).await, None);
}

#[tokio::test]
async fn a_kind_whose_definition_is_being_deleted_is_an_error() {
    let (cluster, _replica) = with_worker().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                remotemachines.infrastructure.cluster.x-k8s.io";
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster.patch(path, &held).await;
    cluster.delete(path).await;
    let (text, is_ok_or_warning) = checked(cluster.client()).await;
    let line = text.lines().find(|it| it.contains("is being deleted"));
    assert_eq!(
        line.unwrap(),
        "error    provider    CustomResourceDefinition remotemachines.infrastructure.cluster.x-k8s.io \
         is being deleted, named by default/worker: no object of it can be created; install the \
         provider again when the deletion has ended; the objects that still exist delay it"
    );
    assert!(!is_ok_or_warning);
}

#[tokio::test]
async fn what_is_left_of_the_controller_of_capacities_is_named_with_what_to_delete() {
    let (cluster, _replica) = with_worker().await;
    let deployments = |kinds: &[&str]| {
        let mut settings = fivespot_install::controller::Settings::default();
        let kinds = kinds.iter().map(|it| it.parse().unwrap());
        settings.rights.capacity_targets = kinds.collect();
        let workload = settings.workload().into_iter();
        workload.filter(|it| it["kind"] == "Deployment")
    };
    let line = async || {
        let (text, _) = checked(cluster.client()).await;
        let mut lines = text.lines();
        let line = lines.find(|it| it.contains("is left of an installation"));
        line.map(ToOwned::to_owned)
    };
    for object in deployments(&["deployments.apps/scale"]) {
        cluster.apply(&object).await;
    }
    assert_eq!(line().await, None);
    for object in deployments(&[]) {
        cluster.apply(&object).await;
    }
    assert_eq!(
        line().await.unwrap(),
        "warning  deployment  5spot-system/5spot-controller-capacity is left of an installation \
         with --capacity-target: the operator reconciles ScheduledCapacities too, and may write no \
         target; name the targets again, or `kubectl delete deployment/5spot-controller-capacity \
         serviceaccount/5spot-controller-capacity lease/5spot-capacity -n 5spot-system`"
    );
}

/// A machine of class `lent`, whose provider is not installed.
async fn with_machine_of_a_class() -> (Cluster, fivespot_testkit::Operator) {
    let (cluster, replica) = with_worker().await;
    let inline = scheduled_machine("lent");
    let spec = &inline["spec"];
    cluster
        .apply(&json!({
            "apiVersion": inline["apiVersion"], "kind": "ScheduledMachineClass",
            "metadata": {"name": "lent"},
            "spec": {
                "clusterNames": ["night"],
                "bootstrapSpec": spec["bootstrapSpec"],
                "infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Desk", "spec": {}},
                "reclaim": {"commands": ["steam"]},
            },
        }))
        .await;
    cluster
        .apply(&json!({
            "apiVersion": inline["apiVersion"], "kind": inline["kind"],
            "metadata": inline["metadata"],
            "spec": {"schedule": spec["schedule"], "classRef": {"name": "lent"}},
        }))
        .await;
    (cluster, replica)
}

#[tokio::test]
async fn what_the_class_of_a_machine_names_is_checked_as_if_the_machine_named_it() {
    let (cluster, replica) = with_machine_of_a_class().await;
    // It would write the status again.
    drop(replica);
    let status = json!({"status": {"conditions": [{
        "type": "AgentReady", "status": "False", "reason": "NotInstalled",
        "message": "no agent on Node lent", "lastTransitionTime": WITHIN,
    }]}});
    let path = format!("{}/status", machine_path("lent"));
    cluster.patch(&path, &status).await;
    let (text, _) = checked(cluster.client()).await;
    for line in [
        "warning  provider    Desk of infrastructure.cluster.x-k8s.io/v1beta1, named by default/lent (ScheduledMachineClass \
         lent), is not served; ",
        "error    agent       default/lent: no agent on Node lent; ",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn classes_that_may_not_be_read_are_named_where_a_machine_has_one() {
    let (cluster, _replica) = with_worker().await;
    let (text, _) = checked(auditor(&cluster).await).await;
    assert!(!text.contains(" class "), "{text}");
    let (cluster, _replica) = with_machine_of_a_class().await;
    let (text, is_ok_or_warning) = checked(auditor(&cluster).await).await;
    let line = text
        .lines()
        .find(|it| it.contains(" class "))
        .unwrap_or(&text);
    assert!(line.starts_with("unknown  class       "), "{line}");
    assert!(
        line.contains("cannot list resource \"scheduledmachineclasses\""),
        "{line}"
    );
    assert!(!is_ok_or_warning);
}
