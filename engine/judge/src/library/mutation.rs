//! `cargo judge mutations`: records mutations of MutatingAdmissionPolicies, as Kubernetes' own
//! libraries make them, as test data.
//!
//! A case is a mutation, generated from a seed, and an object. A test of `crates/apiserver`
//! compares its own result with the recorded one.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::oracle::{self, Oracle};
use kubemu_judge::random::Random;

/// The file of the data: a case per line.
const DATA: &str = "crates/apiserver/tests/server/mutations.jsonl";
const SEED: u64 = 1;

/// Expressions that are strings.
const TEXTS: [&str; 6] = [
    "'a'",
    "''",
    "object.metadata.name",
    "'n-' + object.metadata.name",
    "string(size(object.metadata.name))",
    "'é\\n'",
];
/// Values where a string is expected, and values of a JSON patch.
const VALUES: [&str; 18] = [
    "1",
    "0",
    "-7",
    "1.0",
    "1.5",
    "9007199254740993",
    "2u",
    "true",
    "null",
    "[]",
    "['a', 'b']",
    "{}",
    "{'a': 'b'}",
    "b'ab'",
    "duration('1h')",
    "timestamp('2026-01-01T00:00:00Z')",
    "[1, 2][0]",
    "optional.of('x')",
];
const KEYS: [&str; 4] = ["a", "b", "example.com/team", "n"];

/// Paths of a JSON patch.
const PATHS: [&str; 16] = [
    "/metadata/labels/a",
    "/metadata/labels/' + jsonpatch.escapeKey('example.com/team') + '",
    "/metadata/labels",
    "/metadata/annotations/b",
    "/metadata/finalizers/-",
    "/metadata/finalizers/0",
    "/data/a",
    "/data/b",
    "/spec/replicas",
    "/spec/template/spec/containers/0/image",
    "/spec/template/spec/containers/-",
    "/spec/template/spec/containers/1",
    "/spec/ports/0/port",
    "/spec/missing/deeper",
    "/kind",
    "",
];

/// Writes this many cases with the answers of the libraries.
///
/// # Errors
/// Go is not installed, or the oracle cannot be built or ends early.
pub(crate) fn write(root: &Path, cases: u64) -> Result<(), Box<dyn Error>> {
    let mut oracle = Oracle::start(&oracle::build(root)?)?;
    let mut text = String::new();
    for number in 0..cases {
        let case = case(number);
        let mut answer = oracle.query(&json!({"mutations": [&case]}))?;
        let answer = answer["mutated"][0].take();
        if answer.is_null() {
            return Err(format!("case {number} is not answered: {case}").into());
        }
        let line = json!({"case": case, "kubernetes": answer});
        writeln!(text, "{line}")?;
    }
    fs::write(root.join(DATA), text)?;
    println!("{cases} mutations in {DATA}");
    Ok(())
}

fn case(number: u64) -> Value {
    generate(&mut Random::of(SEED, number))
}

/// A mutation and the object that it changes.
pub(super) fn generate(random: &mut Random) -> Value {
    let object = object(random);
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let (patch_type, expression) = if random.chance(50) {
        ("ApplyConfiguration", configuration(random, &kind))
    } else {
        ("JSONPatch", operations(random))
    };
    json!({"patchType": patch_type, "expression": expression, "object": object})
}

fn object(random: &mut Random) -> Value {
    let mut object = random.pick(&[
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "c": "2"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "i", "args": ["-v"],
                            "env": [{"name": "A", "value": "1"}],
                            "ports": [{"containerPort": 80}]},
                        {"name": "d", "image": "j"},
                    ],
                    "tolerations": [{"key": "t", "operator": "Exists"}],
                },
            },
        }}),
        json!({"apiVersion": "v1", "kind": "Service", "spec": {
            "selector": {"app": "x"},
            "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        }}),
    ]);
    object["metadata"] = random.pick(&[
        json!({"name": "x", "namespace": "default"}),
        json!({"name": "x", "namespace": "default", "labels": {"a": "1"},
            "annotations": {"n": "0"}, "finalizers": ["example.com/f"]}),
    ]);
    object
}

fn text(random: &mut Random) -> String {
    if random.chance(8) {
        random.pick(&VALUES).to_owned()
    } else {
        random.pick(&TEXTS).to_owned()
    }
}

fn map(random: &mut Random) -> String {
    let (one, other) = (text(random), text(random));
    let (key, second) = (random.pick(&KEYS), random.pick(&KEYS));
    match random.below(4) {
        0 => format!("{{'{key}': {one}}}"),
        1 => format!("{{'{key}': {one}, '{second}': {other}}}"),
        2 => format!("{{?'{key}': optional.of({one})}}"),
        _ => format!("{{?'{key}': optional.none()}}"),
    }
}

/// An apply configuration, in which some types are wrong.
fn configuration(random: &mut Random, kind: &str) -> String {
    let mut fields = Vec::new();
    if random.chance(50) {
        fields.push(format!("metadata: {}", metadata(random)));
    }
    if fields.is_empty() || random.chance(60) {
        fields.push(match kind {
            "ConfigMap" => config_map(random),
            "Deployment" => format!("spec: Object.spec{{{}}}", deployment(random)),
            _ => format!("spec: Object.spec{{{}}}", service(random)),
        });
    }
    let object = format!("Object{{{}}}", fields.join(", "));
    match random.below(12) {
        0 => format!("has(object.metadata.labels) ? {object} : Object{{}}"),
        1 => object.replacen("Object.spec{", "Object.wrong{", 1),
        2 => object.replacen("labels", "colours", 1),
        _ => object,
    }
}

fn metadata(random: &mut Random) -> String {
    let field = match random.below(6) {
        0..=2 => format!("labels: {}", map(random)),
        3 => format!("annotations: {}", map(random)),
        4 => format!("finalizers: ['example.com/g', {}]", text(random)),
        _ => format!(
            "?labels: has(object.metadata.labels) ? optional.of({}) : optional.none()",
            map(random)
        ),
    };
    format!("Object.metadata{{{field}}}")
}

fn config_map(random: &mut Random) -> String {
    match random.below(4) {
        0 => "immutable: true".to_owned(),
        1 => format!("immutable: {}", text(random)),
        _ => format!("data: {}", map(random)),
    }
}

fn deployment(random: &mut Random) -> String {
    const CONTAINER: &str = "Object.spec.template.spec.containers";
    let of_template = |inner: String| {
        format!(
            "template: Object.spec.template{{spec: Object.spec.template.spec{{{inner}}}}}"
        )
    };
    let name = random.pick(&["c", "d", "e"]);
    match random.below(10) {
        0 => "replicas: object.spec.replicas + 1".to_owned(),
        1 => format!("replicas: {}", random.pick(&VALUES)),
        2 => format!(
            "paused: {}",
            random.pick(&["true", "false", "'yes'", "null"])
        ),
        3 => format!(
            "selector: Object.spec.selector{{matchLabels: {}}}",
            map(random)
        ),
        4 => of_template(format!(
            "containers: [{CONTAINER}{{name: '{name}', image: {}}}]",
            text(random)
        )),
        5 => of_template(format!(
            "containers: [{CONTAINER}{{name: '{name}', env: [{CONTAINER}.env{{name: 'A', value: \
             {}}}]}}]",
            text(random)
        )),
        6 => of_template(format!(
            "containers: [{CONTAINER}{{name: '{name}', args: ['x']}}]"
        )),
        7 => of_template(format!(
            "containers: object.spec.template.spec.containers.map(it, {CONTAINER}{{name: it.name, \
             imagePullPolicy: 'Always'}})"
        )),
        8 => of_template(format!("nodeSelector: {}", map(random))),
        _ => of_template(format!(
            "containers: [{CONTAINER}{{image: {}}}]",
            text(random)
        )),
    }
}

fn service(random: &mut Random) -> String {
    match random.below(5) {
        0 => format!("selector: {}", map(random)),
        1 => format!("type: {}", random.pick(&["'ClusterIP'", "'NodePort'", "1"])),
        2 => "ports: [Object.spec.ports{port: 80, protocol: 'TCP', targetPort: 8080}]"
            .to_owned(),
        3 => "ports: [Object.spec.ports{port: 81, name: 'x'}]".to_owned(),
        _ => "ports: [Object.spec.ports{port: 53, protocol: 'UDP', targetPort: 'dns'}]"
            .to_owned(),
    }
}

/// The operations of a JSON patch.
fn operations(random: &mut Random) -> String {
    let count = random.between(1, 3);
    let all: Vec<String> = (0..count).map(|_| operation(random)).collect();
    let list = format!("[{}]", all.join(", "));
    match random.below(14) {
        0 => format!("has(object.data) ? {list} : []"),
        1 => format!("{list} + [JSONPatch{{op: 'remove', path: '/metadata/labels'}}]"),
        _ => list,
    }
}

fn operation(random: &mut Random) -> String {
    let name = random.pick(&[
        "add", "add", "replace", "remove", "test", "copy", "move", "odd",
    ]);
    let path = random.pick(&PATHS);
    let mut fields = vec![format!("op: '{name}'"), format!("path: '{path}'")];
    if matches!(name, "copy" | "move") || random.chance(5) {
        fields.push(format!("from: '{}'", random.pick(&PATHS)));
    }
    if matches!(name, "add" | "replace" | "test") {
        fields.push(format!("value: {}", value(random)));
    }
    format!("JSONPatch{{{}}}", fields.join(", "))
}

fn value(random: &mut Random) -> String {
    match random.below(5) {
        0 => random.pick(&VALUES).to_owned(),
        1 => format!(
            "Object.spec.template.spec.containers{{name: 'e', image: {}}}",
            text(random)
        ),
        2 => map(random),
        _ => random.pick(&TEXTS).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_reproducible_and_have_both_types_of_patches() {
        let cases: Vec<Value> = (0..200).map(case).collect();
        assert_eq!(cases, (0..200).map(case).collect::<Vec<_>>());
        for patch_type in ["ApplyConfiguration", "JSONPatch"] {
            let count = cases
                .iter()
                .filter(|it| it["patchType"] == patch_type)
                .count();
            assert!(count > 50, "{patch_type}: {count}");
        }
    }
}
