//! Which objects a cache is filled with, and who is woken by them.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_runtime::Key;
use fivespot_runtime::cache::{Budget, Fill, Handler, Informer, Part, Version};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::watch::{Retry, Selector, Watch, follow};

use crate::context::Context;
use crate::failure;
use crate::observe::projection::{CachedKind, Target};
use crate::observe::workload::Workload;

/// A cache, and the watches that fill it.
pub(crate) type KindInformer = Informer<CachedKind>;

/// What one watch of a cache shows.
pub(crate) struct WatchScope {
    /// The server.
    pub(crate) api: ApiClient,
    /// The namespace; none for all, and for what has none.
    pub(crate) namespace: Option<String>,
    /// Which objects; none for all.
    pub(crate) selector: Option<Selector>,
    /// What of the cache they are.
    pub(crate) part: Part,
    /// The workload cluster whose link this watch shows to be up or down.
    pub(crate) link: Option<Arc<Workload>>,
    /// Where what is kept is counted; none for the management cluster.
    pub(crate) budget: Option<Arc<Budget>>,
}

/// Fills `informer` and wakes whoever is concerned, for ever.
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
    let handler = Wake {
        context,
        informer: informer.clone(),
        link: scope.link.map(|workload| Linked {
            workload,
            api: scope.api,
        }),
    };
    let fill = Fill {
        informer,
        part: scope.part,
        budget: scope.budget,
        handler,
        listed: 0,
    };
    follow(watch, retry, fill).await;
}

/// When a watch of that name is tried again.
pub(crate) fn retry(context: &Context, name: &str) -> Retry {
    Retry {
        clock: context.clock.clone(),
        backoff: context.backoff,
        name: name.to_owned(),
    }
}

/// Wakes the ScheduledMachines that are concerned by what a cache shows.
struct Wake {
    context: Arc<Context>,
    informer: Arc<KindInformer>,
    link: Option<Linked>,
}

/// The workload cluster that a watch shows to be up or down.
struct Linked {
    workload: Arc<Workload>,
    api: ApiClient,
}

impl Handler<Target> for Wake {
    fn changed(&self, concerned: BTreeSet<Target>) {
        self.context.wake(concerned);
    }

    /// What Cluster API and providers report, and what we have written ourselves, waits for
    /// machines that are to be created.
    fn updated(&self, object: &Key, version: &Version, concerned: BTreeSet<Target>) {
        let is_report = match self.informer.projection {
            CachedKind::Machine | CachedKind::Provider => true,
            CachedKind::ScheduledMachine => {
                self.context.has_written(&self.informer, object, version)
            }
            _ => false,
        };
        if is_report {
            self.context.wake_deferred(concerned);
        } else {
            self.context.wake(concerned);
        }
    }

    fn synced(&self, waiting: BTreeSet<Key>) {
        self.context.wake_keys(waiting);
    }

    fn works(&self) {
        if let Some(Linked { workload, api }) = &self.link {
            workload.is_up(&self.context, api);
        }
    }

    fn failed(&self, error: &kube::Error, waiting: BTreeSet<Key>) {
        let message = failure::message(error);
        self.context.outage.warn(
            format_args!("watch of {} failed", self.informer.name),
            &message,
        );
        self.context.wake_keys(waiting);
        if let Some(Linked { workload, .. }) = &self.link {
            workload.is_broken_by(&self.context, error);
        }
    }

    /// Of a Node that no Machine is known to be nothing is kept.
    fn is_wanted(&self, concerned: &[Target]) -> bool {
        !matches!(self.informer.projection, CachedKind::Node(_))
            || self.context.has_any(concerned)
    }
}
