//! Reads the class of a ScheduledMachine into it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::{ScheduledMachine, ScheduledMachineClassSpec};
use fivespot_plan::{Fact, Specs, Unknown};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use serde::Deserialize as _;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::kind;
use crate::observe::projection::{CachedKind, class_term};
use crate::observe::read_class::ReadClass;
use crate::provider_specs;

/// `None` if the class cannot be decoded.
fn read_class(stored: &Value) -> Option<Arc<ReadClass>> {
    let spec = ScheduledMachineClassSpec::deserialize(&stored["spec"]).ok()?;
    Some(Arc::new(ReadClass {
        prepared: spec.into(),
        specs: provider_specs::of(stored),
    }))
}

/// A class, and its object if that was parsed just now.
#[derive(Default)]
struct Found {
    class: Option<Arc<ReadClass>>,
    stored: Option<Value>,
}

/// Replaces the reference of `object` to a class by what the class sets, and `specs` by the specs
/// of the class. Returns the stored class if there is one and it was not read before, or why it is
/// unknown.
pub(super) async fn resolve(
    source: &Source<'_>,
    object: &mut ScheduledMachine,
    specs: &mut Specs,
) -> Result<Fact<Option<Value>>, Incomplete> {
    let none = BTreeMap::new();
    let Some(name) = object.spec.class_ref.as_ref().map(|it| it.name.clone()) else {
        return Ok(Fact::Known(None));
    };
    let Found { class, stored } = match find(source, &name).await? {
        Fact::Known(found) => found,
        Fact::Unknown(Unknown::NotServed { .. }) => Found::default(),
        Fact::Unknown(unknown) => return Ok(Fact::Unknown(unknown)),
    };
    let Some(class) = class else {
        object.spec.resolve(None, &none);
        return Ok(Fact::Known(None));
    };
    let labels = if class.prepared.spec.namespace_selector.is_some() {
        match labels(source).await? {
            Ok(labels) => labels,
            Err(unknown) => return Ok(Fact::Unknown(unknown)),
        }
    } else {
        none
    };
    object.spec.resolve(Some(&class.prepared), &labels);
    specs.clone_from(&class.specs);
    Ok(Fact::Known(stored))
}

/// The class of that name. A version of it in the cache is parsed once for all its machines.
async fn find(source: &Source<'_>, name: &str) -> Result<Fact<Found>, Incomplete> {
    // Admission refuses it, and it would name all classes.
    if name.is_empty() {
        return Ok(Fact::Known(Found::default()));
    }
    let context = source.context;
    let resource = kind::scheduled_machine_class();
    let term = class_term(name);
    let informer = context.informer(&resource, CachedKind::Class);
    if !source.is_live()
        && informer.health("") == Health::Synced
        && let Some(cached) = informer.store.get(&Key::new("", name))
        && let Some(class) = context.classes.get(&term, cached.version.as_str())
    {
        let stored = None;
        return Ok(Fact::Known(Found { class, stored }));
    }
    let found = source
        .object_of_cluster(&resource, CachedKind::Class, name)
        .await?;
    Ok(found.and_then(|stored| {
        let class = stored.as_ref().and_then(|stored| {
            let version = stored["metadata"]["resourceVersion"].as_str();
            let version = version.unwrap_or_default();
            // One that is read live may have its specs.
            if source.is_live() {
                read_class(stored)
            } else {
                let read = || read_class(stored);
                context.classes.get_or_read(&term, version, read)
            }
        });
        Fact::Known(Found { class, stored })
    }))
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
