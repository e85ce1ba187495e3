//! Who has set the replicas of an object, as its Scale shows it.
//!
//! The Scale of an object has managers of its own: those of the field of the object that its replicas
//! are, as managers of `spec.replicas` (`ScaleHandler` in k8s.io/apimachinery).

use serde_json::Value;

use super::element::Element;
use super::record::Managers;
use super::set::FieldSet;
use crate::resource::Resource;

/// Where the replicas are in a Scale.
const REPLICAS: &str = "spec.replicas";

/// Notes in `scale`, an object of the resource `resource`, who manages the replicas of `parent`, which
/// are at `path` there.
pub(crate) fn show_managers(
    resource: &Resource,
    scale: &mut Value,
    (parent, path): (&Value, &str),
) {
    let mut shown = FieldSet::default();
    shown.insert_path(&elements(REPLICAS));
    let managers = Managers::of(parent).of_field(&elements(path), &shown, resource);
    managers.write_to(scale);
}

/// Notes in `parent`, an object of the resource `resource` with its replicas at `path`, who manages
/// them by now, as `scale` says.
pub(crate) fn keep_managers(
    resource: &Resource,
    scale: &Value,
    (parent, path): (&mut Value, &str),
) {
    let mut managers = Managers::of(parent);
    let of_scale = Managers::of(scale);
    let replicas = (elements(path), elements(REPLICAS));
    managers.give_field((&replicas.0, resource), &of_scale, &replicas.1);
    managers.write_to(parent);
}

fn elements(path: &str) -> Vec<Element> {
    let steps = path.split('.').filter(|it| !it.is_empty());
    steps.map(Element::field).collect()
}
