//! The CustomResourceDefinition, rendered from the schema and the rules.

use fivespot_capi::key;
use serde_json::{Value, json};

use crate::name;
use crate::rules::{Layer, RULES, Rule};
use crate::schema;

/// The minor version of Kubernetes 1.x in which rules learned to see the value that is replaced
/// on a create as well as on an update, `optionalOldSelf`.
const OPTIONAL_OLD_SELF_SINCE: u32 = 30;

/// The minor version of Kubernetes 1.x for which the shipped CRD is rendered.
pub const SHIPPED_MINOR: u32 = 30;

/// The CustomResourceDefinition for Kubernetes 1.`kube_minor` and later. Cannot fail.
///
/// Below 1.30 the rules on composite nodes lack what lets an update leave a violation alone; from
/// 1.30 on, a rule whose inputs did not change refuses no update.
pub fn render(kube_minor: u32) -> Value {
    let mut root = schema::root();
    for rule in RULES {
        attach(&mut root, rule, kube_minor);
    }
    definition(root)
}

/// The CustomResourceDefinition without any rule: the types and bounds alone.
pub fn render_without_rules() -> Value {
    definition(schema::root())
}

fn definition(root: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name::crd(),
            "labels": {key::CLUSTERCTL_MOVE: ""},
        },
        "spec": {
            "group": name::GROUP,
            "names": {
                "kind": name::KIND,
                "listKind": name::LIST_KIND,
                "plural": name::PLURAL,
                "singular": name::SINGULAR,
                "shortNames": [name::SHORT_NAME],
                "categories": [name::CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": name::VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": root},
            }],
        },
    })
}

/// What `kubectl get` prints; with priority 1 only under `-o wide`.
fn columns() -> Value {
    let column = |(name, kind, path, priority): (&str, &str, &str, u8)| {
        let mut column = json!({"name": name, "type": kind, "jsonPath": path});
        if let (Some(column), 1..) = (column.as_object_mut(), priority) {
            column.insert("priority".to_owned(), json!(priority));
        }
        column
    };
    [
        ("Phase", "string", ".status.phase", 0),
        ("InSchedule", "boolean", ".status.inSchedule", 0),
        ("Enabled", "boolean", ".spec.schedule.enabled", 0),
        ("Cluster", "string", ".spec.clusterName", 0),
        ("Node", "string", ".status.nodeRef.name", 0),
        ("Next", "string", ".status.nextTransition", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Days", "string", ".spec.schedule.daysOfWeek", 1),
        ("Hours", "string", ".spec.schedule.hoursOfDay", 1),
        ("Cron", "string", ".spec.schedule.cron", 1),
        ("KillSwitch", "boolean", ".spec.killSwitch", 1),
    ]
    .into_iter()
    .map(column)
    .collect()
}

/// Adds a rule to the node of the schema that it is about.
fn attach(root: &mut Value, rule: &Rule, kube_minor: u32) {
    let (node, validation) = match rule.layer {
        Layer::Policy => return,
        Layer::Change => {
            let field_path = format!(".{}", rule.path);
            let validation = json!({"rule": rule.cel, "message": rule.message, "fieldPath": field_path});
            (Some(root), validation)
        }
        Layer::SchemaAndPolicy => {
            (descend(root, rule.path), validation(rule, kube_minor))
        }
    };
    let Some(node) = node.and_then(Value::as_object_mut) else {
        return;
    };
    let all = node
        .entry("x-kubernetes-validations")
        .or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.push(validation);
    }
}

fn validation(rule: &Rule, kube_minor: u32) -> Value {
    if rule.inputs.is_empty() || kube_minor < OPTIONAL_OLD_SELF_SINCE {
        return json!({"rule": rule.cel, "message": rule.message});
    }
    let unchanged: Vec<_> = rule
        .inputs
        .iter()
        .map(|input| is_unchanged(input))
        .collect();
    let unchanged = unchanged.join(" && ");
    json!({
        "rule": format!("oldSelf.hasValue() && {unchanged} || {}", rule.cel),
        "message": rule.message,
        "optionalOldSelf": true,
    })
}

/// Whether a member of the node is what it was.
///
/// Written without optional selection, `self.?x`: the API server knows no bound on what that gives
/// and would refuse the rule for its cost.
fn is_unchanged(input: &str) -> String {
    format!(
        "has(self.{input}) == has(oldSelf.value().{input}) \
         && (!has(self.{input}) || self.{input} == oldSelf.value().{input})"
    )
}

/// The node of a schema at a path; `[]` goes to the items.
fn descend<'s>(root: &'s mut Value, path: &str) -> Option<&'s mut Value> {
    let mut node = root;
    for segment in path.split('.') {
        let member = segment.strip_suffix("[]");
        node = node
            .get_mut("properties")?
            .get_mut(member.unwrap_or(segment))?;
        if member.is_some() {
            node = node.get_mut("items")?;
        }
    }
    Some(node)
}
