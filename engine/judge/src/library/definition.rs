//! CustomResourceDefinitions for a schema.

use serde_json::{Value, json};

use kubemu_judge::random::Random;

/// A definition that is usual except for its schema.
pub(super) fn plain(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A schema that every server accepts.
pub(super) fn accepted() -> Value {
    let text = json!({"type": "string", "maxLength": 9});
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": text, "b": text, "size": {"type": "integer", "default": 1},
        "items": {"type": "array", "items": text},
    }, "x-kubernetes-validations": [{"rule": "self.a != self.b"}]}}})
}

/// A JSON pointer, and the value to put there.
type Edit = (&'static str, Value);

/// Changes something in a definition, to a valid or an invalid value.
pub(super) fn edit(random: &mut Random, definition: &mut Value) {
    let edits = match random.below(4) {
        0 => names(),
        1 => columns(),
        2 => conversions(),
        _ => versions(),
    };
    let (pointer, value) = random.pick(&edits);
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(parent) = definition.pointer_mut(parent)
    {
        parent[name] = value;
    }
}

fn names() -> Vec<Edit> {
    vec![
        ("/metadata/name", json!("gadgets.example.com")),
        (
            "/metadata/annotations",
            json!({"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}),
        ),
        (
            "/metadata/annotations",
            json!({"api-approved.kubernetes.io": "unapproved, for a test"}),
        ),
        (
            "/metadata/annotations",
            json!({"api-approved.kubernetes.io": "yes"}),
        ),
        ("/metadata/labels", json!({"bad key": "x"})),
        ("/spec/group", json!("a.k8s.io")),
        ("/spec/group", json!("a.kubernetes.io")),
        ("/spec/group", json!("Example")),
        ("/spec/group", json!("nodots")),
        ("/spec/group", json!("")),
        ("/spec/scope", json!("Cluster")),
        ("/spec/scope", json!("Everywhere")),
        ("/spec/scope", json!("")),
        ("/spec/names/plural", json!("Widgets")),
        ("/spec/names/singular", json!("wid get")),
        ("/spec/names/kind", json!("widget kind")),
        ("/spec/names/kind", json!("WidgetList")),
        ("/spec/names/listKind", json!("Widget")),
        ("/spec/names/listKind", json!("list.kind")),
        ("/spec/names/shortNames", json!(["w", "W x"])),
        ("/spec/names/categories", json!(["all", "No Good"])),
        ("/spec/preserveUnknownFields", json!(true)),
        ("/spec/preserveUnknownFields", json!(false)),
    ]
}

fn columns() -> Vec<Edit> {
    let columns = "/spec/versions/0/additionalPrinterColumns";
    let fields = "/spec/versions/0/selectableFields";
    vec![
        (
            columns,
            json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]),
        ),
        (
            columns,
            json!([{"name": "", "type": "text", "jsonPath": "spec.a"}]),
        ),
        (columns, json!([{"name": "A", "type": "", "jsonPath": ""}])),
        (
            columns,
            json!([{"name": "A", "type": "integer", "format": "int16", "jsonPath": ".a["}]),
        ),
        (
            columns,
            json!([{"name": "A", "type": "date", "format": "date-time", "priority": -1,
            "jsonPath": ".a.b[0]"}]),
        ),
        (fields, json!([{"jsonPath": ".spec.a"}])),
        (
            fields,
            json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.size"}]),
        ),
        (fields, json!([{"jsonPath": "spec.a"}])),
        (fields, json!([{"jsonPath": ""}])),
        (fields, json!([{"jsonPath": ".metadata.name"}])),
        (
            fields,
            json!([{"jsonPath": ".spec.items[0]"}, {"jsonPath": ".spec"}]),
        ),
        (
            fields,
            json!([{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.b"}, {"jsonPath": ".spec.c"},
            {"jsonPath": ".spec.d"}, {"jsonPath": ".spec.name"}, {"jsonPath": ".spec.kind"},
            {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.x_y"}, {"jsonPath": ".spec.in"}]),
        ),
        (
            "/spec/versions/0/subresources/scale",
            json!({"specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.name"}),
        ),
        (
            "/spec/versions/0/subresources/scale",
            json!({"specReplicasPath": "spec.size",
            "statusReplicasPath": ".spec.size"}),
        ),
        (
            "/spec/versions/0/subresources/scale",
            json!({"specReplicasPath": "",
            "statusReplicasPath": "", "labelSelectorPath": ".a.b"}),
        ),
        ("/spec/versions/0/subresources", json!(null)),
    ]
}

fn conversions() -> Vec<Edit> {
    let at = "/spec/conversion";
    let client = json!({"url": "https://example.com/convert"});
    vec![
        (at, json!({"strategy": "None"})),
        (at, json!({"strategy": "Some"})),
        (at, json!({"strategy": "Webhook"})),
        (
            at,
            json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": client}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": [],
            "clientConfig": client}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v9", "v9", "a b"],
            "clientConfig": {"url": "http://example.com/?a=b#c"}}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1beta1"],
            "clientConfig": {"service": {"name": "", "namespace": "", "path": "x", "port": 0}}}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"caBundle": "bm8=", "service": {"name": "s", "namespace": "n",
                "path": "/a//b", "port": 70000}}}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://u:p@example.com", "service": {"name": "s",
                "namespace": "n"}}}}),
        ),
        (
            at,
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {}}}),
        ),
    ]
}

fn versions() -> Vec<Edit> {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let one = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "schema": schema});
    vec![
        ("/spec/versions", json!([])),
        (
            "/spec/versions",
            json!([one("v1", true, true), one("v2", true, false)]),
        ),
        (
            "/spec/versions",
            json!([one("v1", true, true), one("v2", true, true)]),
        ),
        ("/spec/versions", json!([one("v1", true, false)])),
        ("/spec/versions", json!([one("v2", true, true)])),
        (
            "/spec/versions",
            json!([one("v1", true, true), one("v1", false, false)]),
        ),
        ("/spec/versions", json!([one("V1.x", false, true)])),
        ("/spec/versions/0/name", json!("")),
        ("/spec/versions/0/served", json!(false)),
        ("/spec/versions/0/deprecated", json!(true)),
        ("/spec/versions/0/deprecationWarning", json!("old")),
        ("/spec/versions/0/schema", json!(null)),
        ("/spec/versions/0/schema", json!({})),
        (
            "/spec/versions/0/schema",
            json!({"openAPIV3Schema": {"type": "string"}}),
        ),
        (
            "/spec/versions/0/schema",
            json!({"openAPIV3Schema": {"type": "object", "nullable": true,
            "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}}),
        ),
        (
            "/spec/versions/0/schema",
            json!({"openAPIV3Schema": {"type": "object", "description": "d",
            "title": "t", "example": 1, "externalDocs": {"url": "u"}, "x-kubernetes-validations":
                [{"rule": ""}, {"rule": "true\n|| false"}, {"rule": "true", "message": " "}]}}),
        ),
    ]
}
