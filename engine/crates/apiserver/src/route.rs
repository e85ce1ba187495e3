//! Routing: finds the resource of a path.

use std::sync::Arc;

use crate::query::percent;
use crate::registry::Registry;
use crate::resource::{Resource, Subresource, Verb};
use crate::review;

/// The target of a path.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// One object or a collection.
    Resource(Target),
    /// Another path: a document, or nothing.
    Other,
}

/// One object, or a collection of them.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// Empty if the path has no namespace.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

impl Target {
    /// The verb of an HTTP method for this target; `None` if the method is not supported.
    pub(crate) fn verb(&self, method: &http::Method, watch: bool) -> Option<Verb> {
        let one = !self.name.is_empty();
        Some(match (method.as_str(), one) {
            ("GET" | "HEAD", true) => Verb::Get,
            ("GET" | "HEAD", false) if watch => Verb::Watch,
            ("GET" | "HEAD", false) => Verb::List,
            ("POST", false) => Verb::Create,
            ("POST", true) if !self.subresource.is_empty() => Verb::Create,
            ("PUT", true) => Verb::Update,
            ("PATCH", true) => Verb::Patch,
            ("DELETE", true) => Verb::Delete,
            ("DELETE", false) => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// Its subresource; `None` for the object itself.
    pub(crate) fn below(&self) -> Option<&Subresource> {
        let mut all = self.resource.subresources.iter();
        all.find(|it| it.name() == self.subresource)
    }

    /// Whether it is a connection to a running container.
    pub(crate) fn is_connection(&self) -> bool {
        self.below().is_some_and(Subresource::is_connection)
    }

    /// Whether it is returned as a table on request: in Kubernetes the storage of what is only
    /// created and never read has no `TableConvertor`.
    pub(crate) fn has_table(&self) -> bool {
        let only_created = self.below().map(Subresource::verbs) == Some(&[Verb::Create]);
        !only_created && !review::is_posted(&self.resource)
    }

    /// Whether the verb is served for this target.
    pub(crate) fn allows(&self, verb: Verb) -> bool {
        if self.subresource.is_empty() {
            let in_namespace = !self.resource.namespaced || !self.namespace.is_empty();
            let anywhere = matches!(verb, Verb::List | Verb::Watch);
            return self.resource.allows(verb) && (in_namespace || anywhere);
        }
        let mut all = self.resource.subresources.iter();
        all.any(|it| it.name() == self.subresource && it.verbs().contains(&verb))
    }
}

/// The custom object in a path with a subresource that is not served: Kubernetes reports then
/// that the object, not the page, is not found.
pub(crate) fn without_subresource(registry: &Registry, path: &str) -> Option<Target> {
    let (object, below) = path.trim_end_matches('/').rsplit_once('/')?;
    match find(registry, object) {
        Route::Resource(target)
            if target.resource.custom
                && !target.name.is_empty()
                && target.subresource.is_empty()
                && !below.is_empty() =>
        {
            Some(target)
        }
        _ => None,
    }
}

/// Finds the served resource of `path`.
pub(crate) fn find(registry: &Registry, path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|it| !it.is_empty())
        .map(percent)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let found = match parts.as_slice() {
        ["api", version, rest @ ..] => target(registry, "", version, rest),
        ["apis", group, version, rest @ ..] => target(registry, group, version, rest),
        _ => None,
    };
    found.map_or(Route::Other, Route::Resource)
}

fn target(
    registry: &Registry,
    group: &str,
    version: &str,
    rest: &[&str],
) -> Option<Target> {
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (*namespace, below),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, "", ""),
        [plural, name] => (plural, *name, ""),
        [plural, name, subresource] => (plural, *name, *subresource),
        _ => return None,
    };
    let resource = registry.find(group, version, plural)?.clone();
    let scoped = !namespace.is_empty();
    // What is only posted has no paths of objects below it, and none for all namespaces.
    let unread = !name.is_empty() || resource.namespaced && !scoped;
    if review::is_posted(&resource) && unread {
        return None;
    }
    let fits = if resource.namespaced {
        scoped || name.is_empty()
    } else {
        !scoped
    };
    let known = subresource.is_empty()
        || resource
            .subresources
            .iter()
            .any(|it| it.name() == subresource);
    (fits && known).then(|| Target {
        resource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Registry {
        let mut namespaces = Resource::new("", "v1", "Namespace", "namespaces");
        namespaces.namespaced = false;
        namespaces.subresources = vec![Subresource::Status];
        let pods = Resource::new("", "v1", "Pod", "pods");
        Registry::new([
            namespaces,
            pods,
            Resource::new("g.io", "v1", "Thing", "things"),
        ])
    }

    fn found(path: &str) -> Option<(String, String, String, String)> {
        match find(&registry(), path) {
            Route::Other => None,
            Route::Resource(it) => Some((
                it.resource.plural.clone(),
                it.namespace,
                it.name,
                it.subresource,
            )),
        }
    }

    #[test]
    fn paths_identify_collections_objects_and_subresources() {
        let rows = [
            ("/api/v1/pods", ("pods", "", "", "")),
            ("/api/v1/namespaces/a/pods/x", ("pods", "a", "x", "")),
            ("/api/v1/namespaces", ("namespaces", "", "", "")),
            ("/api/v1/namespaces/a", ("namespaces", "", "a", "")),
            (
                "/api/v1/namespaces/a/status",
                ("namespaces", "", "a", "status"),
            ),
            ("/apis/g.io/v1/namespaces/a/things", ("things", "a", "", "")),
        ];
        for (path, (plural, namespace, name, subresource)) in rows {
            let expected = [plural, namespace, name, subresource].map(str::to_owned);
            let [plural, namespace, name, subresource] = expected;
            assert_eq!(
                found(path),
                Some((plural, namespace, name, subresource)),
                "{path}"
            );
        }
    }

    #[test]
    fn unserved_paths_are_not_resources() {
        let rows = [
            "/api/v1/pods/x",
            "/api/v1/namespaces/a/namespaces/b",
            "/api/v1/namespaces/a/pods/x/log",
            "/apis/g.io/v2/things",
            "/apis/g.io",
            "/version",
        ];
        for path in rows {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
