//! Observes the workload cluster: the Node, and the pods on it.

pub(super) mod pods;

use fivespot_api::{ScheduledMachine, name};
use fivespot_plan::{
    Access, AgentConfig, Fact, Freshness, Locations, Node, Pod, Unknown, Workload,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::failure;
use crate::kind;
use crate::observe::projection::{CachedKind, node_terms};
use crate::observe::workload::{self, Link, pods_of};
use fivespot_runtime::Key;
use fivespot_runtime::cache::TooLarge;
use fivespot_runtime::http::{Address, ApiClient};

/// How long all reads of one observation from a workload cluster may take together. Each response
/// may take as long, and a list may have many pages: a cluster that is slow on purpose must not
/// hold a removal, or the reconciles of others.
const READ_LIMIT: SignedDuration = SignedDuration::from_secs(30);

/// The Node that `locations` names, if it names one, and its pods. A kill switch does not wait for
/// a response of the workload cluster.
pub(super) async fn workload(
    source: &Source<'_>,
    object: &ScheduledMachine,
    locations: &Locations,
) -> Result<Workload, Incomplete> {
    let Source { context, key, .. } = source;
    if !locations.wants_pods {
        context.drop_cache(&pods_of(key));
    }
    let Some(node) = &locations.node else {
        context.release(key, None);
        return Ok(Workload::default());
    };
    let cluster = Key::new(key.namespace.clone(), locations.cluster.clone());
    context.release(key, Some(&cluster));
    let workload = context.workload(&cluster, key);
    let lookup = NodeLookup {
        source,
        workload: &workload,
        cluster: &cluster,
        machine: &locations.machine,
        node,
        wants_pods: locations.wants_pods,
        wants_agent: locations.wants_agent,
    };
    if !locations.has_joined {
        return Ok(lookup.cached_if_connected());
    }
    match (workload.link(), source.freshness) {
        (Link::Up(api), Freshness::Cached) => lookup.cached(&api),
        (Link::Up(api), Freshness::Live) if object.spec.kill_switch => Ok(lookup
            .cached(&api)
            .unwrap_or_else(|_| without_node(Access::Connected))),
        (Link::Up(api), Freshness::Live) => {
            let shutdown = object.status.as_ref().and_then(|it| it.shutdown.as_ref());
            let deadline = shutdown.map(|shutdown| shutdown.deadline);
            Ok(lookup.live_within_limit(&api, deadline).await)
        }
        (Link::Down(access), _) => Ok(without_node(access)),
        (Link::Connecting, Freshness::Cached) => Err(Incomplete::NotYet),
        (Link::Connecting, Freshness::Live) => Ok(without_node(Access::Unreachable {
            message: "the workload cluster has not responded yet".to_owned(),
        })),
    }
}

/// Only whether the workload cluster responds.
fn without_node(access: Access) -> Workload {
    Workload {
        access,
        ..Workload::default()
    }
}

struct NodeLookup<'a> {
    source: &'a Source<'a>,
    workload: &'a workload::Workload,
    cluster: &'a Key,
    machine: &'a str,
    node: &'a str,
    wants_pods: bool,
    wants_agent: bool,
}

impl NodeLookup<'_> {
    /// The Node from the cache, for status messages only; does not wait for it.
    fn cached_if_connected(&self) -> Workload {
        match self.workload.link() {
            Link::Connecting => Workload::default(),
            Link::Down(access) => without_node(access),
            Link::Up(_) => {
                let nodes = self.workload.node_cache(self.source.context);
                let node = self.source.cached(&nodes, &Key::new("", self.node));
                Workload {
                    node: node.map(parse_node).unwrap_or_default(),
                    ..without_node(Access::Connected)
                }
            }
        }
    }

    fn cached(&self, api: &ApiClient) -> Result<Workload, Incomplete> {
        let Source { context, key, .. } = self.source;
        let nodes = self.workload.node_cache(context);
        let name = Key::new("", self.node);
        // Only the name is kept of a Node that had no Machine.
        if nodes
            .store
            .get(&name)
            .is_some_and(|node| node.is_name_only())
        {
            return Err(Incomplete::NotCached);
        }
        let node = parse_node(self.source.cached(&nodes, &name)?);
        let pods = if self.wants_pods {
            // Pods are watched only if a live read has found one that must be waited for.
            let informer = context.cache(&pods_of(key)).ok_or(Incomplete::NotCached)?;
            let synced = self.source.cached(&informer, &Key::new("", ""))?;
            synced.and_then(|_| {
                let all = informer.store.all().into_iter();
                let pods = all.map(|(_, object)| pods::parse_pod(object.value()));
                pods.collect::<Result<Vec<Pod>, Unknown>>().into()
            })
        } else {
            Fact::default()
        };
        let agent_config = if self.needs_agent_config(&node) {
            let informer = self.workload.agent_config_cache(self.source.context, api);
            agent_config(self.source.cached(&informer, &self.agent_config_key())?)
        } else {
            Fact::default()
        };
        Ok(Workload {
            access: Access::Connected,
            conflicting_machine: self.conflicting_machine(&node),
            node,
            pods,
            agent_config,
        })
    }

    /// Reads live, for [`READ_LIMIT`] at most, and not beyond a deadline that is ahead: what
    /// follows at the deadline does not need the Node.
    async fn live_within_limit(
        &self,
        api: &ApiClient,
        deadline: Option<Timestamp>,
    ) -> Workload {
        let clock = &self.source.context.clock;
        let deadline = deadline.filter(|deadline| *deadline > clock.now());
        let at_deadline = async {
            match deadline {
                Some(deadline) => clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            workload = self.live(api) => workload,
            // The cluster may only have had little time: other machines may still use it.
            () = at_deadline => without_node(Access::Unreachable {
                message: "the workload cluster did not respond before the deadline".to_owned(),
            }),
            () = clock.sleep(READ_LIMIT) => {
                let message = format!("the workload cluster did not respond within {READ_LIMIT:#}");
                self.unreachable(&kube::Error::Service(message.into()))
            }
        }
    }

    async fn live(&self, api: &ApiClient) -> Workload {
        let (version, node) = match self.read_node(api).await {
            Ok(node) => (version(node.as_ref()), parse_node(Fact::Known(node))),
            Err(error) => return self.unreachable(&error),
        };
        let bound = if self.wants_pods {
            // After the Node: the list is complete only if the Node was already cordoned.
            let pods = match self.pods_for_version(&version, api).await {
                Ok(pods) => pods,
                // Other Nodes of the cluster are read as before.
                Err(error) if TooLarge::of(&error).is_some() => {
                    let message = failure::message(&error);
                    return without_node(Access::TooLarge { message });
                }
                Err(error) => return self.unreachable(&error),
            };
            // Pods that must be waited for are watched, so that the end of a pod triggers the next
            // reconcile. Watches cost memory, and at an edge thousands of Nodes may have no such
            // pods.
            let is_waited_for = |pods: &Vec<Pod>| pods.iter().any(Pod::has_to_leave);
            if pods.known().is_some_and(is_waited_for) {
                let Source { context, key, .. } = self.source;
                self.workload.follow_pods(context, key, api, self.node);
            }
            pods
        } else {
            Fact::default()
        };
        let agent_config = if self.needs_agent_config(&node) {
            self.read_agent_config(api).await
        } else {
            Fact::default()
        };
        Workload {
            access: Access::Connected,
            conflicting_machine: self.conflicting_machine(&node),
            node,
            pods: bound,
            agent_config,
        }
    }

    /// All pods that are bound to the Node, which has that resourceVersion.
    async fn pods_for_version(
        &self,
        version: &str,
        api: &ApiClient,
    ) -> kube::Result<Fact<Vec<Pod>>> {
        let Source { key, reads, .. } = self.source;
        if let Some(pods) = reads.pods(version) {
            return Ok(pods.fact());
        }
        let listed = pods::list(self.workload, api, key, self.node).await?;
        let pods = listed.fact();
        reads.record_pods(version, listed);
        Ok(pods)
    }

    /// Whether the agent's configuration is needed: there should be one, or one may be left.
    fn needs_agent_config(&self, node: &Fact<Option<Node>>) -> bool {
        let node = node.known().and_then(Option::as_ref);
        node.is_some_and(|node| self.wants_agent || node.agent_label.is_some())
    }

    /// Another Machine of the Cluster that refers to the Node, or has its provider ID.
    fn conflicting_machine(&self, node: &Fact<Option<Node>>) -> Option<String> {
        let node = node.known()?.as_ref()?;
        let provider_id = node.provider_id.as_deref().unwrap_or_default();
        let terms = node_terms(self.cluster, &node.name, provider_id);
        let found = terms
            .iter()
            .flat_map(|term| self.source.context.machines(term));
        found
            .map(|key| key.name.clone())
            .find(|name| name != self.machine)
    }

    fn agent_config_key(&self) -> Key {
        let name = name::reclaim_config_map(self.node);
        Key::new(name::SYSTEM_NAMESPACE, name)
    }

    /// Reads the agent's ConfigMap live. An error is reported only for it: the Node can be
    /// reached.
    async fn read_agent_config(&self, api: &ApiClient) -> Fact<Option<AgentConfig>> {
        let (cache, key) = (self.workload.agent_configs(), self.agent_config_key());
        if let Fact::Known(known) = self.source.reads.get(&cache, &key) {
            return agent_config(Fact::Known(known));
        }
        let resource = kind::config_map();
        let projection = CachedKind::AgentConfig(self.workload.cluster().clone());
        let at = Address {
            resource: &resource,
            namespace: Some(&key.namespace),
            name: &key.name,
            projection: Some(&projection),
        };
        let informer = self.workload.agent_config_cache(self.source.context, api);
        let found = api.get(&at).await.and_then(|found| {
            self.reserve(found.as_ref())?;
            Ok(found)
        });
        match found {
            Ok(found) => {
                let lists_begun = informer.store.lists_begun(&key.namespace);
                let found_now = found.as_ref();
                self.source.record(&informer, &key, found_now, lists_begun);
                agent_config(Fact::Known(found))
            }
            Err(error) => Fact::Unknown(failure::unknown(&error)),
        }
    }

    /// Counts an object that was read live in the memory budget of its cluster, until the reconcile
    /// ends.
    fn reserve(&self, found: Option<&Value>) -> Result<(), TooLarge> {
        let share = found.map(|it| self.workload.reserve_object(it));
        self.source.reads.hold(share.transpose()?);
        Ok(())
    }

    async fn read_node(&self, api: &ApiClient) -> kube::Result<Option<Value>> {
        let (cache, name) = (self.workload.nodes(), Key::new("", self.node));
        if let Fact::Known(known) = self.source.reads.get(&cache, &name) {
            return Ok(known);
        }
        let resource = kind::node();
        let nodes = self.workload.node_cache(self.source.context);
        let at = Address {
            resource: &resource,
            namespace: None,
            name: self.node,
            projection: Some(&nodes.projection),
        };
        let found = api.get(&at).await?;
        let lists_begun = nodes.store.lists_begun("");
        self.reserve(found.as_ref())?;
        if let Some(found) = &found {
            self.workload.store_node(&nodes, found);
        }
        self.source
            .record(&nodes, &name, found.as_ref(), lists_begun);
        Ok(found)
    }

    /// The workload cluster does not respond, or rejects the request.
    fn unreachable(&self, error: &kube::Error) -> Workload {
        self.workload
            .handle_request_failure(self.source.context, error);
        match self.workload.link() {
            Link::Down(access) => without_node(access),
            Link::Connecting | Link::Up(_) => without_node(Access::Unreachable {
                message: failure::message(error),
            }),
        }
    }
}

/// The resourceVersion of a Node; empty if there is none.
fn version(node: Option<&Value>) -> String {
    let version = node.and_then(|node| node["metadata"]["resourceVersion"].as_str());
    version.unwrap_or_default().to_owned()
}

fn parse_node(found: Fact<Option<Value>>) -> Fact<Option<Node>> {
    parse(found, |node: &core::Node| Node::from(node))
}

fn agent_config(found: Fact<Option<Value>>) -> Fact<Option<AgentConfig>> {
    parse(found, |config: &core::ConfigMap| AgentConfig::from(config))
}

fn parse<K: DeserializeOwned, T>(
    found: Fact<Option<Value>>,
    read: impl Fn(&K) -> T,
) -> Fact<Option<T>> {
    found.and_then(|found| {
        let object = found.map(deserialize::<K>).transpose();
        object.map(|object| object.as_ref().map(read)).into()
    })
}

fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T, Unknown> {
    serde_json::from_value(value).map_err(|error| Unknown::Failed {
        message: error.to_string(),
    })
}
