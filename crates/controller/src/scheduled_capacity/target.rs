//! Where the target of a ScheduledCapacity is, and its cached state.

use std::sync::Arc;

use fivespot_api::ScheduledCapacity;
use fivespot_plan::{Fact, Unknown};
use fivespot_runtime::Key;
use fivespot_runtime::cache::{CacheProjection as _, Projection, Version};
use fivespot_runtime::http::Address;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::kind::cache_name;
use crate::observe::Incomplete;
use crate::observe::discovery::ServedKind;
use crate::observe::management::Source;
use crate::observe::projection::{CachedKind, KindInformer};

/// The target as it was observed.
pub(super) struct Located {
    pub(super) fact: Fact<Option<Value>>,
    /// `None` if its kind is not served.
    pub(super) place: Option<Place>,
}

/// The cache of its kind, and its key there.
pub(super) struct Place {
    informer: Arc<KindInformer>,
    key: Key,
}

impl Place {
    pub(super) fn address<'a>(
        &'a self,
        projection: Option<&'a dyn Projection>,
    ) -> Address<'a> {
        let namespace = Some(self.key.namespace.as_str()).filter(|it| !it.is_empty());
        Address {
            resource: &self.informer.resource,
            namespace,
            name: &self.key.name,
            projection: projection.or(Some(&self.informer.projection)),
        }
    }

    /// Caches the response to a write of the version `base`.
    pub(super) fn cache(&self, base: &Version, written: &Value) {
        let Self { informer, key } = self;
        let cached = informer
            .projection
            .cache(written.clone(), &informer.resource);
        informer.store.wrote(key, base, cached);
    }
}

impl Located {
    /// Reads it from the server.
    pub(super) async fn get(
        &self,
        context: &Context,
        projection: Option<&dyn Projection>,
    ) -> kube::Result<Option<Value>> {
        match &self.place {
            None => Ok(None),
            Some(place) => context.api.get(&place.address(projection)).await,
        }
    }
}

/// Finds the target. The first call for a kind starts its watch.
pub(super) async fn locate(
    source: &Source<'_>,
    object: &ScheduledCapacity,
) -> Result<Located, Incomplete> {
    let (context, own) = (source.context, source.key);
    let target = &object.spec.target;
    let unknown = |unknown: Unknown| Located {
        fact: Fact::Unknown(unknown),
        place: None,
    };
    let served = context
        .discovery
        .served(&target.api_version, &target.kind)
        .await;
    let served = match served {
        Ok(Some(served)) => served,
        Ok(None) => {
            let group = target
                .api_version
                .split_once('/')
                .map_or("", |(group, _)| group);
            context.record_unserved(group, own);
            let message = format!("{} of {}", target.kind, target.api_version);
            return Ok(unknown(Unknown::NotServed { message }));
        }
        Err(error) => return Ok(unknown(failure::unknown(&error))),
    };
    if object.spec.template.is_some() && !served.is_namespaced {
        // An owner in a namespace cannot own it.
        let message =
            "a template is for kinds whose objects are in namespaces".to_owned();
        return Ok(unknown(Unknown::Failed { message }));
    }
    let informer = context.target_informer(&served);
    let namespace = if served.is_namespaced {
        own.namespace.as_str()
    } else {
        ""
    };
    let named = target.name.as_deref().unwrap_or(&own.name);
    let key = Key::new(namespace, named);
    let fact = match source.unlisted(&informer, namespace)? {
        Some(unknown) => Fact::Unknown(unknown),
        None => match informer.store.get(&key) {
            None => Fact::Known(None),
            Some(found) if !found.is_name_only() => Fact::Known(Some(found.value())),
            Some(_) => {
                let place = Place {
                    informer: informer.clone(),
                    key: key.clone(),
                };
                read(context, &place).await
            }
        },
    };
    let place = Some(Place { informer, key });
    Ok(Located { fact, place })
}

/// Reads a target that nothing followed before, and keeps it.
async fn read(context: &Context, place: &Place) -> Fact<Option<Value>> {
    match context.api.get(&place.address(None)).await {
        Err(error) => Fact::Unknown(failure::unknown(&error)),
        Ok(None) => Fact::Known(None),
        Ok(Some(found)) => {
            let Place { informer, key } = place;
            let cached = informer.projection.cache(found.clone(), &informer.resource);
            informer.store.fill(key, cached);
            Fact::Known(Some(found))
        }
    }
}

impl Context {
    /// The cache of a kind of the targets of ScheduledCapacities. The first call starts its watch.
    fn target_informer(self: &Arc<Self>, served: &ServedKind) -> Arc<KindInformer> {
        // Another cache of the kind has other fields.
        let cache = format!("targets {}", cache_name(&served.resource));
        let resource = served.resource.clone();
        let (informer, is_new) = self.ensure(cache, resource, CachedKind::CapacityTarget);
        if is_new && served.is_namespaced {
            self.watch(&informer, None);
        } else if is_new {
            self.watch_in(&informer, None, None);
        }
        informer
    }
}

impl CachedKind {
    /// Whether it is the cache of targets.
    pub(crate) fn is_of_targets(&self) -> bool {
        *self == Self::CapacityTarget
    }
}
