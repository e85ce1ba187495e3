//! Each layer refuses malicious and invalid objects on its own, with messages that name the field.

mod decoy;

use std::fmt::Write as _;

use fivespot_api::crd;
use fivespot_testkit::{Cluster, condition, instant, machine_path, scheduled_machine};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(every_hostile_object_is_refused_by_schema_policy_and_operator)
        .disruptive()
        .on_embedded_alone("removes the rules of the CRD, and the policy"),
    promise!(every_hostile_kubeconfig_is_refused_and_nothing_is_reached)
        .on_embedded_alone("rewrites the Secret that Cluster API keeps"),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";
const SECRET: &str = "/api/v1/namespaces/default/secrets/production-cluster-kubeconfig";

/// What is wrong, its place in the object, and the value there.
fn objects() -> Vec<(&'static str, &'static str, Value)> {
    let kind = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "spec": {}});
    let bootstrap = "bootstrap.cluster.x-k8s.io/v1beta1";
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta1";
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let elsewhere = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "namespace": "kube-system", "spec": {}});
    let (boot, infra) = ("/spec/bootstrapSpec", "/spec/infrastructureSpec");
    let (labels, annotations) = ("/spec/machineTemplate", "/spec/machineTemplate");
    let label = |key: &str, value: &str| json!({"labels": {key: value}});
    let annotation = |key: &str| json!({"annotations": {key: "true"}});
    vec![
        ("a Secret as bootstrap", boot, kind("v1", "Secret")),
        (
            "a role binding as bootstrap",
            boot,
            kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ),
        (
            "a Deployment as infrastructure",
            infra,
            kind("apps/v1", "Deployment"),
        ),
        (
            "a group with an allowed one as prefix",
            boot,
            kind(
                "bootstrap.cluster.x-k8s.io.evil.example/v1",
                "K0sWorkerConfig",
            ),
        ),
        (
            "a version with path traversal",
            infra,
            kind("infrastructure.cluster.x-k8s.io/v1/../..", "RemoteMachine"),
        ),
        (
            "a template",
            infra,
            kind(infrastructure, "RemoteMachineTemplate"),
        ),
        (
            "the kind of a cluster",
            infra,
            kind(infrastructure, "AWSCluster"),
        ),
        (
            "the kind of an identity",
            infra,
            kind(infrastructure, "AWSClusterRoleIdentity"),
        ),
        ("a list", boot, kind(bootstrap, "K0sWorkerConfigList")),
        (
            "a kind with path traversal",
            boot,
            kind(bootstrap, "../secrets"),
        ),
        ("no kind", infra, kind(infrastructure, "")),
        (
            "bootstrap in another namespace",
            boot,
            elsewhere(bootstrap, "K0sWorkerConfig"),
        ),
        (
            "infrastructure in another namespace",
            infra,
            elsewhere(infrastructure, "RemoteMachine"),
        ),
        ("no cluster", "/spec/clusterName", json!("")),
        (
            "a cluster name with path traversal",
            "/spec/clusterName",
            json!("../other"),
        ),
        (
            "a cluster name too long for a label",
            "/spec/clusterName",
            json!("c".repeat(64)),
        ),
        (
            "another machine's name label",
            labels,
            label("5spot.finos.org/scheduled-machine", "victim"),
        ),
        (
            "another machine's uid label",
            labels,
            label("5spot.finos.org/scheduled-machine-uid", "u"),
        ),
        (
            "a control plane by label",
            labels,
            label("cluster.x-k8s.io/control-plane", ""),
        ),
        (
            "another cluster by label",
            labels,
            label("cluster.x-k8s.io/cluster-name", "other"),
        ),
        (
            "Kubernetes' own label",
            labels,
            label("topology.kubernetes.io/zone", "z"),
        ),
        (
            "a label that is too long",
            labels,
            label("team", &"x".repeat(64)),
        ),
        (
            "a reclaim request in the template",
            annotations,
            annotation("5spot.finos.org/reclaim"),
        ),
        (
            "a pause in the template",
            annotations,
            annotation("cluster.x-k8s.io/paused"),
        ),
        (
            "a skipped drain in the template",
            annotations,
            annotation("machine.cluster.x-k8s.io/exclude-node-draining"),
        ),
        (
            "the kubelet's taint",
            "/spec/nodeTaints",
            json!([taint("node.kubernetes.io/unreachable")]),
        ),
        (
            "the operator's own taint",
            "/spec/nodeTaints",
            json!([taint("5spot.finos.org/x")]),
        ),
        (
            "a taint key with a space",
            "/spec/nodeTaints",
            json!([taint("a b")]),
        ),
        (
            "an hour out of range",
            "/spec/schedule/hoursOfDay",
            json!(["25"]),
        ),
        (
            "a shell command in a day",
            "/spec/schedule/daysOfWeek",
            json!(["mon; reboot"]),
        ),
        (
            "a time zone with path traversal",
            "/spec/schedule/timezone",
            json!("../../etc/passwd"),
        ),
        (
            "cron together with days",
            "/spec/schedule/cron",
            json!("* * * * *"),
        ),
        (
            "an endless drain",
            "/spec/nodeDrainTimeout",
            json!("99999999999999999999h"),
        ),
        (
            "a grace period of more than a day",
            "/spec/gracefulShutdownTimeout",
            json!("25h"),
        ),
    ]
}

fn object(place: usize, pointer: &str, value: &Value) -> Value {
    let mut object = scheduled_machine(&format!("hostile-{place:02}"));
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value.clone();
    object
}

/// The server's response to the creation, shortened.
async fn answer(cluster: &Cluster, object: &Value) -> String {
    match cluster.dry_run(object).await {
        Ok(_) => "ACCEPTED".to_owned(),
        Err(kube::Error::Api(status)) => {
            let name = object["metadata"]["name"].as_str().unwrap();
            let message = status.message.replace(name, "NAME");
            message
                .split_once(": ")
                .map_or(message.clone(), |(_, rest)| rest.to_owned())
        }
        Err(error) => panic!("{error}"),
    }
}

async fn loosened(cluster: &Cluster) {
    cluster.apply(&crd::render_without_rules()).await;
    cluster.settle().await;
}

async fn every_hostile_object_is_refused_by_schema_policy_and_operator() {
    let full = Cluster::start(instant(IN_WINDOW)).await;
    let policy_alone = Cluster::start(instant(IN_WINDOW)).await;
    loosened(&policy_alone).await;
    let bare = Cluster::start(instant(IN_WINDOW)).await;
    loosened(&bare).await;
    bare.delete(POLICY).await;
    let _operator = bare.operator();
    bare.add_cluster().await;
    let mut table = String::new();
    for (place, (what, pointer, value)) in objects().iter().enumerate() {
        let object = object(place, pointer, value);
        let by_all = answer(&full, &object).await;
        let by_policy = answer(&policy_alone, &object).await;
        let by_operator = match bare.create(&object).await {
            Err(kube::Error::Api(_)) => "is not reached".to_owned(),
            Err(error) => panic!("{error}"),
            Ok(_) => {
                bare.settle().await;
                let name = object["metadata"]["name"].as_str().unwrap();
                for path in bare.owned_paths(name) {
                    assert_eq!(bare.get(&path).await, None, "{what}: {path}");
                }
                let ready = condition(&bare.status(name).await, "Ready");
                assert_eq!(ready["status"], "False", "{what}");
                bare.delete(&machine_path(name)).await;
                let reported = [&ready["reason"], &ready["message"]];
                reported
                    .map(|text| text.as_str().unwrap_or_default())
                    .join(": ")
            }
        };
        for (layer, reported) in [("schema", &by_all), ("policy", &by_policy)] {
            assert_ne!(reported, "ACCEPTED", "{what} by {layer}");
        }
        let _ = writeln!(
            table,
            "{what}\n  schema:   {by_all}\n  policy:   {by_policy}\n  operator: {by_operator}"
        );
    }
    assert!(bare.operator_writes_to("machines").is_empty());
    table += &decoy::edited().await;
    table += &decoy::edited_while_deleted().await;
    table += &decoy::made_by_others().await;
    insta::assert_snapshot!("hostile_objects", table);
}

/// Base64, which Secrets need.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut block = [0_u8; 3];
        block[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, block[0], block[1], block[2]]);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            let letter = char::from(LETTERS[index as usize]);
            text.push(if place > chunk.len() { '=' } else { letter });
        }
    }
    text
}

fn kubeconfigs() -> Vec<(&'static str, String)> {
    let config = |cluster: Value, user: Value| {
        let mut all = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:6443"}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        });
        for (field, value) in cluster.as_object().unwrap() {
            all["clusters"][0]["cluster"][field] = value.clone();
        }
        for (field, value) in user.as_object().unwrap() {
            all["users"][0]["user"][field] = value.clone();
        }
        all.to_string()
    };
    let none = || json!({});
    vec![
        (
            "a program to run",
            config(
                none(),
                json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}),
            ),
        ),
        (
            "an auth provider",
            config(none(), json!({"auth-provider": {"name": "gcp"}})),
        ),
        (
            "a token in a file",
            config(
                none(),
                json!({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}),
            ),
        ),
        (
            "a certificate in a file",
            config(
                none(),
                json!({"client-certificate": "/etc/kubernetes/pki/admin.crt"}),
            ),
        ),
        (
            "a key in a file",
            config(
                none(),
                json!({"client-key": "/etc/kubernetes/pki/admin.key"}),
            ),
        ),
        (
            "a certificate authority in a file",
            config(json!({"certificate-authority": "/etc/passwd"}), none()),
        ),
        (
            "a proxy",
            config(json!({"proxy-url": "http://evil.example:3128"}), none()),
        ),
        (
            "no verification",
            config(json!({"insecure-skip-tls-verify": true}), none()),
        ),
        (
            "no encryption",
            config(json!({"server": "http://169.254.169.254/latest"}), none()),
        ),
        (
            "an impersonated user",
            config(none(), json!({"as": "system:admin"})),
        ),
        (
            "a password",
            config(none(), json!({"username": "admin", "password": "p"})),
        ),
        (
            "a megabyte",
            config(none(), json!({"token": "t".repeat(1_000_000)})),
        ),
        ("an unreadable kubeconfig", "not a kubeconfig".to_owned()),
    ]
}

async fn every_hostile_kubeconfig_is_refused_and_nothing_is_reached() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let mut table = String::new();
    for (what, config) in kubeconfigs() {
        let patch = json!({"data": {"value": base64(config.as_bytes())}});
        cluster.patch(SECRET, &patch).await;
        // Reports of other controllers are written two seconds after the last one.
        let written = cluster.deadline_in(SignedDuration::from_secs(3));
        cluster.advance_until(written).await;
        let access = condition(&cluster.status("worker").await, "NodeAccess");
        assert_eq!(access["reason"], "KubeconfigRefused", "{what}");
        let message = access["message"].as_str().unwrap();
        let _ = writeln!(table, "{what}: {message}");
    }
    insta::assert_snapshot!("hostile_kubeconfigs", table);
}
