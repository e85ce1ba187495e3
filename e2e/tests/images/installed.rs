//! A release is installed and run on a real cluster: its chart, the operator's image under the
//! security context of its Deployment, and the command line from the same archive.

use std::path::PathBuf;

use fivespot_testkit::{
    Cluster, ListeningServer, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{BINARIES, BuildahFolder, pod, released};
use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] =
    &[
        promise!(a_release_is_installed_upgraded_while_it_drains_and_removed)
            .with_programs(&["buildah", "runc", "kubectl", "helm"])
            .with_variable(BINARIES)
            .on_kubernetes_alone("its operator has the clock of this machine")
            .disruptive(),
    ];

/// The name of all objects of the chart.
const NAME: &str = "released";

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/chart");

const IMAGE: &str = "image.repository=registry.example/5spot-controller";

/// One namespace of a cluster, accessed by programs as a user does.
struct TestRelease {
    cluster: Cluster,
    listening: ListeningServer,
    folder: PathBuf,
}

impl TestRelease {
    async fn start(buildah_folder: &BuildahFolder) -> Self {
        // The operator is a program that uses the clock of this computer. The test's clock is not
        // used.
        let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
        let listening = cluster.listen().await;
        let folder = buildah_folder.0.path().to_owned();
        std::fs::write(folder.join("admin.kubeconfig"), listening.kubeconfig()).unwrap();
        Self {
            cluster,
            listening,
            folder,
        }
    }

    fn namespace(&self) -> String {
        self.cluster.namespace("default")
    }

    /// The output of a program in the namespace of the test.
    async fn run(&self, program: PathBuf, words: &[&str]) -> String {
        let mut command = Command::new(program);
        command
            .args(words)
            .args(["--namespace", &self.namespace()])
            .env("KUBECONFIG", self.folder.join("admin.kubeconfig"))
            .env("HOME", &self.folder);
        program::output(&mut command).await
    }

    async fn kubectl(&self, words: &[&str]) -> String {
        self.run(program::path("kubectl").unwrap(), words).await
    }

    async fn helm(&self, words: &[&str]) -> String {
        self.run(program::path("helm").unwrap(), words).await
    }

    /// Waits for a phase of the worker, on the clock of this computer.
    async fn wait_for_phase(&self, phase: &str) {
        let phase = format!("--for=jsonpath={{.status.phase}}={phase}");
        self.kubectl(&["wait", "sm/worker", &phase, "--timeout=120s"])
            .await;
    }

    /// A kubeconfig with the rights of the operator's account.
    async fn kubeconfig(&self) -> String {
        let token = self.kubectl(&["create", "token", NAME]).await;
        let text = self.listening.kubeconfig();
        let mut kubeconfig: Value = serde_saphyr::from_str(text).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
        kubeconfig.to_string()
    }

    /// Reports the operator's running pod as ready. The cluster has no kubelet that does so.
    async fn report_pod(&self) {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{NAME}/status");
        let status = json!({"status": {
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        }});
        self.cluster.patch(&path, &status).await;
    }

    /// The output of the release's `5spot check`.
    async fn check(&self) -> String {
        let program = PathBuf::from(std::env::var(BINARIES).unwrap()).join("amd64/5spot");
        let home = self.namespace();
        let done = Command::new(program)
            .args(["check", "--operator-namespace", &home, "--service-account"])
            .arg(NAME)
            .env("KUBECONFIG", self.folder.join("admin.kubeconfig"))
            .output()
            .await
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    }
}

/// A worker whose drain lasts until its pod may be evicted.
fn worker() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"] =
        json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]});
    worker["spec"]["gracefulShutdownTimeout"] = json!("1h");
    worker["spec"]["nodeDrainTimeout"] = json!("1h");
    worker
}

async fn a_release_is_installed_upgraded_while_it_drains_and_removed() {
    let (buildah_folder, ids) = released("installed").await;
    let test_release = TestRelease::start(&buildah_folder).await;
    let cluster = &test_release.cluster;
    cluster.add_cluster().await;
    let home = test_release.namespace();
    let namespaces = format!("namespaces={{{home}}}");
    let name = format!("fullnameOverride={NAME}");
    let kubeconfigs = format!(
        "kubeconfigs.clusters=[{{\"namespace\":\"{home}\",\"name\":\"production-cluster\"}}]"
    );
    let values = [
        ["--set", IMAGE],
        ["--set", &namespaces],
        ["--set", &name],
        ["--set", "replicas=1"],
        ["--set-json", &kubeconfigs],
        // The workload cluster is on this computer.
        ["--set", "extraArgs={--allow-loopback-workload-server}"],
    ]
    .concat();
    // The CRDs and the policies are already installed.
    let words = [&["install", NAME, CHART, "--take-ownership"], &values[..]].concat();
    let installed = test_release.helm(&words).await;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let path = format!("/apis/apps/v1/namespaces/default/deployments/{NAME}");
    let deployment = cluster.get(&path).await.unwrap();

    let image = pod::Pod::of(&buildah_folder, &ids[0], &deployment).await;
    let own = [
        format!("--lease-namespace={home}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--metrics-port={}", pod::free_port()),
        format!("--health-port={}", pod::free_port()),
    ];
    let running = image.run("installed", &test_release.kubeconfig().await, &own);
    cluster.apply(&worker()).await;
    test_release.wait_for_phase("Active").await;
    test_release.report_pod().await;
    let checked = test_release.check().await;
    println!("{checked}");
    assert!(checked.ends_with("No problems found.\n"), "{checked}");

    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let closed = json!({"spec": {"schedule": {"daysOfWeek": [another_day()]}}});
    cluster.patch(&machine_path("worker"), &closed).await;
    test_release.wait_for_phase("ShuttingDown").await;
    let words = [&["upgrade", NAME, CHART], &values[..]].concat();
    let words = [&words[..], &["--set", "log.level=debug"]].concat();
    let upgraded = test_release.helm(&words).await;
    assert!(upgraded.contains("REVISION: 2"), "{upgraded}");
    // The pod of the new revision takes over from the pod of the old one.
    drop(running);
    let deployment = cluster.get(&path).await.unwrap();
    let image = pod::Pod::of(&buildah_folder, &ids[0], &deployment).await;
    let running = image.run("upgraded", &test_release.kubeconfig().await, &own);
    cluster.release_last_pod().await;
    test_release.wait_for_phase("Inactive").await;

    let open = json!({"spec": {"schedule": {"daysOfWeek": ["mon-sun"]}}});
    cluster.patch(&machine_path("worker"), &open).await;
    test_release.wait_for_phase("Active").await;
    let before = cluster.get(&machine_path("worker")).await.unwrap();
    let uninstalled = test_release.helm(&["uninstall", NAME]).await;
    drop(running);
    assert!(
        uninstalled.contains("[CustomResourceDefinition]"),
        "{uninstalled}"
    );
    assert_eq!(cluster.get(&path).await, None);
    let after = cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"].get("deletionTimestamp"), None);
    for object in cluster.owned_paths("worker") {
        assert!(cluster.get(&object).await.is_some(), "{object}");
    }
}

/// A day of the week that is days away from today.
#[expect(clippy::disallowed_methods, reason = "the operator has this clock")]
fn another_day() -> &'static str {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    match now.weekday() {
        jiff::civil::Weekday::Monday | jiff::civil::Weekday::Tuesday => "fri",
        jiff::civil::Weekday::Wednesday | jiff::civil::Weekday::Thursday => "sun",
        _ => "wed",
    }
}
