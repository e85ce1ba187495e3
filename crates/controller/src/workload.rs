//! The way to the nodes of one workload cluster.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::name;
use fivespot_capi::key::CLUSTER_NAME;
use fivespot_capi::one_line;
use fivespot_clock::{Busy, Clock, Sleep};
use fivespot_plan::Access;
use fivespot_runtime::cache::{Budget, Cached as _, Task, TooLarge, Trouble, Whole};
use fivespot_runtime::http::{Address, Port};
use fivespot_runtime::watch::{Selector, Sink, Watch, follow};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::failure;
use crate::kind::{config_map, node, pod};
use crate::metrics::counted;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::watch::{Feed, Scope, fill, retry};
use crate::{Key, NodeAccess, kubeconfig};

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
    Up(Port),
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
    pub(crate) fn node_cache(&self, shell: &Shell) -> Arc<Feed> {
        let shape = Shape::Node(self.cluster.clone());
        shell.ensure(self.nodes(), node(), shape).0
    }

    /// Follows the pods on the Node that belongs to `key`, from the first call on, into the cache
    /// [`pods_of`] it.
    pub(crate) fn follow_pods(
        &self,
        shell: &Arc<Shell>,
        key: &Key,
        port: &Port,
        node: &str,
    ) {
        let shape = Shape::Pod(key.clone());
        let (feed, is_new) = shell.ensure(pods_of(key), pod(), shape);
        if is_new {
            let scope = Scope {
                port: port.clone(),
                namespace: None,
                selector: Some(Selector::Fields(on_node(node))),
                part: None,
                link: None,
                budget: Some(self.budget.clone()),
            };
            feed.keep(shell.spawn(fill(shell.clone(), feed.clone(), scope)));
        }
    }

    /// A Node was read live: it is kept where nothing but its name has been kept.
    pub(crate) fn fill(&self, nodes: &Feed, node: &Value) {
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
        shell: &Arc<Shell>,
        port: &Port,
    ) -> Arc<Feed> {
        let shape = Shape::AgentConfig(self.cluster.clone());
        let (feed, is_new) = shell.ensure(self.agent_configs(), config_map(), shape);
        if is_new {
            let system = name::SYSTEM_NAMESPACE;
            let scope = Scope {
                port: port.clone(),
                namespace: Some(system.to_owned()),
                selector: None,
                part: None,
                link: None,
                budget: Some(self.budget.clone()),
            };
            feed.keep(shell.spawn(fill(shell.clone(), feed.clone(), scope)));
        }
        feed
    }

    /// Other credentials are in use from now on: what is followed besides the Nodes is followed
    /// anew by whoever needs it next.
    fn begin_anew(&self, shell: &Shell) {
        shell.drop_cache(&self.agent_configs());
        let mut state = self.state();
        state.is_anew = true;
        let users = state.users.clone();
        drop(state);
        for key in &users {
            shell.drop_cache(&pods_of(key));
        }
    }

    /// Reaches out: reads the Secret, connects, follows the Nodes.
    pub(crate) fn open(self: &Arc<Self>, shell: &Arc<Shell>) {
        let keeper = shell.spawn(keep(shell.clone(), self.clone()));
        self.state().keeper = Some(keeper);
    }

    /// Lets it go.
    pub(crate) fn close(&self, shell: &Shell) {
        self.state().keeper = None;
        shell.drop_cache(&self.nodes());
        shell.drop_cache(&self.agent_configs());
    }

    /// It has answered through `port`.
    pub(crate) fn is_up(&self, shell: &Shell, port: &Port) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.link, Link::Up(port.clone()));
        // Where credentials have been rotated, the link may have been up all the while.
        let is_anew = std::mem::take(&mut state.is_anew);
        if matches!(before, Link::Up(_)) && !is_anew {
            return;
        }
        let users = state.users.clone();
        drop(state);
        tracing::info!(cluster = %self.cluster, "workload cluster answers");
        shell.wake_keys(users);
    }

    /// It cannot be used, for that reason.
    pub(crate) fn is_down(&self, shell: &Shell, why: Access) {
        let mut state = self.state();
        if matches!(&state.link, Link::Down(known) if *known == why) {
            return;
        }
        shell.outage.complain(
            format_args!("workload cluster {} cannot be used", self.cluster),
            &format!("{why:?}"),
        );
        state.link = Link::Down(why);
        let users = state.users.clone();
        drop(state);
        shell.wake_keys(users);
    }

    /// A request to it has failed in a way that concerns all of them.
    pub(crate) fn is_broken_by(&self, shell: &Shell, error: &kube::Error) {
        let message = failure::words(error);
        match failure::code(error) {
            Some(401) => {
                self.is_down(shell, Access::Unauthorized { message });
                self.refused.notify_one();
            }
            Some(403) => self.is_down(shell, Access::Unauthorized { message }),
            None if TooLarge::of(error).is_some() => {
                self.is_down(shell, Access::TooLarge { message });
            }
            _ => self.is_down(shell, Access::Unreachable { message }),
        }
    }

    /// A request beside the watch has failed: the watch begins anew, to tell when the cluster
    /// answers again.
    pub(crate) fn has_failed(&self, shell: &Shell, error: &kube::Error) {
        self.is_broken_by(shell, error);
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
async fn keep(shell: Arc<Shell>, workload: Arc<Workload>) {
    match shell.options.node_access {
        NodeAccess::Management => loop {
            let _session = follow_nodes(&shell, &workload, shell.port.clone());
            workload.lost.notified().await;
            shell.clock.sleep(RETRY).await;
        },
        NodeAccess::Workload => follow_secret(shell, workload).await,
    }
}

/// Follows the Nodes through `port` for as long as the task is held.
fn follow_nodes(shell: &Arc<Shell>, workload: &Arc<Workload>, port: Port) -> Task {
    let feed = workload.node_cache(shell);
    let scope = Scope {
        port,
        namespace: None,
        selector: None,
        part: None,
        link: Some(workload.clone()),
        budget: Some(workload.budget.clone()),
    };
    shell.spawn(fill(shell.clone(), feed, scope))
}

/// The kubeconfig that is in use, and what it is used for.
#[derive(Default)]
struct Session {
    kubeconfig: Option<Vec<u8>>,
    nodes: Option<Task>,
}

async fn follow_secret(shell: Arc<Shell>, workload: Arc<Workload>) {
    let name = name::kubeconfig_secret(&workload.cluster.name);
    let (watch, mut shown) = watch_secret(&shell, &workload.cluster.namespace, &name);
    let mut watch = pin!(watch);
    let mut session = Session::default();
    let mut again = None;
    loop {
        let shown = tokio::select! {
            biased;
            Some(shown) = shown.recv() => shown,
            () = &mut watch => continue,
            () = workload.refused.notified() => {
                if let Ok(Some(secret)) = secret_now(&shell, &workload).await {
                    session.begin(&shell, &workload, &secret);
                }
                continue;
            }
            // What happens to the Secret meanwhile is processed meanwhile.
            () = workload.lost.notified(), if again.is_none() => {
                again = Some(shell.clock.sleep(RETRY));
                continue;
            }
            () = due(&mut again) => {
                again = None;
                let found = secret_now(&shell, &workload).await;
                session.begin_anew(&shell, &workload, found);
                continue;
            }
        };
        match shown.what {
            Shown::Secret(secret) => session.begin(&shell, &workload, &secret),
            Shown::Missing => {
                session = Session::default();
                let message = format!("there is no Secret {name}");
                workload.is_down(&shell, Access::KubeconfigMissing { message });
            }
            Shown::Failed(trouble) => session.cannot_read(&shell, &workload, &trouble),
        }
    }
}

/// The Secret, read live.
async fn secret_now(shell: &Shell, workload: &Workload) -> kube::Result<Option<Secret>> {
    let at = Address {
        resource: &ApiResource::erase::<Secret>(&()),
        namespace: Some(&workload.cluster.namespace),
        name: &name::kubeconfig_secret(&workload.cluster.name),
        shape: None,
    };
    let found = shell.port.get(&at).await?;
    found.map(secret_in).transpose()
}

fn secret_in(object: Value) -> kube::Result<Secret> {
    serde_json::from_value(object).map_err(kube::Error::SerdeError)
}

/// What the watch of the Secret shows. Time stands still until it has been processed.
struct Event {
    what: Shown,
    _processing: Busy,
}

enum Shown {
    /// It is there, and says this.
    Secret(Box<Secret>),
    /// It is not there.
    Missing,
    /// It could not be watched.
    Failed(Trouble),
}

/// Follows one Secret for as long as the future is polled.
fn watch_secret(
    shell: &Shell,
    namespace: &str,
    name: &str,
) -> (
    impl Future<Output = ()> + Send + use<>,
    UnboundedReceiver<Event>,
) {
    let (send, shown) = unbounded_channel();
    let watch = Watch {
        client: shell.port.clone(),
        resource: ApiResource::erase::<Secret>(&()),
        namespace: Some(namespace.to_owned()),
        selector: Some(Selector::named(name)),
        projection: Arc::new(Whole),
    };
    let sink = SecretEvents {
        clock: shell.clock.clone(),
        is_listed: false,
        send,
    };
    (follow(watch, retry(shell, name), sink), shown)
}

struct SecretEvents {
    clock: Clock,
    /// Whether the list under way has named it.
    is_listed: bool,
    send: UnboundedSender<Event>,
}

impl SecretEvents {
    fn send(&self, what: Shown) {
        let event = Event {
            what,
            _processing: self.clock.busy(),
        };
        // The other end is where this is polled.
        let _ = self.send.send(event);
    }
}

impl Sink for SecretEvents {
    fn list_begins(&mut self) {
        self.is_listed = false;
    }

    fn listed(&mut self, object: Value) -> kube::Result<()> {
        self.is_listed = true;
        self.put(object)
    }

    fn list_ends(&mut self) {
        if !self.is_listed {
            self.send(Shown::Missing);
        }
    }

    fn put(&mut self, object: Value) -> kube::Result<()> {
        let secret = secret_in(object)?;
        self.send(Shown::Secret(Box::new(secret)));
        Ok(())
    }

    fn deleted(&mut self, _object: Value) {
        self.send(Shown::Missing);
    }

    fn failed(&mut self, error: &kube::Error) {
        self.send(Shown::Failed(Trouble::of(error)));
    }
}

/// Ready when `sleep` is; never without one.
async fn due(sleep: &mut Option<Sleep>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

impl Session {
    /// Uses the kubeconfig that was found, whether or not it is in use already.
    fn begin_anew(
        &mut self,
        shell: &Arc<Shell>,
        workload: &Arc<Workload>,
        found: kube::Result<Option<Secret>>,
    ) {
        match found {
            Ok(Some(secret)) => {
                *self = Self::default();
                self.begin(shell, workload, &secret);
            }
            // The watch of the Secret tells of that.
            Ok(None) => {}
            Err(_) => workload.lost.notify_one(),
        }
    }

    /// Uses the kubeconfig in `secret`, unless it is in use already.
    fn begin(&mut self, shell: &Arc<Shell>, workload: &Arc<Workload>, secret: &Secret) {
        match kubeconfig_in(secret, &workload.cluster.name) {
            Ok(bytes) if self.kubeconfig.as_deref() == Some(bytes) => {}
            Ok(bytes) => {
                self.nodes = None;
                workload.begin_anew(shell);
                self.kubeconfig = Some(bytes.to_vec());
                match connect(shell, bytes) {
                    Ok(port) => {
                        self.nodes = Some(follow_nodes(shell, workload, port));
                    }
                    Err(message) => {
                        let refused = Access::KubeconfigRefused { message };
                        workload.is_down(shell, refused);
                    }
                }
            }
            Err(access) => {
                *self = Self::default();
                workload.is_down(shell, access);
            }
        }
    }

    /// What has been read before stays in use. It is the management cluster that has not answered.
    fn cannot_read(&self, shell: &Shell, workload: &Workload, trouble: &Trouble) {
        if self.kubeconfig.is_some() {
            return;
        }
        let words = one_line(&trouble.message);
        let access = match trouble.code {
            Some(403) => Access::KubeconfigMissing { message: words },
            _ => Access::Unreachable {
                message: format!(
                    "the management cluster does not answer the read of Secret {}: {words}",
                    name::kubeconfig_secret(&workload.cluster.name),
                ),
            },
        };
        workload.is_down(shell, access);
    }
}

/// The kubeconfig in Cluster API's Secret for `cluster`.
fn kubeconfig_in<'a>(secret: &'a Secret, cluster: &str) -> Result<&'a [u8], Access> {
    let labels = secret.metadata.labels.as_ref();
    if labels.and_then(name::cluster) != Some(cluster) {
        let message = format!("the Secret lacks the label {CLUSTER_NAME}={cluster}");
        return Err(Access::KubeconfigRefused { message });
    }
    let data = secret.data.as_ref();
    let value = data.and_then(|data| data.get(name::KUBECONFIG_SECRET_KEY));
    value.map(|value| value.0.as_slice()).ok_or_else(|| {
        let key = name::KUBECONFIG_SECRET_KEY;
        let message = format!("the Secret has no key {key}");
        Access::KubeconfigMissing { message }
    })
}

fn connect(shell: &Shell, kubeconfig: &[u8]) -> Result<Port, String> {
    let access = kubeconfig::Access::parse(kubeconfig, shell.options.workload_servers)
        .map_err(|error| error.to_string())?;
    let client = shell.options.connect.connect(&access);
    client
        .map(|client| {
            Port::new(
                counted(client, &shell.metrics, "workload"),
                name::FIELD_MANAGER,
            )
        })
        .map_err(|error| failure::words(&error))
}
