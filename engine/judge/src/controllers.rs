//! `cargo judge controllers`: Kubernetes' own controllers against `kubemu serve`.
//!
//! The programs are those of a release, given by their paths. No kubelet runs: this file plays two
//! of them, and the scheduler unless one is given. A line of a controller's log about a kind that is
//! not served is a fault, and so are pods that a StatefulSet, a DaemonSet or a Deployment lacks.

use std::env;
use std::error::Error;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubemu_clock::Clock;
use kubemu_judge::record::BoxError;
use serde_json::{Value, json};

use crate::{Faults, target, wait};

/// The variable with the path of kube-controller-manager.
const MANAGER: &str = "KUBE_CONTROLLER_MANAGER";
/// The variable with the path of kube-scheduler. Without it pods are bound by this program.
const SCHEDULER: &str = "KUBE_SCHEDULER";
/// How long the controllers run, unless the command says otherwise.
const USUAL: Duration = Duration::from_secs(40);
/// The pause between two looks at the pods.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a kubelet says that its node is ready.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long `kubemu serve` may take to start.
const START: Duration = Duration::from_secs(20);
/// How many of the faults in a log are printed.
const SHOWN: usize = 20;

/// What a controller says about a kind that is not served.
const MISSING: [&str; 4] = [
    "the server could not find the requested resource",
    "no matches for kind",
    "failed to list",
    "Failed to watch",
];

/// The workloads: where each is stored, and how many of its pods must become ready.
const WORKLOADS: [(&str, &str, &str, i64); 3] = [
    ("statefulsets", "StatefulSet", "readyReplicas", 2),
    ("daemonsets", "DaemonSet", "numberReady", 2),
    ("deployments", "Deployment", "readyReplicas", 3),
];

const NODES: [&str; 2] = ["n1", "n2"];

/// Runs the controllers for a time, and returns what they lacked.
///
/// # Errors
/// A program is missing or does not start, or a request fails.
pub(crate) fn run(words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let time = match words {
        [] => USUAL,
        ["--seconds", seconds] => Duration::from_secs(seconds.parse()?),
        _ => return Err("usage: cargo judge controllers [--seconds N]".into()),
    };
    let Some(manager) = env::var_os(MANAGER).map(PathBuf::from) else {
        return Err(format!(
            "set {MANAGER} to the path of a kube-controller-manager; `cargo xtask cluster build` \
             builds one"
        )
        .into());
    };
    let scheduler = env::var_os(SCHEDULER).map(PathBuf::from);
    let folder = target().join("controllers");
    fs::create_dir_all(&folder)?;
    let kubeconfig = folder.join("kubeconfig");
    if kubeconfig.exists() {
        fs::remove_file(&kubeconfig)?;
    }
    let serve = env::current_exe()?.with_file_name("kubemu");
    let arguments = ["serve".to_owned(), flag("kubeconfig", &kubeconfig)];
    let _server = Program::start(&serve, &arguments, &folder.join("kubemu.log"))?;
    wait(connect(&kubeconfig))?;
    let mut programs = Vec::new();
    for (path, extra) in [
        (Some(manager), "--use-service-account-credentials=false"),
        (scheduler.clone(), "--v=0"),
    ] {
        let Some(path) = path else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let log = folder.join(format!("{name}.log"));
        let arguments = [
            flag("kubeconfig", &kubeconfig),
            flag("authentication-kubeconfig", &kubeconfig),
            flag("authorization-kubeconfig", &kubeconfig),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            extra.to_owned(),
        ];
        programs.push((Program::start(&path, &arguments, &log)?, log));
    }
    let is_scheduled = scheduler.is_some();
    let mut faults = wait(play(&kubeconfig, time, is_scheduled))?;
    for (mut program, log) in programs {
        if let Some(status) = program.child.try_wait()? {
            faults.push(format!("{}: ended: {status}", log.display()));
        }
        faults.extend(missing(&fs::read_to_string(&log)?));
    }
    Ok(faults)
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// The lines of a log about what is missing, each without its head.
fn missing(log: &str) -> Faults {
    let mut found = Faults::new();
    let lines = log.lines();
    for line in lines.filter(|line| MISSING.iter().any(|it| line.contains(it))) {
        let text = line.split_once("] ").map_or(line, |it| it.1).to_owned();
        if !found.contains(&text) && found.len() < SHOWN {
            found.push(text);
        }
    }
    found
}

/// A program that ends when it is dropped.
struct Program {
    child: Child,
}

impl Program {
    fn start(
        path: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let output = File::create(log)?;
        let child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { child })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A program that has ended already needs no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the server, which writes the kubeconfig when it listens.
async fn connect(kubeconfig: &Path) -> Result<Client, BoxError> {
    let end = Instant::now() + START;
    loop {
        if let Ok(read) = Kubeconfig::read_from(kubeconfig) {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(read, &options).await?;
            let client = Client::try_from(config)?;
            if client.apiserver_version().await.is_ok() {
                return Ok(client);
            }
        }
        if Instant::now() > end {
            return Err("`kubemu serve` did not start".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Creates nodes and workloads, plays the kubelets until the time is over, and returns what the
/// workloads lack then.
async fn play(
    kubeconfig: &Path,
    time: Duration,
    is_scheduled: bool,
) -> Result<Faults, BoxError> {
    let client = &connect(kubeconfig).await?;
    let end = Instant::now() + time;
    for name in NODES {
        let node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        send(client, Method::POST, "/api/v1/nodes", &node).await?;
        ready_node(client, name).await?;
    }
    for (plural, kind, _, count) in WORKLOADS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}");
        send(client, Method::POST, &path, &workload(kind, count)).await?;
    }
    let mut beat = Instant::now();
    while Instant::now() < end {
        let pods = get(client, "/api/v1/namespaces/default/pods").await?;
        for (index, pod) in pods["items"].as_array().into_iter().flatten().enumerate() {
            // A controller may have written or deleted the pod: it is looked at again.
            if let Err(refused) = run_pod(client, pod, index, is_scheduled).await {
                eprintln!("{refused}");
            }
        }
        if beat.elapsed() > HEARTBEAT {
            beat = Instant::now();
            for name in NODES {
                ready_node(client, name).await?;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    let mut faults = Faults::new();
    for (plural, kind, field, count) in WORKLOADS {
        let path = format!("/apis/apps/v1/namespaces/default/{plural}/web");
        let found = get(client, &path).await?["status"][field].as_i64();
        if found != Some(count) {
            let found = found.unwrap_or_default();
            faults.push(format!("{kind}: {found} of {count} pods are ready"));
        }
    }
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revisions = get(client, path).await?["items"]
        .as_array()
        .map_or(0, Vec::len);
    if revisions < 2 {
        faults.push(format!(
            "{revisions} ControllerRevisions, of a StatefulSet and a DaemonSet"
        ));
    }
    Ok(faults)
}

fn workload(kind: &str, count: i64) -> Value {
    let labels = json!({"app": kind.to_lowercase()});
    let mut spec = json!({
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "example.com/c"}]}},
    });
    if kind != "DaemonSet" {
        spec["replicas"] = count.into();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

/// Makes a node ready, and removes the taints of one that is not.
async fn ready_node(client: &Client, name: &str) -> Result<(), BoxError> {
    let path = format!("/api/v1/nodes/{name}");
    let status = json!({"status": {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": Clock::system().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}]}});
    patch(client, &format!("{path}/status"), &status).await?;
    patch(client, &path, &json!({"spec": {"taints": null}})).await
}

/// Binds a pod that has no node, and makes one ready that has.
async fn run_pod(
    client: &Client,
    pod: &Value,
    index: usize,
    is_scheduled: bool,
) -> Result<(), BoxError> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/default/pods/{name}");
    if pod["spec"]["nodeName"].is_null() {
        if is_scheduled {
            return Ok(());
        }
        let node = wanted_node(pod).unwrap_or(NODES[index % NODES.len()]);
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
        let path = format!("{path}/binding");
        send(client, Method::POST, &path, &binding).await?;
    } else if pod["status"]["phase"] == "Pending" {
        let status = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}]}});
        patch(client, &format!("{path}/status"), &status).await?;
    }
    Ok(())
}

/// The node for which a DaemonSet has made a pod.
fn wanted_node(pod: &Value) -> Option<&str> {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                 /nodeSelectorTerms/0/matchFields/0/values/0";
    pod.pointer(terms)?.as_str()
}

async fn get(client: &Client, path: &str) -> Result<Value, BoxError> {
    let request = Request::get(path).body(Vec::new())?;
    Ok(client.request(request).await?)
}

async fn patch(client: &Client, path: &str, change: &Value) -> Result<(), BoxError> {
    let request = Request::patch(path)
        .header("content-type", "application/strategic-merge-patch+json")
        .body(change.to_string().into_bytes())?;
    client.request::<Value>(request).await?;
    Ok(())
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    object: &Value,
) -> Result<(), BoxError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())?;
    client.request::<Value>(request).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_missing_kind_is_a_fault_once() {
        let line = "E1129 10:00:00.000000 7 reflector.go:1] \"Failed to watch\" err=\"failed to \
                    list *v1.CSINode: the server could not find the requested resource\"";
        let log = format!("I1129 started\n{line}\n{line}\n");
        let found = missing(&log);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("\"Failed to watch\""), "{found:?}");
    }
}
