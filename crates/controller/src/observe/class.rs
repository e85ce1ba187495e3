//! Reads the class of a ScheduledMachine into it.

use std::collections::BTreeMap;

use fivespot_api::{ScheduledMachine, ScheduledMachineClassSpec};
use fivespot_plan::{Fact, Specs, Unknown};
use serde::Deserialize as _;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::kind;
use crate::observe::projection::CachedKind;
use crate::provider_specs;

/// Replaces the reference of `object` to a class by what the class sets, and `specs` by the specs
/// of the class. Returns the stored class if there is one, or why it is unknown.
pub(super) async fn resolve(
    source: &Source<'_>,
    object: &mut ScheduledMachine,
    specs: &mut Specs,
) -> Result<Fact<Option<Value>>, Incomplete> {
    let none = BTreeMap::new();
    let Some(name) = object.spec.class_ref.as_ref().map(|it| it.name.clone()) else {
        return Ok(Fact::Known(None));
    };
    // Admission refuses it, and it would name all classes.
    let found = if name.is_empty() {
        Fact::Known(None)
    } else {
        let resource = kind::scheduled_machine_class();
        let class = CachedKind::Class;
        source.object_of_cluster(&resource, class, &name).await?
    };
    let found = match found {
        Fact::Known(found) => found,
        Fact::Unknown(Unknown::NotServed { .. }) => None,
        Fact::Unknown(unknown) => return Ok(Fact::Unknown(unknown)),
    };
    let spec = found.as_ref().map(|found| &found["spec"]);
    let spec = spec.and_then(|spec| ScheduledMachineClassSpec::deserialize(spec).ok());
    let Some((class, stored)) = spec.zip(found) else {
        object.spec.resolve(None, &none);
        return Ok(Fact::Known(None));
    };
    let labels = if class.namespace_selector.is_some() {
        match labels(source).await? {
            Ok(labels) => labels,
            Err(unknown) => return Ok(Fact::Unknown(unknown)),
        }
    } else {
        none
    };
    object.spec.resolve(Some(&class), &labels);
    *specs = provider_specs::of(&stored);
    Ok(Fact::Known(Some(stored)))
}

/// The labels of the namespace.
async fn labels(
    source: &Source<'_>,
) -> Result<Result<BTreeMap<String, String>, Unknown>, Incomplete> {
    let (resource, name) = (kind::namespace(), &source.key.namespace);
    let found = source
        .object_of_cluster(&resource, CachedKind::Namespace, name)
        .await?;
    Ok(match found {
        Fact::Known(Some(found)) => {
            let labels = found["metadata"]["labels"].clone();
            Ok(BTreeMap::deserialize(labels).unwrap_or_default())
        }
        // Its watch is behind that of the ScheduledMachine: `DoesNotExist` would select it.
        Fact::Known(None) => Err(Unknown::Failed {
            message: format!("there is no Namespace {name}"),
        }),
        Fact::Unknown(unknown) => Err(unknown),
    })
}
