use jiff::ToSpan;
use serde_json::json;

use super::*;
use crate::kind::builtin;
use crate::openapi::schema::Schema;

mod growth;
mod laws;
mod record;

fn widgets() -> Resource {
    let mut resource = Resource::new("example.com", "v1", "Widget", "widgets");
    resource.custom = true;
    resource.subresources = vec![crate::resource::Subresource::Status];
    resource.schema = Some(Schema::new(json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "priority": {"type": "integer"},
                "colour": {"type": "string"},
                "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
                "order": {"type": "array", "items": {"type": "string"}},
                "ports": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["number", "protocol"],
                    "items": {"type": "object", "properties": {
                        "number": {"type": "integer"},
                        "protocol": {"type": "string", "default": "TCP"},
                        "name": {"type": "string"}}}},
                "named": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {
                        "name": {"type": "string"}, "value": {"type": "integer"}}}},
                "place": {"type": "object", "x-kubernetes-map-type": "atomic",
                    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    })));
    resource
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"}, "spec": spec})
}

/// A server that holds one widget and only tracks field managers.
struct Server {
    resource: Resource,
    object: Option<Value>,
    now: Timestamp,
}

impl Server {
    fn new() -> Self {
        Self {
            resource: widgets(),
            object: None,
            now: "2026-03-06T21:30:00Z".parse().unwrap(),
        }
    }

    fn at<'a>(&self, manager: &'a str, subresource: &'a str) -> Writer<'a> {
        Writer {
            manager,
            subresource,
            now: self.now,
        }
    }

    fn try_apply(
        &mut self,
        manager: &str,
        config: Value,
        on_conflict: OnConflict,
    ) -> Result<(), Status> {
        let writer = self.at(manager, "");
        let old = self.object.as_ref();
        let mut object = applied(
            &self.resource,
            old,
            &Configuration {
                object: &config,
                on_conflict,
            },
            &writer,
        )?;
        object["metadata"]["uid"] = "u".into();
        self.object = Some(object);
        self.now += 1.minute();
        Ok(())
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, widget(spec), OnConflict::Refuse)
            .unwrap();
    }

    fn conflict(&mut self, manager: &str, spec: Value) -> Status {
        self.try_apply(manager, widget(spec), OnConflict::Refuse)
            .unwrap_err()
    }

    fn write(&mut self, manager: &str, subresource: &str, mut object: Value) {
        let writer = self.at(manager, subresource);
        tracked(&self.resource, self.object.as_ref(), &mut object, &writer);
        object["metadata"]["uid"] = "u".into();
        self.object = Some(object);
        self.now += 1.minute();
    }

    /// Changes the object as a PUT does, without touching its managed fields.
    fn edit(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.object.clone().unwrap();
        change(&mut object);
        self.write(manager, "", object);
    }

    fn spec(&self) -> Value {
        self.object.as_ref().unwrap()["spec"].clone()
    }

    /// `manager operation time subresource: fields`, one line each.
    fn managers(&self) -> String {
        let entries = self.object.as_ref().unwrap()["metadata"]["managedFields"].clone();
        let mut lines = String::new();
        for entry in entries.as_array().into_iter().flatten() {
            let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
            let line = format!(
                "{} {} {} {}: {}\n",
                text("manager"),
                text("operation"),
                text("time"),
                text("subresource"),
                entry["fieldsV1"]
            );
            lines.push_str(&line);
        }
        lines
    }
}

#[test]
fn apply_owns_the_fields_of_the_configuration_and_none_that_the_server_sets() {
    let mut server = Server::new();
    server.apply(
        "me",
        json!({"priority": 50, "tags": ["b", "a"], "order": ["x"], "limits": {"cpu": 1},
            "ports": [{"number": 80, "name": "web"}], "place": {"x": 1}, "free": {"a": {"b": [1]}}}),
    );
    insta::assert_snapshot!(server.managers().replace("\"f:", "\n  \"f:"), @r#"
    me Apply 2026-03-06T21:30:00Z -: {
      "f:spec":{
      "f:free":{
      "f:a":{".":{},
      "f:b":{}}},
      "f:limits":{
      "f:cpu":{}},
      "f:order":{},
      "f:place":{},
      "f:ports":{"k:{\"number\":80,\"protocol\":\"TCP\"}":{".":{},
      "f:name":{},
      "f:number":{}}},
      "f:priority":{},
      "f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}}
    "#);
}

#[test]
fn applying_the_same_configuration_again_changes_nothing_including_the_time() {
    let mut server = Server::new();
    let spec = json!({"priority": 50, "tags": ["a"], "ports": [{"number": 80}]});
    server.apply("me", spec.clone());
    let before = server.object.clone();
    server.apply("me", spec);
    assert_eq!(server.object, before);
}

#[test]
fn a_conflict_names_the_field_its_manager_and_the_operation() {
    let mut server = Server::new();
    server.write(
        "kubectl-client-side-apply",
        "",
        widget(json!({"priority": 50})),
    );
    let refused = server.conflict("me", json!({"priority": 60}));
    assert_eq!(refused.code, 409);
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using \
         example.com/v1: .spec.priority"
    );
    let details = refused.details.unwrap();
    let cause = &details.causes[0];
    assert_eq!(
        (cause.reason.as_str(), cause.field.as_str()),
        ("FieldManagerConflict", ".spec.priority")
    );
    assert_eq!(
        cause.message,
        "conflict with \"kubectl-client-side-apply\" using example.com/v1"
    );
}

#[test]
fn several_conflicts_are_grouped_by_manager() {
    let mut server = Server::new();
    server.apply(
        "first",
        json!({"priority": 1, "tags": ["a"],
        "ports": [{"number": 80, "name": "web"}]}),
    );
    server.apply("second", json!({"colour": "red"}));
    let refused = server.conflict(
        "third",
        json!({"priority": 2, "colour": "blue", "ports": [{"number": 80, "name": "api"}]}),
    );
    insta::assert_snapshot!(refused.message, @r#"
    Apply failed with 3 conflicts: conflicts with "first":
    - .spec.priority
    - .spec.ports[number=80,protocol="TCP"].name
    conflicts with "second":
    - .spec.colour
    "#);
}

#[test]
fn conflicts_of_one_time_with_a_subresource_come_first() {
    let entry = |field: &str, subresource: &str| {
        json!({"manager": "a", "operation": "Update", "apiVersion": "example.com/v1",
            "time": "2026-03-06T21:30:00Z", "subresource": subresource,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {field: {}}}})
    };
    let mut server = Server::new();
    let mut object = widget(json!({"priority": 1, "colour": "red"}));
    object["metadata"]["managedFields"] =
        json!([entry("f:priority", ""), entry("f:colour", "status")]);
    server.object = Some(object);
    let refused = server.conflict("b", json!({"priority": 2, "colour": "blue"}));
    insta::assert_snapshot!(refused.message, @r#"
    Apply failed with 2 conflicts: conflicts with "a" with subresource "status" using example.com/v1:
    - .spec.colour
    conflicts with "a" using example.com/v1:
    - .spec.priority
    "#);
}

#[test]
fn the_same_value_is_shared_between_managers_without_a_conflict() {
    let mut server = Server::new();
    server.apply("a", json!({"priority": 50}));
    server.apply("b", json!({"priority": 50}));
    server.apply("a", json!({"colour": "red"}));
    assert_eq!(server.spec(), json!({"priority": 50, "colour": "red"}));
    server.apply("b", json!({"limits": {"cpu": 1}}));
    assert_eq!(
        server.spec(),
        json!({"colour": "red", "limits": {"cpu": 1}})
    );
}

#[test]
fn force_takes_over_the_field_of_another_manager() {
    let mut server = Server::new();
    server.apply("a", json!({"priority": 1, "colour": "red"}));
    server
        .try_apply("b", widget(json!({"priority": 2})), OnConflict::Force)
        .unwrap();
    assert_eq!(server.spec()["priority"], 2);
    insta::assert_snapshot!(server.managers(), @r#"
    a Apply 2026-03-06T21:30:00Z -: {"f:spec":{"f:colour":{}}}
    b Apply 2026-03-06T21:31:00Z -: {"f:spec":{"f:priority":{}}}
    "#);
}

#[test]
fn an_omitted_field_is_removed_unless_another_manager_owns_it() {
    let mut server = Server::new();
    server.apply(
        "a",
        json!({"priority": 1, "tags": ["a", "b"], "limits": {"cpu": 1, "ram": 2},
            "ports": [{"number": 80, "name": "web"}, {"number": 81}]}),
    );
    server.apply(
        "b",
        json!({"tags": ["b", "c"], "limits": {"ram": 2}, "ports": [{"number": 80}]}),
    );
    server.apply("a", json!({"priority": 1}));
    assert_eq!(
        server.spec(),
        json!({"priority": 1, "tags": ["b", "c"], "limits": {"ram": 2},
            "ports": [{"number": 80}]})
    );
    server.apply("b", json!({}));
    assert_eq!(server.spec(), json!({"priority": 1}));
}

#[test]
fn merged_lists_keep_the_order_of_the_configuration_among_its_entries() {
    let mut server = Server::new();
    server.apply("a", json!({"tags": ["1", "2", "3"], "order": ["x", "y"]}));
    server.apply("b", json!({"tags": ["4", "3", "1"]}));
    assert_eq!(server.spec()["tags"], json!(["2", "4", "3", "1"]));
    let refused = server.conflict("b", json!({"order": ["y"]}));
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.order"
    );
}

#[test]
fn an_absent_list_map_key_counts_with_its_default() {
    let mut server = Server::new();
    server.apply(
        "a",
        json!({"ports": [{"number": 80, "protocol": "TCP", "name": "web"}]}),
    );
    let refused = server.conflict("b", json!({"ports": [{"number": 80, "name": "api"}]}));
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"a\": \
         .spec.ports[number=80,protocol=\"TCP\"].name"
    );
    server.apply("b", json!({"ports": [{"number": 80, "protocol": "UDP"}]}));
    assert_eq!(server.spec()["ports"].as_array().unwrap().len(), 2);
}

#[test]
fn a_configuration_that_does_not_fit_the_schema_gets_kubernetes_message() {
    let rows = [
        (
            json!({"bogus": 1}),
            ".spec.bogus: field not declared in schema",
        ),
        (
            json!({"tags": ["a", "a"]}),
            ".spec.tags: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({"named": [{"value": 1}]}),
            ".spec.named: element 0: associative list with keys has an element that omits \
             all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"priority": "high"}),
            ".spec.priority: expected numeric (int or float), got string",
        ),
        (
            json!({"colour": 3}),
            ".spec.colour: expected string, got &value.valueUnstructured{Value:3}",
        ),
    ];
    for (spec, text) in rows {
        let refused = Server::new().conflict("me", spec);
        let expected = format!(
            "failed to create typed patch object (default/w; example.com/v1, Kind=Widget): \
             {text}"
        );
        assert_eq!((refused.code, refused.message), (500, expected));
    }
}

#[test]
fn a_configuration_must_have_the_kind_and_no_managed_fields() {
    let mut server = Server::new();
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w"}});
    let refused = server
        .try_apply("me", other, OnConflict::Refuse)
        .unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (400, "invalid object type: /v1, Kind=Node")
    );
    let mut record = widget(json!({}));
    record["metadata"]["managedFields"] = json!([]);
    let refused = server
        .try_apply("me", record, OnConflict::Refuse)
        .unwrap_err();
    assert_eq!(refused.message, "metadata.managedFields must be nil");
}

#[test]
fn taints_of_a_node_are_atomic() {
    let all = builtin::resources();
    let nodes = all.iter().find(|it| it.kind == "Node").unwrap();
    let now = "2026-03-06T21:30:00Z".parse().unwrap();
    let node = |key: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}})
    };
    let apply = |old: Option<&Value>, object: &Value, manager| {
        let writer = Writer {
            manager,
            subresource: "",
            now,
        };
        let on_conflict = OnConflict::Refuse;
        let config = Configuration {
            object,
            on_conflict,
        };
        applied(nodes, old, &config, &writer)
    };
    let first = apply(None, &node("a"), "a").unwrap();
    let refused = apply(Some(&first), &node("b"), "b").unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.taints"
    );
}
