//! Counts the requests of a client, watches included.

use std::sync::Arc;

use http::{Method, Request, Uri};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

use fivespot_runtime::http::is_watch;

use super::Metrics;

/// The `client`, with its requests counted as those to `cluster`.
pub(crate) fn count_requests(
    client: Client,
    metrics: &Arc<Metrics>,
    cluster: &'static str,
) -> Client {
    let namespace = client.default_namespace().to_owned();
    let metrics = metrics.clone();
    // Always ready: sending a request waits for the client to be ready.
    let service = service_fn(move |request: Request<Body>| {
        let (verb, resource) = verb_and_resource(request.method(), request.uri());
        let (client, metrics) = (client.clone(), metrics.clone());
        async move {
            let response = client.send(request).await;
            let code = response
                .as_ref()
                .map_or(0, |response| response.status().as_u16());
            metrics.count_request(&[
                ("cluster", cluster.to_owned()),
                ("verb", verb.to_owned()),
                ("resource", resource),
                ("code", code.to_string()),
            ]);
            response
        }
    });
    Client::new(service, namespace)
}

/// The verb as in Kubernetes' authorization, and the resource with its subresource; `discovery`
/// for paths that are no resource.
fn verb_and_resource(method: &Method, uri: &Uri) -> (&'static str, String) {
    let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
    let is_grouped = parts.next() == Some("apis");
    // Group and version, or only the version.
    let skipped = if is_grouped { 2 } else { 1 };
    let rest: Vec<&str> = parts.skip(skipped).collect();
    let rest = match rest.as_slice() {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (resource, is_named) = match rest {
        [] => ("discovery".to_owned(), true),
        [resource] => ((*resource).to_owned(), false),
        [resource, _] => ((*resource).to_owned(), true),
        [resource, _, subresource, ..] => (format!("{resource}/{subresource}"), true),
    };
    let verb = match (method, is_named) {
        (&Method::GET, _) if is_watch(uri) => "watch",
        (&Method::GET, true) => "get",
        (&Method::GET, false) => "list",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        _ => "other",
    };
    (verb, resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_verb_and_resource() {
        let machines = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
        let rows = [
            (Method::GET, format!("{machines}/a"), ("get", "machines")),
            (Method::GET, machines.to_owned(), ("list", "machines")),
            (
                Method::GET,
                format!("{machines}?watch=true&x=1"),
                ("watch", "machines"),
            ),
            (Method::POST, machines.to_owned(), ("create", "machines")),
            (
                Method::PATCH,
                format!("{machines}/a/status"),
                ("patch", "machines/status"),
            ),
            (
                Method::DELETE,
                format!("{machines}/a"),
                ("delete", "machines"),
            ),
            (Method::GET, "/api/v1/nodes/a".to_owned(), ("get", "nodes")),
            (
                Method::POST,
                "/api/v1/namespaces/a/pods/b/eviction".to_owned(),
                ("create", "pods/eviction"),
            ),
            (
                Method::GET,
                "/api/v1/namespaces/a".to_owned(),
                ("get", "namespaces"),
            ),
            (
                Method::GET,
                "/apis/cluster.x-k8s.io".to_owned(),
                ("get", "discovery"),
            ),
        ];
        for (method, path, (verb, resource)) in rows {
            let uri: Uri = path.parse().unwrap();
            assert_eq!(
                verb_and_resource(&method, &uri),
                (verb, resource.to_owned()),
                "{path}"
            );
        }
    }
}
