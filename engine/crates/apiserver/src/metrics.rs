//! The metrics at `/metrics`, in the text format of Prometheus: the requests that were handled, the
//! stored objects, and since when the server runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::api_response::{ApiResponse, Content};
use crate::call::Call;
use crate::resource::Verb;
use crate::route::{Route, Target};

/// The media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the requests of one counter have in common. Each part has few values: there is a counter
/// for each resource that is served, not for each path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    code: u16,
    verb: &'static str,
    dry_run: &'static str,
    scope: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
}

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    since: Timestamp,
    requests: Mutex<BTreeMap<Labels, u64>>,
}

impl Metrics {
    /// Counters of a server that starts now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            requests: Mutex::default(),
        }
    }

    /// Counts a request that was answered with this status code.
    pub(crate) fn count(&self, call: &Call, route: &Route, code: u16) {
        let labels = Labels::of(call, route, code);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(labels).or_default() += 1;
    }

    /// The response to `/metrics`.
    pub(crate) fn page(&self, release: &str) -> ApiResponse {
        let mut page = family(
            "apiserver_request_total",
            "counter",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, \
             group, version, resource, scope, component, and HTTP response code.",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for (labels, count) in &*requests {
            let _ = writeln!(page, "apiserver_request_total{{{labels}}} {count}");
        }
        page += &family(
            "kubernetes_build_info",
            "gauge",
            "[ALPHA] A metric with a constant '1' value labeled by git version.",
        );
        let _ = writeln!(page, "kubernetes_build_info{{git_version=\"{release}\"}} 1");
        page += &family(
            "process_start_time_seconds",
            "gauge",
            "[ALPHA] Start time of the process since unix epoch in seconds.",
        );
        let since = self.since.as_second();
        let _ = writeln!(page, "process_start_time_seconds {since}");
        document(page)
    }

    /// The response to `/metrics/slis`: whether the server is healthy.
    pub(crate) fn health() -> ApiResponse {
        let name = "kubernetes_healthcheck";
        document(format!(
            "# HELP {name} [STABLE] This metric records the result of a single healthcheck.\n\
             # TYPE {name} gauge\n\
             {name}{{name=\"ping\",type=\"healthz\"}} 1\n\
             {name}{{name=\"ping\",type=\"livez\"}} 1\n\
             {name}{{name=\"ping\",type=\"readyz\"}} 1\n"
        ))
    }
}

/// The head of a family of metrics.
fn family(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

fn document(text: String) -> ApiResponse {
    let content_type = TEXT.to_owned();
    let body = text.into();
    ApiResponse::new(200, Content::Document { content_type, body })
}

impl Labels {
    fn of(call: &Call, route: &Route, code: u16) -> Self {
        let target = match route {
            Route::Resource(target) => Some(target),
            Route::Other => None,
        };
        let text =
            |of: fn(&Target) -> &str| target.map(of).unwrap_or_default().to_owned();
        Self {
            code,
            verb: verb(call, target),
            dry_run: if call.query.dry_run { "All" } else { "" },
            scope: target.map_or("", scope),
            group: text(|it| &it.resource.group),
            version: text(|it| &it.resource.version),
            resource: text(|it| &it.resource.plural),
            subresource: text(|it| &it.subresource),
        }
    }
}

impl std::fmt::Display for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            verb,
            dry_run,
            scope,
            group,
            version,
            resource,
            subresource,
        } = self;
        write!(
            f,
            "code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",\
             resource=\"{resource}\",scope=\"{scope}\",subresource=\"{subresource}\",\
             verb=\"{verb}\",version=\"{version}\""
        )
    }
}

/// The verb as Kubernetes' metrics name it. A client may send any method: an unknown one is
/// `other`.
fn verb(call: &Call, target: Option<&Target>) -> &'static str {
    let found = target.and_then(|it| it.verb(&call.method, call.query.watch));
    match found {
        Some(Verb::Get) => "GET",
        Some(Verb::List) => "LIST",
        Some(Verb::Watch) => "WATCH",
        Some(Verb::Create) => "POST",
        Some(Verb::Update) => "PUT",
        Some(Verb::Patch) if call.content_type.contains("apply-patch") => "APPLY",
        Some(Verb::Patch) => "PATCH",
        Some(Verb::Delete) => "DELETE",
        Some(Verb::DeleteCollection) => "DELETECOLLECTION",
        None => match call.method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        },
    }
}

fn scope(target: &Target) -> &'static str {
    if !target.name.is_empty() {
        "resource"
    } else if !target.namespace.is_empty() {
        "namespace"
    } else {
        "cluster"
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt as _, Full};
    use kubemu_clock::Clock;
    use tower::ServiceExt as _;

    use crate::server::{Options, Server};

    async fn send(server: &Server, method: &str, path: &str) -> String {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response = server.in_process().oneshot(request).await.unwrap();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn requests_are_counted_by_resource_verb_and_code() {
        let server = Server::new(Options::new(Clock::system())).unwrap();
        let pods = "/api/v1/namespaces/default/pods";
        for path in [pods, pods, "/api/v1/namespaces/default/pods/none"] {
            send(&server, "GET", path).await;
        }
        send(&server, "ODD", "/nowhere").await;
        let page = send(&server, "GET", "/metrics").await;
        for (code, scope, verb, count) in
            [(200, "namespace", "LIST", 2), (404, "resource", "GET", 1)]
        {
            let line = format!(
                "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",\
                 dry_run=\"\",group=\"\",resource=\"pods\",scope=\"{scope}\",\
                 subresource=\"\",verb=\"{verb}\",version=\"v1\"}} {count}\n"
            );
            assert!(page.contains(&line), "{page}");
        }
        assert!(page.contains("verb=\"other\",version=\"\"} 1\n"), "{page}");
        assert!(page.contains("\nprocess_start_time_seconds "), "{page}");
    }

    #[tokio::test]
    async fn every_line_of_a_page_of_metrics_is_a_sample_or_about_one() {
        let server = Server::new(Options::new(Clock::system())).unwrap();
        for path in ["/metrics", "/metrics/slis"] {
            let page = send(&server, "GET", path).await;
            for line in page.lines() {
                let about = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
                let value = line.rsplit(' ').next().unwrap_or_default();
                assert!(about || value.parse::<f64>().is_ok(), "{path}: {line}");
            }
        }
    }
}
