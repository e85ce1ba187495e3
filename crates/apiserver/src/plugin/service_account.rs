//! ServiceAccount: gives pods a service account, its pull secrets and its token.

use serde_json::{Map, Value, json};

use super::{Attributes, Plugin};
use crate::controller::namespace_bootstrap;
use crate::meta;
use crate::random::Random;
use crate::state::State;
use crate::status::Status;
use crate::store::{Key, Object};

/// The service account of a pod that names none.
const DEFAULT: &str = "default";
/// Where a container finds the token of its service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the name of the volume with that token begins with.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// For how many seconds the token is requested; it counts as one for an hour.
const TOKEN_SECONDS: i64 = 3607;

/// The plugin.
#[derive(Debug)]
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn description(&self) -> &'static str {
        "Gives new pods a service account, its pull secrets and its token; refuses those whose \
         account is missing."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let is_new = attributes.old_object().is_none();
        match object {
            Some(pod) if is_new && attributes.is_about("", "pods") => {
                prepare(cluster, attributes, pod)
            }
            _ => Ok(()),
        }
    }
}

/// Gives a new pod its service account.
///
/// # Errors
/// 403 where there is no such account.
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
        return Err(attributes.forbidden(&format!(
            "error looking up service account {namespace}/{named}: serviceaccount \
             \"{named}\" not found"
        )));
    };
    let mounts = &pod["spec"]["automountServiceAccountToken"];
    let mounts = mounts
        .as_bool()
        .or(account["automountServiceAccountToken"].as_bool());
    if mounts.unwrap_or(true) {
        mount_token(pod);
    }
    let pull = &account["imagePullSecrets"];
    if pull.is_array() {
        spec(pod)
            .entry("imagePullSecrets")
            .or_insert_with(|| pull.clone());
    }
    Ok(())
}

fn spec(pod: &mut Value) -> &mut Map<String, Value> {
    meta::field(meta::fields(pod), "spec")
}

/// The account that every namespace is given is not waited for.
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
    let had = names
        .filter(|it| it.starts_with(TOKEN_VOLUME))
        .map(str::to_owned)
        .next();
    let has_volume = had.is_some();
    let name = had.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
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

/// Looks random and is the same for a pod of the same name, so that the same requests lead to
/// the same pods in whatever order they come. (FNV-1a spreads the names.)
fn suffix(pod: &Value) -> String {
    let place = format!("{}/{}", meta::namespace(pod), meta::name(pod));
    let seed = place
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
    fn a_token_is_mounted_once_and_not_over_another_volume() {
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
