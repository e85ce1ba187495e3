//! What is done to pods before they are checked: the plugins ServiceAccount, Priority and
//! DefaultTolerationSeconds.

use serde_json::{Map, Value, json};

use crate::endowment;
use crate::meta;
use crate::random::Random;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;
use crate::store::{Key, Object};

/// The service account of a pod that names none.
const ACCOUNT: &str = "default";
/// Where a container finds the token of its service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the name of the volume with that token begins with.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// How long the token is asked for; it counts as one for an hour.
const TOKEN_SECONDS: i64 = 3607;
/// The classes that every cluster has, and what they are worth.
const CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

fn spec(pod: &mut Value) -> &mut Map<String, Value> {
    meta::field(meta::fields(pod), "spec")
}

fn word<'a>(pod: &'a Value, field: &str) -> &'a str {
    pod["spec"][field].as_str().unwrap_or_default()
}

/// Sees to it that a new pod has a service account, its pull secrets and its token.
///
/// # Errors
/// 403 where there is no such account.
pub(super) fn account(
    state: &mut State,
    target: &Target,
    pod: &mut Value,
) -> Result<(), Status> {
    if word(pod, "serviceAccountName").is_empty() {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec(pod).insert(field.to_owned(), ACCOUNT.into());
        }
    }
    let named = word(pod, "serviceAccountName").to_owned();
    let namespace = &target.namespace;
    let Some(account) = find(state, namespace, &named) else {
        let why = format!(
            "error looking up service account {namespace}/{named}: serviceaccount \
             \"{named}\" not found"
        );
        return Err(Status::forbidden(&target.resource, &target.name, &why));
    };
    let wanted = &pod["spec"]["automountServiceAccountToken"];
    let wanted = wanted
        .as_bool()
        .or(account["automountServiceAccountToken"].as_bool());
    if wanted.unwrap_or(true) {
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

/// The account that every namespace is given is not waited for.
fn find(state: &mut State, namespace: &str, name: &str) -> Option<Object> {
    let key = Key::new(namespace, name);
    let accounts = state.shelves.accounts;
    if name == ACCOUNT && state.get(accounts, &key).is_none() {
        endowment::give(state, namespace);
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

/// Gives a pod the priority of its class, and keeps the one that it has.
///
/// # Errors
/// 403 for a class that there is not, and for a priority that is not its class's.
pub(super) fn priority(
    target: &Target,
    pod: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let fields = ["priority", "preemptionPolicy"];
    if let Some(old) = old {
        for field in fields {
            if let Some(had) = old["spec"].get(field) {
                spec(pod).entry(field).or_insert_with(|| had.clone());
            }
        }
        return Ok(());
    }
    let refuse = |why: &str| Err(Status::forbidden(&target.resource, &target.name, why));
    let value = match word(pod, "priorityClassName") {
        "" => 0,
        class => match CLASSES.iter().find(|it| it.0 == class) {
            Some((_, value)) => *value,
            None => {
                return refuse(&format!("no PriorityClass with name {class} was found"));
            }
        },
    };
    if let Some(said) = pod["spec"]["priority"].as_i64()
        && said != value
    {
        return refuse(&format!(
            "the integer value of priority ({said}) must not be provided in pod spec; \
             priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    let policy = "PreemptLowerPriority";
    let said = word(pod, "preemptionPolicy");
    if !matches!(said, "" | "PreemptLowerPriority") {
        return refuse(&format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec(pod).insert(fields[0].to_owned(), value.into());
    spec(pod).insert(fields[1].to_owned(), policy.into());
    Ok(())
}

/// Lets a pod stay for five minutes on a node that does not answer.
pub(super) fn tolerations(pod: &mut Value) {
    let all = spec(pod).entry("tolerations").or_insert_with(|| json!([]));
    let Some(all) = all.as_array_mut() else {
        return;
    };
    for taint in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let covers = |field: &Value, word: &str| {
            matches!(field.as_str(), None | Some("")) || field == word
        };
        let tolerated = all
            .iter()
            .any(|it| covers(&it["key"], taint) && covers(&it["effect"], "NoExecute"));
        if !tolerated {
            all.push(
                json!({"key": taint, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}),
            );
        }
    }
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

    #[test]
    fn a_toleration_that_is_there_is_left_alone() {
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        tolerations(&mut pod);
        let all = json!([{"operator": "Exists"}]);
        assert_eq!(pod["spec"]["tolerations"], all);
    }
}
