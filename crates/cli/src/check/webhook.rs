//! Checks the admission webhooks that the API server calls for objects that 5-Spot writes: ours, and
//! those of Cluster API and the providers.

use fivespot_api::name;
use serde_json::Value;

use super::finding::Finding;
use crate::reader::Reader;
use crate::requests::Response;

const CHECK: &str = "webhook";
const KINDS: [&str; 2] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

/// One finding for each webhook that cannot be called, or one that says that all can be.
pub(super) async fn check(reader: &Reader) -> Vec<Finding> {
    let mut wrong = Vec::new();
    let mut called = 0_usize;
    for kind in KINDS {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}");
        let configurations = match reader.requests.list(&path).await {
            Ok(configurations) => configurations,
            Err(why) => {
                wrong.push(Finding::unknown(CHECK, why));
                continue;
            }
        };
        for configuration in &configurations {
            let webhooks = configuration["webhooks"].as_array();
            for webhook in webhooks.into_iter().flatten().filter(|it| is_of_ours(it)) {
                called += 1;
                wrong.extend(uncallable(reader, webhook).await);
            }
        }
    }
    if wrong.is_empty() && called > 0 {
        let message = match called {
            1 => "the admission webhook has endpoints".to_owned(),
            called => format!("all {called} admission webhooks have endpoints"),
        };
        wrong.push(Finding::ok(CHECK, message));
    }
    wrong
}

/// Whether a webhook is called for the kinds that 5-Spot reads or writes.
fn is_of_ours(webhook: &Value) -> bool {
    let groups = webhook["rules"].as_array().into_iter().flatten();
    let mut groups = groups
        .flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten())
        .filter_map(Value::as_str);
    groups.any(|group| {
        let is_provider = name::BOOTSTRAP_GROUPS
            .iter()
            .chain(&name::INFRASTRUCTURE_GROUPS)
            .any(|it| *it == group);
        is_provider || ["*", name::GROUP, "cluster.x-k8s.io"].contains(&group)
    })
}

/// Why a webhook cannot be called. `None` if it can be, or has a URL, which is not called here.
async fn uncallable(reader: &Reader, webhook: &Value) -> Option<Finding> {
    let name = webhook["name"].as_str().unwrap_or_default();
    let rejects = webhook["failurePolicy"] != "Ignore";
    let finding = |why: String, remedy: String| {
        let effect = if rejects {
            "every change that it is called for is rejected"
        } else {
            "it is skipped"
        };
        let message = format!("webhook {name}: {why}: {effect}");
        let finding = if rejects {
            Finding::error(CHECK, message)
        } else {
            Finding::warning(CHECK, message)
        };
        finding.remedy(remedy)
    };
    let config = &webhook["clientConfig"];
    let service = &config["service"];
    let (namespace, service) =
        (service["namespace"].as_str()?, service["name"].as_str()?);
    if config["caBundle"].as_str().is_none_or(str::is_empty) {
        let remedy = format!(
            "what maintains the caBundle does not run: `kubectl logs -n {namespace}` of the pods \
             of Service {service}"
        );
        return Some(finding("it has no caBundle".to_owned(), remedy));
    }
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let selector = format!("kubernetes.io/service-name={service}");
    let slices = match reader.requests.list_where(&path, &selector).await {
        Ok(slices) => slices,
        Err(why) => {
            let message = format!("webhook {name}: its endpoints are not known: {why}");
            return Some(Finding::unknown(CHECK, message));
        }
    };
    if slices.iter().any(has_ready_endpoint) {
        return None;
    }
    let path = format!("/api/v1/namespaces/{namespace}/services/{service}");
    let why = match reader.requests.get(&path).await {
        Response::NotFound => format!("there is no Service {namespace}/{service}"),
        Response::Found(_) | Response::Failed(_) => {
            format!("Service {namespace}/{service} has no ready endpoint")
        }
    };
    let remedy = format!(
        "start its pods (`kubectl get pods -n {namespace}`), or delete the webhook configuration \
         if it is no longer installed"
    );
    Some(finding(why, remedy))
}

/// Whether an EndpointSlice has an address that is ready; an absent condition means that it is.
fn has_ready_endpoint(slice: &Value) -> bool {
    let endpoints = slice["endpoints"].as_array();
    endpoints.into_iter().flatten().any(|endpoint| {
        let has_address = endpoint["addresses"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        has_address && endpoint["conditions"]["ready"] != Value::Bool(false)
    })
}
