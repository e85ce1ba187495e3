//! The CustomResourceDefinitions, rendered from the schema and the rules.

use fivespot_capi::key;
use serde_json::{Value, json};

use crate::name;
use crate::resource::{Resource, SCHEDULED_MACHINE};
use crate::rules::{Layer, Rule};

/// The minor version of Kubernetes 1.x that introduced `optionalOldSelf`: rules with access to
/// the previous value run on a create as well as on an update.
const OPTIONAL_OLD_SELF_SINCE: u32 = 30;

/// The minor version of Kubernetes 1.x for which the shipped CRD is rendered.
pub const SHIPPED_MINOR: u32 = 30;

/// The CRD of ScheduledMachine for Kubernetes 1.`kube_minor` and later; see [`render_of`].
pub fn render(kube_minor: u32) -> Value {
    render_of(SCHEDULED_MACHINE, kube_minor)
}

/// The CustomResourceDefinition for Kubernetes 1.`kube_minor` and later. Cannot fail.
///
/// Below 1.30 the rules on composite nodes do not admit an update that leaves a violation
/// unchanged. From 1.30 on, a rule rejects no update that leaves its inputs unchanged.
pub fn render_of(resource: &Resource, kube_minor: u32) -> Value {
    let mut root = (resource.schema)();
    for rule in resource.rules() {
        attach(&mut root, rule, kube_minor);
    }
    definition(resource, &root)
}

/// The CRD of ScheduledMachine without rules: only types and bounds.
pub fn render_without_rules() -> Value {
    without_rules(SCHEDULED_MACHINE)
}

/// The CustomResourceDefinition without rules: only types and bounds.
pub fn without_rules(resource: &Resource) -> Value {
    definition(resource, &(resource.schema)())
}

fn definition(resource: &Resource, root: &Value) -> Value {
    let version = |(place, name): (usize, &&str)| {
        let mut version = json!({
            "name": name,
            "served": true,
            "storage": place == 0,
            "additionalPrinterColumns": columns(resource),
            "schema": {"openAPIV3Schema": root},
        });
        if resource.has_status {
            version["subresources"] = json!({"status": {}});
        }
        if resource.has_scale {
            version["subresources"]["scale"] = json!({
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            });
        }
        version
    };
    let versions = resource.versions.iter().enumerate();
    let versions: Vec<Value> = versions.map(version).collect();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.definition_name(),
            "labels": {key::CLUSTERCTL: "", key::CLUSTERCTL_MOVE: ""},
        },
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": resource.list_kind,
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": [resource.short_name],
                "categories": [name::CATEGORY],
            },
            "scope": if resource.is_namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions,
        },
    });
    if versions.len() > 1 {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    definition
}

/// The fields without which the operator creates no machine: those of the status that it reads,
/// and the newest of the spec. The API server drops fields that the stored CRD lacks from every
/// object.
const NEEDED: [&str; 17] = [
    "spec.classRef",
    "spec.enforcement",
    "spec.schedule.windows",
    "status.appliedNodeTaints",
    "status.bootstrapRef",
    "status.conditions",
    "status.host",
    "status.infrastructureRef",
    "status.lastProvisioning",
    "status.lastScheduledTime",
    "status.machineRef",
    "status.nodeRef",
    "status.shutdown",
    "status.shutdown.windowEnd",
    "status.specHash",
    "status.spotSchedule",
    "status.usage",
];

/// The fields that the operator needs and that the stored CRD of ScheduledMachine lacks.
///
/// # Example
/// ```
/// use fivespot_api::crd;
/// let mut stored = crd::render(30);
/// assert!(crd::missing_fields(&stored).is_empty());
/// let schema = &mut stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
/// let status = schema["properties"]["status"]["properties"].as_object_mut();
/// status.unwrap().remove("usage");
/// assert_eq!(crd::missing_fields(&stored), ["status.usage"]);
/// ```
pub fn missing_fields(stored: &Value) -> Vec<&'static str> {
    let versions = stored["spec"]["versions"].as_array();
    let mut versions = versions.into_iter().flatten();
    let version = versions.find(|version| version["name"] == name::VERSION);
    let root = version.map(|version| &version["schema"]["openAPIV3Schema"]);
    let has = |path: &&str| {
        let node = path
            .split('.')
            .try_fold(root?, |node, member| node.get("properties")?.get(member));
        node.map(|_| ())
    };
    NEEDED
        .into_iter()
        .filter(|path| has(path).is_none())
        .collect()
}

/// The columns of `kubectl get`; those with priority 1 only under `-o wide`.
fn columns(resource: &Resource) -> Value {
    let columns = resource.columns.iter().map(|column| {
        let mut rendered = json!({
            "name": column.name,
            "type": column.of_type,
            "jsonPath": column.path,
        });
        if column.is_wide {
            rendered["priority"] = json!(1);
        }
        rendered
    });
    columns.collect()
}

/// Adds a rule to its node of the schema.
fn attach(root: &mut Value, rule: &Rule, kube_minor: u32) {
    let (node, validation) = match rule.requirement.layer {
        Layer::Policy => return,
        Layer::Change => {
            let field_path = format!(".{}", rule.path);
            let validation = json!({"rule": rule.requirement.cel, "message": rule.requirement.message, "fieldPath": field_path});
            (Some(root), validation)
        }
        Layer::SchemaAndPolicy => (
            descend(root, rule.node_path()),
            validation(rule, kube_minor),
        ),
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
    if rule.requirement.inputs.is_empty() || kube_minor < OPTIONAL_OLD_SELF_SINCE {
        // Kubernetes 1.30 knows a property whose name is a word of CEL by its escaped name only.
        let cel = rule.requirement.cel;
        let cel = cel.replace(".namespace)", ".__namespace__)");
        let mut validation = json!({"rule": cel, "message": rule.requirement.message});
        if let Some(member) = rule.missing() {
            validation["reason"] = json!("FieldValueRequired");
            validation["fieldPath"] = json!(format!(".{member}"));
        }
        return validation;
    }
    let unchanged: Vec<_> = rule
        .requirement
        .inputs
        .iter()
        .map(|input| is_unchanged(input))
        .collect();
    let unchanged = unchanged.join(" && ");
    // The requirement first: an API server evaluates every rule at each write of the status too, and
    // most objects meet it, whereas to compare all inputs takes several times as many selections.
    json!({
        "rule": format!("{} || oldSelf.hasValue() && {unchanged}", rule.requirement.cel),
        "message": rule.requirement.message,
        "optionalOldSelf": true,
    })
}

/// A CEL expression: whether a member of the node is unchanged.
///
/// It does not use optional selection, `self.?x`: the API server has no cost bound for its
/// result and would reject the rule for its cost.
fn is_unchanged(input: &str) -> String {
    format!(
        "has(self.{input}) == has(oldSelf.value().{input}) \
         && (!has(self.{input}) || self.{input} == oldSelf.value().{input})"
    )
}

/// The node of a schema at a path; `[]` selects the items.
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
