//! The validation of updates of a persistent volume.

use kubemu_admission::FieldError;
use serde_json::Value;

use super::source;
use crate::kind::field::{Errors, Field};
use crate::kind::go_struct;

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
    if !old[affinity].is_null() && spec[affinity] != old[affinity] {
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
