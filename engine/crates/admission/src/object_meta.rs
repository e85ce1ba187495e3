//! Validation of every object's `metadata`.

use std::collections::HashSet;

use kubemu_cel::{json_field, mask_trailing_dash};
use kubemu_gostd::unicode::to_lower;
use serde_json::{Map, Value};

use crate::field::Path;
use crate::quote::Quoted;
use crate::{FieldError, name};

/// The rule for the names of a kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower-case letters, digits, `-` and `.`, at most 253 characters: most kinds and all
    /// custom resources.
    DnsSubdomain,
    /// As [`DnsSubdomain`](Self::DnsSubdomain), except that the prefix of a generated name may be any
    /// segment of a URL path: device classes and replication controllers, of which Kubernetes
    /// validates only the name that results.
    DnsSubdomainOnceGenerated,
    /// A single label of at most 63 characters: namespaces.
    DnsLabel,
    /// Any segment of a URL path: RBAC objects.
    PathSegment,
}

impl NameRule {
    fn wrong(self, name: &str) -> Vec<String> {
        match self {
            Self::DnsSubdomain | Self::DnsSubdomainOnceGenerated => {
                name::dns_subdomain(name)
            }
            Self::DnsLabel => name::dns_label(name),
            Self::PathSegment => name::path_segment(name),
        }
    }

    /// The errors of a name prefix: it may end with a hyphen, and `.` and `..` are allowed.
    fn wrong_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment | Self::DnsSubdomainOnceGenerated => {
                name::path_segment_prefix(prefix)
            }
            Self::DnsSubdomain | Self::DnsLabel => {
                self.wrong(&mask_trailing_dash(prefix))
            }
        }
    }
}

/// Whether the objects of a kind are namespaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `metadata.namespace` must be set.
    Namespaced,
    /// `metadata.namespace` must not be set.
    Cluster,
}

/// The maximum total size of all annotations' keys and values, in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Validates the `metadata` of an object for its creation; paths start at `metadata`.
///
/// Absent or null `metadata` is treated as empty.
pub fn create(metadata: Option<&Value>, rule: NameRule, scope: Scope) -> Vec<FieldError> {
    let mut check = match Check::new(metadata) {
        Ok(check) => check,
        Err(errors) => return errors,
    };
    check.name(rule);
    check.namespace(scope);
    check.common();
    check.finalizers();
    check.errors
}

/// Validates names and namespace in the `metadata` of an object that replaces another. An API
/// server does this for every update before the validation of the kind's strategy, which
/// [`update`] does (`BeforeUpdate` of k8s.io/apiserver/pkg/registry/rest).
pub fn update_names(metadata: Option<&Value>, scope: Scope) -> Vec<FieldError> {
    let mut check = match Check::new(metadata) {
        Ok(check) => check,
        Err(errors) => return errors,
    };
    check.name(NameRule::PathSegment);
    check.namespace(scope);
    check.errors
}

/// Validates the rest of the `metadata` of an object that replaces one that has `old`.
pub fn update(
    metadata: Option<&Value>,
    old: Option<&Value>,
    scope: Scope,
) -> Vec<FieldError> {
    let mut check = match Check::new(metadata) {
        Ok(check) => check,
        Err(errors) => return errors,
    };
    check.finalizers();
    check.generation(old);
    check.immutable(old, scope);
    check.common();
    check.errors
}

/// An owner with its fields in the order of Kubernetes' struct.
fn in_go_order(owner: &Value) -> Value {
    let names = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let fields = names.iter().filter_map(|name| {
        let value = owner.get(name).filter(|it| !it.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(fields.collect())
}

/// The error of a value whose fields are shown in the order that they have.
fn of_owners(value: &Value, detail: &str) -> FieldError {
    let path = METADATA.field("ownerReferences");
    let detail = format!("{value}: {detail}");
    FieldError::invalid(path, Value::Null, detail).without_value()
}

struct Check<'a> {
    fields: Option<&'a Map<String, Value>>,
    errors: Vec<FieldError>,
}

const ROOT: Path<'static> = Path::Root;
const METADATA: Path<'static> = ROOT.field("metadata");

impl<'a> Check<'a> {
    fn new(metadata: Option<&'a Value>) -> Result<Self, Vec<FieldError>> {
        let fields = match metadata {
            None | Some(Value::Null) => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(other) => {
                let found = match other {
                    Value::String(_) => "string",
                    Value::Bool(_) => "bool",
                    Value::Array(_) => "[]interface {}",
                    Value::Number(number) if number.is_i64() => "int64",
                    _ => "float64",
                };
                let detail = format!("expected map[string]interface{{}}, got {found}");
                return Err(vec![FieldError::invalid(METADATA, other.clone(), detail)]);
            }
        };
        Ok(Self {
            fields,
            errors: Vec::new(),
        })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        json_field(self.fields?, name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(&self, name: &str) -> &'a [Value] {
        self.get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn invalid(&mut self, path: Path<'_>, value: &str, details: Vec<String>) {
        let errors = details
            .into_iter()
            .map(|detail| FieldError::invalid(path, value.into(), detail));
        self.errors.extend(errors);
    }

    fn name(&mut self, rule: NameRule) {
        let prefix = self.text("generateName");
        if !prefix.is_empty() {
            self.invalid(
                METADATA.field("generateName"),
                prefix,
                rule.wrong_prefix(prefix),
            );
        }
        let path = METADATA.field("name");
        let name = self.text("name");
        if name.is_empty() {
            let detail = "name or generateName is required";
            self.errors.push(FieldError::required(path, detail));
        } else {
            self.invalid(path, name, rule.wrong(name));
        }
    }

    fn namespace(&mut self, scope: Scope) {
        let path = METADATA.field("namespace");
        let namespace = self.text("namespace");
        match (scope, namespace) {
            (Scope::Namespaced, "") => {
                self.errors.push(FieldError::required(path, ""));
            }
            (Scope::Namespaced, namespace) => {
                self.invalid(path, namespace, name::dns_label(namespace));
            }
            (Scope::Cluster, "") => {}
            (Scope::Cluster, _) => {
                let detail = "not allowed on this type";
                self.errors.push(FieldError::forbidden(path, detail));
            }
        }
    }

    fn common(&mut self) {
        self.labels();
        self.annotations();
        self.owners();
    }

    fn labels(&mut self) {
        let path = METADATA.field("labels");
        let labels = self.get("labels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            self.invalid(path, key, name::label_key(key));
            let value = value.as_str().unwrap_or_default();
            self.invalid(path, value, name::label_value(value));
        }
    }

    fn annotations(&mut self) {
        let path = METADATA.field("annotations");
        let annotations = self.get("annotations").and_then(Value::as_object);
        let mut bytes = 0;
        for (key, value) in annotations.into_iter().flatten() {
            self.invalid(path, key, name::label_key(&to_lower(key)));
            bytes += key.len() + value.as_str().unwrap_or_default().len();
        }
        if bytes > MAX_ANNOTATION_BYTES {
            let most = MAX_ANNOTATION_BYTES as u64;
            self.errors.push(FieldError::too_long(path, most));
        }
    }

    fn owners(&mut self) {
        let path = METADATA.field("ownerReferences");
        let mut controller: Option<String> = None;
        // The API server's paths contain no index.
        for owner in self.list("ownerReferences") {
            let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or("");
            let api_version = text("apiVersion");
            let (group, version) = api_version
                .split_once('/')
                .filter(|(_, version)| !version.contains('/'))
                .unwrap_or(("", api_version));
            // More than one slash leaves no version.
            if version.is_empty() || version.contains('/') {
                let detail = "version must not be empty".to_owned();
                self.invalid(path.field("apiVersion"), api_version, vec![detail]);
            }
            for name in ["kind", "name", "uid"] {
                if text(name).is_empty() {
                    let detail = "must not be empty".to_owned();
                    self.invalid(path.field(name), "", vec![detail]);
                }
            }
            if (group, version, text("kind")) == ("", "v1", "Event") {
                let detail = "/v1, Kind=Event is disallowed from being an owner";
                self.errors.push(of_owners(&in_go_order(owner), detail));
            }
            if owner.get("controller") == Some(&Value::Bool(true)) {
                let this = format!("{}/{}", text("kind"), text("name"));
                self.second_controller(controller.as_deref(), &this);
                controller.get_or_insert(this);
            }
        }
    }

    fn second_controller(&mut self, first: Option<&str>, this: &str) {
        let Some(first) = first else {
            return;
        };
        let owners = self.list("ownerReferences").iter();
        let value: Value = owners.map(in_go_order).collect();
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in \
             references for {first} and {this}"
        );
        self.errors.push(of_owners(&value, &detail));
    }

    fn finalizers(&mut self) {
        let path = METADATA.field("finalizers");
        let finalizers = self.list("finalizers");
        for finalizer in finalizers {
            let text = finalizer.as_str().unwrap_or_default();
            self.invalid(path, text, name::label_key(text));
        }
        let has = |name: &str| finalizers.iter().any(|it| it.as_str() == Some(name));
        if has("orphan") && has("foregroundDeletion") {
            let value = self.get("finalizers").cloned().unwrap_or_default();
            let detail = "finalizer orphan and foregroundDeletion cannot be both set";
            self.errors.push(FieldError::invalid(path, value, detail));
        }
    }

    fn generation(&mut self, old: Option<&Value>) {
        let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or(0);
        let new = number(self.get("generation"));
        if new < number(old.and_then(|old| old.get("generation"))) {
            let path = METADATA.field("generation");
            let detail = "must not be decremented";
            self.errors
                .push(FieldError::invalid(path, new.into(), detail));
        }
    }

    /// Immutable fields. A deletion timestamp must not be added or removed either, and no
    /// finalizer may be added once it is set.
    fn immutable(&mut self, old: Option<&Value>, scope: Scope) {
        let before =
            |name: &str| old.and_then(|old| old.get(name)).filter(|it| !it.is_null());
        let deleting = before("deletionTimestamp").is_some();
        if deleting {
            self.no_further_finalizers(before("finalizers"));
        }
        for name in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            let (new, old) = (self.get(name), before(name));
            let is_empty = |value: Option<&Value>| value.is_none_or(|it| it == "");
            let same = new == old || is_empty(new) && is_empty(old);
            if same || name == "namespace" && scope == Scope::Cluster && is_empty(new) {
                continue;
            }
            let value = new.cloned().unwrap_or_else(|| match name {
                "deletionTimestamp"
                | "deletionGracePeriodSeconds"
                | "creationTimestamp" => Value::Null,
                _ => "".into(),
            });
            let path = METADATA.field(name);
            self.errors
                .push(FieldError::invalid(path, value, "field is immutable"));
        }
    }

    fn no_further_finalizers(&mut self, old: Option<&Value>) {
        let old = old.and_then(Value::as_array).into_iter().flatten();
        let old: HashSet<&Value> = old.collect();
        let mut added: Vec<_> = self
            .list("finalizers")
            .iter()
            .filter(|it| !old.contains(*it))
            .filter_map(Value::as_str)
            .collect();
        added.sort_unstable();
        added.dedup();
        if added.is_empty() {
            return;
        }
        let quoted: Vec<_> = added.iter().map(|it| Quoted(it).to_string()).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new \
             finalizers []string{{{}}}",
            quoted.join(", ")
        );
        let path = METADATA.field("finalizers");
        self.errors.push(FieldError::forbidden(path, detail));
    }
}

/// All fields of `metadata`.
const FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Removes unknown fields from an object's `metadata` and returns their paths, sorted. Empty
/// fields are removed too, as the API server does not store them.
pub fn prune(object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    if let Some(Value::Object(fields)) = object.get_mut("metadata") {
        fields.retain(|name, _| {
            let known = FIELDS.contains(&name.as_str());
            if !known {
                unknown.push(METADATA.field(name).to_string());
            }
            known
        });
        fields.retain(|name, value| {
            !is_empty(value) && (name != "generation" || value != 0)
        });
        complete_owners(fields);
    }
    unknown.sort_unstable();
    unknown
}

/// Whether the API server omits the value from `metadata`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) | Value::Bool(_) => false,
    }
}

/// An owner reference always has the four fields of its identity.
fn complete_owners(metadata: &mut Map<String, Value>) {
    let owners = metadata.get_mut("ownerReferences");
    let owners = owners.and_then(Value::as_array_mut).into_iter().flatten();
    for owner in owners.filter_map(Value::as_object_mut) {
        for part in ["apiVersion", "kind", "name", "uid"] {
            owner.entry(part).or_insert_with(|| "".into());
        }
    }
}

/// Warnings for the finalizers of `metadata` that `old` does not have and whose names may
/// conflict with others; each text is sent to the client.
pub fn finalizer_warnings(metadata: Option<&Value>, old: Option<&Value>) -> Vec<String> {
    let list = |metadata: Option<&Value>| -> Vec<String> {
        let list = metadata.and_then(|it| it.get("finalizers"));
        let texts = list.and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let old: HashSet<String> = list(old).into_iter().collect();
    let mut added = list(metadata);
    added.retain(|it| !old.contains(it));
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let place = format!("metadata.finalizers: {}", Quoted(&finalizer));
        let wrong = name::label_key(&finalizer).into_iter();
        warnings.extend(wrong.map(|detail| format!("{place}: {detail}")));
        let standard = ["orphan", "foregroundDeletion", "kubernetes"];
        if !finalizer.contains('/') && !standard.contains(&finalizer.as_str()) {
            let path = if finalizer.contains('.') {
                "including a path (/) "
            } else {
                ""
            };
            warnings.push(format!(
                "{place}: prefer a domain-qualified finalizer name {path}to avoid \
                 accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: &[FieldError]) -> String {
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        texts.join("\n")
    }

    #[test]
    fn a_minimal_object_is_accepted() {
        let metadata = json!({"name": "a", "namespace": "b", "labels": {"c/d": "e"},
            "annotations": {"C": "f"}, "finalizers": ["g.h/i"]});
        let errors = create(Some(&metadata), NameRule::DnsSubdomain, Scope::Namespaced);
        assert_eq!(errors, []);
        assert_eq!(
            update(Some(&metadata), Some(&metadata), Scope::Namespaced),
            []
        );
    }

    #[test]
    fn each_invalid_field_is_reported_with_its_path() {
        let metadata = json!({"name": "Bad", "labels": {"a b": "-"}, "namespace": "x",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "2", "controller": true},
        ]});
        let errors = create(Some(&metadata), NameRule::DnsLabel, Scope::Cluster);
        let paths: Vec<_> = errors
            .iter()
            .map(|it| (it.path.as_str(), it.kind.reason()))
            .collect();
        assert_eq!(
            paths,
            [
                ("metadata.name", "FieldValueInvalid"),
                ("metadata.namespace", "FieldValueForbidden"),
                ("metadata.labels", "FieldValueInvalid"),
                ("metadata.labels", "FieldValueInvalid"),
                ("metadata.ownerReferences.name", "FieldValueInvalid"),
                ("metadata.ownerReferences", "FieldValueInvalid"),
            ]
        );
    }

    #[test]
    fn the_version_of_an_owner_is_what_follows_the_group() {
        let wrong = |api_version: &str, kind: &str| {
            let metadata = json!({"name": "a", "ownerReferences": [
                {"apiVersion": api_version, "kind": kind, "name": "p", "uid": "1"}]});
            let errors = create(Some(&metadata), NameRule::DnsLabel, Scope::Cluster);
            let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            texts.join("\n")
        };
        for valid in ["v1", "a.io/v1", "/v1"] {
            assert_eq!(wrong(valid, "Pod"), "", "{valid}");
        }
        for invalid in ["", "/", "a.io/", "a.io/b/v1", "a.io/b/"] {
            let wanted = format!(
                "metadata.ownerReferences.apiVersion: Invalid value: \"{invalid}\": version \
                 must not be empty"
            );
            assert_eq!(wrong(invalid, "Pod"), wanted);
        }
        for event in ["v1", "/v1"] {
            let found = wrong(event, "Event");
            assert!(found.contains("Kind=Event is disallowed"), "{found}");
        }
        assert_eq!(wrong("events.k8s.io/v1", "Event"), "");
    }

    #[test]
    fn the_character_before_the_hyphen_of_a_prefix_is_not_checked() {
        let is_valid = |prefix: &str| {
            let metadata = json!({"generateName": prefix, "name": "a"});
            create(Some(&metadata), NameRule::DnsLabel, Scope::Cluster).is_empty()
        };
        for valid in ["a-", "a-%-", "%-", "--"] {
            assert!(is_valid(valid), "{valid}");
        }
        // Only one byte is not checked.
        for invalid in ["-", "%a-", "é-", "a😀-"] {
            assert!(!is_valid(invalid), "{invalid}");
        }
    }

    #[test]
    fn a_generated_name_prefix_may_end_with_a_hyphen() {
        let metadata = json!({"generateName": "a-", "name": "a-1"});
        let errors = create(Some(&metadata), NameRule::DnsSubdomain, Scope::Cluster);
        assert_eq!(errors, []);
    }

    #[test]
    fn the_identity_of_an_object_is_immutable() {
        let old = json!({"name": "a", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["a/b"]});
        let new = json!({"name": "a", "uid": "2", "finalizers": ["a/b", "a/c"]});
        insta::assert_snapshot!(
            texts(&update(Some(&new), Some(&old), Scope::Cluster)),
            @r#"
        metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a/c"}
        metadata.uid: Invalid value: "2": field is immutable
        metadata.deletionTimestamp: Invalid value: null: field is immutable
        "#
        );
    }

    #[test]
    fn an_update_requires_names_that_are_valid_path_segments() {
        let metadata = json!({"name": "a/b", "generateName": "c%", "namespace": "D"});
        let errors = update_names(Some(&metadata), Scope::Namespaced);
        let paths: Vec<_> = errors.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "metadata.generateName",
                "metadata.name",
                "metadata.namespace"
            ]
        );
        let errors = update_names(None, Scope::Cluster);
        assert_eq!(
            texts(&errors),
            "metadata.name: Required value: name or generateName is required"
        );
    }

    #[test]
    fn dots_alone_are_a_valid_prefix_but_not_a_valid_path_segment() {
        let prefix = json!({"generateName": "..", "name": "..a"});
        let errors = create(Some(&prefix), NameRule::PathSegment, Scope::Cluster);
        assert_eq!(errors, []);
        let name = json!({"name": ".."});
        let errors = create(Some(&name), NameRule::PathSegment, Scope::Cluster);
        assert_eq!(
            texts(&errors),
            "metadata.name: Invalid value: \"..\": may not be '..'"
        );
    }

    #[test]
    fn annotations_have_a_total_size_limit() {
        let metadata = json!({"name": "a", "annotations": {"k": "v".repeat(256 * 1024)}});
        assert_eq!(
            texts(&create(
                Some(&metadata),
                NameRule::DnsSubdomain,
                Scope::Cluster
            )),
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        );
    }

    #[test]
    fn a_finalizer_without_a_domain_gets_a_warning_when_it_is_added() {
        let metadata = json!({"finalizers": ["mine", "a/b", "orphan"]});
        assert_eq!(
            finalizer_warnings(Some(&metadata), None),
            [
                "metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name to \
              avoid accidental conflicts with other finalizer writers"
            ]
        );
        assert_eq!(
            finalizer_warnings(Some(&metadata), Some(&metadata)),
            [""; 0]
        );
    }
}
