//! A rule's examples as whole objects.

use serde_json::{Map, Value, json};

use super::{Examples, Rule};
use crate::name;

/// An object that keeps every rule, in namespace `default`.
pub(crate) fn acceptable() -> Value {
    json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {},
            },
        },
    })
}

impl Examples {
    /// What keeps the rule, as written in the table.
    pub fn accepts(&self) -> &'static [&'static str] {
        match self {
            Self::Text { accepts, .. }
            | Self::Json { accepts, .. }
            | Self::Sizes { accepts, .. } => accepts,
        }
    }

    /// What breaks the rule, as written in the table.
    pub fn rejects(&self) -> &'static [&'static str] {
        match self {
            Self::Text { rejects, .. }
            | Self::Json { rejects, .. }
            | Self::Sizes { rejects, .. } => rejects,
        }
    }

    /// An example as JSON: a string as it is, a JSON text parsed (null if it is malformed), a
    /// map of the size that is given.
    fn value(&self, example: &str) -> Value {
        match self {
            Self::Text { .. } => json!(example),
            Self::Json { .. } => serde_json::from_str(example).unwrap_or_default(),
            Self::Sizes { .. } => {
                let bytes = example.split(' ').next().and_then(|text| text.parse().ok());
                map_of(bytes.unwrap_or(0))
            }
        }
    }
}

impl Rule {
    /// A whole object that keeps every rule except, if the example is a rejected one, this.
    ///
    /// The example of a rule about a change is the change, written `{"from": …, "to": …}` with
    /// two values of the field; the object made here is the later one, see [`Rule::before`].
    pub fn example(&self, example: &str) -> Value {
        let value = self.examples.value(example);
        let mut object = acceptable();
        if let Some(to) = value.get("to") {
            place(&mut object, "spec.clusterName", to.clone());
            return object;
        }
        if ["spec.schedule.cron", "spec.schedule.duration"].contains(&self.path) {
            place(
                &mut object,
                "spec.schedule",
                json!({"cron": "0 9-17 * * 1-5"}),
            );
        }
        if self.path.starts_with("spec.nodeTaints[]") {
            let taint =
                json!({"key": "workload", "value": "batch", "effect": "NoSchedule"});
            place(&mut object, "spec.nodeTaints[]", taint);
        }
        match (self.path, value) {
            // What is given of the spec takes the place of what is there, the rest stays.
            ("spec", Value::Object(members)) => {
                for (member, value) in members {
                    object["spec"][member] = value;
                }
            }
            (path, value) => place(&mut object, path, value),
        }
        object
    }

    /// The object before the change that is the example; none for a rule about no change.
    pub fn before(&self, example: &str) -> Option<Value> {
        let value = self.examples.value(example);
        let mut object = acceptable();
        place(&mut object, "spec.clusterName", value.get("from")?.clone());
        let machine = json!({"machineRef": {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Machine",
            "name": "worker",
            "uid": "0b1c",
        }});
        place(&mut object, "status", machine);
        Some(object)
    }
}

/// A map of texts whose keys and values have so many bytes together, in entries of at most two
/// KiB and a little.
fn map_of(bytes: usize) -> Value {
    const ENTRY: usize = 2048;
    let count = bytes / ENTRY;
    let entries = (0..count).map(|place| {
        let key = format!("key-{place:02}");
        let rest = if place == 0 { bytes % ENTRY } else { 0 };
        let value = "a".repeat(ENTRY + rest - key.len());
        (key, Value::String(value))
    });
    Value::Object(entries.collect())
}

/// Puts a value at a path, making what is missing on the way; `[]` is the first item of a list.
fn place(object: &mut Value, path: &str, value: Value) {
    let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
    let (member, is_list) = match segment.strip_suffix("[]") {
        Some(member) => (member, true),
        None => (segment, false),
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(map) = object else { return };
    let mut node = map.entry(member).or_insert(Value::Null);
    if is_list {
        if node.as_array().is_none_or(Vec::is_empty) {
            *node = json!([null]);
        }
        let Some(first) = node.as_array_mut().and_then(|list| list.first_mut()) else {
            return;
        };
        node = first;
    }
    if rest.is_empty() {
        *node = value;
    } else {
        place(node, rest, value);
    }
}
