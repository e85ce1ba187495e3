use serde_json::{Value, json};

use super::*;
use crate::kind::builtin;
use crate::registry::Registry;
use crate::resource::{Resource, Subresource};

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    let mut widget = Resource::new("example.com", "v1", "Widget", "widgets");
    widget.custom = true;
    widget.subresources = vec![Subresource::Status];
    widget.schema = Some(Schema::new(json!({
        "type": "object",
        "description": "Widget turns.",
        "properties": {"spec": {"type": "object", "properties": {
            "speed": {"type": "integer", "description": "Turns a minute."}}}},
    })));
    registry.insert(widget);
    registry
}

fn document(path: &str) -> Value {
    let documents = Documents::new(&registry(), "v1.36.0");
    serde_json::from_str(&documents.find(path).unwrap().text).unwrap()
}

#[test]
fn every_reference_in_a_document_is_resolved_in_it() {
    let registry = registry();
    let documents = Documents::new(&registry, "v1.36.0");
    for (path, document) in &documents.all {
        let value: Value = serde_json::from_str(&document.text).unwrap();
        let mut references = Vec::new();
        definitions::references(&value, &mut references);
        assert!(!references.is_empty());
        for name in references {
            let found = value["components"]["schemas"].get(&name);
            assert!(found.is_some(), "{path}: {name}");
        }
    }
}

/// Go's types of the document write no empty list, so a document with one is not read as it was written.
#[test]
fn no_operation_has_an_empty_list_of_parameters() {
    let registry = registry();
    let documents = Documents::new(&registry, "v1.36.0");
    for (path, document) in &documents.all {
        assert!(!document.text.contains(r#""parameters":[]"#), "{path}");
    }
}

#[test]
fn the_index_links_each_document_with_its_hash() {
    let documents = Documents::new(&registry(), "v1.36.0");
    let index = documents.index();
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let hash = &documents.find("apis/example.com/v1").unwrap().hash;
    assert_eq!(url, format!("/openapi/v3/apis/example.com/v1?hash={hash}"));
    assert!(index["paths"]["api/v1"].is_object());
    assert_eq!(hash.len(), 64);
}

#[test]
fn a_hash_changes_only_with_the_schemas_of_its_own_group() {
    let before = Documents::new(&registry(), "v1.36.0");
    let mut changed = registry();
    changed.insert(Resource::new("example.com", "v1", "Gadget", "gadgets"));
    let after = Documents::new(&changed, "v1.36.0");
    let same =
        |path: &str| before.find(path).unwrap().hash == after.find(path).unwrap().hash;
    assert!(same("api/v1"));
    assert!(!same("apis/example.com/v1"));
}

#[test]
fn write_operations_have_field_validation_and_their_kind() {
    let document = document("apis/example.com/v1");
    let one =
        &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let many = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets"];
    for operation in [&one["put"], &one["patch"], &many["post"]] {
        let parameters = operation["parameters"].as_array().unwrap();
        for name in ["dryRun", "fieldManager", "fieldValidation"] {
            assert!(parameters.iter().any(|it| it["name"] == name), "{name}");
        }
        assert_eq!(
            operation["x-kubernetes-group-version-kind"],
            json!({"group": "example.com", "version": "v1", "kind": "Widget"})
        );
    }
    assert_eq!(one["patch"]["x-kubernetes-action"], "patch");
    assert_eq!(many["get"]["x-kubernetes-action"], "list");
}

#[test]
fn strategic_merge_is_only_offered_for_built_in_kinds() {
    let strategic = "application/strategic-merge-patch+json";
    let offers = |document: &Value, path: &str| {
        document["paths"][path]["patch"]["requestBody"]["content"]
            .get(strategic)
            .is_some()
    };
    assert!(offers(&document("api/v1"), "/api/v1/nodes/{name}"));
    assert!(!offers(
        &document("apis/example.com/v1"),
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    ));
}

#[test]
fn a_custom_schema_gets_the_fields_of_every_object() {
    let document = document("apis/example.com/v1");
    let widget = &document["components"]["schemas"]["com.example.v1.Widget"];
    insta::assert_snapshot!(format!("{widget:#}"), @r##"
    {
      "type": "object",
      "description": "Widget turns.",
      "properties": {
        "spec": {
          "type": "object",
          "properties": {
            "speed": {
              "type": "integer",
              "description": "Turns a minute."
            }
          }
        },
        "apiVersion": {
          "description": "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
          "type": "string"
        },
        "kind": {
          "description": "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
          "type": "string"
        },
        "metadata": {
          "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
          "allOf": [
            {
              "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
            }
          ]
        }
      },
      "x-kubernetes-group-version-kind": [
        {
          "group": "example.com",
          "version": "v1",
          "kind": "Widget"
        }
      ]
    }
    "##);
}

fn resource(kind: &str) -> Resource {
    let all = builtin::resources();
    all.into_iter().find(|it| it.kind == kind).unwrap()
}

#[test]
fn unknown_fields_of_built_in_kinds_are_reported_with_their_path() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "bogus": 1,
        "metadata": {"name": "p", "labels": {"anything": "goes"}, "owner": "me"},
        "spec": {"containers": [{"name": "c"}, {"name": "d", "imagee": "x",
            "resources": {"limits": {"cpu": "1"}}}], "nodeSelector": {"a": "b"}}});
    assert_eq!(
        unknown_fields(&resource("Pod"), &pod),
        ["bogus", "metadata.owner", "spec.containers[1].imagee"]
    );
    let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"any": {"default": {"x": 1}, "typo": 1}}}}}]}});
    assert_eq!(
        unknown_fields(&resource("CustomResourceDefinition"), &crd),
        ["spec.versions[0].schema.openAPIV3Schema.properties.any.typo"]
    );
}

#[test]
fn wrong_types_of_built_in_kinds_have_gos_messages() {
    let rows = [
        (
            "Pod",
            json!({"spec": {"nodeName": 3}}),
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of \
             type string",
        ),
        (
            "Pod",
            json!({"spec": {"containers": [{"ports": [{"containerPort": 1.5}]}]}}),
            "json: cannot unmarshal number 1.5 into Go struct field \
             ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "Node",
            json!({"spec": {"taints": {"key": "x"}}}),
            "json: cannot unmarshal object into Go struct field NodeSpec.spec.taints of \
             type []v1.Taint",
        ),
        (
            "Node",
            json!({"metadata": {"labels": {"a": true}}}),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels \
             of type string",
        ),
        (
            "Node",
            json!({"spec": "x"}),
            "json: cannot unmarshal string into Go struct field Node.spec of type \
             v1.NodeSpec",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"accessModes": {}}}),
            "json: cannot unmarshal object into Go struct field \
             PersistentVolumeSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"accessModes": [[]]}}),
            "json: cannot unmarshal array into Go struct field \
             PersistentVolumeSpec.spec.accessModes of type v1.PersistentVolumeAccessMode",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"hostPath": {"type": {}}, "capacity": 1}}),
            "json: cannot unmarshal object into Go struct field HostPathVolumeSource.\
             spec.PersistentVolumeSource.hostPath.type of type v1.HostPathType",
        ),
        (
            "Secret",
            json!({"data": "x"}),
            "json: cannot unmarshal string into Go struct field Secret.data of type \
             map[string][]uint8",
        ),
        (
            "Secret",
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        ),
        (
            "PersistentVolume",
            json!({"metadata": {"name": {}}, "spec": {"capacity": {"storage": "x"}}}),
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ];
    for (kind, object, expected) in rows {
        let found = type_error(&resource(kind), &object);
        assert_eq!(found.as_deref(), Some(expected));
    }
    let schema = |schema: Value| {
        let crd =
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        type_error(&resource("CustomResourceDefinition"), &crd)
    };
    let wrong = |found: &str, field: &str, expected: &str| {
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field \
             JSONSchemaProps.spec.versions.schema.openAPIV3Schema.{field} of type {expected}"
        ))
    };
    assert_eq!(
        schema(json!({"items": {"description": 256}})),
        wrong("number", "items.description", "string")
    );
    assert_eq!(
        schema(json!({"items": [{}, {"required": "a"}]})),
        wrong("string", "items.required", "[]string")
    );
    assert_eq!(
        schema(json!({"not": {"additionalProperties": {"items": {"maxLength": "3"}}}})),
        wrong(
            "string",
            "not.additionalProperties.items.maxLength",
            "int64"
        )
    );
    assert_eq!(
        schema(json!({"dependencies": {"a": [1]}})),
        wrong("number", "dependencies", "string")
    );
    let neither = Some("boolean or JSON schema expected".to_owned());
    assert_eq!(schema(json!({"additionalProperties": "x"})), neither);
    assert_eq!(schema(json!({"additionalItems": []})), neither);
    for ignored in [
        json!({"items": "x"}),
        json!({"items": null, "additionalProperties": null}),
        json!({"additionalProperties": false, "additionalItems": {"default": 1}}),
        json!({"dependencies": {"a": 1}}),
    ] {
        assert_eq!(schema(ignored.clone()), None, "{ignored}");
    }
    let budget = json!({"spec": {"minAvailable": "50%", "maxUnavailable": 1}});
    assert_eq!(type_error(&resource("PodDisruptionBudget"), &budget), None);
}
