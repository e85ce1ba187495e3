//! The structural schema: types, defaults and bounds of every field, and what `kubectl explain`
//! says about them.
//!
//! Every string and every list is bounded, the passed-on provider specs and the keys of maps
//! excepted, so that every rule has a finite cost. Fields of the rules 1 to 13 carry no pattern,
//! no least length and no enum, and leave room for 64 characters at least, so that a user reads
//! the rule's message and not the schema's.

use serde_json::{Map, Value, json};

use crate::scheduled_machine::{
    DEFAULT_PRIORITY, DEFAULT_TIMEOUT, DEFAULT_TIMEZONE, TaintEffect,
};
use crate::status::{Phase, ShutdownReason};

/// The longest name of a Kubernetes object.
const MAX_NAME: u32 = 253;
/// The longest label value, label name or namespace.
const MAX_LABEL: u32 = 63;
/// Room for an RFC 3339 instant, or for a uid.
const MAX_SHORT: u32 = 64;

/// The schema of the whole object.
pub(crate) fn root() -> Value {
    let string =
        |description: &str| json!({"type": "string", "description": description});
    let properties = [
        ("apiVersion", string("Group and version of this object.")),
        ("kind", string("Kind of this object.")),
        ("metadata", json!({"type": "object"})),
        ("spec", spec()),
        ("status", status()),
    ];
    object(
        "A machine that joins a Cluster API cluster and leaves it on a schedule.",
        &["spec"],
        properties,
    )
}

fn object<const N: usize>(
    description: &str,
    required: &[&str],
    properties: [(&str, Value); N],
) -> Value {
    let properties: Map<String, Value> = properties
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let mut schema = json!({"type": "object", "description": description});
    if let Some(schema) = schema.as_object_mut() {
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    schema
}

fn string(description: &str, max_length: u32) -> Value {
    json!({"type": "string", "description": description, "maxLength": max_length})
}

fn boolean(description: &str, default: bool) -> Value {
    json!({"type": "boolean", "description": description, "default": default})
}

fn list(description: &str, max_items: u32, items: Value) -> Value {
    json!({
        "type": "array",
        "description": description,
        "maxItems": max_items,
        "x-kubernetes-list-type": "atomic",
        "items": items,
    })
}

fn list_map(description: &str, max_items: u32, keys: &[&str], items: Value) -> Value {
    json!({
        "type": "array",
        "description": description,
        "maxItems": max_items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": items,
    })
}

fn string_map(description: &str, max_value: u32) -> Value {
    json!({
        "type": "object",
        "description": description,
        "default": {},
        "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": max_value},
    })
}

fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(keyword.to_owned(), value);
    }
    schema
}

fn spec() -> Value {
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
            (
                "clusterName",
                string(
                    "The Cluster API Cluster, in the same namespace, that the machine joins. It \
                 cannot be changed while the machine exists.",
                    MAX_NAME,
                ),
            ),
            (
                "bootstrapSpec",
                inline_object("bootstrap", "K0sWorkerConfig"),
            ),
            (
                "infrastructureSpec",
                inline_object("infrastructure", "RemoteMachine"),
            ),
            ("machineTemplate", machine_template()),
            (
                "priority",
                json!({
                    "type": "integer",
                    "format": "int32",
                    "description": "Which machines start first (high) and leave last (high) when \
                        starts are rate-limited.",
                    "default": DEFAULT_PRIORITY,
                    "minimum": 0,
                    "maximum": 255,
                }),
            ),
            (
                "gracefulShutdownTimeout",
                timeout(
                    "How long the whole leave-taking may last, from the moment at which the machine \
                 is no longer wanted to its removal: digits and one of s, m, h, at most 24h. 0s \
                 means no waiting.",
                ),
            ),
            (
                "nodeDrainTimeout",
                timeout(
                    "How long the eviction of the node's pods may last, within \
                 gracefulShutdownTimeout: digits and one of s, m, h, at most 24h. 0s means no \
                 waiting.",
                ),
            ),
            (
                "killSwitch",
                boolean(
                    "Removes the machine at once, without grace and without drain. Set it back to \
                 false to return to the schedule.",
                    false,
                ),
            ),
            (
                "killIfCommands",
                list(
                    "Gives the host back to its owner when a process runs whose name, or the file \
                 name of whose program, is one of these, or whose command line contains one: \
                 the machine is removed at once and the schedule switched off.",
                    100,
                    json!({"type": "string", "maxLength": 256}),
                ),
            ),
            (
                "nodeTaints",
                with(
                    list_map(
                        "Taints that the Node bears while the machine is in service. Taints that \
                     somebody else put there are left alone.",
                        64,
                        &["key", "effect"],
                        taint(),
                    ),
                    "default",
                    json!([]),
                ),
            ),
        ],
    )
}

fn schedule() -> Value {
    object(
        "When the machine is wanted: either daysOfWeek and hoursOfDay, or cron with duration.",
        &[],
        [
            (
                "daysOfWeek",
                with(
                    list(
                        "Days on which the machine is wanted: mon, tue, wed, thu, fri, sat, sun, \
                     ranges such as mon-fri or fri-mon, or comma lists of these.",
                        32,
                        json!({"type": "string", "maxLength": 64}),
                    ),
                    "default",
                    json!([]),
                ),
            ),
            (
                "hoursOfDay",
                with(
                    list(
                        "Hours at which the machine is wanted, both ends included: 9-17 is from \
                     09:00:00 to 17:59:59. Ranges may run over midnight, such as 22-6, which on \
                     a single day means its first and its last hours. Entries may be comma lists.",
                        32,
                        json!({"type": "string", "maxLength": 64}),
                    ),
                    "default",
                    json!([]),
                ),
            ),
            (
                "cron",
                string(
                    "Five cron fields (minute, hour, day of month, month, day of week), instead of \
                 daysOfWeek and hoursOfDay. Each firing opens a window of the given duration; \
                 windows that touch or overlap are one.",
                    128,
                ),
            ),
            (
                "duration",
                string(
                    "How long one firing of cron keeps the machine wanted, from 1m to 168h; 1h if \
                 absent. Only together with cron.",
                    MAX_SHORT,
                ),
            ),
            (
                "timezone",
                with(
                    string(
                        "The IANA time zone in which days, hours and cron are read, such as \
                     Europe/Zurich. An hour that the clocks skip never opens; one that they \
                     repeat is on twice.",
                        MAX_SHORT,
                    ),
                    "default",
                    json!(DEFAULT_TIMEZONE),
                ),
            ),
            (
                "enabled",
                boolean(
                    "Whether the schedule is in force. A machine that is there when it is switched \
                 off stays.",
                    true,
                ),
            ),
        ],
    )
}

fn timeout(description: &str) -> Value {
    with(
        string(description, MAX_SHORT),
        "default",
        json!(DEFAULT_TIMEOUT),
    )
}

fn inline_object(role: &str, kind: &str) -> Value {
    object(
        &format!(
            "The {role} object that is created, under the name of the ScheduledMachine, while \
             the machine is wanted. Changes take effect at the next activation."
        ),
        &["apiVersion", "kind", "spec"],
        [
            (
                "apiVersion",
                string(
                    &format!(
                        "Group and version of the object: group {role}.cluster.x-k8s.io or \
                     k0smotron.io."
                    ),
                    MAX_NAME,
                ),
            ),
            (
                "kind",
                string(&format!("Kind of the object, such as {kind}."), MAX_NAME),
            ),
            (
                "namespace",
                string(
                    "The namespace of the object: the ScheduledMachine's own, and so best left out.",
                    MAX_LABEL,
                ),
            ),
            (
                "spec",
                json!({
                    "type": "object",
                    "description": "The object's spec, passed on to the provider untouched.",
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
            ),
        ],
    )
}

fn machine_template() -> Value {
    let template = object(
        "What the created Machine carries besides what 5-Spot needs. Changes take effect at the \
         next activation.",
        &[],
        [
            (
                "labels",
                string_map(
                    "Labels of the Machine. Keys of Kubernetes, Cluster API and 5-Spot are reserved, \
                 except those that Cluster API hands on to the Node.",
                    MAX_LABEL,
                ),
            ),
            (
                "annotations",
                string_map(
                    "Annotations of the Machine. The same keys are reserved as for labels.",
                    4096,
                ),
            ),
        ],
    );
    with(template, "default", json!({}))
}

fn taint() -> Value {
    let effects = TaintEffect::ALL.map(TaintEffect::as_str);
    object(
        "A taint. Key and effect are its identity, the value may change.",
        &["key", "effect"],
        [
            (
                "key",
                string("A qualified name, such as example.com/dedicated.", MAX_NAME),
            ),
            (
                "value",
                with(
                    string("The value; empty if absent.", MAX_LABEL),
                    "default",
                    json!(""),
                ),
            ),
            (
                "effect",
                json!({
                    "type": "string",
                    "description": "What happens to pods that do not tolerate the taint.",
                    "enum": effects,
                    "maxLength": MAX_SHORT,
                }),
            ),
        ],
    )
}

fn instant(description: &str) -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "description": description,
        "maxLength": MAX_SHORT,
    })
}

fn status() -> Value {
    object(
        "What was seen and decided.",
        &[],
        [
            (
                "phase",
                json!({
                    "type": "string",
                    "description": "A summary for people; nothing is decided from it.",
                    "enum": Phase::ALL.map(Phase::as_str),
                    "maxLength": MAX_SHORT,
                }),
            ),
            ("message", string("One sentence for people.", 32_768)),
            (
                "inSchedule",
                json!({
                    "type": "boolean",
                    "description": "Whether the schedule wants the machine.",
                }),
            ),
            (
                "observedGeneration",
                json!({
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the spec that this status is about.",
                }),
            ),
            (
                "conditions",
                list_map("Details, one for each type.", 32, &["type"], condition()),
            ),
            ("machineRef", reference("The Machine, while it exists.")),
            (
                "bootstrapRef",
                reference("The bootstrap object, from just before it is created."),
            ),
            (
                "infrastructureRef",
                reference("The infrastructure object, from just before it is created."),
            ),
            (
                "specHash",
                string(
                    "The hash of bootstrapSpec, infrastructureSpec and machineTemplate as they were \
                 when the machine was created.",
                    MAX_SHORT,
                ),
            ),
            ("nodeRef", reference("The Node, once the Machine has one.")),
            (
                "providerID",
                string("The provider's identifier of the machine.", 2048),
            ),
            ("shutdown", shutdown()),
            (
                "appliedNodeTaints",
                list_map(
                    "The taints that 5-Spot put on the Node: a copy of the record on the Node itself.",
                    64,
                    &["key", "effect"],
                    taint(),
                ),
            ),
            (
                "lastScheduledTime",
                instant("When a Machine was last created."),
            ),
            (
                "nextActivation",
                instant("The next opening of the schedule; absent while open."),
            ),
            (
                "nextCleanup",
                instant("When a leaving machine is removed at the latest."),
            ),
            (
                "nextTransition",
                instant(
                    "The next change of the schedule, or the deadline of a leaving machine, whichever \
                 comes first.",
                ),
            ),
        ],
    )
}

/// The bounds are those of Kubernetes' own conditions.
fn condition() -> Value {
    object(
        "One aspect of the state.",
        &["type", "status", "reason", "message", "lastTransitionTime"],
        [
            ("type", string("What it is about.", 316)),
            (
                "status",
                json!({
                    "type": "string",
                    "description": "Whether it holds.",
                    "enum": ["True", "False", "Unknown"],
                    "maxLength": MAX_SHORT,
                }),
            ),
            (
                "observedGeneration",
                json!({
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the spec that it is about.",
                    "minimum": 0,
                }),
            ),
            (
                "lastTransitionTime",
                instant("When the status last changed."),
            ),
            (
                "reason",
                json!({
                    "type": "string",
                    "description": "Why, in one CamelCase word.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                }),
            ),
            ("message", string("Why, in a sentence.", 32_768)),
        ],
    )
}

fn reference(description: &str) -> Value {
    object(
        description,
        &["apiVersion", "kind", "name"],
        [
            ("apiVersion", string("Group and version.", MAX_NAME)),
            ("kind", string("Kind.", MAX_NAME)),
            ("name", string("Name.", MAX_NAME)),
            (
                "namespace",
                string("Namespace; absent for a Node.", MAX_LABEL),
            ),
            ("uid", string("Uid; absent until the object exists.", 128)),
        ],
    )
}

fn shutdown() -> Value {
    object(
        "The commitment to leave: written before anything is taken away, gone when all is.",
        &["machineUID", "startedAt", "deadline", "reason"],
        [
            ("machineUID", string("The Machine that leaves.", 128)),
            ("startedAt", instant("When it began.")),
            (
                "deadline",
                instant("When the Machine is deleted at the latest."),
            ),
            (
                "reason",
                json!({
                    "type": "string",
                    "description": "Why the machine leaves.",
                    "enum": ShutdownReason::ALL.map(ShutdownReason::as_str),
                    "maxLength": MAX_SHORT,
                }),
            ),
        ],
    )
}
