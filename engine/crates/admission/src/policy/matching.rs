//! The requests that a policy or a binding matches (`MatchResources`).

use serde_json::{Value, json};

use super::fields::Fields;
use super::request::{GroupVersionKind, GroupVersionResource, Request};
use crate::field::Path;
use crate::selector::Selector;
use crate::{FieldError, name};

/// Compiled `matchConstraints` or `matchResources`.
#[derive(Debug, Default)]
pub(super) struct Matching {
    namespaces: Selector,
    objects: Selector,
    rules: Vec<ResourceRule>,
    excluded: Vec<ResourceRule>,
    exact: bool,
}

#[derive(Debug)]
struct ResourceRule {
    names: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<String>,
    /// `*` if it is absent.
    scope: &'static str,
}

/// The version in which a request matched.
pub(super) type Matched<'a> = (GroupVersionResource<'a>, GroupVersionKind<'a>);

impl Matching {
    pub(super) fn compile(fields: Fields<'_>, errors: &mut Vec<FieldError>) -> Self {
        let mut selector = |name: &str| {
            let path = fields.path.field(name).to_string();
            Selector::compile(fields.get(name), &path).unwrap_or_else(|wrong| {
                errors.extend(wrong);
                Selector::default()
            })
        };
        let (namespaces, objects) =
            (selector("namespaceSelector"), selector("objectSelector"));
        let policy = fields.word("matchPolicy", ["Equivalent", "Exact"], errors);
        Self {
            namespaces,
            objects,
            rules: rules(fields, "resourceRules", errors),
            excluded: rules(fields, "excludeResourceRules", errors),
            exact: policy == Some("Exact"),
        }
    }

    pub(super) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The version in which the request matches, if it matches.
    pub(super) fn matches<'a>(&self, request: &Request<'a>) -> Option<Matched<'a>> {
        if !self.matches_namespace(request) || !self.matches_object(request) {
            return None;
        }
        if self.find(&self.excluded, request).is_some() {
            return None;
        }
        if self.rules.is_empty() {
            return Some((request.resource, request.kind));
        }
        self.find(&self.rules, request)
    }

    fn find<'a>(
        &self,
        rules: &[ResourceRule],
        request: &Request<'a>,
    ) -> Option<Matched<'a>> {
        let own = (request.resource, request.kind);
        if rules.iter().any(|rule| rule.matches(request, own.0)) {
            return Some(own);
        }
        if self.exact {
            return None;
        }
        let found = rules.iter().find_map(|rule| {
            let mut others = request.equivalents.iter();
            others.find(|(resource, _)| {
                *resource != request.resource && rule.matches(request, *resource)
            })
        });
        found.copied()
    }

    fn matches_namespace(&self, request: &Request<'_>) -> bool {
        if request.namespace.is_empty() && !request.is_namespace()
            || self.namespaces.is_empty()
        {
            return true;
        }
        let own = request
            .object
            .filter(|_| request.is_namespace() && request.subresource.is_empty());
        let namespace = own.or(request.namespace_object);
        if let Some(namespace) = namespace {
            return self.namespaces.matches(labels(namespace));
        }
        let labels = json!({"kubernetes.io/metadata.name": request.namespace});
        self.namespaces.matches(Some(&labels))
    }

    fn matches_object(&self, request: &Request<'_>) -> bool {
        let either = [request.object, request.old_object];
        self.objects.is_empty()
            || either
                .into_iter()
                .flatten()
                .any(|object| self.objects.matches(labels(object)))
    }
}

fn labels(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("labels")
}

fn rules(
    fields: Fields<'_>,
    list: &str,
    errors: &mut Vec<FieldError>,
) -> Vec<ResourceRule> {
    let path = fields.path.field(list);
    let rules = fields.list(list, errors).iter().enumerate();
    rules
        .map(|(at, value)| {
            ResourceRule::compile(Fields::new(value, &path.index(at)), errors)
        })
        .collect()
}

impl ResourceRule {
    fn compile(fields: Fields<'_>, errors: &mut Vec<FieldError>) -> Self {
        let mut rule = Self {
            names: fields.texts("resourceNames", errors),
            groups: fields.texts("apiGroups", errors),
            versions: fields.texts("apiVersions", errors),
            resources: fields.texts("resources", errors),
            operations: fields.texts("operations", errors),
            scope: "*",
        };
        rule.check(fields.path, errors);
        let known = ["*", "Cluster", "Namespaced"];
        rule.scope = fields.word("scope", known, errors).unwrap_or(rule.scope);
        rule
    }

    /// Adds the errors, in the API server's order.
    fn check(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let mut earlier: Vec<&str> = Vec::new();
        for (at, given) in self.names.iter().enumerate() {
            let path = path.field("resourceNames");
            let path = path.index(at);
            for detail in name::path_segment(given) {
                errors.push(FieldError::invalid(path, given.as_str().into(), detail));
            }
            if earlier.contains(&given.as_str()) {
                errors.push(FieldError::duplicate(path, given.as_str().into()));
            }
            earlier.push(given);
        }
        let lists = [
            ("operations", &self.operations, "operations"),
            ("apiGroups", &self.groups, "API groups"),
            ("apiVersions", &self.versions, "API versions"),
        ];
        for (field, list, others) in lists {
            let path = path.field(field);
            if list.is_empty() {
                errors.push(FieldError::required(path, ""));
            }
            if list.len() > 1 && list.iter().any(|it| it == "*") {
                let detail =
                    format!("if '*' is present, must not specify other {others}");
                errors.push(FieldError::invalid(path, list.clone().into(), detail));
            }
            for (at, item) in list.iter().enumerate() {
                let path = path.index(at);
                let sorted = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
                if field == "operations" && !sorted.contains(&item.as_str()) {
                    let item = item.as_str().into();
                    let error = FieldError::not_supported(path, item, sorted);
                    errors.push(error.of_named_type());
                } else if field == "apiVersions" && item.is_empty() {
                    errors.push(FieldError::required(path, ""));
                }
            }
        }
        self.check_resources(path.field("resources"), errors);
    }

    fn check_resources(&self, path: Path<'_>, errors: &mut Vec<FieldError>) {
        if self.resources.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        // The preceding `x/*` and `*/x`, and whether the last whole resource is one.
        let (mut every_sub, mut every_resource) = (Vec::new(), Vec::new());
        let mut has_whole = false;
        for (at, given) in self.resources.iter().enumerate() {
            let path = path.index(at);
            if given.is_empty() {
                errors.push(FieldError::required(path, ""));
                continue;
            }
            let Some((resource, sub)) = given.split_once('/') else {
                has_whole = given != "*";
                continue;
            };
            let mut refuse = |covers: String| {
                let detail =
                    format!("if '{covers}' is present, must not specify {given}");
                errors.push(FieldError::invalid(path, given.as_str().into(), detail));
            };
            if every_sub.contains(&resource) {
                refuse(format!("{resource}/*"));
            }
            if every_resource.contains(&sub) {
                refuse(format!("*/{sub}"));
            }
            if sub == "*" {
                every_sub.push(resource);
            }
            if resource == "*" {
                every_resource.push(sub);
            }
        }
        let has = |wanted: &str| self.resources.iter().any(|it| it == wanted);
        let mut refuse = |detail: &str| {
            let resources = self.resources.clone().into();
            errors.push(FieldError::invalid(path, resources, detail));
        };
        if self.resources.len() > 1 && has("*/*") {
            refuse("if '*/*' is present, must not specify other resources");
        }
        if has("*") && has_whole {
            let detail = "if '*' is present, must not specify other resources without \
                          subresources";
            refuse(detail);
        }
    }

    fn matches(&self, request: &Request<'_>, resource: GroupVersionResource<'_>) -> bool {
        let has = |list: &[String], wanted: &str| {
            list.iter().any(|item| item == "*" || item == wanted)
        };
        self.matches_scope(request)
            && has(&self.operations, request.operation.as_str())
            && has(&self.groups, resource.group)
            && has(&self.versions, resource.version)
            && self.matches_resource(resource.resource, request.subresource)
            && (self.names.is_empty() || self.names.iter().any(|it| it == request.name))
    }

    fn matches_scope(&self, request: &Request<'_>) -> bool {
        let cluster = request.is_namespace() || request.namespace.is_empty();
        match self.scope {
            "Namespaced" => !cluster,
            "Cluster" => cluster,
            _ => true,
        }
    }

    fn matches_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|item| {
            let (name, sub) = item.split_once('/').unwrap_or((item, ""));
            (name == "*" || name == resource) && (sub == "*" || sub == subresource)
        })
    }
}
