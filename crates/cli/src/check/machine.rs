//! Checks whether the kinds and Secrets that ScheduledMachines refer to exist, and whether the
//! operator may use them.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use serde_json::{Value, json};

use super::Operator;
use super::finding::Finding;
use crate::reader::Reader;
use crate::requests::Response;

/// Lists all ScheduledMachines.
///
/// # Errors
/// The server refuses to list them. The error is its message.
pub(super) async fn read(reader: &Reader) -> Result<Vec<Value>, String> {
    reader
        .requests
        .list(&format!("/apis/{}/{}", name::API_VERSION, name::PLURAL))
        .await
}

/// Checks Cluster API, the provider kinds and the kubeconfig Secrets.
pub(super) async fn check(
    reader: &Reader,
    operator: &Operator,
    machines: &Result<Vec<Value>, String>,
) -> Vec<Finding> {
    let machines = match machines {
        Ok(machines) => machines,
        Err(why) => return vec![Finding::unknown("machines", why)],
    };
    let mut all = vec![cluster_api(reader).await];
    all.extend(kinds(reader, operator, machines).await);
    all.extend(kubeconfigs(reader, operator, machines).await);
    all
}

async fn cluster_api(reader: &Reader) -> Finding {
    const CHECK: &str = "cluster-api";
    match reader.requests.get("/apis/cluster.x-k8s.io").await {
        Response::Found(group) => {
            let version = group["preferredVersion"]["version"]
                .as_str()
                .unwrap_or_default();
            Finding::ok(CHECK, format!("Cluster API is served, {version}"))
        }
        Response::NotFound => Finding::error(CHECK, "Cluster API is not installed")
            .remedy("install it with `clusterctl init`"),
        Response::Failed(why) => Finding::unknown(CHECK, why),
    }
}

/// The version and kind of each provider object, with the first ScheduledMachine of each namespace
/// that refers to it.
type ReferencedKinds = BTreeMap<(String, String), BTreeMap<String, String>>;

fn referenced_kinds(machines: &[Value]) -> ReferencedKinds {
    let mut referenced_kinds = ReferencedKinds::new();
    for machine in machines {
        let namespace = machine["metadata"]["namespace"].as_str();
        for field in ["bootstrapSpec", "infrastructureSpec"] {
            let text =
                |key: &str| machine["spec"][field][key].as_str().map(str::to_owned);
            if let (Some(version), Some(kind)) = (text("apiVersion"), text("kind")) {
                referenced_kinds
                    .entry((version, kind))
                    .or_default()
                    .entry(namespace.unwrap_or_default().to_owned())
                    .or_insert_with(|| referrer(machine));
            }
        }
    }
    referenced_kinds
}

async fn kinds(reader: &Reader, operator: &Operator, machines: &[Value]) -> Vec<Finding> {
    let mut all = Vec::new();
    for ((version, kind), namespaces) in referenced_kinds(machines) {
        all.push(provider(reader, operator, (&version, &kind), &namespaces).await);
    }
    all
}

/// Whether a kind is served, and the operator may create objects of it in each namespace.
async fn provider(
    reader: &Reader,
    operator: &Operator,
    (version, kind): (&str, &str),
    namespaces: &BTreeMap<String, String>,
) -> Finding {
    const CHECK: &str = "provider";
    let served = match reader.requests.get(&format!("/apis/{version}")).await {
        Response::Found(list) => plural(&list, kind),
        Response::NotFound => None,
        Response::Failed(why) => return Finding::unknown(CHECK, why),
    };
    let machine = namespaces.values().next().map_or("", String::as_str);
    let Some(plural) = served else {
        let message = format!("{kind} of {version}, named by {machine}, is not served");
        return Finding::warning(CHECK, message).remedy(
            "install the provider that serves it, or correct the object that names it",
        );
    };
    let group = version.split('/').next().unwrap_or_default();
    if is_terminating(reader, &plural, group).await {
        let message = format!(
            "CustomResourceDefinition {plural}.{group} is being deleted, named by {machine}: no \
             object of it can be created"
        );
        return Finding::error(CHECK, message).remedy(
            "install the provider again when the deletion has ended; the objects that still exist \
             delay it",
        );
    }
    let resource = json!({"group": group, "resource": plural, "verb": "create"});
    let refused = match forbidden_in(reader, operator, &resource, namespaces).await {
        Ok(refused) => refused,
        Err(why) => {
            let what = format!("whether the operator may create {plural} of {group}");
            return Finding::not_evaluated(CHECK, &what, &why);
        }
    };
    let Some((machine, rest)) = refused.split_first() else {
        return Finding::ok(CHECK, format!("{kind} of {version} is served"));
    };
    let more = match rest.len() {
        0 => String::new(),
        1 => " and by one in another namespace".to_owned(),
        more => format!(" and by some in {more} other namespaces"),
    };
    Finding::error(
        CHECK,
        format!("the operator may not create {plural} of {group}, named by {machine}{more}"),
    )
    .remedy(format!(
        "generate its role with `5spot generate rbac --provider`, or label a ClusterRole {}=true",
        name::AGGREGATE_LABEL
    ))
}

/// Whether the CustomResourceDefinition is being deleted. A user who may not read it is not told.
async fn is_terminating(reader: &Reader, plural: &str, group: &str) -> bool {
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}"
    );
    match reader.requests.get(&path).await {
        Response::Found(crd) => !crd["metadata"]["deletionTimestamp"].is_null(),
        Response::NotFound | Response::Failed(_) => false,
    }
}

/// The machines in whose namespaces the operator has no permission. An operator that is confined to
/// namespaces has it only there.
///
/// # Errors
/// The server does not evaluate it. The error is its message.
async fn forbidden_in<'m>(
    reader: &Reader,
    operator: &Operator,
    attributes: &Value,
    namespaces: &'m BTreeMap<String, String>,
) -> Result<Vec<&'m str>, String> {
    let user = user(operator);
    if reader.is_allowed(&user, attributes.clone()).await? {
        return Ok(Vec::new());
    }
    let mut refused = Vec::new();
    for (namespace, machine) in namespaces {
        let mut attributes = attributes.clone();
        attributes["namespace"] = json!(namespace);
        if !reader.is_allowed(&user, attributes).await? {
            refused.push(machine.as_str());
        }
    }
    Ok(refused)
}

/// The plural name of a kind in an APIResourceList. `None` if the kind is not served.
fn plural(list: &Value, kind: &str) -> Option<String> {
    let resources = list["resources"].as_array()?;
    let found = resources.iter().find(|it| {
        it["kind"] == kind && it["name"].as_str().is_some_and(|name| !name.contains('/'))
    });
    found?["name"].as_str().map(str::to_owned)
}

async fn kubeconfigs(
    reader: &Reader,
    operator: &Operator,
    machines: &[Value],
) -> Vec<Finding> {
    let clusters: BTreeSet<(String, String)> = machines
        .iter()
        .filter_map(|it| {
            let namespace = it["metadata"]["namespace"].as_str()?;
            let cluster = it["spec"]["clusterName"].as_str()?;
            Some((namespace.to_owned(), cluster.to_owned()))
        })
        .collect();
    let nodes = json!({"resource": "nodes", "verb": "patch"});
    if reader.is_allowed(&user(operator), nodes).await == Ok(true) {
        let message =
            "the operator may patch Nodes of this cluster and needs no kubeconfig Secret";
        return vec![Finding::ok("kubeconfig", message)];
    }
    let mut all = Vec::new();
    for (namespace, cluster) in clusters {
        all.push(kubeconfig(reader, operator, &namespace, &cluster).await);
    }
    all
}

/// Whether the kubeconfig Secret of a Cluster exists, and the operator may read it.
async fn kubeconfig(
    reader: &Reader,
    operator: &Operator,
    namespace: &str,
    cluster: &str,
) -> Finding {
    const CHECK: &str = "kubeconfig";
    let secret = name::kubeconfig_secret(cluster);
    let attributes = json!({
        "resource": "secrets", "verb": "get", "namespace": namespace, "name": secret,
    });
    let is_allowed = reader.is_allowed(&user(operator), attributes).await;
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    // A user of this command rarely may read Secrets, so only its absence is a finding.
    match (is_allowed, reader.requests.get(&path).await) {
        (Ok(false), _) => Finding::warning(
            CHECK,
            format!(
                "the operator may not read Secret {namespace}/{secret}: it does not drain or \
                 taint nodes of Cluster {cluster}"
            ),
        )
        .remedy(format!(
            "apply `5spot generate rbac --kubeconfig {namespace}/{cluster}`"
        )),
        (_, Response::NotFound) => {
            Finding::warning(CHECK, format!("there is no Secret {namespace}/{secret}")).remedy(
                format!("check Cluster {cluster}: its control plane creates it when initialized"),
            )
        }
        (Ok(true), _) => {
            Finding::ok(CHECK, format!("the operator may read Secret {namespace}/{secret}"))
        }
        (Err(why), _) => {
            let what = format!("whether the operator may read Secret {namespace}/{secret}");
            Finding::not_evaluated(CHECK, &what, &why)
        }
    }
}

/// The user name of the operator.
fn user(operator: &Operator) -> String {
    name::service_account_user(&operator.namespace, &operator.account)
}

/// The namespace and name of a ScheduledMachine, with the name of its class.
fn referrer(machine: &Value) -> String {
    let machine_name = identity(machine);
    match machine["spec"]["classRef"]["name"].as_str() {
        Some(class) => format!("{machine_name} ({} {class})", name::CLASS_KIND),
        None => machine_name,
    }
}

/// The namespace and name of a ScheduledMachine.
pub(super) fn identity(machine: &Value) -> String {
    let text = |key: &str| machine["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}
