//! ServiceAccount: sets the service account of pods, its pull secrets and its token
//! (plugin/pkg/admission/serviceaccount).

mod secret;

use kubemu_admission::policy::Operation;
use serde_json::{Map, Value, json};

use super::{Attributes, Plugin, pod};
use crate::controller::namespace_bootstrap;
use crate::kind::pod::annotation::MIRROR;
use crate::meta;
use crate::random::Random;
use crate::state::State;
use crate::status::Status;
use crate::store::{Key, Object};

/// The service account of a pod that names none.
const DEFAULT: &str = "default";
/// The mount path of the service account token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The prefix of the token volume's name.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// The requested lifetime of the token in seconds; it counts as one hour.
const TOKEN_SECONDS: i64 = 3607;

/// The plugin.
#[derive(Debug)]
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn description(&self) -> &'static str {
        "Sets the service account of new pods, with its image pull secrets and its \
         token. Rejects pods whose service account does not exist, and pods that reference \
         secrets that it does not list if it has the annotation \
         `kubernetes.io/enforce-mountable-secrets: \"true\"`. Mirror pods are not changed, and \
         must not reference service accounts or secrets."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(attributes)) else {
            return Ok(());
        };
        // A kubelet deletes a mirror pod that differs from its static pod.
        if !is_mirror(pod) {
            prepare(cluster, attributes, pod)?;
        }
        check(cluster, attributes, pod)
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        match object {
            Some(pod) if is_new_pod(attributes) => check(cluster, attributes, pod),
            _ => Ok(()),
        }
    }
}

fn is_new_pod(attributes: &Attributes<'_>) -> bool {
    attributes.operation() == Operation::Create && attributes.is_about("", "pods")
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"][MIRROR].is_string()
}

/// Checks the service account of a new pod, and its references to secrets.
///
/// # Errors
/// 403 if the service account does not exist or does not allow a reference.
fn check(
    cluster: &State,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Status> {
    let result = if is_mirror(pod) {
        check_mirror(&pod["spec"])
    } else {
        check_account(cluster, attributes, pod)
    };
    result.map_err(|why| attributes.forbidden(&why))
}

fn check_mirror(spec: &Value) -> Result<(), String> {
    let why = if !pod::text(spec, "serviceAccountName").is_empty() {
        "a mirror pod may not reference service accounts"
    } else if pod::secret_names(spec).next().is_some() {
        "a mirror pod may not reference secrets"
    } else if projects_token(spec) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

fn projects_token(spec: &Value) -> bool {
    let volumes = pod::list(spec, "volumes").iter();
    let mut sources = volumes.flat_map(|it| pod::list(&it["projected"], "sources"));
    sources.any(|it| it["serviceAccountToken"].is_object())
}

fn check_account(
    cluster: &State,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), String> {
    let namespace = attributes.namespace();
    let spec = &pod["spec"];
    let named = pod::text(spec, "serviceAccountName");
    if named.is_empty() {
        let name = meta::name(pod);
        return Err(format!(
            "no service account specified for pod {namespace}/{name}"
        ));
    }
    let key = Key::new(namespace, named);
    let account = cluster.get(cluster.buckets.accounts, &key);
    let account = account.ok_or_else(|| missing(namespace, named))?;
    secret::check(account, spec)
}

/// The error for a service account that does not exist.
fn missing(namespace: &str, name: &str) -> String {
    format!(
        "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not \
         found"
    )
}

/// Sets the service account of a new pod.
///
/// # Errors
/// 403 if the service account does not exist.
fn prepare(
    cluster: &mut State,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> Result<(), Status> {
    let named = pod["spec"]["serviceAccountName"].as_str();
    let named = named.filter(|it| !it.is_empty()).map(str::to_owned);
    let named = named.unwrap_or_else(|| {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec(pod).insert(field.to_owned(), DEFAULT.into());
        }
        DEFAULT.to_owned()
    });
    let namespace = attributes.namespace();
    let Some(account) = find(cluster, namespace, &named) else {
        return Err(attributes.forbidden(&missing(namespace, &named)));
    };
    let mounts = &pod["spec"]["automountServiceAccountToken"];
    let mounts = mounts
        .as_bool()
        .or(account["automountServiceAccountToken"].as_bool());
    if mounts.unwrap_or(true) {
        mount_token(pod);
    }
    let pull = &account["imagePullSecrets"];
    if pull.is_array() && pod::list(&pod["spec"], "imagePullSecrets").is_empty() {
        spec(pod).insert("imagePullSecrets".to_owned(), pull.clone());
    }
    Ok(())
}

fn spec(pod: &mut Value) -> &mut Map<String, Value> {
    meta::field(meta::fields(pod), "spec")
}

/// The service account. The default one is created if it does not exist yet.
fn find(state: &mut State, namespace: &str, name: &str) -> Option<Object> {
    let key = Key::new(namespace, name);
    let accounts = state.buckets.accounts;
    if name == DEFAULT && state.get(accounts, &key).is_none() {
        namespace_bootstrap::reconcile(state, namespace);
    }
    state.get(accounts, &key).cloned()
}

fn mount_token(pod: &mut Value) {
    let suffix = suffix(pod);
    let spec = spec(pod);
    let volumes = spec.get("volumes").and_then(Value::as_array);
    let names = volumes
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str());
    let previous = names
        .filter(|it| it.starts_with(TOKEN_VOLUME))
        .map(str::to_owned)
        .next();
    let has_volume = previous.is_some();
    let name = previous.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            if let Some(mounts) = mounts.as_array_mut()
                && !mounts.iter().any(|it| it["mountPath"] == TOKEN_PATH)
            {
                mounts.push(mount.clone());
                mounted = true;
            }
        }
    }
    if mounted && !has_volume {
        let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(json!({"name": name, "projected": token_sources()}));
        }
    }
}

/// A suffix that looks random and depends only on the pod's namespace and name, so that the same
/// requests create the same pods in any order. It is seeded with an FNV-1a hash.
fn suffix(pod: &Value) -> String {
    let pod_path = format!("{}/{}", meta::namespace(pod), meta::name(pod));
    let seed = pod_path
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    Random::new(seed).suffix()
}

fn token_sources() -> Value {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    json!({"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_mounted_once_and_replaces_no_other_mount() {
        let mut pod = json!({"spec": {"containers": [{"name": "a"},
            {"name": "b", "volumeMounts": [{"name": "own", "mountPath": TOKEN_PATH}]}]}});
        mount_token(&mut pod);
        let first = pod.clone();
        mount_token(&mut pod);
        assert_eq!(pod, first);
        let spec = &pod["spec"];
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(1));
        let mounts = &spec["containers"][0]["volumeMounts"];
        assert_eq!(mounts[0]["name"], spec["volumes"][0]["name"]);
        let other = spec["containers"][1]["volumeMounts"].as_array();
        assert_eq!(other.map(Vec::len), Some(1));
    }
}
