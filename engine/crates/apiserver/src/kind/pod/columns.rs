//! The table of pods (`printPod` in Kubernetes' pkg/printers/internalversion).

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kind::column::{self, list};
use crate::resource::Column;
use crate::table::human_duration;

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let text = |name: &str, description: &str| Column::new(name, "string", description);
    vec![
        text("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        text("Status", "The aggregate status of the containers in this pod."),
        text("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
        Column::age(),
        text("IP", "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.").wide(),
        text("Node", "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename").wide(),
        text("Nominated Node", "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is scheduled.").wide(),
        text("Readiness Gates", "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are ready AND all conditions specified in the readiness gates have status equal to \"True\" More info: https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates").wide(),
    ]
}

/// The conditions of a row: a finished pod has the condition `Completed`.
pub(super) fn row_conditions(pod: &Value) -> Value {
    let message = match pod["status"]["phase"].as_str() {
        Some("Succeeded") => "The pod has completed successfully.",
        Some("Failed") => "The pod failed.",
        _ => return Value::Null,
    };
    json!([{"type": "Completed", "status": "True", "message": message,
        "reason": pod["status"]["phase"]}])
}

/// The cells of `pod`.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let containers = Containers::of(pod);
    let or_none = |value: &Value| match value.as_str() {
        Some("") | None => Value::from("<none>"),
        Some(text) => text.into(),
    };
    let ready = format!("{}/{}", containers.ready, containers.total);
    vec![
        column::name(pod),
        ready.into(),
        containers.reason.into(),
        restarts(containers.restarts, containers.last_restart, now).into(),
        column::age(pod, now),
        or_none(&pod["status"]["podIP"]),
        or_none(&pod["spec"]["nodeName"]),
        or_none(&pod["status"]["nominatedNodeName"]),
        readiness_gates(pod).into(),
    ]
}

/// The summary of a pod's container statuses.
struct Containers {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Containers {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let named = |key: &str| status[key].as_str().filter(|it| !it.is_empty());
        let mut all = Self {
            ready: 0,
            total: list(&pod["spec"]["containers"]).len(),
            reason: named("reason")
                .or(named("phase"))
                .unwrap_or_default()
                .to_owned(),
            restarts: 0,
            last_restart: None,
        };
        if list(&status["conditions"])
            .iter()
            .any(|it| it["type"] == "PodScheduled" && it["reason"] == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut all.reason);
        }
        if !all.initialising(pod) {
            all.running(status);
        }
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            let lost = status["reason"] == "NodeLost";
            let reason = if lost { "Unknown" } else { "Terminating" };
            reason.clone_into(&mut all.reason);
        }
        all
    }

    /// Whether an init container has not completed; sets the reason to its state.
    fn initialising(&mut self, pod: &Value) -> bool {
        let total = list(&pod["spec"]["initContainers"]).len();
        for (at, container) in list(&pod["status"]["initContainerStatuses"])
            .iter()
            .enumerate()
        {
            self.count(container);
            let state = &container["state"];
            let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
            if state["terminated"].is_object() {
                if state["terminated"]["exitCode"].as_i64().unwrap_or(0) == 0 {
                    continue;
                }
                self.reason = format!("Init:{}", ended(&state["terminated"]));
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                self.reason = format!("Init:{waiting}");
            } else {
                self.reason = format!("Init:{at}/{total}");
            }
            return true;
        }
        false
    }

    fn running(&mut self, status: &Value) {
        self.restarts = 0;
        self.last_restart = None;
        let mut any_running = false;
        for container in list(&status["containerStatuses"]).iter().rev() {
            self.count(container);
            let state = &container["state"];
            let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if state["terminated"].is_object() {
                self.reason = ended(&state["terminated"]);
            } else if container["ready"] == true && state["running"].is_object() {
                any_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && any_running {
            let ready = list(&status["conditions"])
                .iter()
                .any(|it| it["type"] == "Ready" && it["status"] == "True");
            let reason = if ready { "Running" } else { "NotReady" };
            reason.clone_into(&mut self.reason);
        }
    }

    fn count(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_i64().unwrap_or(0);
        let finished = container["lastState"]["terminated"]["finishedAt"]
            .as_str()
            .and_then(|it| it.parse().ok());
        self.last_restart = self.last_restart.max(finished);
    }
}

/// The reason why a container terminated.
fn ended(terminated: &Value) -> String {
    match terminated["reason"].as_str() {
        Some("") | None => {}
        Some(reason) => return reason.to_owned(),
    }
    match terminated["signal"].as_i64() {
        Some(signal) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
    }
}

fn restarts(times: i64, last: Option<Timestamp>, now: Timestamp) -> String {
    match last {
        Some(last) if times > 0 => {
            format!("{times} ({} ago)", human_duration(last, now))
        }
        _ => times.to_string(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list(&pod["status"]["conditions"]);
    let open = gates.iter().filter(|gate| {
        conditions
            .iter()
            .any(|it| it["type"] == gate["conditionType"] && it["status"] == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}
