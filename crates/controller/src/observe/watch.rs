//! The watches that fill the caches, and the keys that their events enqueue.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_runtime::Key;
use fivespot_runtime::cache::{Budget, Handler, Informer, InformerSink, Part, Version};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::watch::{Retry, Selector, Watch, follow};

use crate::context::Context;
use crate::failure;
use crate::observe::projection::{CachedKind, Target};
use crate::observe::workload::Workload;

/// A cache, and the watches that fill it.
pub(crate) type KindInformer = Informer<CachedKind>;

/// The scope of one watch of a cache.
pub(crate) struct WatchScope {
    /// The server.
    pub(crate) api: ApiClient,
    /// The namespace; `None` for all namespaces, and for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    /// Which objects; `None` for all.
    pub(crate) selector: Option<Selector>,
    /// The part of the cache that this watch fills.
    pub(crate) part: Part,
    /// The workload cluster whose link this watch reports as up or down.
    pub(crate) link: Option<Arc<Workload>>,
    /// The memory budget of the cached objects; `None` for the management cluster.
    pub(crate) budget: Option<Arc<Budget>>,
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
        namespace: scope.namespace,
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
        part: scope.part,
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

/// Enqueues the ScheduledMachines that a change of a cache affects.
struct Enqueue {
    context: Arc<Context>,
    informer: Arc<KindInformer>,
    link: Option<WatchedCluster>,
}

/// The workload cluster that a watch reports as up or down.
struct WatchedCluster {
    workload: Arc<Workload>,
    api: ApiClient,
}

impl Handler<Target> for Enqueue {
    fn changed(&self, affected: BTreeSet<Target>) {
        self.context.enqueue(affected);
    }

    /// Status updates by Cluster API and providers, and our own writes, enqueue with low priority,
    /// so that machines are created first.
    fn updated(&self, object: &Key, version: &Version, affected: BTreeSet<Target>) {
        let is_report = match self.informer.projection {
            CachedKind::Machine | CachedKind::Provider => true,
            CachedKind::ScheduledMachine => {
                self.context.has_written(&self.informer, object, version)
            }
            _ => false,
        };
        if is_report {
            self.context.enqueue_deferred(affected);
        } else {
            self.context.enqueue(affected);
        }
    }

    fn synced(&self, waiting: BTreeSet<Key>) {
        self.context.enqueue_keys(waiting);
    }

    fn responded(&self) {
        if let Some(WatchedCluster { workload, api }) = &self.link {
            workload.mark_up(&self.context, api);
        }
    }

    fn failed(&self, error: &kube::Error, waiting: BTreeSet<Key>) {
        let message = failure::message(error);
        self.context.outage.warn(
            format_args!("watch of {} failed", self.informer.name),
            &message,
        );
        self.context.enqueue_keys(waiting);
        if let Some(WatchedCluster { workload, .. }) = &self.link {
            workload.handle_error(&self.context, error);
        }
    }

    /// A Node without a Machine is not kept.
    fn needs_content(&self, affected: &[Target]) -> bool {
        !matches!(self.informer.projection, CachedKind::Node(_))
            || self.context.has_any(affected)
    }
}
