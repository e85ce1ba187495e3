//! The objects and permissions of a question, for our engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::policy::{
    Access, Authorizer, GroupVersionKind, GroupVersionResource, Operation, ParamKind,
    Permission, Request, Resolver, Target, User,
};
use serde_json::Value;

use super::ours::list;

/// The parameters and permissions of a question.
#[derive(Debug)]
pub(super) struct TestResolver<'a> {
    params: &'a [Value],
    authorizer: Arc<Allowed>,
}

/// The permissions of a question.
#[derive(Debug)]
struct Allowed(Vec<Value>);

impl<'a> TestResolver<'a> {
    pub(super) fn new(question: &'a Value) -> Self {
        let allowed = list(&question["allowed"]).to_vec();
        Self {
            params: list(&question["params"]),
            authorizer: Arc::new(Allowed(allowed)),
        }
    }

    fn of_kind<'b>(
        &'b self,
        kind: &'b ParamKind,
    ) -> impl Iterator<Item = &'a Value> + 'b {
        self.params.iter().filter(|param| {
            param["apiVersion"] == kind.api_version.as_str()
                && param["kind"] == kind.kind.as_str()
        })
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

impl Resolver for TestResolver<'_> {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        let last = self.of_kind(kind).last()?;
        Some(!text(&last["metadata"], "namespace").is_empty())
    }

    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        self.params(kind, namespace)
            .into_iter()
            .find(|param| text(&param["metadata"], "name") == name)
    }

    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        self.of_kind(kind)
            .filter(|param| text(&param["metadata"], "namespace") == namespace)
            .cloned()
            .collect()
    }

    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        Some(self.authorizer.clone())
    }
}

impl Authorizer for Allowed {
    fn authorize(&self, access: &Access<'_>) -> Result<Permission, String> {
        let allowed = self.0.iter().any(|one| {
            let is = |field: &str, found: &str| {
                let wanted = text(one, field);
                wanted == "*" || wanted == found
            };
            is("user", &access.user.name)
                && is("verb", access.verb)
                && match access.target {
                    Target::Path(path) => is("path", path),
                    Target::Resource {
                        group,
                        resource,
                        subresource,
                        namespace,
                        name,
                        ..
                    } => {
                        text(one, "path").is_empty()
                            && is("group", group)
                            && is("resource", resource)
                            && is("subresource", subresource)
                            && is("namespace", namespace)
                            && is("name", name)
                    }
                }
        });
        let reason = if allowed { "" } else { "nobody allows it" };
        Ok(Permission {
            allowed,
            reason: reason.to_owned(),
        })
    }
}

/// A request of a question.
pub(super) struct PolicyRequest<'a> {
    request: &'a Value,
    namespace: Option<&'a Value>,
    user: User,
}

impl<'a> PolicyRequest<'a> {
    pub(super) fn new(request: &'a Value, question: &'a Value) -> Self {
        let given = &request["user"];
        let texts = |value: &Value| -> Vec<String> {
            let texts = list(value).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let extra: BTreeMap<_, _> = given["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, values)| (name.clone(), texts(values)))
            .collect();
        let namespace = text(request, "namespace");
        Self {
            request,
            namespace: list(&question["namespaces"])
                .iter()
                .find(|it| text(&it["metadata"], "name") == namespace),
            user: User {
                name: text(given, "name").to_owned(),
                uid: text(given, "uid").to_owned(),
                groups: texts(&given["groups"]),
                extra,
            },
        }
    }

    pub(super) fn equivalents(
        &self,
    ) -> Vec<(GroupVersionResource<'a>, GroupVersionKind<'a>)> {
        let others = list(&self.request["equivalents"]).iter();
        others
            .map(|other| (resource(&other["resource"]), kind(&other["kind"])))
            .collect()
    }

    pub(super) fn request<'b>(
        &'b self,
        equivalents: &'b [(GroupVersionResource<'a>, GroupVersionKind<'a>)],
    ) -> Request<'b> {
        let object = |name: &str| self.request.get(name).filter(|it| it.is_object());
        let operation = match text(self.request, "operation") {
            "CREATE" => Operation::Create,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => Operation::Update,
        };
        let mut request = Request::new(operation, kind(&self.request["kind"]), "");
        request.resource = resource(&self.request["resource"]);
        request.equivalents = equivalents;
        request.subresource = text(self.request, "subresource");
        request.namespace = text(self.request, "namespace");
        request.name = text(self.request, "name");
        request.object = object("object");
        request.old_object = object("oldObject");
        request.options = object("options");
        request.user = &self.user;
        request.dry_run = self.request["dryRun"] == true;
        request.namespace_object = self.namespace;
        request
    }
}

fn kind(value: &Value) -> GroupVersionKind<'_> {
    GroupVersionKind {
        group: text(value, "group"),
        version: text(value, "version"),
        kind: text(value, "kind"),
    }
}

fn resource(value: &Value) -> GroupVersionResource<'_> {
    GroupVersionResource {
        group: text(value, "group"),
        version: text(value, "version"),
        resource: text(value, "resource"),
    }
}
