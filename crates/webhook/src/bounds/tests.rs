use fivespot_api::{RESOURCES, rules};
use kubemu_admission::KubeVersion;
use kubemu_admission::crd::Crd;
use serde_json::json;

use super::*;

/// The largest value that a schema allows, without regard to patterns. Its texts are of one letter.
fn largest(schema: &Value, letter: &str) -> Value {
    let most =
        |bound: &str| usize::try_from(schema[bound].as_u64().unwrap_or(0)).unwrap();
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({});
    }
    match schema["type"].as_str() {
        Some("string") => match schema["enum"].get(0) {
            Some(first) => first.clone(),
            None => letter.repeat(most("maxLength")).into(),
        },
        Some("array") => (0..most("maxItems"))
            .map(|_| largest(&schema["items"], letter))
            .collect(),
        Some("object") => {
            let mut all = serde_json::Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten()
            {
                all.insert(name.clone(), largest(property, letter));
            }
            for at in 0..most("maxProperties") {
                let value = largest(&schema["additionalProperties"], letter);
                all.insert(format!("{letter}-{at}"), value);
            }
            all.into()
        }
        Some("boolean") => true.into(),
        _ => 1.into(),
    }
}

/// The largest spec within the bounds of a kind.
pub(crate) fn largest_spec(resource: &Resource, letter: &str) -> Value {
    let crd = crd::without_rules(resource);
    let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    largest(&root["properties"]["spec"], letter)
}

#[test]
fn the_largest_object_of_the_schema_is_within_bounds() {
    for resource in &RESOURCES {
        let object = json!({"spec": largest_spec(resource, "a")});
        assert_eq!(Bounds::of(resource).unwrap().check(&object), None);
    }
}

#[test]
fn every_example_is_within_bounds() {
    for resource in &RESOURCES {
        let bounds = Bounds::of(resource).unwrap();
        for rule in resource.rules() {
            let accepted = rule.requirement.examples.accepts();
            for example in accepted.iter().chain(rule.requirement.examples.rejects()) {
                let object = rule.example(example);
                assert_eq!(bounds.check(&object), None, "{} {example}", rule.id);
            }
        }
    }
    assert!(rules::all().count() > 40);
}

#[test]
fn an_excess_is_reported_in_the_words_of_the_schema() {
    let resource = &RESOURCES[0];
    let bounds = Bounds::of(resource).unwrap();
    let crd = crd::without_rules(resource);
    let compiled = Crd::compile(&crd, KubeVersion::default()).unwrap();
    let version = compiled.served("v1alpha1").unwrap();
    let valid = rules::RULES[1].example("5m");
    let many: serde_json::Map<String, Value> = (0..40_000)
        .map(|at| (format!("k{at}"), json!("v")))
        .collect();
    let rows = [
        ("/machineTemplate/annotations", many.clone().into()),
        ("/machineTemplate/labels", many.into()),
        ("/clusterName", "é".repeat(5_000).into()),
        ("/nodeTaints", vec![json!({}); 1_000].into()),
        ("/schedule", json!(["text"])),
        ("/schedule/cron", json!(["text"])),
        ("/priority", json!("text")),
        ("/killSwitch", json!("text")),
        ("/killIfCommands", json!({"a": 1})),
        ("/killIfCommands", json!([["a"]])),
    ];
    for (place, value) in rows {
        let mut object = valid.clone();
        let mut at = &mut object["spec"];
        for step in place[1..].split('/') {
            at = &mut at[step];
        }
        *at = value;
        let found = bounds.check(&object).unwrap_or_else(|| panic!("{place}"));
        let expected = version.create(&object).errors;
        let texts: Vec<String> = expected.iter().map(ToString::to_string).collect();
        assert!(texts.contains(&found.to_string()), "{found}: {texts:?}");
    }
}
