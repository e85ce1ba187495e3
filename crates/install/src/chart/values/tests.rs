use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{schema, text};
use crate::chart;
use crate::provider::PROVIDERS;

fn templates() -> String {
    let files = chart::files().unwrap();
    let templates = files.iter().filter(|it| it.path.starts_with("templates/"));
    templates.map(|it| it.text.as_str()).collect()
}

/// What stands in `text` between `before` and the next `after`, wherever that is.
fn between<'t>(text: &'t str, before: &str, after: char) -> BTreeSet<&'t str> {
    let rests = text.split(before).skip(1);
    rests.filter_map(|rest| rest.split(after).next()).collect()
}

/// The words that the schema allows in some place.
fn allowed<'s>(schema: &'s Value, place: &str) -> BTreeSet<&'s str> {
    let words = schema.pointer(place).and_then(Value::as_array).unwrap();
    words.iter().map(|it| it.as_str().unwrap()).collect()
}

fn shipped() -> Value {
    serde_saphyr::from_str(&text().unwrap()).unwrap()
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("no type of JSON Schema: {other}"),
    }
}

/// Where `value` is not as `schema` wants it, by the keywords that ours has. What is of a wrong
/// type is not looked into.
fn faults(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let types = match &schema["type"] {
        Value::Array(names) => names.clone(),
        Value::Null => Vec::new(),
        name => vec![name.clone()],
    };
    if !types.is_empty() && !types.iter().any(|it| is_of_type(it, value)) {
        return vec![format!("{at} type")];
    }
    let mut all = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$comment" | "type" => {}
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "minimum" if value.as_i64() >= wanted.as_i64() => {}
            "minLength" if value.as_str().map(str::len) >= Some(1) => {}
            "enum" | "minimum" | "minLength" => all.push(format!("{at} {keyword}")),
            "required" => {
                let names = wanted.as_array().unwrap().iter();
                let missing =
                    names.filter(|it| value.get(it.as_str().unwrap()).is_none());
                all.extend(
                    missing.map(|it| format!("{at}.{} missing", it.as_str().unwrap())),
                );
            }
            "items" => {
                let inner = value.as_array().unwrap().iter();
                all.extend(inner.flat_map(|it| faults(wanted, it, &format!("{at}[]"))));
            }
            "properties" => {
                for (name, inner) in value.as_object().unwrap() {
                    if let Some(wanted) = wanted.get(name) {
                        all.extend(faults(wanted, inner, &format!("{at}.{name}")));
                    }
                }
            }
            "additionalProperties" => {
                for (name, inner) in value.as_object().unwrap() {
                    let at = format!("{at}.{name}");
                    match wanted {
                        _ if schema["properties"].get(name).is_some() => {}
                        Value::Bool(_) => all.push(format!("{at} unknown")),
                        wanted => all.extend(faults(wanted, inner, &at)),
                    }
                }
            }
            other => panic!("{at}: this test does not know {other}"),
        }
    }
    all
}

#[test]
fn every_word_that_is_allowed_is_one_that_a_template_knows_and_the_other_way_round() {
    let (schema, templates) = (schema(), templates());
    assert_eq!(
        allowed(&schema, "/properties/admission/enum"),
        between(&templates, "$.Values.admission \"", '"')
    );
    assert_eq!(
        allowed(&schema, "/properties/nodeAccess/enum"),
        between(&templates, "$.Values.nodeAccess \"", '"')
    );
    let providers = allowed(&schema, "/properties/providers/items/enum");
    assert_eq!(providers, between(&templates, "if has \"", '"'));
    assert_eq!(providers, PROVIDERS.iter().map(|it| it.name).collect());
}

#[test]
fn a_template_reads_every_value_that_the_schema_knows_and_no_other() {
    let schema = schema();
    let templates =
        templates().replace(|it: char| !it.is_alphanumeric() && it != '$', " ");
    let read = between(&templates, "$ Values ", ' ');
    let known = schema["properties"].as_object().unwrap().keys();
    let known: BTreeSet<&str> = known.map(String::as_str).collect();
    assert_eq!(known, &read | &BTreeSet::from(["global"]));
    let shipped = shipped();
    let given: BTreeSet<&str> = shipped
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(given, read);
}

#[test]
fn the_values_that_are_shipped_satisfy_the_schema() {
    assert_eq!(faults(&schema(), &shipped(), ""), Vec::<String>::new());
}

#[test]
fn a_value_that_is_mistyped_is_refused_and_not_taken_for_the_branch_of_none() {
    let rows = [
        ("/admission", json!("deny"), ".admission enum"),
        ("/nodeAccess", json!("managment"), ".nodeAccess enum"),
        (
            "/providers",
            json!(["k0smotron", "metal"]),
            ".providers[] enum",
        ),
        ("/providers", json!("metal3"), ".providers type"),
        ("/networkPolicy", json!("no"), ".networkPolicy type"),
        ("/replicas", json!("3"), ".replicas type"),
        (
            "/kubeconfigs",
            json!({"clusters": [], "namespaces": [], "clusterWide": true, "clusterwide": true}),
            ".kubeconfigs.clusterwide unknown",
        ),
        (
            "/resources",
            json!({"limit": {"memory": "1Gi"}}),
            ".resources.limit unknown",
        ),
    ];
    for (place, value, fault) in rows {
        let mut values = shipped();
        *values.pointer_mut(place).unwrap() = value;
        assert_eq!(faults(&schema(), &values, ""), [fault], "{values}");
    }
    let mut values = shipped();
    values["admision"] = json!("Audit");
    assert_eq!(faults(&schema(), &values, ""), [".admision unknown"]);
    values.as_object_mut().unwrap().remove("admission");
    let mut named = faults(&schema(), &values, "");
    named.sort();
    assert_eq!(named, [".admision unknown", ".admission missing"]);
}
