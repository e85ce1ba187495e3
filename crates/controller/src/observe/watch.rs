//! The watches that fill the caches.

use std::sync::Arc;

use fivespot_runtime::cache::{Budget, InformerSink};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::watch::{Retry, Selector, Watch, follow};

use crate::context::Context;
use crate::context::enqueue::{Enqueue, WatchedCluster};
use crate::observe::projection::KindInformer;
use crate::observe::workload::Workload;

/// The scope of one watch of a cache.
pub(crate) struct WatchScope {
    /// The server.
    pub(crate) api: ApiClient,
    /// The namespace, which is the part of the cache that this watch fills; `None` for all
    /// namespaces, and for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    /// Which objects; `None` for all.
    pub(crate) selector: Option<Selector>,
    /// The workload cluster whose link this watch reports as up or down.
    pub(crate) link: Option<Arc<Workload>>,
    /// The memory budget of the cached objects; `None` for the management cluster.
    pub(crate) budget: Option<Arc<Budget>>,
}

impl WatchScope {
    /// All objects that this server has.
    pub(crate) fn of(api: ApiClient) -> Self {
        Self {
            api,
            namespace: None,
            selector: None,
            link: None,
            budget: None,
        }
    }
}

/// Fills `informer` and enqueues the keys affected. Never ends.
pub(crate) async fn fill(
    context: Arc<Context>,
    informer: Arc<KindInformer>,
    scope: WatchScope,
) {
    let watch = Watch {
        client: scope.api.clone(),
        resource: informer.resource.clone(),
        namespace: scope.namespace.clone(),
        selector: scope.selector,
        projection: Arc::new(informer.projection.clone()),
    };
    let retry = retry(&context, &informer.name);
    let handler = Enqueue {
        context,
        informer: informer.clone(),
        link: scope.link.map(|workload| WatchedCluster {
            workload,
            api: scope.api,
        }),
    };
    let sink = InformerSink {
        informer,
        part: scope.namespace,
        budget: scope.budget,
        handler,
        listed: 0,
    };
    follow(watch, retry, sink).await;
}

/// When a watch of that name is retried.
pub(crate) fn retry(context: &Context, name: &str) -> Retry {
    Retry {
        clock: context.clock.clone(),
        backoff: context.backoff,
        name: name.to_owned(),
    }
}
