//! The schema of the spec.

use serde_json::{Value, json};

use super::schedule::schedule;
use super::{
    MAX_LABEL, MAX_NAME, MAX_SHORT, boolean, choice, list, list_map, object, string,
    string_map, taint, with,
};
use crate::scheduled_machine::{
    DEFAULT_PRIORITY, DEFAULT_PROVISIONING_TIMEOUT, DEFAULT_TIMEOUT, EndPolicy,
    MOST_TAINTS, NO_TIME,
};

pub(super) fn spec() -> Value {
    object(
        "The desired state: when the machine runs, what it is created from, how it is shut down.",
        &[
            "schedule",
            "clusterName",
            "bootstrapSpec",
            "infrastructureSpec",
        ],
        [
            ("schedule", schedule()),
            ("clusterName", cluster_name()),
            (
                "bootstrapSpec",
                inline_object("bootstrap", "K0sWorkerConfig"),
            ),
            (
                "infrastructureSpec",
                inline_object("infrastructure", "RemoteMachine"),
            ),
            ("machineTemplate", machine_template()),
            ("priority", priority()),
            ("gracefulShutdownTimeout", graceful_shutdown_timeout()),
            ("nodeDrainTimeout", node_drain_timeout()),
            ("killSwitch", kill_switch()),
            ("killIfCommands", kill_if_commands()),
            ("nodeTaints", node_taints()),
            ("provisioning", provisioning()),
            ("shutdown", shutdown()),
        ],
    )
}

fn cluster_name() -> Value {
    string(
        "The Cluster API Cluster, in the same namespace, that the machine joins. It cannot be \
         changed while the machine exists.",
        MAX_NAME,
    )
}

fn priority() -> Value {
    json!({
        "type": "integer",
        "format": "int32",
        "description": "Priority from 0 to 255. With --max-starts-per-minute, machines with a \
         higher priority start first.",
        "default": DEFAULT_PRIORITY,
        "minimum": 0,
        "maximum": 255,
    })
}

fn graceful_shutdown_timeout() -> Value {
    timeout(
        "Time limit for the whole shutdown, from the end of the window to the deletion of the \
         Machine: digits and one of s, m, h, at most 24h. 0s means no waiting.",
    )
}

fn node_drain_timeout() -> Value {
    timeout(
        "Time limit for evicting the pods of the Node, within gracefulShutdownTimeout: digits \
         and one of s, m, h, at most 24h. 0s means no waiting.",
    )
}

fn timeout(description: &str) -> Value {
    duration(description, DEFAULT_TIMEOUT)
}

fn kill_switch() -> Value {
    boolean(
        "If true, the machine is removed immediately, without grace period and without drain. \
         Set it to false to return to the schedule.",
        json!(false),
    )
}

fn kill_if_commands() -> Value {
    list(
        "Commands that trigger an emergency reclaim, which returns the host to its owner: if a \
         process runs whose name or executable file name equals an entry, or whose command line \
         contains one, the machine is removed immediately and the schedule is disabled.",
        100,
        json!({"type": "string", "maxLength": 256}),
    )
}

fn node_taints() -> Value {
    let taints = list_map(
        "Taints of the Node while the machine is running. Taints that are set by others are not \
         changed.",
        MOST_TAINTS,
        &["key", "effect"],
        taint(),
    );
    with(taints, "default", json!([]))
}

fn provisioning() -> Value {
    let provisioning = object(
        "How the machine is provisioned.",
        &[],
        [
            (
                "leadTime",
                duration(
                    "How long before the start of a window the machine is created, at most 2h.",
                    NO_TIME,
                ),
            ),
            (
                "timeout",
                duration(
                    "Time until the Node is Ready after which the ScheduledMachine is Stalled, \
                     from 1m to 24h.",
                    DEFAULT_PROVISIONING_TIMEOUT,
                ),
            ),
            (
                "minimumRun",
                duration(
                    "The machine is not created for less than this, at most 24h.",
                    NO_TIME,
                ),
            ),
        ],
    );
    with(provisioning, "default", json!({}))
}

fn shutdown() -> Value {
    let policy = choice(
        "StartAtWindowEnd: the shutdown starts at the end of the window. CompleteByWindowEnd: it \
         starts gracefulShutdownTimeout earlier, and the Machine is deleted by the end.",
        &EndPolicy::ALL.map(EndPolicy::as_str),
    );
    let shutdown = object(
        "How the machine is shut down at the end of a window.",
        &[],
        [
            (
                "endPolicy",
                with(policy, "default", json!(EndPolicy::default().as_str())),
            ),
            (
                "lastCall",
                duration(
                    "How long before the shutdown the Node gets the taint \
                     5spot.finos.org/last-call:PreferNoSchedule and the annotation \
                     5spot.finos.org/leaves-at; 0s for never.",
                    NO_TIME,
                ),
            ),
        ],
    );
    with(shutdown, "default", json!({}))
}

fn duration(description: &str, default: &str) -> Value {
    with(string(description, MAX_SHORT), "default", json!(default))
}

fn inline_object(role: &str, kind: &str) -> Value {
    let description = format!(
        "The {role} object that is created for the machine, with the name of the \
         ScheduledMachine. Changes take effect at the next activation."
    );
    let version = format!(
        "Group and version of the object: group {role}.cluster.x-k8s.io or k0smotron.io."
    );
    object(
        &description,
        &["apiVersion", "kind", "spec"],
        [
            ("apiVersion", string(&version, MAX_NAME)),
            (
                "kind",
                string(&format!("Kind of the object, such as {kind}."), MAX_NAME),
            ),
            ("namespace", own_namespace()),
            ("spec", passed_on()),
        ],
    )
}

fn own_namespace() -> Value {
    string(
        "Namespace of the object. If set, it must be that of the ScheduledMachine.",
        MAX_LABEL,
    )
}

fn passed_on() -> Value {
    json!({
        "type": "object",
        "description": "The object's spec, passed to the provider unchanged.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn machine_template() -> Value {
    let labels = string_map(
        "Labels of the Machine. Keys of Kubernetes, Cluster API and 5-Spot are reserved, except \
         those that Cluster API copies to the Node.",
        MAX_LABEL,
    );
    let annotations = string_map(
        "Annotations of the Machine, at most 64 KiB of keys and values in total. The same keys \
         as for labels are reserved.",
        4096,
    );
    let version = string(
        "The Kubernetes version in the Machine's spec, such as v1.31.2. Required by bootstrap \
         providers without a version field of their own, such as kubeadm; otherwise omit it.",
        MAX_SHORT,
    );
    let failure_domain = string(
        "The failure domain of the Cluster in which the infrastructure provider places the \
         machine.",
        256,
    );
    let template = object(
        "Additional labels, annotations and fields of the created Machine. Changes take effect \
         at the next activation.",
        &[],
        [
            ("labels", labels),
            ("annotations", annotations),
            ("version", version),
            ("failureDomain", failure_domain),
        ],
    );
    with(template, "default", json!({}))
}
