//! The validation of updates of a persistent volume.

use kubemu_admission::FieldError;
use serde_json::Value;

use super::source;
use crate::kind::field::{Errors, Field};
use crate::kind::go_struct;

/// The beta labels of nodes and the stable ones that have replaced them (`betaToGALabel`).
const STABLE: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
];

/// The errors of changes that an update must not make (`ValidatePersistentVolumeUpdate`).
/// Kubernetes appends the difference to the first sentence.
pub(super) fn errors(spec: &Value, old: &Value, errors: &mut Errors) {
    const SECRET: &str = "controllerExpandSecretRef";
    let made_of = |name: &str| {
        let mut source = spec[name].clone();
        // This field may be added.
        if name == "csi" && old["csi"].is_object() && old["csi"][SECRET].is_null() {
            let fields = source.as_object_mut();
            fields.map(|it| it.shift_remove(SECRET));
        }
        source
    };
    if source::NAMES.iter().any(|it| made_of(it) != old[*it]) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    let [mode, affinity, class] =
        ["volumeMode", "nodeAffinity", "volumeAttributesClassName"];
    if spec[mode] != old[mode] {
        let value = spec[mode].clone();
        errors.push(FieldError::invalid(mode, value, "field is immutable"));
    }
    if !old[affinity].is_null()
        && spec[affinity] != with_stable_labels(&old[affinity], &spec[affinity])
    {
        let why = "field is immutable, except for updating from beta label to GA";
        let shown = go_struct::text(&spec[affinity], "core.v1.VolumeNodeAffinity");
        let at = Field::of(spec, affinity);
        errors.push(go_struct::invalid(&at, &shown, why));
    }
    if !old[class].is_null() && spec[class].is_null() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(format!("spec.{class}"), why));
    }
}

/// An old affinity with those labels that `new` has in their place instead of beta labels.
fn with_stable_labels(old: &Value, new: &Value) -> Value {
    let mut old = old.clone();
    let mut terms = old.pointer_mut("/required/nodeSelectorTerms");
    let terms = terms
        .iter_mut()
        .filter_map(|it| it.as_array_mut())
        .flatten();
    for (at, term) in terms.enumerate() {
        for list in ["matchExpressions", "matchFields"] {
            let mut requirements = term.get_mut(list).and_then(Value::as_array_mut);
            for (index, requirement) in requirements
                .iter_mut()
                .flat_map(|it| it.iter_mut())
                .enumerate()
            {
                let new = &new["required"]["nodeSelectorTerms"][at][list][index]["key"];
                let key = requirement["key"].as_str().unwrap_or_default();
                // For any other label Kubernetes takes the empty text for the stable one.
                let stable = STABLE.iter().find(|it| it.0 == key).map_or("", |it| it.1);
                if new == stable {
                    requirement["key"] = stable.into();
                }
            }
        }
    }
    old
}
