//! Changes of policies.

use serde_json::{Value, json};

use crate::{differences, report, run};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 1000}
              image: {type: string, maxLength: 100}
              team: {type: string, maxLength: 20}
              ports:
                type: array
                maxItems: 5
                items: {type: object, properties: {number: {type: integer}, public: {type: boolean}}}
";

fn policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "widgets"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["widgets"],
            }]},
            "matchConditions": [
                {"name": "not-system", "expression": "object.?spec.?team.orValue('') != 'system'"},
            ],
            "variables": [{"name": "limit", "expression": "100"}],
            "validations": [
                {"expression": "object.spec.size <= variables.limit", "message": "too large"},
                {"expression": "!has(object.spec.image) || object.spec.image.startsWith('registry.example.com/')"},
                {"expression": "!has(object.spec.ports) || object.spec.ports.all(p, !has(p.public) || !p.public || p.number == 443)"},
                {"expression": "oldObject == null || object.spec.size >= oldObject.spec.size"},
            ],
        },
    })
}

/// Changes at a JSON pointer, and how the sides differ then.
fn seeds() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("/spec/variables/0/expression", json!("50"), "refused"),
        ("/spec/variables/0/expression", json!("100 + 0"), "none"),
        (
            "/spec/validations/0/expression",
            json!("object.spec.size < variables.limit"),
            "refused",
        ),
        ("/spec/validations/0/message", json!("other words"), "none"),
        (
            "/spec/validations/1/expression",
            json!(
                "!has(object.spec.image) || object.spec.image.startsWith('registry.example.com')"
            ),
            "admitted",
        ),
        (
            "/spec/validations/1/expression",
            json!(
                "has(object.spec.image) && object.spec.image.startsWith('registry.example.com/')"
            ),
            "refused",
        ),
        (
            "/spec/validations/2/expression",
            json!(
                "!has(object.spec.ports) || object.spec.ports.all(p, !has(p.public) || !p.public || p.number in [80, 443])"
            ),
            "admitted",
        ),
        (
            "/spec/validations/2/expression",
            json!(
                "!has(object.spec.ports) || object.spec.ports.exists(p, !has(p.public) || !p.public || p.number == 443)"
            ),
            "refused",
        ),
        (
            "/spec/validations/3/expression",
            json!("oldObject == null || object.spec.size > oldObject.spec.size"),
            "refused",
        ),
        ("/spec/validations/3/expression", json!("true"), "admitted"),
        (
            "/spec/matchConditions/0/expression",
            json!("object.?spec.?team.orValue('') != 'infra'"),
            "refused",
        ),
        (
            "/spec/matchConstraints/objectSelector",
            json!({"matchLabels": {"checked": "yes"}}),
            "admitted",
        ),
        (
            "/spec/matchConstraints/resourceRules/0/operations",
            json!(["CREATE"]),
            "admitted",
        ),
        ("/spec/failurePolicy", json!("Ignore"), "admitted"),
        (
            "/spec/matchConstraints/resourceRules/0/resources",
            json!(["gadgets"]),
            "admitted",
        ),
    ]
}

#[test]
fn each_change_of_a_policy_is_found() {
    let mut missed = Vec::new();
    for (pointer, value, wanted) in seeds() {
        let mut new = policy();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[name] = value.clone();
        let with_definition = |it: &Value| format!("{CRD}---\n{it}");
        let (old, new) = (with_definition(&policy()), with_definition(&new));
        let report = report(&old, &new, &["--budget", "6000"]);
        let found = differences(&report);
        let is_right = match wanted {
            "none" => found.is_empty(),
            wanted => found.contains(&wanted),
        };
        if !is_right {
            missed.push(format!("{pointer} {value}: {found:?}, not {wanted}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_policy_of_an_unknown_kind_is_named_as_not_covered() {
    let mut new = policy();
    new["spec"]["failurePolicy"] = "Ignore".into();
    let (_, text) = run(policy().to_string(), new.to_string(), &[]);
    insta::assert_snapshot!(text);
}
