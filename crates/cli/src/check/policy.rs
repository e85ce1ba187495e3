//! Checks whether the policies or the webhook are in force.

use fivespot_api::{manifest, name};
use fivespot_install::controller::POLICIES_SINCE;
use fivespot_install::role::Rights;
use serde_json::Value;

use super::Operator;
use super::finding::Finding;
use super::operator::EMBEDDED;
use crate::reader::Reader;
use crate::requests::Response;

const CHECK: &str = "admission";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// What to do about a policy of every kind, and about the one of the targets of capacities, which
/// comes with the roles that let the operator write them.
const APPLY: &str = "apply deploy/admission";
const APPLY_ROLES: &str =
    "apply `5spot generate rbac` with the --capacity-target of the installation";

/// One finding for each policy, and one for those that could not be read. In a cluster without
/// policies, one for our webhook.
pub(super) async fn check(reader: &Reader, operator: &Operator) -> Vec<Finding> {
    if reader.minor < POLICIES_SINCE {
        return vec![webhook(reader).await];
    }
    let mut all = check_policies(reader, &manifest::installed(reader.minor), APPLY).await;
    let rights = Rights {
        namespace: operator.namespace.clone(),
        ..Rights::default()
    };
    let targets = check_policies(reader, &rights.capacity_policy(), APPLY_ROLES).await;
    // An embedded server has it only where it is tried: those who use one are its administrators.
    let is_embedded = reader.version.ends_with(EMBEDDED);
    all.extend(
        targets
            .into_iter()
            .filter(|it| !(is_embedded && it.is_missing())),
    );
    Finding::together(all)
}

async fn check_policies(
    reader: &Reader,
    installed: &[Value],
    remedy: &str,
) -> Vec<Finding> {
    let of_kind =
        |kind: &'static str| installed.iter().filter(move |it| it["kind"] == kind);
    let mut all = Vec::new();
    for policy in of_kind("ValidatingAdmissionPolicy") {
        let name = &policy["metadata"]["name"];
        let binding = of_kind("ValidatingAdmissionPolicyBinding")
            .find(|it| it["spec"]["policyName"] == *name);
        let binding = binding.and_then(|it| it["metadata"]["name"].as_str());
        let binding = binding.unwrap_or_default();
        all.push(check_policy(reader, policy, binding, remedy).await);
    }
    all
}

async fn check_policy(
    reader: &Reader,
    ours: &Value,
    binding: &str,
    remedy: &str,
) -> Finding {
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
                    .remedy(remedy)
                    .missing()
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
            .remedy(remedy);
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
            .remedy(format!("{remedy}, of the version that is installed"));
    }
    if !actions.contains(&"Deny") {
        let actions = actions.join(", ");
        return Finding::warning(
            CHECK,
            format!("policy {name} rejects nothing ({actions})"),
        )
        .remedy(remedy);
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
