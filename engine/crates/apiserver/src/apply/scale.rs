//! Field managers of the replicas of an object in its Scale.
//!
//! The Scale of an object has its own managed fields: the managers of the object's replicas
//! field are shown as managers of `spec.replicas` (`ScaleHandler` in k8s.io/apimachinery).

use serde_json::Value;

use super::element::Element;
use super::record::Managers;
use super::set::FieldSet;
use super::take_managed_fields;
use crate::resource::Resource;

/// The path of the replicas in a Scale.
const REPLICAS: &str = "spec.replicas";

/// Writes to `scale` the managers of the replicas of `parent`, which are at `path` in
/// `parent`. `resource` is the resource of `scale`.
pub(crate) fn read_managers(
    resource: &Resource,
    scale: &mut Value,
    (parent, path): (&Value, &str),
) {
    let mut shown = FieldSet::default();
    shown.insert_path(&elements(REPLICAS));
    let managers = Managers::of(parent).of_field(&elements(path), &shown, resource);
    managers.write_to(scale);
}

/// Writes to `parent`, an object of `resource` with its replicas at `path`, the managers of
/// the replicas according to `scale`.
pub(crate) fn write_managers(
    resource: &Resource,
    scale: &Value,
    (parent, path): (&mut Value, &str),
) {
    let mut managers = Managers::recorded(take_managed_fields(parent));
    let of_scale = Managers::of(scale);
    let replicas = (elements(path), elements(REPLICAS));
    managers.set_field_managers((&replicas.0, resource), &of_scale, &replicas.1);
    managers.write_to(parent);
}

fn elements(path: &str) -> Vec<Element> {
    let steps = path.split('.').filter(|it| !it.is_empty());
    steps.map(Element::field).collect()
}
