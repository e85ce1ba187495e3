//! Which objects a cache is filled with, and who is woken by them.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_runtime::Key;
use fivespot_runtime::cache::{Budget, Fill, Handler, Informer, Part, Version};
use fivespot_runtime::http::Port;
use fivespot_runtime::watch::{Retry, Selector, Watch, follow};

use crate::failure;
use crate::shape::{Shape, Target};
use crate::shell::Shell;
use crate::workload::Workload;

/// A cache, and the watches that fill it.
pub(crate) type Feed = Informer<Shape>;

/// What one watch of a cache shows.
pub(crate) struct Scope {
    /// The server.
    pub(crate) port: Port,
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

/// Fills `feed` and wakes whoever is concerned, for ever.
pub(crate) async fn fill(shell: Arc<Shell>, feed: Arc<Feed>, scope: Scope) {
    let watch = Watch {
        client: scope.port.clone(),
        resource: feed.resource.clone(),
        namespace: scope.namespace,
        selector: scope.selector,
        projection: Arc::new(feed.projection.clone()),
    };
    let retry = retry(&shell, &feed.name);
    let handler = Wake {
        shell,
        feed: feed.clone(),
        link: scope.link.map(|workload| Linked {
            workload,
            port: scope.port,
        }),
    };
    let fill = Fill {
        informer: feed,
        part: scope.part,
        budget: scope.budget,
        handler,
        listed: 0,
    };
    follow(watch, retry, fill).await;
}

/// When a watch of that name is tried again.
pub(crate) fn retry(shell: &Shell, name: &str) -> Retry {
    Retry {
        clock: shell.clock.clone(),
        backoff: shell.backoff,
        name: name.to_owned(),
    }
}

/// Wakes the ScheduledMachines that are concerned by what a cache shows.
struct Wake {
    shell: Arc<Shell>,
    feed: Arc<Feed>,
    link: Option<Linked>,
}

/// The workload cluster that a watch shows to be up or down.
struct Linked {
    workload: Arc<Workload>,
    port: Port,
}

impl Handler<Target> for Wake {
    fn changed(&self, concerned: BTreeSet<Target>) {
        self.shell.wake(concerned);
    }

    /// What Cluster API and providers report, and what we have written ourselves, waits for
    /// machines that are to be created.
    fn updated(&self, object: &Key, version: &Version, concerned: BTreeSet<Target>) {
        let is_report = match self.feed.projection {
            Shape::Machine | Shape::Provider => true,
            Shape::ScheduledMachine => {
                self.shell.has_written(&self.feed, object, version)
            }
            _ => false,
        };
        if is_report {
            self.shell.wake_deferred(concerned);
        } else {
            self.shell.wake(concerned);
        }
    }

    fn synced(&self, waiting: BTreeSet<Key>) {
        self.shell.wake_keys(waiting);
    }

    fn works(&self) {
        if let Some(Linked { workload, port }) = &self.link {
            workload.is_up(&self.shell, port);
        }
    }

    fn failed(&self, error: &kube::Error, waiting: BTreeSet<Key>) {
        let words = failure::words(error);
        self.shell
            .outage
            .complain(format_args!("watch of {} failed", self.feed.name), &words);
        self.shell.wake_keys(waiting);
        if let Some(Linked { workload, .. }) = &self.link {
            workload.is_broken_by(&self.shell, error);
        }
    }

    /// Of a Node that no Machine is known to be nothing is kept.
    fn is_wanted(&self, concerned: &[Target]) -> bool {
        !matches!(self.feed.projection, Shape::Node(_)) || self.shell.has_any(concerned)
    }
}
