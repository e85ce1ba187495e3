//! Checks whether an operator runs.

use fivespot_api::name;
use fivespot_api::verdict::Lease;
use fivespot_schedule::zone_data;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Operator;
use super::finding::Finding;
use super::zones;
use crate::reader::Reader;
use crate::requests::{Requests, Response};

/// Checks the Deployment, if there is one, the Lease and the time zones.
pub(super) async fn check(reader: &Reader, operator: &Operator) -> Vec<Finding> {
    let namespace = &operator.namespace;
    let mut all = Vec::new();
    let deployments = match list_deployments(reader, namespace).await {
        Ok(found) => found,
        Err(why) => {
            all.push(Finding::unknown(DEPLOYMENT, why));
            Vec::new()
        }
    };
    let [deployment, of_capacities] =
        [name::controller_labels(), name::capacity_labels()].map(|labels| {
            let has_label = |it: &Value, (key, value): (&String, &String)| {
                it["metadata"]["labels"][key] == value.as_str()
            };
            let mut found = deployments.iter();
            found.find(|it| labels.iter().all(|label| has_label(it, label)))
        });
    let found = deployment.into_iter().chain(of_capacities);
    all.extend(found.map(|of| replicas(of, namespace)));
    let both = deployment.zip(of_capacities);
    all.extend(both.and_then(|(operator, it)| left_over(operator, it, namespace)));
    let Reader { requests, now, .. } = reader;
    all.push(lease(read_lease(requests, operator, *now).await, operator));
    let of_capacities = read_capacity_lease(requests, operator, *now).await;
    all.extend(of_capacities.map(|lease| lease_of_capacities(lease, namespace)));
    let release = zone_data().release();
    all.push(zones::check(deployment, release, reader.now));
    all
}

const DEPLOYMENT: &str = "deployment";

/// The Deployments in the operator's namespace.
async fn list_deployments(
    reader: &Reader,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    reader.requests.list(&path).await
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

/// The controller of capacities where the operator reconciles capacities too: manifests without
/// targets, when they are applied over those with targets, do not remove it.
fn left_over(
    operator: &Value,
    of_capacities: &Value,
    namespace: &str,
) -> Option<Finding> {
    let arguments = &operator["spec"]["template"]["spec"]["containers"][0]["args"];
    let mut arguments = arguments.as_array().into_iter().flatten();
    let is_flag = |it: &Value| {
        it.as_str()
            .is_some_and(|it| it.starts_with("--controllers"))
    };
    if arguments.any(is_flag) {
        return None;
    }
    let name = of_capacities["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    let message = format!(
        "{namespace}/{name} is left of an installation with --capacity-target: the operator \
         reconciles ScheduledCapacities too, and may write no target"
    );
    Some(Finding::warning(DEPLOYMENT, message).remedy(format!(
        "name the targets again, or `kubectl delete deployment/{name} serviceaccount/{name} \
         lease/{} -n {namespace}`",
        name::CAPACITY_LEASE
    )))
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
                let what = format!("whether the operator may {what}");
                return Some(Finding::not_evaluated(CHECK, &what, &why));
            }
        }
    }
    None
}

/// Whether an operator holds a Lease: that of the leader, or of a shard.
pub(super) fn lease(lease: Lease, operator: &Operator) -> Finding {
    let namespace = &operator.namespace;
    let otherwise = match lease {
        Lease::NotHeld { since: None, .. } => {
            ", or name its namespace with --operator-namespace"
        }
        Lease::NotHeld { .. } | Lease::Held | Lease::NotReadable { .. } => "",
    };
    held(lease, namespace, "an operator holds a Lease", otherwise)
}

/// Whether the controller of capacities holds its Lease.
fn lease_of_capacities(lease: Lease, namespace: &str) -> Finding {
    let lease = match lease {
        Lease::NotHeld { cause, since } => Lease::NotHeld {
            cause: format!("of capacities: {cause}"),
            since,
        },
        Lease::Held | Lease::NotReadable { .. } => lease,
    };
    let otherwise = format!(
        "; if it is no longer installed, `kubectl delete lease {} -n {namespace}`",
        name::CAPACITY_LEASE
    );
    let holds = "a controller of capacities holds its Lease";
    held(lease, namespace, holds, &otherwise)
}

/// Whether a Lease in the operator's namespace is held, which `holds` says. `otherwise` continues the
/// advice about one that is not.
fn held(lease: Lease, namespace: &str, holds: &str, otherwise: &str) -> Finding {
    const CHECK: &str = "lease";
    match lease {
        Lease::Held => Finding::ok(CHECK, format!("{holds} in namespace {namespace}")),
        Lease::NotReadable { cause } => Finding::unknown(CHECK, cause),
        Lease::NotHeld { cause, .. } => Finding::error(CHECK, cause).remedy(format!(
            "check its pods: `kubectl get pods -n {namespace} -l \
             app.kubernetes.io/name=5spot`{otherwise}"
        )),
    }
}

/// Reads whether the controller of capacities holds its Lease. `None` if it has none: the operator
/// reconciles capacities itself.
pub(super) async fn read_capacity_lease(
    requests: &Requests,
    operator: &Operator,
    now: Timestamp,
) -> Option<Lease> {
    let (namespace, lease) = (&operator.namespace, name::CAPACITY_LEASE);
    let path =
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}");
    match requests.get(&path).await {
        Response::Found(found) => Some(Lease::of(&[found], lease, namespace, now)),
        Response::NotFound => None,
        Response::Failed(cause) => Some(Lease::NotReadable { cause }),
    }
}

/// Reads whether an operator holds a fresh Lease. Those of shards are listed only where the leader's
/// is not fresh.
pub(super) async fn read_lease(
    requests: &Requests,
    operator: &Operator,
    now: Timestamp,
) -> Lease {
    let namespace = &operator.namespace;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let judge = |leases: &[Value]| Lease::of(leases, &operator.lease, namespace, now);
    let leader = requests.get(&format!("{path}/{}", operator.lease)).await;
    let of_leader = match leader {
        Response::Found(lease) => Some(judge(&[lease])),
        Response::Failed(cause) => return Lease::NotReadable { cause },
        Response::NotFound => None,
    };
    if of_leader == Some(Lease::Held) {
        return Lease::Held;
    }
    match (requests.list(&path).await, of_leader) {
        (Ok(leases), _) => judge(&leases),
        (Err(_), Some(of_leader)) => of_leader,
        (Err(cause), None) => Lease::NotReadable { cause },
    }
}

/// The end of the version of an embedded server.
pub(super) const EMBEDDED: &str = "+5spot";

/// How far the operator's clock may differ from the API server's.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Checks the clocks: that of this host against the API server's, and that of the operator, which
/// is ahead if it has renewed a Lease in the future. `None` if the server does not tell its time.
/// The clock of an embedded server may be a virtual one, and is not compared with this host's.
pub(super) async fn clock(reader: &Reader, operator: &Operator) -> Option<Finding> {
    const CHECK: &str = "clock";
    let ahead = reader.clock_difference?;
    let namespace = &operator.namespace;
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}",
        operator.lease
    );
    let renewed = match reader.requests.get(&path).await {
        Response::Found(lease) => lease["spec"]["renewTime"].as_str().map(str::parse),
        Response::NotFound | Response::Failed(_) => None,
    };
    let renewed: Option<Timestamp> = renewed.and_then(Result::ok);
    let server_time = reader.server_time.unwrap_or(reader.now);
    let operator_ahead = renewed.map(|at| at.duration_since(server_time));
    if let Some(by) = operator_ahead.filter(|by| *by > MAX_SKEW) {
        return Some(
            Finding::error(
                CHECK,
                format!(
                    "the operator's clock is {}s ahead of the API server's: windows open and \
                     close too early",
                    by.as_secs()
                ),
            )
            .remedy("synchronize the clocks of the nodes"),
        );
    }
    if reader.version.ends_with(EMBEDDED) {
        return None;
    }
    Some(if ahead.abs() > MAX_SKEW {
        let which = if ahead.is_positive() {
            "ahead of"
        } else {
            "behind"
        };
        Finding::warning(
            CHECK,
            format!(
                "the API server's clock is {}s {which} that of this host",
                ahead.as_secs().abs()
            ),
        )
        .remedy("synchronize the two")
    } else {
        Finding::ok(
            CHECK,
            "the API server's clock agrees with that of this host",
        )
    })
}
