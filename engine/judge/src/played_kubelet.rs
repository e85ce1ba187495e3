//! Two kubelets that are played: nodes that are ready, and pods that run on them without containers.
//!
//! A pod is bound to a node unless it asks for one that there is not. It runs until it is deleted,
//! unless a Job owns it: then it ends at once as the `exit` in its command says, if there is one.

use std::time::{Duration, Instant};

use http::{Method, Request};
use kube::Client;
use kubemu_clock::Clock;
use kubemu_judge::record::BoxError;
use serde_json::{Value, json};

/// How often a kubelet says that its node is ready.
const HEARTBEAT: Duration = Duration::from_secs(10);

const NODES: [&str; 2] = ["n1", "n2"];

/// Who binds the pods to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binder {
    /// The kubelets, in turn.
    Played,
    /// A scheduler that runs.
    Scheduler,
}

/// The kubelets of all nodes.
pub(crate) struct Kubelets {
    client: Client,
    binder: Binder,
    beat: Instant,
    /// The number of pods that were bound or started: it makes their nodes and addresses differ.
    turn: usize,
}

impl Kubelets {
    /// Creates the nodes.
    ///
    /// # Errors
    /// A request fails.
    pub(crate) async fn start(client: Client, binder: Binder) -> Result<Self, BoxError> {
        for name in NODES {
            let labels = labels(name);
            let node = json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": labels}});
            match send(&client, Method::POST, "/api/v1/nodes", &node).await {
                // A server that runs already has it from the last time.
                Err(error) if !error.to_string().contains("already exists") => {
                    return Err(error);
                }
                _ => ready_node(&client, name).await?,
            }
        }
        Ok(Self {
            client,
            binder,
            beat: Instant::now(),
            turn: 0,
        })
    }

    /// Does for every pod what is next, and lets the nodes report when it is time.
    ///
    /// # Errors
    /// The pods cannot be listed, or a node cannot be written. A request about a pod that is refused
    /// is made again the next time: a controller may have written or deleted the pod.
    pub(crate) async fn step(&mut self) -> Result<(), BoxError> {
        let pods = get(&self.client, "/api/v1/pods").await?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let _ = self.step_pod(pod).await;
        }
        if self.beat.elapsed() > HEARTBEAT {
            self.beat = Instant::now();
            for name in NODES {
                ready_node(&self.client, name).await?;
            }
        }
        Ok(())
    }

    async fn step_pod(&mut self, pod: &Value) -> Result<(), BoxError> {
        let meta = &pod["metadata"];
        let [namespace, name] =
            ["namespace", "name"].map(|it| meta[it].as_str().unwrap_or_default());
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let Some(node) = pod["spec"]["nodeName"].as_str() else {
            return self.bind(pod, &path).await;
        };
        if !NODES.contains(&node) {
            return Ok(());
        }
        if meta["deletionTimestamp"].is_string() {
            if pod["status"]["phase"] == "Running" {
                // A Job waits for the end of its pods, which its finalizer keeps.
                let status = json!({"status": stopped(pod)});
                patch(&self.client, &format!("{path}/status"), &status).await?;
            }
            let options =
                json!({"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}});
            return send(&self.client, Method::DELETE, &path, &options).await;
        }
        if pod["status"]["phase"] == "Pending" {
            self.turn += 1;
            let status = json!({"status": started(pod, self.turn)});
            return patch(&self.client, &format!("{path}/status"), &status).await;
        }
        if is_due(pod, Clock::system().now()) {
            let status = json!({"status": readiness(&pod["status"], true)});
            return patch(&self.client, &format!("{path}/status"), &status).await;
        }
        Ok(())
    }

    async fn bind(&mut self, pod: &Value, path: &str) -> Result<(), BoxError> {
        let spec = &pod["spec"];
        let is_held =
            |field: &str| spec[field].as_array().is_some_and(|it| !it.is_empty());
        if self.binder == Binder::Scheduler || is_held("schedulingGates") {
            return Ok(());
        }
        self.turn += 1;
        let fitting: Vec<&str> = NODES.into_iter().filter(|it| fits(spec, it)).collect();
        let turn = self.turn.checked_rem(fitting.len());
        let next = turn.and_then(|turn| fitting.get(turn).copied());
        let Some(node) = wanted_node(pod).or(next) else {
            return Ok(());
        };
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod["metadata"]["name"]},
            "target": {"kind": "Node", "name": node}});
        send(
            &self.client,
            Method::POST,
            &format!("{path}/binding"),
            &binding,
        )
        .await
    }
}

/// The status of a pod that has just been started, and that has ended if it is short.
fn started(pod: &Value, number: usize) -> Value {
    let now = Clock::system()
        .now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let end = exit_code(pod);
    let state = match end {
        Some(code) => {
            json!({"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now,
            "reason": if code == 0 { "Completed" } else { "Error" }}})
        }
        None => json!({"running": {"startedAt": now}}),
    };
    let containers: Vec<Value> = (pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten())
    .map(|container| {
        json!({"name": container["name"], "image": container["image"], "imageID": "",
                "containerID": format!("played://{number}"), "restartCount": 0,
                "started": end.is_none(), "ready": end.is_none(), "state": state})
    })
    .collect();
    let phase = match end {
        None => "Running",
        Some(0) => "Succeeded",
        Some(_) => "Failed",
    };
    let address = format!("10.244.{}.{}", number / 250 % 250, number % 250 + 1);
    let mut status = readiness(
        &json!({"containerStatuses": containers}),
        end.is_none() && delay(pod) == 0,
    );
    let own = json!({"phase": phase, "startTime": now, "hostIP": "127.0.0.1", "podIP": address,
        "podIPs": [{"ip": address}]});
    if let (Some(status), Value::Object(own)) = (status.as_object_mut(), own) {
        status.extend(own);
    }
    status
}

/// How many seconds after its start a pod becomes ready: as long as its probes wait.
fn delay(pod: &Value) -> i64 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let delays =
        containers.filter_map(|it| it["readinessProbe"]["initialDelaySeconds"].as_i64());
    delays.max().unwrap_or_default()
}

/// Whether it is time that a running pod with such a probe becomes ready.
fn is_due(pod: &Value, now: jiff::Timestamp) -> bool {
    let status = &pod["status"];
    let mut containers = status["containerStatuses"].as_array().into_iter().flatten();
    let is_waiting = status["phase"] == "Running"
        && delay(pod) > 0
        && containers.any(|it| it["ready"] == false);
    let started = status["startTime"].as_str().and_then(|it| it.parse().ok());
    is_waiting
        && started.is_some_and(|started: jiff::Timestamp| {
            now.as_second() - started.as_second() >= delay(pod)
        })
}

/// The parts of a status that say whether a pod is ready.
fn readiness(status: &Value, is_ready: bool) -> Value {
    let now = Clock::system()
        .now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let mut containers = status["containerStatuses"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        container["ready"] = is_ready.into();
    }
    let word = if is_ready { "True" } else { "False" };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
    json!({"containerStatuses": containers, "conditions": [condition("Initialized", "True"),
        condition("Ready", word), condition("ContainersReady", word)]})
}

/// The status of a running pod whose containers are stopped.
fn stopped(pod: &Value) -> Value {
    let now = Clock::system()
        .now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let mut status = readiness(&pod["status"], false);
    status["phase"] = "Failed".into();
    let containers = status["containerStatuses"].as_array_mut();
    for container in containers.into_iter().flatten() {
        container["started"] = false.into();
        container["state"] = json!({"terminated": {"exitCode": 137, "reason": "Error",
            "startedAt": now, "finishedAt": now}});
    }
    status
}

/// How a pod of a Job ends: as the `exit` in its command says. `None` for one without a command or
/// with one that sleeps, and for the pods of others.
fn exit_code(pod: &Value) -> Option<i64> {
    let mut owners = pod["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners.find(|it| it["kind"] == "Job")?;
    let words =
        ["command", "args"].map(|it| pod["spec"]["containers"][0][it].to_string());
    let words = words.join(" ");
    if words.contains("sleep") {
        return None;
    }
    let code = words.split("exit ").nth(1)?;
    let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse().unwrap_or(0))
}

/// Makes a node ready, and removes the taints of one that is not.
async fn ready_node(client: &Client, name: &str) -> Result<(), BoxError> {
    let path = format!("/api/v1/nodes/{name}");
    let now = Clock::system()
        .now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let status = json!({"status": {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": now}]}});
    patch(client, &format!("{path}/status"), &status).await?;
    patch(client, &path, &json!({"spec": {"taints": null}})).await
}

/// The labels of a node.
fn labels(node: &str) -> Value {
    json!({"kubernetes.io/hostname": node, "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64"})
}

/// Whether a node has the labels that the spec of a pod selects.
fn fits(spec: &Value, node: &str) -> bool {
    let labels = labels(node);
    let mut selected = spec["nodeSelector"].as_object().into_iter().flatten();
    selected.all(|(label, value)| labels[label] == *value)
}

/// The node for which a DaemonSet has made a pod.
fn wanted_node(pod: &Value) -> Option<&str> {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                 /nodeSelectorTerms/0/matchFields/0/values/0";
    pod.pointer(terms)?.as_str()
}

/// Reads a path.
///
/// # Errors
/// The request fails.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, BoxError> {
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

/// Sends an object.
///
/// # Errors
/// The request fails.
pub(crate) async fn send(
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

    fn pod_of_a_job(command: &[&str]) -> Value {
        json!({"metadata": {"ownerReferences": [{"kind": "Job"}]},
            "spec": {"containers": [{"name": "c", "image": "i", "command": command}]}})
    }

    #[test]
    fn a_pod_of_a_job_ends_as_its_command_says() {
        let phase =
            |command: &[&str]| started(&pod_of_a_job(command), 1)["phase"].clone();
        assert_eq!(phase(&["sh", "-c", "exit 0"]), "Succeeded");
        assert_eq!(phase(&["sh", "-c", "exit 3"]), "Failed");
        assert_eq!(phase(&["sleep", "300"]), "Running");
        assert_eq!(phase(&[]), "Running");
    }

    #[test]
    fn a_pod_that_is_stopped_has_failed() {
        let mut pod = pod_of_a_job(&[]);
        pod["status"] = started(&pod, 1);
        let status = stopped(&pod);
        assert_eq!(status["phase"], "Failed");
        let code = &status["containerStatuses"][0]["state"]["terminated"]["exitCode"];
        assert_eq!(code, 137);
    }

    #[test]
    fn a_pod_becomes_ready_when_its_probe_has_waited() {
        let mut pod = json!({"spec": {"containers": [
            {"name": "c", "readinessProbe": {"initialDelaySeconds": 20}}]}});
        pod["status"] = started(&pod, 1);
        assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false);
        pod["status"]["startTime"] = "2026-03-06T21:30:00Z".into();
        let is_due = |time: &str| is_due(&pod, time.parse().expect("a time"));
        assert!(!is_due("2026-03-06T21:30:19Z"));
        assert!(is_due("2026-03-06T21:30:20Z"));
    }

    #[test]
    fn a_pod_runs_on_a_node_that_it_selects() {
        let spec = |label: &str, value: &str| json!({"nodeSelector": {label: value}});
        let host = "kubernetes.io/hostname";
        assert!(fits(&spec(host, "n2"), "n2") && !fits(&spec(host, "n2"), "n1"));
        assert!(!fits(&spec("disk", "fast"), "n1") && fits(&json!({}), "n1"));
    }

    #[test]
    fn a_pod_without_a_job_runs() {
        let pod = json!({"spec": {"containers": [{"name": "c", "command": ["exit 1"]}]}});
        assert_eq!(started(&pod, 1)["phase"], "Running");
    }

    #[test]
    fn pods_have_addresses_of_their_own() {
        let pod = json!({"spec": {"containers": []}});
        let addresses: std::collections::BTreeSet<String> = (0..1000)
            .map(|number| started(&pod, number)["podIP"].to_string())
            .collect();
        assert_eq!(addresses.len(), 1000);
    }
}
