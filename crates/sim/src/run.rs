//! The control loop: changes enqueue keys, and keys are requeued when they are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_apiserver::{Client, Status};
use fivespot_capi::key::CLUSTER_NAME;
use fivespot_clock::Clock;
use futures::StreamExt;
use futures::stream::SelectAll;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::{Api, Changes};
use crate::contract::Contract;
use crate::crd::{BOOTSTRAP, INFRASTRUCTURE, Served, definitions};
use crate::key::{Key, affected, referred, watched};
use crate::object::{controller, label, name, namespace, text};
use crate::write::{NODES, PODS, Resource, SECRETS, Step, Write};
use crate::{cluster, machine, node, pod, provider};

/// How long after a rejected write a key is requeued.
const RETRY: SignedDuration = SignedDuration::from_secs(2);

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
    let api = Api::new(options.client.clone());
    for definition in definitions(options.contract) {
        api.define(definition).await?;
    }
    let standing = node::standing(options.clock.now());
    let write = Write::Create {
        collection: NODES.collection(""),
        object: standing,
    };
    match api.write(&write).await {
        Err(status) if status.code != 409 => Err(status),
        _ => Ok(()),
    }
}

/// Simulates until dropped. [`install`] must be called first.
pub async fn run(options: Options) {
    let served = Served {
        contract: options.contract,
    };
    let api = Api::new(options.client);
    let mut events: SelectAll<Changes> = watched(served)
        .into_iter()
        .map(|resource| api.changes(resource))
        .collect();
    let mut simulator = Simulator {
        api,
        served,
        clock: options.clock.clone(),
        kubeconfig: options.kubeconfig,
        agenda: Agenda::default(),
    };
    loop {
        let due = simulator.agenda.next_due();
        tokio::select! {
            // The order is fixed, so that runs are deterministic.
            biased;
            event = events.next() => match event {
                Some((resource, object)) => simulator.note(resource, &object).await,
                None => return,
            },
            () = wait(&options.clock, due) => {}
        }
        let busy = options.clock.busy();
        simulator.work().await;
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
struct Agenda {
    by_key: BTreeMap<Key, Timestamp>,
    by_due: BTreeSet<(Timestamp, Key)>,
}

impl Agenda {
    /// Schedules `key` for `due`, unless it is already due earlier.
    fn put(&mut self, key: Key, due: Timestamp) {
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

    fn take(&mut self, now: Timestamp) -> Option<Key> {
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
    served: Served,
    clock: Clock,
    kubeconfig: Option<String>,
    agenda: Agenda,
}

impl Simulator {
    /// Enqueues the keys that a change affects.
    async fn note(&mut self, resource: Resource, object: &Value) {
        let now = self.clock.now();
        for key in affected(self.served, resource, object) {
            self.agenda.put(key, now);
        }
        if resource == self.served.clusters() {
            for machine in self.machines_of(object).await {
                for key in referred(self.served, &machine) {
                    self.agenda.put(key, now);
                }
                self.agenda
                    .put(Key::of(self.served.machines(), &machine), now);
            }
        } else if resource == NODES {
            for pod in self.api.pods_on(name(object)).await {
                self.agenda.put(Key::of(PODS, &pod), now);
            }
        } else if resource == PODS {
            self.note_pod(object, now).await;
        }
    }

    /// Enqueues the Machine of the pod's Node: a drain waits for its pods.
    async fn note_pod(&mut self, pod: &Value, now: Timestamp) {
        let Some(node) = text(pod, "/spec/nodeName") else {
            return;
        };
        let Some(node) = self.api.get(NODES, "", node).await else {
            return;
        };
        for key in affected(self.served, NODES, &node) {
            if key.resource == self.served.machines() {
                self.agenda.put(key, now);
            }
        }
    }

    async fn work(&mut self) {
        while let Some(key) = self.agenda.take(self.clock.now()) {
            let step = self.step(&key).await;
            if let Some(due) = step.look_again {
                self.agenda.put(key.clone(), due);
            }
            for write in &step.writes {
                self.carry_out(&key, write).await;
            }
        }
    }

    /// Sends a write. A rejection is not an error of the simulation: another client changed an
    /// input of the step, and the event of that change enqueues the key again. If no event is
    /// to be expected, the key is requeued a little later.
    async fn carry_out(&mut self, key: &Key, write: &Write) {
        let Err(status) = self.api.write(write).await else {
            return;
        };
        let is_eviction = matches!(write, Write::Evict { .. });
        if status.code != 404 && status.code != 409 && !is_eviction {
            tracing::debug!(%status, "the API server rejected a write of the simulator");
            self.agenda.put(key.clone(), self.clock.now() + RETRY);
        }
    }

    async fn step(&mut self, key: &Key) -> Step {
        let Some(object) = self.api.get(key.resource, &key.namespace, &key.name).await
        else {
            return Step::idle();
        };
        let now = self.clock.now();
        if key.resource == self.served.clusters() {
            self.step_cluster(&object, now).await
        } else if key.resource == self.served.machines() {
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
        let seen = cluster::Seen {
            cluster,
            machines: &machines,
            has_kubeconfig,
            kubeconfig: self.kubeconfig.as_deref(),
        };
        cluster::step(self.served, &seen, now)
    }

    async fn step_machine(&self, machine: &Value, now: Timestamp) -> Step {
        let cluster = self
            .cluster_of(machine, text(machine, "/spec/clusterName"))
            .await;
        let mut bootstrap = None;
        let mut infrastructure = None;
        for key in referred(self.served, machine) {
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
        let seen = machine::Seen {
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
        machine::step(self.served, &seen, now)
    }

    async fn step_provider(
        &self,
        resource: Resource,
        object: &Value,
        now: Timestamp,
    ) -> Step {
        let machine = match machine::controlling(object) {
            Some((namespace, name)) => {
                self.api.get(self.served.machines(), namespace, name).await
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
        let seen = provider::Seen {
            resource,
            object,
            machine: machine.as_deref(),
            cluster: cluster.as_deref(),
            has_secret: secret.is_some(),
            missing_key,
        };
        if resource == INFRASTRUCTURE {
            provider::infrastructure(self.served, &seen, now)
        } else {
            provider::bootstrap(self.served, &seen, now)
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
            .list(self.served.machines(), namespace(cluster))
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
            .get(self.served.clusters(), namespace(object), cluster?)
            .await
    }
}
