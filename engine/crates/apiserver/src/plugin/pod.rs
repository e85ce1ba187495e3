//! Helpers for plugins that read or change pods.

use serde_json::{Map, Value};

use crate::meta;

/// The lists of containers, in the order in which Kubernetes visits them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The volume sources with a reference to a secret, and the field with the reference.
const SECRET_REFERENCES: [(&str, &str); 8] = [
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
];

/// Every container of a pod's spec with its path.
pub(super) fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    LISTS.into_iter().flat_map(move |list| {
        let all = spec[list].as_array().into_iter().flatten().enumerate();
        all.map(move |(index, it)| (format!("spec.{list}[{index}]"), it))
    })
}

/// Changes every container of a pod.
pub(super) fn each_container(pod: &mut Value, change: impl Fn(&mut Map<String, Value>)) {
    for list in LISTS {
        let all = pod.pointer_mut(&format!("/spec/{list}"));
        let all = all.and_then(Value::as_array_mut).into_iter().flatten();
        all.filter_map(Value::as_object_mut).for_each(&change);
    }
}

/// The mutable spec of a pod.
pub(super) fn spec(pod: &mut Value) -> &mut Map<String, Value> {
    meta::field(meta::fields(pod), "spec")
}

/// The entries of a list; empty if it is not a list.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A string; empty if absent.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The names of the secrets that a pod references (`VisitPodSecretNames` in pkg/api/pod).
pub(super) fn secret_names(spec: &Value) -> impl Iterator<Item = &str> {
    let pull = list(spec, "imagePullSecrets")
        .iter()
        .map(|it| text(it, "name"));
    let of_containers = containers(spec).flat_map(|(_, it)| {
        let from = list(it, "envFrom").iter();
        let from = from.map(|it| text(&it["secretRef"], "name"));
        let variables = list(it, "env").iter();
        from.chain(variables.map(|it| text(&it["valueFrom"]["secretKeyRef"], "name")))
    });
    let of_volumes = list(spec, "volumes").iter().flat_map(|volume| {
        let direct = [&volume["azureFile"], &volume["secret"]];
        let direct = direct.map(|it| text(it, "secretName"));
        let by_reference = SECRET_REFERENCES
            .map(|(source, reference)| text(&volume[source][reference], "name"));
        let projected = list(&volume["projected"], "sources").iter();
        let projected = projected.map(|it| text(&it["secret"], "name"));
        direct.into_iter().chain(by_reference).chain(projected)
    });
    let all = pull.chain(of_containers).chain(of_volumes);
    all.filter(|it| !it.is_empty())
}

/// The names of the config maps that a pod references (`VisitPodConfigmapNames` in pkg/api/pod).
pub(super) fn config_map_names(spec: &Value) -> impl Iterator<Item = &str> {
    let of_containers = containers(spec).flat_map(|(_, it)| {
        let from = list(it, "envFrom").iter();
        let from = from.map(|it| text(&it["configMapRef"], "name"));
        let variables = list(it, "env").iter();
        from.chain(variables.map(|it| text(&it["valueFrom"]["configMapKeyRef"], "name")))
    });
    let of_volumes = list(spec, "volumes").iter().flat_map(|volume| {
        let projected = list(&volume["projected"], "sources").iter();
        let projected = projected.map(|it| text(&it["configMap"], "name"));
        projected.chain([text(&volume["configMap"], "name")])
    });
    let all = of_containers.chain(of_volumes);
    all.filter(|it| !it.is_empty())
}

/// Several errors in the format of a Go aggregate (`utilerrors.NewAggregate`): without duplicates,
/// in brackets if there is more than one.
pub(super) fn aggregate(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&error.as_str()) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}
