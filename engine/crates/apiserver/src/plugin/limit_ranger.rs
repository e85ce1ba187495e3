//! LimitRanger: applies the LimitRanges of a namespace as defaults and as bounds
//! (plugin/pkg/admission/limitranger).

use std::collections::BTreeMap;

use kubemu_admission::policy::Operation;
use kubemu_admission::{KubeVersion, Quantity};
use serde_json::{Map, Value};

use super::pod::{self, list, text};
use super::pod_resources::{self, Amounts};
use super::{Attributes, Plugin};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;
use crate::store::Object;

/// The plugin.
#[derive(Debug)]
pub(super) struct LimitRanger;

/// The annotation with the fields that the plugin has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn description(&self) -> &'static str {
        "Sets the default requests and limits of new pods from the LimitRanges of their \
         namespace, and rejects pods and PersistentVolumeClaims outside of their bounds \
         and ratios."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if let Some(pod) = object.filter(|_| is_new_pod(attributes)) {
            for range in ranges(cluster, attributes) {
                fill_in(pod, &range["spec"]);
            }
        }
        Ok(())
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(object) = object else {
            return Ok(());
        };
        let is_claim = attributes.is_about("", "persistentvolumeclaims");
        let was_deleting = attributes.old_object().is_some_and(meta::is_deleting);
        if !is_new_pod(attributes) && !is_claim || was_deleting {
            return Ok(());
        }
        for range in ranges(cluster, attributes) {
            let mut errors = Vec::new();
            for limit in list(&range["spec"], "limits") {
                let limit = Limit::of(limit);
                if is_claim {
                    limit.check_claim(&object["spec"], &mut errors);
                } else {
                    limit.check_pod(&object["spec"], cluster.kube, &mut errors);
                }
            }
            if !errors.is_empty() {
                return Err(attributes.forbidden(&pod::aggregate(&errors)));
            }
        }
        Ok(())
    }
}

/// Whether the request creates a pod: an update neither adds nor changes containers.
fn is_new_pod(attributes: &Attributes<'_>) -> bool {
    attributes.is_about("", "pods") && attributes.operation() == Operation::Create
}

fn ranges(cluster: &State, attributes: &Attributes<'_>) -> Vec<Object> {
    let resource = GroupResource::new("", "limitranges");
    cluster.objects(&resource, Some(attributes.namespace()))
}

/// Defaults the requests and limits of containers, and lists them in an annotation.
fn fill_in(pod: &mut Value, spec: &Value) {
    let mut defaults = [("limits", Map::new()), ("requests", Map::new())];
    for limit in list(spec, "limits") {
        if text(limit, "type") == "Container" {
            for ((_, into), from) in
                defaults.iter_mut().zip(["default", "defaultRequest"])
            {
                let from = limit[from].as_object();
                into.extend(
                    from.into_iter()
                        .flatten()
                        .map(|(k, v)| (k.clone(), v.clone())),
                );
            }
        }
    }
    let mut notes = Vec::new();
    for (field, word) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let all = pod.pointer_mut(&format!("/spec/{field}"));
        let all = all.and_then(Value::as_array_mut).into_iter().flatten();
        for container in all.filter_map(Value::as_object_mut) {
            notes.extend(fill_container(container, word, &defaults));
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        let annotations = meta::field(meta::edit(pod), "annotations");
        annotations.insert(ANNOTATION.to_owned(), note.into());
    }
}

/// Defaults a container. Returns the parts of the annotation.
fn fill_container(
    container: &mut Map<String, Value>,
    word: &str,
    defaults: &[(&str, Map<String, Value>); 2],
) -> Vec<String> {
    let name = container.get("name").and_then(Value::as_str);
    let name = name.unwrap_or_default().to_owned();
    let mut notes = Vec::new();
    // Requests are listed before limits.
    for (list, defaults) in defaults.iter().rev() {
        let mut set = Vec::new();
        for (resource, amount) in defaults {
            let resources = meta::field(container, "resources");
            let own = meta::field(resources, list);
            if !own.contains_key(resource) {
                own.insert(resource.clone(), amount.clone());
                set.push(resource.as_str());
            }
        }
        set.sort_unstable();
        if !set.is_empty() {
            let list = list.trim_end_matches('s');
            notes.push(format!("{} {list} for {word} {name}", set.join(", ")));
        }
    }
    notes
}

/// A limit of a LimitRange.
struct Limit<'a> {
    kind: &'a str,
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
}

/// The request and limit of an object for one resource.
#[derive(Clone, Copy)]
struct RequestAndLimit<'a> {
    resource: &'a str,
    request: Option<&'a Quantity>,
    limit: Option<&'a Quantity>,
}

impl<'a> RequestAndLimit<'a> {
    fn of(resource: &'a str, requests: &'a Amounts, limits: &'a Amounts) -> Self {
        Self {
            resource,
            request: requests.get(resource),
            limit: limits.get(resource),
        }
    }
}

impl<'a> Limit<'a> {
    fn of(limit: &'a Value) -> Self {
        Self {
            kind: text(limit, "type"),
            min: pod_resources::amounts(&limit["min"]),
            max: pod_resources::amounts(&limit["max"]),
            ratio: pod_resources::amounts(&limit["maxLimitRequestRatio"]),
        }
    }

    fn check_claim(&self, spec: &Value, errors: &mut Vec<String>) {
        if self.kind != "PersistentVolumeClaim" {
            return;
        }
        let requests = pod_resources::amounts(&spec["resources"]["requests"]);
        let none = BTreeMap::new();
        for (resource, bound) in &self.min {
            let usage = RequestAndLimit::of(resource, &requests, &none);
            errors.extend(self.below(bound, usage));
        }
        for (resource, bound) in &self.max {
            let usage = RequestAndLimit::of(resource, &requests, &none);
            errors.extend(self.request_above(bound, usage));
        }
    }

    fn check_pod(&self, spec: &Value, kube: KubeVersion, errors: &mut Vec<String>) {
        match self.kind {
            "Container" => {
                for field in ["containers", "initContainers"] {
                    for container in list(spec, field) {
                        let own = &container["resources"];
                        let requests = pod_resources::amounts(&own["requests"]);
                        let limits = pod_resources::amounts(&own["limits"]);
                        self.check(&requests, &limits, errors);
                    }
                }
            }
            "Pod" => {
                let requests = pod_resources::total(spec, "requests", kube);
                let limits = pod_resources::total(spec, "limits", kube);
                self.check(&requests, &limits, errors);
            }
            _ => {}
        }
    }

    fn check(&self, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
        for (resource, bound) in &self.min {
            errors.extend(
                self.below(bound, RequestAndLimit::of(resource, requests, limits)),
            );
        }
        for (resource, bound) in &self.max {
            errors.extend(
                self.above(bound, RequestAndLimit::of(resource, requests, limits)),
            );
        }
        for (resource, bound) in &self.ratio {
            errors.extend(
                self.ratio(bound, RequestAndLimit::of(resource, requests, limits)),
            );
        }
    }

    fn below(&self, bound: &Quantity, usage: RequestAndLimit<'_>) -> Option<String> {
        let what = format!(
            "minimum {} usage per {} is {bound}",
            usage.resource, self.kind
        );
        let Some(request) = usage.request else {
            return Some(format!("{what}.  No request is specified"));
        };
        if request < bound {
            return Some(format!("{what}, but request is {request}"));
        }
        let limit = usage.limit.filter(|it| *it < bound)?;
        Some(format!("{what}, but limit is {limit}"))
    }

    fn above(&self, bound: &Quantity, usage: RequestAndLimit<'_>) -> Option<String> {
        let what = format!(
            "maximum {} usage per {} is {bound}",
            usage.resource, self.kind
        );
        let Some(limit) = usage.limit else {
            return Some(format!("{what}.  No limit is specified"));
        };
        if limit > bound {
            return Some(format!("{what}, but limit is {limit}"));
        }
        let request = usage.request.filter(|it| *it > bound)?;
        Some(format!("{what}, but request is {request}"))
    }

    /// The error for a claim, which has requests but no limits.
    fn request_above(
        &self,
        bound: &Quantity,
        usage: RequestAndLimit<'_>,
    ) -> Option<String> {
        let what = format!(
            "maximum {} usage per {} is {bound}",
            usage.resource, self.kind
        );
        let Some(request) = usage.request else {
            return Some(format!("{what}.  No request is specified"));
        };
        (request > bound).then(|| format!("{what}, but request is {request}"))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "Kubernetes compares the ratios as floats"
    )]
    fn ratio(&self, bound: &Quantity, usage: RequestAndLimit<'_>) -> Option<String> {
        let what = format!(
            "{} max limit to request ratio per {} is {bound}",
            usage.resource, self.kind
        );
        let milli_value = |it: Option<&Quantity>| it.map_or(0, Quantity::milli_value);
        let (request, limit) = (milli_value(usage.request), milli_value(usage.limit));
        if request == 0 {
            return Some(format!(
                "{what}, but no request is specified or request is 0"
            ));
        }
        if limit == 0 {
            return Some(format!("{what}, but no limit is specified or limit is 0"));
        }
        let ratio = limit as f64 / request as f64;
        (ratio * 1000.0 > bound.milli_value() as f64)
            .then(|| format!("{what}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_requests_and_limits_are_defaulted_and_annotated() {
        let mut pod = json!({"spec": {
            "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}],
            "initContainers": [{"name": "b"}]}});
        let limits = json!([{"type": "Container", "default": {"cpu": "2", "memory": "1Gi"},
            "defaultRequest": {"cpu": "500m"}}]);
        fill_in(&mut pod, &json!({"limits": limits}));
        let own = &pod["spec"]["containers"][0]["resources"];
        let limits = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(own["limits"], limits);
        assert_eq!(own["requests"], json!({"cpu": "500m"}));
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container a; memory limit for container \
             a; cpu request for init container b; cpu, memory limit for init container b"
        );
        let before = pod.clone();
        fill_in(&mut pod, &json!({"limits": []}));
        assert_eq!(pod, before);
    }
}
