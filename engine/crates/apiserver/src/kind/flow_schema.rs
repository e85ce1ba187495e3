//! FlowSchemas: stored; requests are not queued by them.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{each, fill_number};
use super::{BuiltinKind, StatusMetadata, Write, column, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `flowschemas` of `flowcontrol.apiserver.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct FlowSchema;

/// The schema of requests that are never queued.
const EXEMPT: &str = "exempt";
/// The precedence that only that schema has.
const EXEMPT_PRECEDENCE: i64 = 1;
/// The lowest precedence.
const MAX_PRECEDENCE: i64 = 10_000;
const DEFAULT_PRECEDENCE: i64 = 1000;

/// All but the name, which the path has, and what the server sets: of flow control's kinds, the
/// whole metadata is restored.
pub(super) const STATUS_METADATA: StatusMetadata = StatusMetadata::Unowned(&[
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
]);

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

impl BuiltinKind for FlowSchema {
    fn resource(&self) -> Resource {
        let spec = |name: &str, field: &str| {
            column::described(name, "string", "flowcontrol.v1.FlowSchemaSpec", field)
        };
        let missing = "references a broken or non-existent PriorityLevelConfiguration";
        let level = "flowcontrol.v1.PriorityLevelConfigurationReference";
        Resource::new(
            "flowcontrol.apiserver.k8s.io",
            "v1",
            "FlowSchema",
            "flowschemas",
        )
        .cluster_scoped()
        .with_subresources(&[Subresource::Status])
        .with_columns(vec![
            column::described("PriorityLevel", "string", level, "name"),
            spec("MatchingPrecedence", "matchingPrecedence"),
            spec("DistinguisherMethod", "distinguisherMethod"),
            Column::age(),
            Column::new("MissingPL", "string", missing),
        ])
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        fill_number(spec, "matchingPrecedence", DEFAULT_PRECEDENCE);
        for rule in each(spec, "rules") {
            for rule in each(rule, "resourceRules") {
                // Go writes an empty list as null.
                if rule
                    .get("namespaces")
                    .is_some_and(|it| column::count(it) == 0)
                {
                    rule.insert("namespaces".to_owned(), Value::Null);
                }
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        STATUS_METADATA
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.subresource.is_empty() {
            let name = meta::name(write.object);
            let spec = Field::of(write.object, "spec");
            self::spec(&spec, name, &mut errors);
            if mandatory(name).is_some_and(|it| it != *spec.value) {
                let why = format!("spec of '{name}' must equal the fixed value");
                errors.push(spec.invalid(why));
            }
        }
        condition_types(&Field::of(write.object, "status"), &mut errors);
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let method = spec["distinguisherMethod"]["type"].as_str();
        let mut conditions = column::list(&object["status"]["conditions"]).iter();
        let missing = conditions.find(|it| it["type"] == "Dangling");
        let missing = missing.and_then(|it| it["status"].as_str());
        vec![
            column::name(object),
            column::string(&spec["priorityLevelConfiguration"]["name"]),
            column::number(&spec["matchingPrecedence"]),
            method.unwrap_or("<none>").into(),
            column::age(object, now),
            missing.unwrap_or("?").into(),
        ]
    }
}

/// Validates that conditions have different types.
pub(super) fn condition_types(status: &Field<'_>, errors: &mut Errors) {
    let mut before = Vec::new();
    for condition in status.child("conditions").items() {
        let kind = condition.child("type");
        if before.contains(&kind.text()) {
            errors.push(kind.duplicate());
        }
        before.push(kind.text());
        if kind.text().is_empty() {
            errors.push(kind.required(""));
        }
    }
}

fn spec(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let precedence = spec.child("matchingPrecedence");
    let number = precedence.count();
    if number <= 0 {
        errors.push(precedence.invalid("must be a positive value"));
    }
    if number > MAX_PRECEDENCE {
        let why = format!("must not be greater than {MAX_PRECEDENCE}");
        errors.push(precedence.invalid(why));
    }
    if number == EXEMPT_PRECEDENCE && name != EXEMPT {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(precedence.invalid(why));
    }
    let method = spec.child("distinguisherMethod");
    let known = ["ByNamespace", "ByUser"];
    let kind = method.child("type");
    if method.is_set() && !known.contains(&kind.text()) {
        let shown = json!({"Type": kind.text()});
        errors.push(FieldError::not_supported(&kind.path, shown, known));
    }
    let level = spec.child("priorityLevelConfiguration").child("name");
    if level.text().is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        rule::dns_subdomain(&level, errors);
    }
    for rule in spec.child("rules").items() {
        policy(&rule, errors);
    }
}

fn policy(policy: &Field<'_>, errors: &mut Errors) {
    let subjects = policy.child("subjects");
    subjects.items().for_each(|it| subject(&it, errors));
    if subjects.len() == 0 {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    let (resources, urls) = (
        policy.child("resourceRules"),
        policy.child("nonResourceRules"),
    );
    if resources.len() == 0 && urls.len() == 0 {
        let why =
            "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(policy.required(why));
    }
    resources.items().for_each(|it| resource_rule(&it, errors));
    urls.items().for_each(|it| url_rule(&it, errors));
}

/// Validates that a subject has the field of its kind, and no other.
fn subject(subject: &Field<'_>, errors: &mut Errors) {
    let kinds = [
        ("serviceAccount", "ServiceAccount"),
        ("user", "User"),
        ("group", "Group"),
    ];
    let kind = subject.child("kind");
    let Some((field, _)) = kinds.iter().find(|it| it.1 == kind.text()) else {
        errors.push(kind.not_supported(&["Group", "ServiceAccount", "User"]));
        return;
    };
    let own = subject.child(field);
    if own.is_set() {
        subject_name(&own, kind.text(), errors);
    } else {
        let why = format!("{field} is required when subject kind is '{}'", kind.text());
        errors.push(own.required(&why));
    }
    for (other, of) in kinds.iter().filter(|it| it.0 != *field) {
        let other_field = subject.child(other);
        if other_field.is_set() {
            let why = format!("{other} is forbidden when subject kind is not '{of}'");
            errors.push(other_field.forbidden(why));
        }
    }
}

fn subject_name(subject: &Field<'_>, kind: &str, errors: &mut Errors) {
    let name = subject.child("name");
    let is_account = kind == "ServiceAccount";
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if is_account && name.text() != "*" {
        rule::dns_subdomain(&name, errors);
    }
    let namespace = subject.child("namespace");
    if is_account && namespace.text().is_empty() {
        errors.push(namespace.required("must specify namespace for service account"));
    } else if is_account {
        rule::dns_label(&namespace, errors);
    }
}

fn verbs(verbs: &Field<'_>, errors: &mut Errors) {
    let supported = || verbs.items().all(|it| VERBS.contains(&it.text()));
    if verbs.len() == 0 {
        errors.push(verbs.required("verbs must contain at least one value"));
    } else if has_star(verbs) {
        alone(verbs, "verbs", errors);
    } else if !supported() {
        let value = verbs.value.clone();
        errors.push(FieldError::not_supported(&verbs.path, value, VERBS));
    }
}

fn has_star(list: &Field<'_>) -> bool {
    list.items().any(|it| it.text() == "*")
}

/// Validates that a star is the only item.
fn alone(list: &Field<'_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && has_star(list) {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.push(list.invalid(why));
    }
}

fn url_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(&rule.child("verbs"), errors);
    let urls = rule.child("nonResourceURLs");
    if urls.len() == 0 {
        let why = "nonResourceURLs must contain at least one value";
        errors.push(urls.required(why));
    } else if has_star(&urls) {
        alone(&urls, "non-resource URLs", errors);
    } else {
        let wrong = |it: Field<'_>| Some(it.invalid_text(url_error(it.text())?));
        errors.extend(urls.items().filter_map(wrong));
    }
}

/// Why a path of a URL is wrong (`ValidateNonResourceURLPath`).
fn url_error(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    if path.is_empty() {
        Some("must not be empty")
    } else if path == "/" {
        None
    } else if !path.starts_with('/') {
        Some("must start with slash")
    } else if path.contains(' ') {
        Some("must not contain white-space")
    } else if path.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || (stars == 1 && !path.ends_with("/*")) {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

fn resource_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(&rule.child("verbs"), errors);
    for (field, one, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.child(field);
        if list.len() == 0 {
            let why = format!("resource rules must supply at least one {one}");
            errors.push(list.required(&why));
        } else {
            alone(&list, others, errors);
        }
    }
    let namespaces = rule.child("namespaces");
    if namespaces.len() == 0 && !rule.child("clusterScope").is_true() {
        let why = "resource rules that are not cluster scoped must supply at least one \
                   namespace";
        errors.push(namespaces.required(why));
    } else if has_star(&namespaces) {
        alone(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            let wrong = name::dns_label(namespace.text()).into_iter();
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            let each = |it| namespace.invalid_text(format!("{intro}{it}"));
            errors.extend(wrong.map(each));
        }
    }
}

/// The spec of a schema that every cluster has; `None` for any other.
fn mandatory(name: &str) -> Option<Value> {
    let (precedence, groups): (_, &[&str]) = match name {
        EXEMPT => (EXEMPT_PRECEDENCE, &["system:masters"]),
        "catch-all" => (
            MAX_PRECEDENCE,
            &["system:unauthenticated", "system:authenticated"],
        ),
        _ => return None,
    };
    let subject = |it: &&str| json!({"kind": "Group", "group": {"name": it}});
    let subjects: Vec<Value> = groups.iter().map(subject).collect();
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": subjects,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                "clusterScope": true, "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}],
    });
    if name != EXEMPT {
        spec["distinguisherMethod"] = json!({"type": "ByUser"});
    }
    Some(spec)
}
