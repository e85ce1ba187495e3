//! A rule's examples as whole objects.

use serde_json::{Map, Value, json};

use super::{Examples, Rule};
use crate::name;
use crate::resource::Resource;

/// The path of the spec of the machines of a set.
const TEMPLATE: &str = "spec.template.spec";

/// An object that satisfies every rule, in namespace `default`.
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

/// An object of a kind that satisfies every rule, in namespace `default`.
pub(crate) fn acceptable_of(resource: &Resource) -> Value {
    let spec = match resource.kind {
        name::OVERRIDE_KIND => json!({
            "targetRef": {"name": "worker"},
            "mode": "Run",
            "endTime": "2026-03-06T22:00:00Z",
        }),
        name::CALENDAR_KIND => json!({"dates": [{"name": "christmas", "date": "12-25"}]}),
        name::TIME_BASED_KIND => {
            json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]})
        }
        name::CAPITAL_MARKETS_KIND => json!({
            "timezone": "America/New_York",
            "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}],
        }),
        name::CAPACITY_KIND => json!({
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 3},
        }),
        name::CLASS_KIND => json!({
            "clusterNames": ["prod"],
            "bootstrapSpec": acceptable()["spec"]["bootstrapSpec"],
            "infrastructureSpec": acceptable()["spec"]["infrastructureSpec"],
        }),
        name::SET_KIND => json!({
            "replicas": 5,
            "template": {"spec": {
                "schedule": acceptable()["spec"]["schedule"],
                "classRef": {"name": "desks"},
            }},
        }),
        _ => return acceptable(),
    };
    let mut object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": {
            "name": "worker",
            "namespace": "default",
            "creationTimestamp": "2026-03-06T12:00:00Z",
        },
        "spec": spec,
    });
    let metadata = object["metadata"].as_object_mut();
    if let Some(metadata) = metadata.filter(|_| !resource.is_namespaced) {
        metadata.shift_remove("namespace");
    }
    object
}

impl Examples {
    /// The values that satisfy the rule, as written in the table.
    pub fn accepts(&self) -> &'static [&'static str] {
        match self {
            Self::Text { accepts, .. }
            | Self::Json { accepts, .. }
            | Self::Sizes { accepts, .. } => accepts,
        }
    }

    /// The values that violate the rule, as written in the table.
    pub fn rejects(&self) -> &'static [&'static str] {
        match self {
            Self::Text { rejects, .. }
            | Self::Json { rejects, .. }
            | Self::Sizes { rejects, .. } => rejects,
        }
    }

    /// An example as JSON: a string unchanged, a JSON text parsed (null if it is malformed), a
    /// map of the given size.
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
    /// A whole object that satisfies every rule, except this one if the example is a rejected
    /// one.
    ///
    /// An example of a rule about a change is `{"from": …, "to": …}` with two values of the
    /// field. This returns the later object, see [`Rule::before`].
    pub fn example(&self, example: &str) -> Value {
        let value = self.requirement.examples.value(example);
        match value.get("to") {
            Some(to) => self.with(to.clone()),
            None => self.with(value),
        }
    }

    /// The object before the change of the example. `None` if the rule is not about a change.
    pub fn before(&self, example: &str) -> Option<Value> {
        let value = self.requirement.examples.value(example);
        let mut object = self.with(value.get("from")?.clone());
        if self.resource().kind == name::KIND {
            let machine = json!({"machineRef": {
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "kind": "Machine",
                "name": "worker",
                "uid": "0b1c",
            }});
            place(&mut object, "status", machine);
        }
        Some(object)
    }

    /// An acceptable object with this value of the rule's field.
    fn with(&self, value: Value) -> Value {
        let resource = self.resource();
        let mut object = acceptable_of(resource);
        // Where the object has what a machine has there.
        let (of_machine, own) = match resource.kind {
            name::TIME_BASED_KIND => ("spec.schedule", "spec"),
            name::SET_KIND => ("spec", TEMPLATE),
            _ => ("spec", "spec"),
        };
        let path = self.path.replacen(own, of_machine, 1);
        if let Some((path, siblings)) = required_siblings(&path) {
            let path = path.replacen(of_machine, own, 1);
            place(&mut object, &path, siblings);
        }
        if self.path.starts_with("spec.fields[]") {
            // The other form excludes it.
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.shift_remove("capacity");
            }
        }
        if self.path.starts_with("spec.classRef") {
            // The class has them.
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.retain(|field, _| !field.ends_with("Spec"));
            }
        }
        if self.path == "spec.selector" {
            place(
                &mut object,
                "spec",
                json!({"mode": "Run", "endTime": "2026-03-06T22:00:00Z"}),
            );
        }
        match (self.node_path(), value) {
            // The given members of the spec replace those of the object, null removes one; the
            // rest is kept.
            ("spec" | TEMPLATE, Value::Object(members))
                if resource.kind != name::TIME_BASED_KIND =>
            {
                let pointer = format!("/{}", self.node_path().replace('.', "/"));
                let spec = object.pointer_mut(&pointer);
                let Some(spec) = spec.and_then(Value::as_object_mut) else {
                    return object;
                };
                spec.extend(members);
                spec.retain(|_, value| !value.is_null());
            }
            (path, value) => place(&mut object, path, value),
        }
        object
    }
}

/// The other fields that a field requires for the object to be acceptable, and their path.
fn required_siblings(path: &str) -> Option<(&'static str, Value)> {
    let dates = json!({
        "name": "holidays", "action": "Stop",
        "startDate": "2026-12-24", "endDate": "2026-12-24",
    });
    let place = match path {
        "spec.schedule.cron" | "spec.schedule.duration" => {
            ("spec.schedule", json!({"cron": "0 9-17 * * 1-5"}))
        }
        "spec.schedule.apiVersion" | "spec.schedule.kind" | "spec.schedule.name" => (
            "spec.schedule",
            json!({
                "apiVersion": name::SPOT_API_VERSION,
                "kind": name::TIME_BASED_KIND,
                "name": "office",
            }),
        ),
        "spec.classRef.host" => ("spec.classRef", json!({"name": "desks"})),
        "spec.schedule.windows[].duration" => (
            "spec.schedule",
            json!({"windows": [{"name": "night", "start": "19:00"}]}),
        ),
        "spec.schedule.exceptions[].calendarRef.name" => (
            "spec.schedule.exceptions[]",
            json!({"name": "holidays", "action": "Stop"}),
        ),
        // Later or earlier than any example of the other end.
        "spec.schedule.exceptions[].startDate" => {
            let dates = with_member(dates, "endDate", "9999-12-31");
            ("spec.schedule.exceptions[]", dates)
        }
        "spec.schedule.exceptions[].endDate" => {
            let dates = with_member(dates, "startDate", "0000-01-01");
            ("spec.schedule.exceptions[]", dates)
        }
        path if path.starts_with("spec.fields[]") => (
            "spec.fields[]",
            json!({"field": "paused", "activeValue": false, "inactiveValue": true}),
        ),
        "spec.handback.timeout" => ("spec.handback", json!({"drainedPath": "replicas"})),
        "spec.earlyCloses[].date" => ("spec.earlyCloses[]", json!({"closeHour": 12})),
        "spec.dates[].startDate" => (
            "spec.dates[]",
            json!({"name": "d", "endDate": "9999-12-31"}),
        ),
        "spec.dates[].endDate" => (
            "spec.dates[]",
            json!({"name": "d", "startDate": "0000-01-01"}),
        ),
        path if path.starts_with("spec.schedule.windows[]") => (
            "spec.schedule",
            json!({"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}),
        ),
        path if path.starts_with("spec.schedule.exceptions[]") => {
            ("spec.schedule.exceptions[]", dates)
        }
        path if path.starts_with("spec.nodeTaints[]") => (
            "spec.nodeTaints[]",
            json!({"key": "workload", "value": "batch", "effect": "NoSchedule"}),
        ),
        _ => return None,
    };
    Some(place)
}

fn with_member(mut object: Value, member: &str, value: &str) -> Value {
    object[member] = json!(value);
    object
}

/// A map of texts whose keys and values have this total size, in entries of two KiB; the first
/// one has the remainder as well.
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

/// Sets a value at a path and creates missing parents; `[]` is the first item of a list.
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
