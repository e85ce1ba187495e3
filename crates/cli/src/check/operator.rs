//! Checks whether an operator runs.

use fivespot_api::name;
use fivespot_schedule::zone_data;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Operator;
use super::finding::Finding;
use super::zones;
use crate::reader::{Reader, Response};

/// Checks the Deployment, if there is one, the Lease and the time zones.
pub(super) async fn check(reader: &Reader, operator: &Operator) -> Vec<Finding> {
    let namespace = &operator.namespace;
    let mut all = Vec::new();
    let deployment = match find_deployment(reader, namespace).await {
        Ok(found) => found,
        Err(why) => {
            all.push(Finding::unknown(DEPLOYMENT, why));
            None
        }
    };
    all.extend(deployment.as_ref().map(|of| replicas(of, namespace)));
    all.push(lease(reader, operator).await);
    let release = zone_data().release();
    all.push(zones::check(deployment.as_ref(), release, reader.now));
    all
}

const DEPLOYMENT: &str = "deployment";

/// The Deployment of the operator in this namespace, if there is one.
async fn find_deployment(
    reader: &Reader,
    namespace: &str,
) -> Result<Option<Value>, String> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let all = reader.list(&path).await?;
    let labels = name::controller_labels();
    let has_labels = |it: &Value| {
        labels
            .iter()
            .all(|(key, value)| it["metadata"]["labels"][key] == value.as_str())
    };
    Ok(all.into_iter().find(has_labels))
}

/// Checks that the replicas of the operator's Deployment are ready.
fn replicas(found: &Value, namespace: &str) -> Finding {
    let name = found["metadata"]["name"].as_str().unwrap_or_default();
    let ready = found["status"]["readyReplicas"]
        .as_u64()
        .unwrap_or_default();
    let wanted = found["spec"]["replicas"].as_u64().unwrap_or(1);
    let message = format!("{ready} of {wanted} replicas of {namespace}/{name} are ready");
    let remedy = format!("`kubectl describe deployment {name} -n {namespace}` shows why");
    match (ready, wanted) {
        (_, 0) => {
            Finding::error(DEPLOYMENT, format!("{namespace}/{name} is scaled to 0"))
                .remedy(format!(
                    "kubectl scale deployment {name} -n {namespace} --replicas=2"
                ))
        }
        (0, _) => Finding::error(DEPLOYMENT, message).remedy(remedy),
        (ready, wanted) if ready < wanted => {
            Finding::warning(DEPLOYMENT, message).remedy(remedy)
        }
        _ => Finding::ok(DEPLOYMENT, message),
    }
}

/// Checks that the operator may list and watch CRDs. Without it, it does not detect kinds that are
/// installed while it runs. `None` if it may.
pub(super) async fn definitions(reader: &Reader, operator: &Operator) -> Option<Finding> {
    const CHECK: &str = "permissions";
    let Operator {
        namespace, account, ..
    } = operator;
    let user = name::service_account_user(namespace, account);
    for verb in ["list", "watch"] {
        let attributes = json!({
            "group": "apiextensions.k8s.io",
            "resource": "customresourcedefinitions",
            "verb": verb,
        });
        let what = format!("{verb} CustomResourceDefinitions");
        match reader.is_allowed(&user, attributes).await {
            Ok(true) => {}
            Ok(false) => {
                let message = format!(
                    "the operator may not {what}: it does not detect kinds that are installed"
                );
                return Some(Finding::error(CHECK, message).remedy(format!(
                    "apply `5spot generate rbac --operator-namespace {namespace}`, or name its \
                     ServiceAccount with --service-account"
                )));
            }
            Err(why) => {
                let message =
                    format!("whether the operator may {what} is not known: {why}");
                return Some(Finding::unknown(CHECK, message).remedy(
                    "run the command as a user who may create SubjectAccessReviews",
                ));
            }
        }
    }
    None
}

/// Checks the most recently renewed Lease of an operator: that of the leader, or of a shard.
pub(super) async fn lease(reader: &Reader, operator: &Operator) -> Finding {
    const CHECK: &str = "lease";
    let namespace = &operator.namespace;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let all = match reader.get(&format!("{path}/{}", operator.lease)).await {
        Response::Found(lease) => Ok(vec![lease]),
        Response::Failed(why) => Err(why),
        Response::NotFound => reader.list(&path).await.map(|all| {
            let is_shard =
                |it: &Value| !it["metadata"]["labels"][name::SHARD_LABEL].is_null();
            all.into_iter().filter(is_shard).collect()
        }),
    };
    let all = match all {
        Ok(all) => all,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let freshest = all
        .iter()
        .filter_map(|it| LeaseState::read(it, reader.now))
        .min_by_key(|it| it.age);
    let remedy = format!(
        "check its pods: `kubectl get pods -n {namespace} -l app.kubernetes.io/name=5spot`"
    );
    match freshest {
        None => Finding::error(
            CHECK,
            format!(
                "no operator holds a Lease in namespace {namespace}: no schedule applies"
            ),
        )
        .remedy(format!(
            "{remedy}, or name its namespace with --operator-namespace"
        )),
        Some(lease) if lease.age > lease.duration => Finding::error(
            CHECK,
            format!(
                "no operator runs: {} renewed the Lease {} ago",
                lease.holder,
                short(lease.age)
            ),
        )
        .remedy(remedy),
        Some(lease) => Finding::ok(
            CHECK,
            format!(
                "{} renewed its Lease {} ago",
                lease.holder,
                short(lease.age)
            ),
        ),
    }
}

/// The holder of a Lease.
struct LeaseState {
    holder: String,
    age: SignedDuration,
    duration: SignedDuration,
}

impl LeaseState {
    /// Reads a Lease. `None` if it has no holder.
    fn read(lease: &Value, now: Timestamp) -> Option<Self> {
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"]
            .as_str()
            .filter(|it| !it.is_empty())?;
        let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
        let seconds = spec["leaseDurationSeconds"].as_i64()?;
        Some(Self {
            holder: holder.to_owned(),
            age: now.duration_since(renewed).max(SignedDuration::ZERO),
            duration: SignedDuration::from_secs(seconds),
        })
    }
}

fn short(age: SignedDuration) -> String {
    match age.as_secs() {
        seconds @ ..=120 => format!("{seconds}s"),
        seconds @ ..=7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}
