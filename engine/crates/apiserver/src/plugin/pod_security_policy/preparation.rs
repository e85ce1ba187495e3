//! The defaults of a policy for a pod (`MutatePod` in pkg/security/podsecuritypolicy).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::identity::least;
use crate::meta;
use crate::plugin::pod::{self, list, text};

/// Sets the fields that `policy` requires and the pod lacks.
pub(super) fn prepare(policy: &Value, pod: &mut Value) {
    let spec = pod::spec(pod);
    let context = meta::field(spec, "securityContext");
    let fill = |fields: &mut Map<String, Value>, key: &str, value: Option<Value>| {
        if let Some(value) = value
            && fields.get(key).is_none_or(Value::is_null)
        {
            fields.insert(key.to_owned(), value);
        }
    };
    let groups = least(&policy["supplementalGroups"]).map(|it| json!([it]));
    fill(context, "supplementalGroups", groups);
    fill(context, "fsGroup", least(&policy["fsGroup"]));
    fill(context, "seLinuxOptions", selinux(policy));
    let of_pod = Value::Object(context.clone());
    let class = &policy["runtimeClass"]["defaultRuntimeClassName"];
    fill(
        spec,
        "runtimeClassName",
        (!class.is_null()).then(|| class.clone()),
    );
    pod::each_container(pod, |container| {
        prepare_container(policy, &of_pod, container);
    });
}

fn selinux(policy: &Value) -> Option<Value> {
    let strategy = &policy["seLinux"];
    let required = text(strategy, "rule") == "MustRunAs";
    required.then(|| strategy["seLinuxOptions"].clone())
}

fn prepare_container(policy: &Value, of_pod: &Value, container: &mut Map<String, Value>) {
    let own = container.get("securityContext").cloned();
    let own = own.filter(Value::is_object).unwrap_or_else(|| json!({}));
    // The values of the pod are the defaults of its containers.
    let actual = |key: &str| match &own[key] {
        Value::Null => of_pod[key].clone(),
        found => found.clone(),
    };
    let mut set = Map::new();
    let mut fill = |key: &str, current: &Value, value: Option<Value>| {
        if let Some(value) = value
            && current.is_null()
        {
            set.insert(key.to_owned(), value);
        }
    };
    let user = least(&policy["runAsUser"]);
    fill("runAsUser", &actual("runAsUser"), user.clone());
    fill(
        "runAsGroup",
        &actual("runAsGroup"),
        least(&policy["runAsGroup"]),
    );
    fill("seLinuxOptions", &actual("seLinuxOptions"), selinux(policy));
    let has_user = user.is_some() || !actual("runAsUser").is_null();
    if text(&policy["runAsUser"], "rule") == "MustRunAsNonRoot" && !has_user {
        fill("runAsNonRoot", &actual("runAsNonRoot"), Some(true.into()));
    }
    let read_only = policy["readOnlyRootFilesystem"] == true;
    let key = "readOnlyRootFilesystem";
    fill(key, &own[key], read_only.then_some(Value::Bool(true)));
    let key = "allowPrivilegeEscalation";
    let default = match &policy["defaultAllowPrivilegeEscalation"] {
        Value::Null if policy[key] == false => Some(Value::Bool(false)),
        Value::Null => None,
        found => Some(found.clone()),
    };
    fill(key, &own[key], default);
    if let Some(capabilities) = capabilities(policy, &own["capabilities"]) {
        set.insert("capabilities".to_owned(), capabilities);
    }
    if !set.is_empty() {
        meta::field(container, "securityContext").extend(set);
    }
}

/// The capabilities of a container with those that the policy adds and drops; `None` if nothing
/// changes.
fn capabilities(policy: &Value, own: &Value) -> Option<Value> {
    let names = |value: &Value, field: &str| -> BTreeSet<String> {
        let all = list(value, field).iter().filter_map(Value::as_str);
        all.map(str::to_owned).collect()
    };
    let (add, drop) = (names(own, "add"), names(own, "drop"));
    let mut all_added = names(policy, "defaultAddCapabilities");
    all_added.retain(|it| !drop.contains(it));
    all_added.extend(add.iter().cloned());
    let mut all_dropped = names(policy, "requiredDropCapabilities");
    all_dropped.extend(drop.iter().cloned());
    if all_added.len() == add.len() && all_dropped.len() == drop.len() {
        return None;
    }
    let mut changed = Map::new();
    for (key, all) in [("add", all_added), ("drop", all_dropped)] {
        if !all.is_empty() {
            changed.insert(key.to_owned(), json!(all));
        }
    }
    Some(Value::Object(changed))
}
