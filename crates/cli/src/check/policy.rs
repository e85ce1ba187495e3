//! Checks whether the policies or the webhook are in force.

use fivespot_api::{manifest, name};
use fivespot_install::controller::POLICIES_SINCE;
use serde_json::Value;

use super::finding::Finding;
use crate::reader::Reader;
use crate::requests::Response;

const CHECK: &str = "admission";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// One finding for each policy, and one for those that could not be read. In a cluster without
/// policies, one for our webhook.
pub(super) async fn check(reader: &Reader) -> Vec<Finding> {
    if reader.minor < POLICIES_SINCE {
        return vec![webhook(reader).await];
    }
    let installed: Vec<Value> = manifest::installed(reader.minor).into_iter().collect();
    let of_kind =
        |kind: &'static str| installed.iter().filter(move |it| it["kind"] == kind);
    let mut all = Vec::new();
    for policy in of_kind("ValidatingAdmissionPolicy") {
        let name = &policy["metadata"]["name"];
        let binding = of_kind("ValidatingAdmissionPolicyBinding")
            .find(|it| it["spec"]["policyName"] == *name);
        let binding = binding.and_then(|it| it["metadata"]["name"].as_str());
        all.push(check_policy(reader, policy, binding.unwrap_or_default()).await);
    }
    Finding::together(all)
}

async fn check_policy(reader: &Reader, ours: &Value, binding: &str) -> Finding {
    let name = ours["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{GROUP}/validatingadmissionpolicies/{name}");
    let stored = match reader.requests.get(&path).await {
        Response::Found(stored) => stored,
        Response::Failed(why) => {
            return Finding::unknown(CHECK, format!("{name}: {why}"));
        }
        Response::NotFound => {
            let webhook = webhook(reader).await;
            return if webhook.is_ok_or_warning() {
                webhook
            } else {
                Finding::error(CHECK, format!("there is no policy {name}"))
                    .remedy("apply deploy/admission")
            };
        }
    };
    let path = format!("{GROUP}/validatingadmissionpolicybindings/{binding}");
    let actions = match reader.requests.get(&path).await {
        Response::Found(binding) => binding["spec"]["validationActions"].clone(),
        Response::Failed(why) => {
            return Finding::unknown(CHECK, format!("{binding}: {why}"));
        }
        Response::NotFound => {
            return Finding::error(
                CHECK,
                format!("policy {name} is not in force: there is no {binding}"),
            )
            .remedy("apply deploy/admission");
        }
    };
    let actions: Vec<&str> = actions
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if messages(&stored) != messages(ours) {
        return Finding::warning(CHECK, format!("policy {name} is from another version"))
            .remedy("apply deploy/admission of the version that is installed");
    }
    if !actions.contains(&"Deny") {
        let actions = actions.join(", ");
        return Finding::warning(
            CHECK,
            format!("policy {name} rejects nothing ({actions})"),
        )
        .remedy(
            "apply deploy/admission/validatingadmissionpolicybinding.yaml to reject",
        );
    }
    Finding::ok(CHECK, format!("policy {name} is in force"))
}

/// The messages of a policy's validations, which differ between versions.
fn messages(policy: &Value) -> Vec<&Value> {
    let validations = policy["spec"]["validations"].as_array();
    validations
        .into_iter()
        .flatten()
        .map(|it| &it["message"])
        .collect()
}

/// Checks our webhook, where it is installed or needed.
async fn webhook(reader: &Reader) -> Finding {
    let name = name::WEBHOOK_CONFIGURATION;
    let path = format!("{GROUP}/validatingwebhookconfigurations/{name}");
    match reader.requests.get(&path).await {
        Response::Failed(why) => Finding::unknown(CHECK, format!("{name}: {why}")),
        Response::NotFound => Finding::error(
            CHECK,
            "there is no policy and no webhook; only the CRD rejects",
        )
        .remedy("apply `5spot generate webhook`"),
        Response::Found(_) => Finding::ok(CHECK, "the webhook is registered"),
    }
}
