//! Reads the class of a ScheduledMachine into it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::{ScheduledMachine, ScheduledMachineClassSpec};
use fivespot_plan::{Fact, Specs, Unknown};
use fivespot_runtime::Key;
use serde::Deserialize as _;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::kind;
use crate::observe::projection::{CachedKind, KindInformer, class_term};
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

/// Replaces the reference of `object` to a class by what the class sets, and `specs` by the specs
/// of the class. Returns why the class is unknown, if it is.
pub(super) async fn resolve(
    source: &Source<'_>,
    object: &mut ScheduledMachine,
    specs: &mut Specs,
) -> Result<Option<Unknown>, Incomplete> {
    let none = BTreeMap::new();
    let Some(name) = object.spec.class_ref.as_ref().map(|it| it.name.clone()) else {
        return Ok(None);
    };
    let class = match find(source, &name).await? {
        Fact::Known(class) => class,
        Fact::Unknown(Unknown::NotServed { .. }) => None,
        Fact::Unknown(unknown) => return Ok(Some(unknown)),
    };
    let Some(class) = class else {
        object.spec.resolve(None, &none);
        return Ok(None);
    };
    let labels = if class.prepared.spec.namespace_selector.is_some() {
        match labels(source).await? {
            Ok(labels) => labels,
            Err(unknown) => return Ok(Some(unknown)),
        }
    } else {
        none
    };
    object.spec.resolve(Some(&class.prepared), &labels);
    specs.clone_from(&class.specs);
    Ok(None)
}

/// The class of that name. A version of it in the cache is parsed once for all its machines.
async fn find(
    source: &Source<'_>,
    name: &str,
) -> Result<Fact<Option<Arc<ReadClass>>>, Incomplete> {
    // Admission refuses it, and it would name all classes.
    if name.is_empty() {
        return Ok(Fact::Known(None));
    }
    // One that is read live may have its specs.
    if source.is_live() {
        let found = stored(source, name).await;
        return Ok(found.and_then(|of| Fact::Known(of.as_ref().and_then(read_class))));
    }
    let (classes, term) = (&source.context.classes, class_term(name));
    let informer = informer(source);
    let at = Key::new("", name);
    source
        .read_once(&informer, at, classes, &term, read_class)
        .await
}

/// The class of that name, read live.
pub(super) async fn stored(source: &Source<'_>, name: &str) -> Fact<Option<Value>> {
    source.live_at(&informer(source), Key::new("", name)).await
}

fn informer(source: &Source<'_>) -> Arc<KindInformer> {
    let resource = kind::scheduled_machine_class();
    source.context.informer(&resource, CachedKind::Class)
}

/// The labels of the namespace.
async fn labels(
    source: &Source<'_>,
) -> Result<Result<BTreeMap<String, String>, Unknown>, Incomplete> {
    let (resource, name) = (kind::namespace(), &source.key.namespace);
    let informer = source.context.informer(&resource, CachedKind::Namespace);
    let found = source.read_at(&informer, Key::new("", name)).await?;
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
