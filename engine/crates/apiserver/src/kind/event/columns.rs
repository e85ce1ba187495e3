//! The table of events (`printEvent` in Kubernetes' pkg/printers/internalversion).

use jiff::Timestamp;
use serde_json::Value;

use crate::kind::column;
use crate::resource::Column;

/// The columns of both versions. The name is the last of them.
pub(super) fn columns() -> Vec<Column> {
    let text = |name: &str, description: &str| Column::new(name, "string", description);
    vec![
        text("Last Seen", "The time at which the most recent occurrence of this event was recorded."),
        text("Type", "Type of this event (Normal, Warning), new types could be added in the future"),
        text("Reason", "This should be a short, machine understandable string that gives the reason for the transition into the object's current status."),
        text("Object", "The object that this event is about."),
        text("Subobject", "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.").wide(),
        text("Source", "The component reporting this event. Should be a short machine understandable string.").wide(),
        text("Message", "A human-readable description of the status of this operation."),
        text("First Seen", "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)").wide(),
        text("Count", "The number of times this event has occurred.").wide(),
        text("Name", "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names").wide(),
    ]
}

/// The table row of an event in either version. Events have no leading name column.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, other: &str| {
        if object[core].is_null() {
            object[other].clone()
        } else {
            object[core].clone()
        }
    };
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let first_seen = if first.is_null() {
        &object["eventTime"]
    } else {
        &first
    };
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let last_seen = if last.is_null() { first_seen } else { &last };
    let series = &object["series"];
    let (last_seen, times) = if series.is_object() {
        (
            &series["lastObservedTime"],
            series["count"].as_i64().unwrap_or(0),
        )
    } else {
        let times = either("count", "deprecatedCount").as_i64().unwrap_or(0);
        (last_seen, times.max(1))
    };
    let about = either("involvedObject", "regarding");
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let mut target = kind;
    if let Some(name) = about["name"].as_str().filter(|it| !it.is_empty()) {
        target = format!("{target}/{name}");
    }
    let source = either("source", "deprecatedSource");
    let mut component = column::string(&source["component"]);
    if component == "" {
        component = column::string(&either("reportingComponent", "reportingController"));
    }
    let host = source["host"].as_str().unwrap_or_default();
    let component = [component.as_str().unwrap_or_default(), host]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    vec![
        column::since(last_seen, now).into(),
        column::string(&object["type"]),
        column::string(&object["reason"]),
        target.into(),
        column::string(&about["fieldPath"]),
        component.into(),
        column::string(&either("message", "note"))
            .as_str()
            .unwrap_or_default()
            .trim()
            .into(),
        column::since(first_seen, now).into(),
        times.into(),
        column::name(object),
    ]
}
