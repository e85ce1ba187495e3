//! The total requests and limits of a pod (k8s.io/component-helpers/resource).

use std::collections::BTreeMap;

use kubemu_admission::{KubeVersion, Quantity};
use serde_json::Value;

use super::pod::list;
use crate::kind::resource_name;

/// Amounts by resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a list.
pub(super) fn amounts(list: &Value) -> Amounts {
    let all = resource_name::amounts(list);
    all.map(|(resource, amount)| (resource.to_owned(), amount))
        .collect()
}

/// Adds amounts to others. A sum with too many digits is left unchanged.
pub(super) fn add(into: &mut Amounts, further: &Amounts) {
    for (resource, amount) in further {
        let sum = match into.get(resource) {
            Some(previous) => previous.sum(amount).unwrap_or_else(|| previous.clone()),
            None => amount.clone(),
        };
        into.insert(resource.clone(), sum);
    }
}

/// Keeps the larger of two amounts of each resource.
fn raise(into: &mut Amounts, others: &Amounts) {
    for (resource, amount) in others {
        if into.get(resource).is_none_or(|previous| amount > previous) {
            into.insert(resource.clone(), amount.clone());
        }
    }
}

/// The total `requests` or `limits` of a pod: the sum for the containers that run concurrently, or
/// the amount that an init container needs, if that is more. From Kubernetes 1.34 on, pod-level
/// resources replace it.
pub(super) fn total(spec: &Value, field: &str, kube: KubeVersion) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][field]);
    let mut total = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut total, &of(container));
    }
    let (mut restartable, mut initial) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let own = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut restartable, &own);
            raise(&mut initial, &restartable);
        } else {
            let mut needed = own;
            add(&mut needed, &restartable);
            raise(&mut initial, &needed);
        }
    }
    raise(&mut total, &initial);
    if kube.is_at_least(34) {
        let whole = amounts(&spec["resources"][field]).into_iter();
        total.extend(whole.filter(|(it, _)| it == "cpu" || it == "memory"));
    }
    total
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_needs_the_maximum_of_concurrent_containers() {
        let ask = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = ask("1");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"containers": [ask("1"), ask("500m")],
            "initContainers": [ask("4"), sidecar, ask("2")]});
        let cpu = |spec: &Value, kube: &str| {
            total(spec, "requests", kube.parse().unwrap())["cpu"].to_string()
        };
        // The first init container starts alone, the last one runs concurrently with the sidecar.
        assert_eq!(cpu(&spec, "1.36"), "4");
        let spec =
            json!({"containers": [ask("1")], "resources": {"requests": {"cpu": "3"}}});
        assert_eq!(cpu(&spec, "1.36"), "3");
        assert_eq!(cpu(&spec, "1.33"), "1");
    }
}
