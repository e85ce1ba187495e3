//! The connection to one workload cluster.

mod secret;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::name;
use fivespot_plan::Access;
use fivespot_runtime::cache::{
    Budget, CacheProjection as _, Reservation, Task, TooLarge, check_identifiers,
};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::watch::Selector;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::sync::Notify;

use crate::context::Context;
use crate::failure;
use crate::kind::{config_map, node, pod};
use crate::observe::projection::{CachedKind, KindInformer};
use crate::observe::watch::{WatchScope, fill};
use crate::{Key, NodeAccess};

/// The query parameter that selects objects by their fields.
pub(crate) const FIELDS: &str = "fieldSelector";

/// After how long a cluster that has failed to respond is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(5);

/// A workload cluster in use.
#[derive(Debug)]
pub(crate) struct Workload {
    cluster: Key,
    state: Mutex<State>,
    /// The memory budget of its caches.
    budget: Arc<Budget>,
    /// The credentials were rejected: the Secret must be read again.
    credentials_refused: Notify,
    /// A request failed outside the watch: the watch must restart.
    connection_lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    link: Link,
    /// Other credentials are in use than those of the last response.
    is_reconnected: bool,
    users: BTreeSet<Key>,
    /// The task that watches the Secret.
    watch_task: Option<Task>,
}

/// Whether the workload cluster can be reached.
#[derive(Clone, Debug, Default)]
pub(crate) enum Link {
    /// Not known yet.
    #[default]
    Connecting,
    /// It has responded; its client.
    Up(ApiClient),
    /// It cannot be used; the reason.
    Down(Access),
}

impl Workload {
    /// The workload cluster of `cluster`, not connected yet.
    pub(crate) fn new(cluster: Key) -> Self {
        Self {
            cluster,
            state: Mutex::default(),
            budget: Arc::default(),
            credentials_refused: Notify::new(),
            connection_lost: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of the Cluster.
    pub(crate) fn cluster(&self) -> &Key {
        &self.cluster
    }

    /// Whether it can be reached.
    pub(crate) fn link(&self) -> Link {
        self.state().link.clone()
    }

    /// Reserves memory for an object that a reconcile keeps until it ends.
    ///
    /// # Errors
    /// The memory budget of the cluster is exceeded, or an identifier is too long.
    pub(crate) fn reserve_object(&self, object: &Value) -> Result<Reservation, TooLarge> {
        check_identifiers(object)?;
        self.reserve(object.to_string().len())
    }

    /// Reserves memory for what a reconcile keeps of an object of so many bytes.
    ///
    /// # Errors
    /// The memory budget of the cluster is exceeded.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reservation, TooLarge> {
        self.budget.add(bytes)
    }

    /// Adds `key` as a user, which is enqueued when the link goes up or down.
    pub(crate) fn add_user(&self, key: &Key) {
        self.state().users.insert(key.clone());
    }

    /// Removes `key` as a user. Returns whether there are no users left.
    pub(crate) fn remove_user(&self, key: &Key) -> bool {
        let mut state = self.state();
        state.users.remove(key);
        state.users.is_empty()
    }

    /// Whether `key` is a user.
    pub(crate) fn is_used_by(&self, key: &Key) -> bool {
        self.state().users.contains(key)
    }

    /// The name of the cache of its Nodes.
    pub(crate) fn nodes(&self) -> String {
        format!("nodes of {}", self.cluster)
    }

    /// The cache of its Nodes; filled while the cluster is in use.
    pub(crate) fn node_cache(&self, context: &Context) -> Arc<KindInformer> {
        let projection = CachedKind::Node(self.cluster.clone());
        context.ensure(self.nodes(), node(), projection).0
    }

    /// Watches the pods on the Node of `key`, from the first call on. They are in the cache named
    /// [`pods_of`].
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
                selector: Some(Selector::Fields(on_node(node))),
                budget: Some(self.budget.clone()),
                ..WatchScope::of(api.clone())
            };
            context.follow(&informer, scope);
        }
    }

    /// Stores a Node that was read live, if the cache has only its name.
    pub(crate) fn store_node(&self, nodes: &KindInformer, node: &Value) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let key = Key::new("", name);
        let mut object = nodes.projection.cache(node.clone(), &nodes.resource);
        if object.count(&key, &self.budget).is_ok() {
            nodes.store.fill(&key, object);
        }
    }

    /// The name of the cache of the agent configurations on its Nodes.
    pub(crate) fn agent_configs(&self) -> String {
        format!("agent configurations of {}", self.cluster)
    }

    /// The cache of agent configurations; watched from the first call on.
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
                namespace: Some(system.to_owned()),
                budget: Some(self.budget.clone()),
                ..WatchScope::of(api.clone())
            };
            context.follow(&informer, scope);
        }
        informer
    }

    /// Other credentials are in use: drops the caches of agent configurations and pods. The next
    /// reconcile that needs one starts its watch again.
    fn reconnect(&self, context: &Context) {
        context.drop_cache(&self.agent_configs());
        let mut state = self.state();
        state.is_reconnected = true;
        let users = state.users.clone();
        drop(state);
        for key in &users {
            context.drop_cache(&pods_of(key));
        }
    }

    /// Connects: reads the Secret and watches the Nodes.
    pub(crate) fn open(self: &Arc<Self>, context: &Arc<Context>) {
        let watch_task = context.spawn(maintain_link(context.clone(), self.clone()));
        self.state().watch_task = Some(watch_task);
    }

    /// Closes the connection and drops the caches.
    pub(crate) fn close(&self, context: &Context) {
        self.state().watch_task = None;
        context.drop_cache(&self.nodes());
        context.drop_cache(&self.agent_configs());
    }

    /// Records that the cluster has responded through `api`.
    pub(crate) fn mark_up(&self, context: &Context, api: &ApiClient) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.link, Link::Up(api.clone()));
        // If credentials have been rotated, the link may have been up all the time.
        let is_reconnected = std::mem::take(&mut state.is_reconnected);
        if matches!(before, Link::Up(_)) && !is_reconnected {
            return;
        }
        let users = state.users.clone();
        drop(state);
        tracing::info!(cluster = %self.cluster, "workload cluster connected");
        context.enqueue_keys(users);
    }

    /// Records that the cluster cannot be used, and the reason.
    pub(crate) fn mark_down(&self, context: &Context, why: Access) {
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
        context.enqueue_keys(users);
    }

    /// Records that a request has failed in a way that affects all requests to the cluster.
    pub(crate) fn handle_error(&self, context: &Context, error: &kube::Error) {
        let message = failure::message(error);
        match failure::code(error) {
            Some(401) => {
                self.mark_down(context, Access::Unauthorized { message });
                self.credentials_refused.notify_one();
            }
            Some(403) => self.mark_down(context, Access::Unauthorized { message }),
            None if TooLarge::of(error).is_some() => {
                self.mark_down(context, Access::TooLarge { message });
            }
            _ => self.mark_down(context, Access::Unreachable { message }),
        }
    }

    /// A request outside the watch has failed. The watch restarts, so that it shows when the
    /// cluster responds again.
    pub(crate) fn handle_request_failure(&self, context: &Context, error: &kube::Error) {
        self.handle_error(context, error);
        // If a permission is missing, restarting the watch would only report success.
        if failure::code(error) != Some(403) {
            self.connection_lost.notify_one();
        }
    }
}

/// The name of the cache of the pods on the Node of `key`.
pub(crate) fn pods_of(key: &Key) -> String {
    format!("pods on the node of {key}")
}

/// The field selector of the pods that are bound to a Node.
pub(crate) fn on_node(node: &str) -> String {
    format!("spec.nodeName={node}")
}

/// Keeps the link for as long as the cluster is in use.
async fn maintain_link(context: Arc<Context>, workload: Arc<Workload>) {
    match context.options.node_access {
        NodeAccess::Management => loop {
            let _session = follow_nodes(&context, &workload, context.api.clone());
            workload.connection_lost.notified().await;
            context.clock.sleep(RETRY).await;
        },
        NodeAccess::Workload => secret::follow_secret(context, workload).await,
    }
}

/// Watches the Nodes through `api` for as long as the task is held.
fn follow_nodes(
    context: &Arc<Context>,
    workload: &Arc<Workload>,
    api: ApiClient,
) -> Task {
    let informer = workload.node_cache(context);
    let scope = WatchScope {
        link: Some(workload.clone()),
        budget: Some(workload.budget.clone()),
        ..WatchScope::of(api)
    };
    context.spawn(fill(context.clone(), informer, scope))
}
