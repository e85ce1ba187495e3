//! The schema of the spec.

use serde_json::{Value, json};

use super::{
    MAX_LABEL, MAX_NAME, MAX_SHORT, boolean, list, list_map, object, string, string_map,
    taint, with,
};
use crate::scheduled_machine::{
    DEFAULT_PRIORITY, DEFAULT_TIMEOUT, DEFAULT_TIMEZONE, MOST_TAINTS,
};

pub(super) fn spec() -> Value {
    object(
        "What is asked for: when the machine is wanted, what it is made from, how it leaves.",
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
        "description": "Which machines start first (high) and leave last (high) when starts are \
            rate-limited.",
        "default": DEFAULT_PRIORITY,
        "minimum": 0,
        "maximum": 255,
    })
}

fn graceful_shutdown_timeout() -> Value {
    timeout(
        "How long the whole leave-taking may last, from the moment at which the machine is no \
         longer wanted to its removal: digits and one of s, m, h, at most 24h. 0s means no \
         waiting.",
    )
}

fn node_drain_timeout() -> Value {
    timeout(
        "How long the eviction of the node's pods may last, within gracefulShutdownTimeout: \
         digits and one of s, m, h, at most 24h. 0s means no waiting.",
    )
}

fn timeout(description: &str) -> Value {
    with(
        string(description, MAX_SHORT),
        "default",
        json!(DEFAULT_TIMEOUT),
    )
}

fn kill_switch() -> Value {
    boolean(
        "Removes the machine at once, without grace and without drain. Set it back to false to \
         return to the schedule.",
        json!(false),
    )
}

fn kill_if_commands() -> Value {
    list(
        "Gives the host back to its owner when a process runs whose name, or the file name of \
         whose program, is one of these, or whose command line contains one: the machine is \
         removed at once and the schedule switched off.",
        100,
        json!({"type": "string", "maxLength": 256}),
    )
}

fn node_taints() -> Value {
    let taints = list_map(
        "Taints that the Node bears while the machine is in service. Taints that somebody else \
         put there are left alone.",
        MOST_TAINTS,
        &["key", "effect"],
        taint(),
    );
    with(taints, "default", json!([]))
}

fn schedule() -> Value {
    object(
        "When the machine is wanted: either daysOfWeek and hoursOfDay, or cron with duration.",
        &[],
        [
            ("daysOfWeek", days_of_week()),
            ("hoursOfDay", hours_of_day()),
            ("cron", cron()),
            ("duration", duration()),
            ("timezone", timezone()),
            ("enabled", enabled()),
        ],
    )
}

fn days_of_week() -> Value {
    texts(
        "Days on which the machine is wanted: mon, tue, wed, thu, fri, sat, sun, ranges such as \
         mon-fri or fri-mon, or comma lists of these.",
    )
}

fn hours_of_day() -> Value {
    texts(
        "Hours at which the machine is wanted, both ends included: 9-17 is from 09:00:00 to \
         17:59:59. Ranges may run over midnight, such as 22-6, which on a single day means its \
         first and its last hours. Entries may be comma lists.",
    )
}

fn texts(description: &str) -> Value {
    let texts = list(
        description,
        32,
        json!({"type": "string", "maxLength": MAX_SHORT}),
    );
    with(texts, "default", json!([]))
}

fn cron() -> Value {
    string(
        "Five cron fields (minute, hour, day of month, month, day of week), instead of daysOfWeek \
         and hoursOfDay. Each firing opens a window of the given duration; windows that touch or \
         overlap are one.",
        128,
    )
}

fn duration() -> Value {
    string(
        "How long one firing of cron keeps the machine wanted, from 1m to 168h; 1h if absent. \
         Only together with cron.",
        MAX_SHORT,
    )
}

fn timezone() -> Value {
    let zone = string(
        "The IANA time zone in which days, hours and cron are read, such as Europe/Zurich. An \
         hour that the clocks skip never opens; one that they repeat is on twice.",
        MAX_SHORT,
    );
    with(zone, "default", json!(DEFAULT_TIMEZONE))
}

fn enabled() -> Value {
    boolean(
        "Whether the schedule is in force. A machine that is there when it is switched off stays.",
        json!(true),
    )
}

fn inline_object(role: &str, kind: &str) -> Value {
    let description = format!(
        "The {role} object that is created, under the name of the ScheduledMachine, while the \
         machine is wanted. Changes take effect at the next activation."
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
        "The namespace of the object: the ScheduledMachine's own, and so best left out.",
        MAX_LABEL,
    )
}

fn passed_on() -> Value {
    json!({
        "type": "object",
        "description": "The object's spec, passed on to the provider untouched.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn machine_template() -> Value {
    let labels = string_map(
        "Labels of the Machine. Keys of Kubernetes, Cluster API and 5-Spot are reserved, except \
         those that Cluster API hands on to the Node.",
        MAX_LABEL,
    );
    let annotations = string_map(
        "Annotations of the Machine, keys and values together at most 64 KiB. The same keys are \
         reserved as for labels.",
        4096,
    );
    let version = string(
        "The Kubernetes version of the machine, such as v1.31.2, which becomes the Machine's own \
         version. Bootstrap providers that know no version of their own, such as kubeadm's, need \
         it; others leave it out.",
        MAX_SHORT,
    );
    let failure_domain = string(
        "Where the infrastructure provider places the machine: one of the failure domains of the \
         Cluster.",
        256,
    );
    let template = object(
        "What the created Machine carries besides what 5-Spot needs. Changes take effect at the \
         next activation.",
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
