//! The authorization attributes of a request that RBAC rules use.

use http::Method;

use crate::alias::GroupAlias;
use crate::call::Call;
use crate::query::{Query, percent};
use crate::selector::Labels;

/// An action on a resource or on a non-resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) verb: String,
    pub(crate) namespace: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    /// The non-resource path; empty for an action on a resource.
    pub(crate) path: String,
}

impl Action {
    /// The action with the group that roles refer to in place of an alias.
    pub(crate) fn with_own_group(mut self, aliases: &[GroupAlias]) -> Self {
        if let Some(alias) = aliases.iter().find(|it| it.group == self.group) {
            self.group.clone_from(&alias.of);
        }
        self
    }

    /// The action of a call, as [`of_request`](Self::of_request) reads it.
    pub(crate) fn of(call: &Call) -> Self {
        Self::of_request(&call.method, &call.path, &call.query)
    }

    /// Reads only a request's method, path and field selector (k8s.io/apiserver's
    /// `RequestInfo`): authorization comes before the resource is looked up, so that 403
    /// precedes 404.
    pub(crate) fn of_request(method: &Method, path: &str, query: &Query) -> Self {
        let parts: Vec<String> = path
            .split('/')
            .filter(|it| !it.is_empty())
            .map(percent)
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => {
                return Self {
                    verb: method.as_str().to_ascii_lowercase(),
                    path: percent(path),
                    ..Self::default()
                };
            }
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, "status" | "finalize", ..] => (*namespace, rest),
            ["namespaces", namespace, below @ ..] if !below.is_empty() => {
                (*namespace, below)
            }
            ["namespaces", namespace] => (*namespace, rest),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default();
        let mut action = Self {
            verb: String::new(),
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            resource: part(0).to_owned(),
            name: part(1).to_owned(),
            subresource: part(2).to_owned(),
            path: String::new(),
        };
        let collection = action.name.is_empty();
        verb(method, query, collection).clone_into(&mut action.verb);
        // The options are parsed together: with a wrong one there is no name.
        let is_readable =
            || query.check().is_ok() && Labels::parse(&query.label_selector).is_ok();
        let is_selecting = matches!(action.verb.as_str(), "list" | "watch") && collection;
        if is_selecting && is_readable() {
            selected_name(&query.field_selector).clone_into(&mut action.name);
        }
        action
    }

    pub(crate) fn is_about_resource(&self) -> bool {
        self.path.is_empty()
    }

    /// The resource with its subresource as in rules.
    pub(crate) fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Kubernetes' message that the user cannot do the action.
    pub(super) fn forbidden_message(&self, user: &str) -> String {
        let verb = &self.verb;
        let text = if self.is_about_resource() {
            let scope = if self.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {:?}", self.namespace)
            };
            format!(
                "User {user:?} cannot {verb} resource {:?} in API group {:?} {scope}",
                self.combined(),
                self.group
            )
        } else {
            format!("User {user:?} cannot {verb} path {:?}", self.path)
        };
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    }
}

fn verb(method: &Method, query: &Query, collection: bool) -> &'static str {
    match (method.as_str(), collection) {
        ("GET" | "HEAD", true) if query.watch => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => "",
    }
}

/// The only name that a field selector selects in a collection; empty if there is none.
fn selected_name(selector: &str) -> &str {
    let found = selector.split(',').find_map(|part| {
        let (field, value) = part.split_once('=')?;
        (field == "metadata.name").then(|| value.trim_start_matches('='))
    });
    found
        .filter(|it| !it.contains(['/', '%']))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;

    use super::*;
    use crate::call::Payload;
    use crate::query::Query;
    use crate::user::User;

    fn action(method: &str, target: &str) -> Action {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Action::of(&Call {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            path: path.to_owned(),
            query: Query::parse(query),
            accept: String::new(),
            content_type: String::new(),
            agent: String::new(),
            user: User::admin(),
            impersonator: None,
            body: Payload::Bytes(Bytes::new()),
            holds_clock: false,
        })
    }

    #[test]
    fn methods_and_paths_map_to_authorization_attributes() {
        let rows = [
            ("GET", "/api/v1/pods", "list pods /  @ "),
            ("GET", "/api/v1/pods?watch=1", "watch pods /  @ "),
            ("GET", "/api/v1/namespaces/a/pods/x", "get pods / x @ a"),
            ("GET", "/api/v1/namespaces/a", "get namespaces / a @ a"),
            (
                "PUT",
                "/api/v1/namespaces/a/status",
                "update namespaces/status / a @ a",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/pods/x/eviction",
                "create pods/eviction / x @ a",
            ),
            (
                "DELETE",
                "/apis/g.io/v1/namespaces/a/things",
                "deletecollection things /g.io  @ a",
            ),
            (
                "GET",
                "/apis/g.io/v1/things?fieldSelector=metadata.name%3Dx",
                "list things /g.io x @ ",
            ),
            (
                "GET",
                "/apis/g.io/v1/things?fieldSelector=metadata.name%3Dx&limit=x",
                "list things /g.io  @ ",
            ),
            (
                "GET",
                "/apis/g.io/v1/things?fieldSelector=metadata.name%3Dx&labelSelector=-a",
                "list things /g.io  @ ",
            ),
        ];
        for (method, target, expected) in rows {
            let it = action(method, target);
            let found = format!(
                "{} {} /{} {} @ {}",
                it.verb,
                it.combined(),
                it.group,
                it.name,
                it.namespace
            );
            assert_eq!(found, expected, "{method} {target}");
        }
    }

    #[test]
    fn a_non_resource_request_is_a_path() {
        for path in ["/api", "/api/v1", "/apis/g.io/v1", "/healthz", "/"] {
            let found = action("GET", path);
            assert_eq!((found.verb.as_str(), found.path.as_str()), ("get", path));
        }
    }
}
