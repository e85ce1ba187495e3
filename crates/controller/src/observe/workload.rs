//! The way to the nodes of one workload cluster.

mod secret;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::name;
use fivespot_plan::Access;
use fivespot_runtime::cache::{Budget, Cached as _, Task, TooLarge};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::watch::Selector;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::sync::Notify;

use crate::context::Context;
use crate::failure;
use crate::kind::{config_map, node, pod};
use crate::observe::projection::CachedKind;
use crate::observe::watch::{KindInformer, WatchScope, fill};
use crate::{Key, NodeAccess};

/// The parameter of a request that chooses objects by their fields.
pub(crate) const FIELDS: &str = "fieldSelector";

/// How long until a cluster that has failed to answer is asked again.
const RETRY: SignedDuration = SignedDuration::from_secs(5);

/// A workload cluster that is in use.
#[derive(Debug)]
pub(crate) struct Workload {
    cluster: Key,
    state: Mutex<State>,
    /// What is kept of it.
    budget: Arc<Budget>,
    /// The credentials were refused: the Secret is to be read again.
    refused: Notify,
    /// A request has failed that the watch knows nothing of: it is to begin anew.
    lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    link: Link,
    /// Other credentials are in use than those with which the cluster answered last.
    is_anew: bool,
    users: BTreeSet<Key>,
    /// Follows the Secret.
    keeper: Option<Task>,
}

/// Whether the workload cluster can be talked to.
#[derive(Clone, Debug, Default)]
pub(crate) enum Link {
    /// Not known yet.
    #[default]
    Connecting,
    /// It has answered.
    Up(ApiClient),
    /// It has not, and this is why.
    Down(Access),
}

impl Workload {
    /// The workload cluster of `cluster`, not reached out for yet.
    pub(crate) fn new(cluster: Key) -> Self {
        Self {
            cluster,
            state: Mutex::default(),
            budget: Arc::default(),
            refused: Notify::new(),
            lost: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Cluster.
    pub(crate) fn cluster(&self) -> &Key {
        &self.cluster
    }

    /// Whether it can be talked to.
    pub(crate) fn link(&self) -> Link {
        self.state().link.clone()
    }

    /// `key` uses it, and is woken when the link comes up or goes down.
    pub(crate) fn adopt(&self, key: &Key) {
        self.state().users.insert(key.clone());
    }

    /// `key` does not use it any more. Says whether nobody does.
    pub(crate) fn release(&self, key: &Key) -> bool {
        let mut state = self.state();
        state.users.remove(key);
        state.users.is_empty()
    }

    /// Whether `key` uses it.
    pub(crate) fn is_used_by(&self, key: &Key) -> bool {
        self.state().users.contains(key)
    }

    /// The name of the cache of its Nodes.
    pub(crate) fn nodes(&self) -> String {
        format!("nodes of {}", self.cluster)
    }

    /// The Nodes; filled while the cluster is in use.
    pub(crate) fn node_cache(&self, context: &Context) -> Arc<KindInformer> {
        let projection = CachedKind::Node(self.cluster.clone());
        context.ensure(self.nodes(), node(), projection).0
    }

    /// Follows the pods on the Node that belongs to `key`, from the first call on, into the cache
    /// [`pods_of`] it.
    pub(crate) fn follow_pods(
        &self,
        context: &Arc<Context>,
        key: &Key,
        api: &ApiClient,
        node: &str,
    ) {
        let projection = CachedKind::Pod(key.clone());
        let (informer, is_new) = context.ensure(pods_of(key), pod(), projection);
        if is_new {
            let scope = WatchScope {
                api: api.clone(),
                namespace: None,
                selector: Some(Selector::Fields(on_node(node))),
                part: None,
                link: None,
                budget: Some(self.budget.clone()),
            };
            informer.keep(context.spawn(fill(context.clone(), informer.clone(), scope)));
        }
    }

    /// A Node was read live: it is kept where nothing but its name has been kept.
    pub(crate) fn fill(&self, nodes: &KindInformer, node: &Value) {
        let mut object = nodes.projection.cache(node.clone(), &nodes.resource);
        if object.count(&self.budget).is_ok() {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            nodes.store.fill(&Key::new("", name), object);
        }
    }

    /// The name of the cache of the configurations of agents on its Nodes.
    pub(crate) fn agent_configs(&self) -> String {
        format!("agent configurations of {}", self.cluster)
    }

    /// The configurations of agents; followed from the first call on.
    pub(crate) fn agent_config_cache(
        &self,
        context: &Arc<Context>,
        api: &ApiClient,
    ) -> Arc<KindInformer> {
        let projection = CachedKind::AgentConfig(self.cluster.clone());
        let (informer, is_new) =
            context.ensure(self.agent_configs(), config_map(), projection);
        if is_new {
            let system = name::SYSTEM_NAMESPACE;
            let scope = WatchScope {
                api: api.clone(),
                namespace: Some(system.to_owned()),
                selector: None,
                part: None,
                link: None,
                budget: Some(self.budget.clone()),
            };
            informer.keep(context.spawn(fill(context.clone(), informer.clone(), scope)));
        }
        informer
    }

    /// Other credentials are in use from now on: what is followed besides the Nodes is followed
    /// anew by whoever needs it next.
    fn begin_anew(&self, context: &Context) {
        context.drop_cache(&self.agent_configs());
        let mut state = self.state();
        state.is_anew = true;
        let users = state.users.clone();
        drop(state);
        for key in &users {
            context.drop_cache(&pods_of(key));
        }
    }

    /// Reaches out: reads the Secret, connects, follows the Nodes.
    pub(crate) fn open(self: &Arc<Self>, context: &Arc<Context>) {
        let keeper = context.spawn(keep(context.clone(), self.clone()));
        self.state().keeper = Some(keeper);
    }

    /// Lets it go.
    pub(crate) fn close(&self, context: &Context) {
        self.state().keeper = None;
        context.drop_cache(&self.nodes());
        context.drop_cache(&self.agent_configs());
    }

    /// It has answered through `api`.
    pub(crate) fn is_up(&self, context: &Context, api: &ApiClient) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.link, Link::Up(api.clone()));
        // Where credentials have been rotated, the link may have been up all the while.
        let is_anew = std::mem::take(&mut state.is_anew);
        if matches!(before, Link::Up(_)) && !is_anew {
            return;
        }
        let users = state.users.clone();
        drop(state);
        tracing::info!(cluster = %self.cluster, "workload cluster answers");
        context.wake_keys(users);
    }

    /// It cannot be used, for that reason.
    pub(crate) fn is_down(&self, context: &Context, why: Access) {
        let mut state = self.state();
        if matches!(&state.link, Link::Down(known) if *known == why) {
            return;
        }
        context.outage.warn(
            format_args!("workload cluster {} cannot be used", self.cluster),
            &format!("{why:?}"),
        );
        state.link = Link::Down(why);
        let users = state.users.clone();
        drop(state);
        context.wake_keys(users);
    }

    /// A request to it has failed in a way that concerns all of them.
    pub(crate) fn is_broken_by(&self, context: &Context, error: &kube::Error) {
        let message = failure::message(error);
        match failure::code(error) {
            Some(401) => {
                self.is_down(context, Access::Unauthorized { message });
                self.refused.notify_one();
            }
            Some(403) => self.is_down(context, Access::Unauthorized { message }),
            None if TooLarge::of(error).is_some() => {
                self.is_down(context, Access::TooLarge { message });
            }
            _ => self.is_down(context, Access::Unreachable { message }),
        }
    }

    /// A request beside the watch has failed: the watch begins anew, to see when the cluster
    /// answers again.
    pub(crate) fn has_failed(&self, context: &Context, error: &kube::Error) {
        self.is_broken_by(context, error);
        // Without a permission the watch would only say that all is well.
        if failure::code(error) != Some(403) {
            self.lost.notify_one();
        }
    }
}

/// The name of the cache of the pods on the Node that belongs to `key`.
pub(crate) fn pods_of(key: &Key) -> String {
    format!("pods on the node of {key}")
}

/// Selects the pods that are bound to a Node.
pub(crate) fn on_node(node: &str) -> String {
    format!("spec.nodeName={node}")
}

/// Keeps the link for as long as the cluster is in use.
async fn keep(context: Arc<Context>, workload: Arc<Workload>) {
    match context.options.node_access {
        NodeAccess::Management => loop {
            let _session = follow_nodes(&context, &workload, context.api.clone());
            workload.lost.notified().await;
            context.clock.sleep(RETRY).await;
        },
        NodeAccess::Workload => secret::follow_secret(context, workload).await,
    }
}

/// Follows the Nodes through `api` for as long as the task is held.
fn follow_nodes(
    context: &Arc<Context>,
    workload: &Arc<Workload>,
    api: ApiClient,
) -> Task {
    let informer = workload.node_cache(context);
    let scope = WatchScope {
        api,
        namespace: None,
        selector: None,
        part: None,
        link: Some(workload.clone()),
        budget: Some(workload.budget.clone()),
    };
    context.spawn(fill(context.clone(), informer, scope))
}
