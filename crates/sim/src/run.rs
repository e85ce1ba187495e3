//! The control loop: changes enqueue keys, and keys are requeued when they are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_capi::Contract;
use fivespot_capi::key::CLUSTER_NAME;
use futures::StreamExt;
use futures::stream::SelectAll;
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::{Client, Status};
use kubemu_clock::Clock;
use serde_json::Value;

use crate::api::{Api, Changes};
use crate::crd::{BOOTSTRAP, CapiResources, INFRASTRUCTURE, definitions};
use crate::key::{Key, affected_keys, provider_keys, watched_resources};
use crate::object::{controller, label, name, namespace, text};
use crate::write::{NODES, PODS, Resource, SECRETS, Step, Write};
use crate::{cluster, machine, node, pod, provider};

/// How long after a rejected write a key is requeued.
const RETRY_DELAY: SignedDuration = SignedDuration::from_secs(2);

/// The options of the simulator.
#[derive(Clone, Debug)]
pub struct Options {
    /// A client of the API server with all permissions.
    pub client: Client,
    /// The same clock as the API server's.
    pub clock: Clock,
    /// The simulated contract version of Cluster API.
    pub contract: Contract,
    /// The kubeconfig in the clusters' Secrets; without one there are no Secrets.
    pub kubeconfig: Option<String>,
}

/// Defines the simulated resources and creates the permanent node. It may be called repeatedly.
///
/// # Errors
/// The API server rejects a definition that does not exist yet.
pub async fn install(options: &Options) -> Result<(), Status> {
    define(options).await?;
    create_node(options).await
}

/// Defines the simulated resources. It may be called repeatedly.
///
/// # Errors
/// The API server rejects a definition that does not exist yet.
pub async fn define(options: &Options) -> Result<(), Status> {
    let api = Api::new(options.client.clone());
    for definition in definitions(options.contract) {
        api.define(definition).await?;
    }
    Ok(())
}

/// Creates the permanent node, if it does not exist.
///
/// # Errors
/// The API server rejects it.
pub async fn create_node(options: &Options) -> Result<(), Status> {
    let api = Api::new(options.client.clone());
    let permanent_node = node::permanent_node(options.clock.now());
    let write = Write::Create {
        collection: NODES.collection(""),
        object: permanent_node,
    };
    match api.write(&write).await {
        Err(status) if status.code != 409 => Err(status),
        _ => Ok(()),
    }
}

/// Simulates until dropped. [`install`] must be called first.
pub async fn run(options: Options) {
    let capi = CapiResources {
        contract: options.contract,
    };
    let api = Api::new(options.client);
    let mut events: SelectAll<Changes> = watched_resources(capi)
        .into_iter()
        .map(|resource| api.changes(resource))
        .collect();
    let mut simulator = Simulator {
        api,
        capi,
        clock: options.clock.clone(),
        kubeconfig: options.kubeconfig,
        queue: DelayQueue::default(),
    };
    loop {
        let due = simulator.queue.next_due();
        tokio::select! {
            // The order is fixed, so that runs are deterministic.
            biased;
            event = events.next() => match event {
                Some((resource, object)) => simulator.enqueue(resource, &object).await,
                None => return,
            },
            () = wait(&options.clock, due) => {}
        }
        let busy = options.clock.busy();
        simulator.process_due().await;
        drop(busy);
    }
}

async fn wait(clock: &Clock, due: Option<Timestamp>) {
    match due {
        Some(due) => clock.sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Keys in the order in which they are due, each at most once.
#[derive(Debug, Default)]
struct DelayQueue {
    by_key: BTreeMap<Key, Timestamp>,
    by_due: BTreeSet<(Timestamp, Key)>,
}

impl DelayQueue {
    /// Schedules `key` for `due`, unless it is already due earlier.
    fn schedule(&mut self, key: Key, due: Timestamp) {
        match self.by_key.get(&key) {
            Some(earlier) if *earlier <= due => return,
            Some(later) => {
                self.by_due.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.by_due.insert((due, key.clone()));
        self.by_key.insert(key, due);
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.by_due.first().map(|(due, _)| *due)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<Key> {
        if self.next_due()? > now {
            return None;
        }
        let (_, key) = self.by_due.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}

struct Simulator {
    api: Api,
    capi: CapiResources,
    clock: Clock,
    kubeconfig: Option<String>,
    queue: DelayQueue,
}

impl Simulator {
    /// Enqueues the keys that a change affects.
    async fn enqueue(&mut self, resource: Resource, object: &Value) {
        let now = self.clock.now();
        for key in affected_keys(self.capi, resource, object) {
            self.queue.schedule(key, now);
        }
        if resource == self.capi.clusters() {
            for machine in self.machines_of(object).await {
                for key in provider_keys(self.capi, &machine) {
                    self.queue.schedule(key, now);
                }
                self.queue
                    .schedule(Key::of(self.capi.machines(), &machine), now);
            }
        } else if resource == NODES {
            for pod in self.api.pods_on(name(object)).await {
                self.queue.schedule(Key::of(PODS, &pod), now);
            }
        } else if resource == PODS {
            self.enqueue_machine_of_pod(object, now).await;
        }
    }

    /// Enqueues the Machine of the pod's Node: a drain waits for its pods.
    async fn enqueue_machine_of_pod(&mut self, pod: &Value, now: Timestamp) {
        let Some(node) = text(pod, "/spec/nodeName") else {
            return;
        };
        let Some(node) = self.api.get(NODES, "", node).await else {
            return;
        };
        for key in affected_keys(self.capi, NODES, &node) {
            if key.resource == self.capi.machines() {
                self.queue.schedule(key, now);
            }
        }
    }

    async fn process_due(&mut self) {
        while let Some(key) = self.queue.pop_due(self.clock.now()) {
            let step = self.step(&key).await;
            if let Some(due) = step.requeue_at {
                self.queue.schedule(key.clone(), due);
            }
            for write in &step.writes {
                self.send(&key, write).await;
            }
        }
    }

    /// Sends a write. A rejection is not an error of the simulation: another client changed an
    /// input of the step, and the event of that change enqueues the key again. If no event is
    /// to be expected, the key is requeued a little later.
    async fn send(&mut self, key: &Key, write: &Write) {
        let Err(status) = self.api.write(write).await else {
            return;
        };
        let is_eviction = matches!(write, Write::Evict { .. });
        if status.code != 404 && status.code != 409 && !is_eviction {
            tracing::debug!(%status, "the API server rejected a write of the simulator");
            self.queue
                .schedule(key.clone(), self.clock.now() + RETRY_DELAY);
        }
    }

    async fn step(&mut self, key: &Key) -> Step {
        let Some(object) = self.api.get(key.resource, &key.namespace, &key.name).await
        else {
            return Step::idle();
        };
        let now = self.clock.now();
        if key.resource == self.capi.clusters() {
            self.step_cluster(&object, now).await
        } else if key.resource == self.capi.machines() {
            self.step_machine(&object, now).await
        } else if key.resource == NODES {
            node::step(&object, now)
        } else if key.resource == PODS {
            self.step_pod(&object, now).await
        } else {
            self.step_provider(key.resource, &object, now).await
        }
    }

    async fn step_cluster(&self, cluster: &Value, now: Timestamp) -> Step {
        let machines = self.machines_of(cluster).await;
        let secret = format!("{}-kubeconfig", name(cluster));
        let has_kubeconfig = self
            .api
            .get(SECRETS, namespace(cluster), &secret)
            .await
            .is_some();
        let input = cluster::ClusterInput {
            cluster,
            machines: &machines,
            has_kubeconfig,
            kubeconfig: self.kubeconfig.as_deref(),
        };
        cluster::step(self.capi, &input, now)
    }

    async fn step_machine(&self, machine: &Value, now: Timestamp) -> Step {
        let cluster = self
            .cluster_of(machine, text(machine, "/spec/clusterName"))
            .await;
        let mut bootstrap = None;
        let mut infrastructure = None;
        for key in provider_keys(self.capi, machine) {
            let object = self.api.get(key.resource, &key.namespace, &key.name).await;
            if BOOTSTRAP.contains(&key.resource) {
                bootstrap = object.map(|object| (key.resource, object));
            } else if key.resource == INFRASTRUCTURE {
                infrastructure = object.map(|object| (key.resource, object));
            }
        }
        let node = self.api.get(NODES, "", name(machine)).await;
        let pods = if crate::object::is_deleting(machine) {
            self.api.pods_on(name(machine)).await
        } else {
            Vec::new()
        };
        let input = machine::MachineInput {
            machine,
            cluster: cluster.as_deref(),
            bootstrap: bootstrap
                .as_ref()
                .map(|(resource, object)| (*resource, &**object)),
            infrastructure: infrastructure
                .as_ref()
                .map(|(resource, object)| (*resource, &**object)),
            node: node.as_deref(),
            pods: &pods,
        };
        machine::step(self.capi, &input, now)
    }

    async fn step_provider(
        &self,
        resource: Resource,
        object: &Value,
        now: Timestamp,
    ) -> Step {
        let machine = match machine::controlling_machine(object) {
            Some((namespace, name)) => {
                self.api.get(self.capi.machines(), namespace, name).await
            }
            None => None,
        };
        let machine = machine.filter(|machine| {
            controller(object)
                .is_some_and(|owner| owner["uid"] == crate::object::uid(machine))
        });
        let cluster = self.cluster_of(object, label(object, CLUSTER_NAME)).await;
        let secret = self.api.get(SECRETS, namespace(object), name(object)).await;
        let key = text(object, "/spec/sshKeyRef/name");
        let missing_key = match key {
            Some(key)
                if self
                    .api
                    .get(SECRETS, namespace(object), key)
                    .await
                    .is_none() =>
            {
                Some(key)
            }
            Some(_) | None => None,
        };
        let input = provider::ProviderInput {
            resource,
            object,
            machine: machine.as_deref(),
            cluster: cluster.as_deref(),
            has_secret: secret.is_some(),
            missing_key,
        };
        if resource == INFRASTRUCTURE {
            provider::infrastructure(self.capi, &input, now)
        } else {
            provider::bootstrap(self.capi, &input, now)
        }
    }

    async fn step_pod(&mut self, pod: &Value, now: Timestamp) -> Step {
        let node = match text(pod, "/spec/nodeName") {
            Some(node) => self.api.get(NODES, "", node).await,
            None => None,
        };
        pod::step(pod, node.as_deref(), now)
    }

    async fn machines_of(&self, cluster: &Value) -> Vec<Arc<Value>> {
        let mut machines = self
            .api
            .list(self.capi.machines(), namespace(cluster))
            .await;
        machines
            .retain(|machine| text(machine, "/spec/clusterName") == Some(name(cluster)));
        machines
    }

    async fn cluster_of(
        &self,
        object: &Value,
        cluster: Option<&str>,
    ) -> Option<Arc<Value>> {
        self.api
            .get(self.capi.clusters(), namespace(object), cluster?)
            .await
    }
}
