//! `5spot conformance` against `5spot dev` and its simulated providers.

use std::fs;
use std::process::{Command, Output, Stdio};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::book::ROOT;
use crate::server::Server;

const BINARY: &str = env!("CARGO_BIN_EXE_5spot");
const SETUP: [&str; 2] = ["--setup", "examples/conformance/cluster.yaml"];

/// A server with an operator and simulated providers.
struct Dev(Server);

impl Dev {
    fn start() -> Self {
        let command = "5spot dev --speed 60 --apply examples/conformance/cluster.yaml";
        Self(Server::named(command).unwrap())
    }

    /// The output and the exit code of `5spot <arguments>`.
    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(BINARY)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.0.kubeconfig())
            .current_dir(ROOT)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The names of all namespaces.
    async fn namespaces(&self) -> Vec<String> {
        let kubeconfig = Kubeconfig::read_from(self.0.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let namespaces: Api<Namespace> = Api::all(client);
        let all = namespaces.list(&ListParams::default()).await.unwrap();
        all.into_iter()
            .map(|it| it.metadata.name.unwrap())
            .collect()
    }

    fn conformance(&self, arguments: &[&str]) -> Output {
        let mut all = vec![
            "conformance",
            "--infrastructure",
            "examples/conformance/host.yaml",
            "--bootstrap",
            "examples/conformance/worker.yaml",
            "-o",
            "json",
        ];
        all.extend(arguments);
        self.run(&all)
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The report of a run that ended with this exit code.
fn report(ended: &Output, code: i32) -> Value {
    let printed = format!("{}{}", text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn the_simulated_providers_keep_every_promise_and_leave_no_objects() {
    let dev = Dev::start();
    let restart = ["--restart-command", "true"];
    let ended = dev.conformance(&[SETUP, restart, ["--timeout", "60s"]].concat());
    let report = report(&ended, 0);
    for item in report["items"].as_array().unwrap() {
        let expected = match item["name"].as_str().unwrap() {
            "never-comes-up" => "NotRun",
            _ => "Kept",
        };
        assert_eq!(item["result"], expected, "{item:#}");
    }
    assert_eq!(report["leftBehind"], Value::Null);
    let progress = text(&ended.stderr);
    assert!(
        progress.contains("opens: waiting until the Node is Ready\n"),
        "{progress}"
    );
    let left = dev.run(&["status", "-A", "-o", "json"]);
    let left: Value = serde_json::from_slice(&left.stdout).unwrap();
    assert_eq!(left["items"], serde_json::json!([]));
}

#[test]
fn a_host_that_cannot_be_cleaned_up_breaks_a_promise_and_is_reported() {
    let dev = Dev::start();
    let unreachable = [
        "--unreachable",
        "examples/conformance/host-without-key.yaml",
    ];
    let only = ["--only", "never-comes-up"];
    let ended =
        dev.conformance(&[SETUP, unreachable, only, ["--timeout", "6s"]].concat());
    let report = report(&ended, 1);
    let item = &report["items"][0];
    assert_eq!(item["result"], "Broken");
    let message = item["message"].as_str().unwrap();
    assert!(
        message.contains("RemoteMachine/5spot-conformance-")
            && message.contains("remotemachine.k0smotron.io/finalizer"),
        "{message}"
    );
    assert!(report["leftBehind"].is_string());
}

#[test]
fn an_existing_cluster_is_used_in_its_namespace_and_kept() {
    let dev = Dev::start();
    let cluster = ["--cluster", "conformance", "-n", "default"];
    let only = ["--only", "opens", "--only", "provider-restarted"];
    let restart = ["--restart-command", "exit 3"];
    let ended =
        dev.conformance(&[&cluster[..], &only, &restart, &["--timeout", "60s"]].concat());
    let report = report(&ended, 0);
    assert_eq!(report["items"][0]["result"], "Kept");
    assert_eq!(report["items"][1]["result"], "NotRun");
    let message = report["items"][1]["message"].as_str().unwrap();
    assert!(message.contains("exit status: 3"), "{message}");
}

#[tokio::test]
async fn an_object_rejected_before_the_cluster_leaves_no_namespace() {
    let dev = Dev::start();
    let setup = dev.0.directory.join("setup.yaml");
    let cluster = fs::read_to_string(format!("{ROOT}/{}", SETUP[1])).unwrap();
    let unserved = "{apiVersion: example.com/v1, kind: Unserved, metadata: {name: a}}";
    fs::write(&setup, format!("{unserved}\n---\n{cluster}")).unwrap();
    let ended = dev.conformance(&["--setup", setup.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(2));
    let error = text(&ended.stderr);
    assert!(error.contains("setup.yaml, document 1: "), "{error}");
    let namespaces = dev.namespaces().await;
    let is_of_a_run = |name: &&String| name.starts_with("5spot-conformance-");
    assert_eq!(namespaces.iter().find(is_of_a_run), None);
}

#[test]
fn an_unreachable_cluster_is_an_error_that_names_its_secret() {
    let dev = Dev::start();
    let ended =
        dev.conformance(&["--cluster", "missing", "-n", "default", "--timeout", "1s"]);
    assert_eq!(ended.status.code(), Some(2));
    let error = text(&ended.stderr);
    assert!(
        error.starts_with("error: reaching Cluster missing: Secret missing-kubeconfig: "),
        "{error}"
    );
}
