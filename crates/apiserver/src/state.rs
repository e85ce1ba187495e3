//! Everything the server knows, and the one way to change it.

use std::collections::HashMap;
use std::sync::Arc;

use fivespot_admission::KubeVersion;
use fivespot_admission::crd::Crd;
use fivespot_clock::Clock;
use jiff::Timestamp;
use serde_json::Value;

use crate::alias::GroupAlias;
use crate::authorization::RuleIndex;
use crate::broadcaster::Broadcaster;
use crate::controller::event_expiry::EventExpiry;
use crate::controller::queue::{self, WorkQueue};
use crate::conversion::{self, Conversion};
use crate::identity::TokenKey;
use crate::index::Index;
use crate::journal::Journal;
use crate::meta;
use crate::plugin::{Chain, MutatingPolicySource, PolicySource, WebhookSource};
use crate::random::Random;
use crate::registry::Registry;
use crate::resource::{GroupResource, Resource};
use crate::start::StartError;
use crate::status::Status;
use crate::storage::{Restored, Storage};
use crate::store::{Bucket, Change, Key, Object, Range, Store};

/// The cluster as admission plugins see it: the server's state. Requests and controllers take
/// turns on it; each sees what the one before left.
#[derive(Debug)]
pub struct State {
    pub(crate) clock: Clock,
    pub(crate) kube: KubeVersion,
    pub(crate) store: Store,
    pub(crate) registry: Arc<Registry>,
    pub(crate) index: Index,
    pub(crate) broadcaster: Broadcaster,
    seed: u64,
    pub(crate) random: Random,
    pub(crate) queue: WorkQueue,
    pub(crate) expiry: EventExpiry,
    pub(crate) chain: Chain,
    /// The ValidatingAdmissionPolicies in force.
    pub(crate) policies: PolicySource,
    /// The MutatingAdmissionPolicies in force.
    pub(crate) mutating_policies: MutatingPolicySource,
    /// The admission webhooks in force.
    pub(crate) admission_webhooks: WebhookSource,
    /// The roles and bindings.
    pub(crate) rules: Arc<RuleIndex>,
    /// Keeps the writes, where there is a place for them.
    pub(crate) journal: Option<Journal>,
    pub(crate) aliases: Vec<GroupAlias>,
    pub(crate) token_key: TokenKey,
    /// The certificate of the server's authority, if clients need one; PEM.
    pub(crate) authority: Option<Arc<str>>,
    /// The compiled CustomResourceDefinitions by what they define.
    pub(crate) definitions: HashMap<GroupResource, Arc<Crd>>,
    /// `spec.conversion.webhook` of those whose objects a webhook converts.
    pub(crate) webhooks: HashMap<GroupResource, Arc<Value>>,
    /// The calls of webhooks by the request that is under way.
    pub(crate) webhook_calls: conversion::Shared,
    pub(crate) buckets: Buckets,
    /// The first stored object that could not be put in force.
    pub(crate) invalid: Option<StartError>,
    /// Each bucket's resource in the version in which it is stored.
    stored_resources: HashMap<Bucket, Arc<Resource>>,
}

/// The buckets that the server itself looks after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    pub(crate) namespaces: Bucket,
    pub(crate) pods: Bucket,
    pub(crate) budgets: Bucket,
    pub(crate) definitions: Bucket,
    pub(crate) policies: Bucket,
    pub(crate) bindings: Bucket,
    pub(crate) mutating_policies: Bucket,
    pub(crate) mutating_bindings: Bucket,
    /// The configurations of webhooks, mutating and validating.
    pub(crate) webhooks: [Bucket; 2],
    pub(crate) nodes: Bucket,
    pub(crate) quotas: Bucket,
    pub(crate) claims: Bucket,
    pub(crate) volumes: Bucket,
    pub(crate) events: Bucket,
    pub(crate) accounts: Bucket,
    pub(crate) maps: Bucket,
    pub(crate) secrets: Bucket,
    pub(crate) services: Bucket,
    pub(crate) cluster_roles: Bucket,
    /// Roles and bindings, of clusters and of namespaces.
    pub(crate) rights: [Bucket; 4],
}

impl Buckets {
    fn of(store: &mut Store) -> Self {
        let mut bucket = |group, plural| store.bucket(&GroupResource::new(group, plural));
        let admission = "admissionregistration.k8s.io";
        let rights = crate::authorization::GROUP;
        Self {
            namespaces: bucket("", "namespaces"),
            pods: bucket("", "pods"),
            budgets: bucket("policy", "poddisruptionbudgets"),
            definitions: bucket("apiextensions.k8s.io", "customresourcedefinitions"),
            policies: bucket(admission, "validatingadmissionpolicies"),
            bindings: bucket(admission, "validatingadmissionpolicybindings"),
            mutating_policies: bucket(admission, "mutatingadmissionpolicies"),
            mutating_bindings: bucket(admission, "mutatingadmissionpolicybindings"),
            webhooks: [
                bucket(admission, "mutatingwebhookconfigurations"),
                bucket(admission, "validatingwebhookconfigurations"),
            ],
            nodes: bucket("", "nodes"),
            quotas: bucket("", "resourcequotas"),
            claims: bucket("", "persistentvolumeclaims"),
            volumes: bucket("", "persistentvolumes"),
            events: bucket("", "events"),
            accounts: bucket("", "serviceaccounts"),
            maps: bucket("", "configmaps"),
            secrets: bucket("", "secrets"),
            services: bucket("", "services"),
            cluster_roles: bucket(rights, "clusterroles"),
            rights: [
                bucket(rights, "clusterroles"),
                bucket(rights, "clusterrolebindings"),
                bucket(rights, "roles"),
                bucket(rights, "rolebindings"),
            ],
        }
    }
}

/// What a server starts with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) clock: Clock,
    pub(crate) kube: KubeVersion,
    pub(crate) seed: u64,
    pub(crate) history: usize,
    pub(crate) chain: Chain,
    pub(crate) registry: Registry,
    pub(crate) aliases: Vec<GroupAlias>,
    pub(crate) token_key: TokenKey,
    pub(crate) authority: Option<Arc<str>>,
}

/// What plugins can ask.
impl State {
    /// The release whose answers are given.
    pub fn kube(&self) -> KubeVersion {
        self.kube
    }

    /// The time by the server's clock. It stands still while one request is performed, also where
    /// that is done anew for the answer of a webhook.
    pub fn instant(&self) -> Timestamp {
        let began = self.webhook_calls.lock().began;
        began.unwrap_or_else(|| self.clock.now())
    }

    /// Whether a request is performed anew, for the answer of a webhook.
    pub(crate) fn is_retry(&self) -> bool {
        self.webhook_calls.lock().is_retry
    }

    /// What is served at the moment.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The newest state of an object, in the version in which it is stored; the namespace is
    /// empty for one that is in none. `None` where it does not exist.
    pub fn object(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let bucket = self.store.known_bucket(resource)?;
        self.get(bucket, &Key::new(namespace, name)).cloned()
    }

    /// The newest states of all objects of a resource, in one namespace or in all, in the version
    /// in which they are stored and in the order of their names.
    pub fn objects(
        &self,
        resource: &GroupResource,
        namespace: Option<&str>,
    ) -> Vec<Arc<Value>> {
        let Some(bucket) = self.store.known_bucket(resource) else {
            return Vec::new();
        };
        let range = Range {
            namespace,
            after: None,
        };
        let found = self.store.list(bucket, &range, None);
        let found = found.into_iter().flatten();
        found.map(|(_, object)| object.clone()).collect()
    }
}

impl State {
    pub(crate) fn new(start: Start) -> Self {
        let mut store = Store::new(start.history);
        let buckets = Buckets::of(&mut store);
        let mut state = Self {
            queue: WorkQueue::new(start.clock.clone()),
            clock: start.clock,
            kube: start.kube,
            index: Index::new(buckets.pods),
            store,
            registry: Arc::default(),
            broadcaster: Broadcaster::default(),
            expiry: EventExpiry::default(),
            seed: start.seed,
            random: Random::new(start.seed),
            chain: start.chain,
            policies: PolicySource::default(),
            mutating_policies: MutatingPolicySource::default(),
            admission_webhooks: WebhookSource::default(),
            rules: Arc::default(),
            journal: None,
            aliases: start.aliases,
            token_key: start.token_key,
            authority: start.authority,
            definitions: HashMap::new(),
            webhooks: HashMap::new(),
            webhook_calls: conversion::Shared::default(),
            buckets,
            invalid: None,
            stored_resources: HashMap::new(),
        };
        state.serve(start.registry);
        state
    }

    /// Serves the resources of `registry` from now on.
    pub(crate) fn serve(&mut self, registry: Registry) {
        self.stored_resources.clear();
        for resource in registry.all() {
            let bucket = self.store.bucket(&resource.storage);
            if resource.is_served_as(&resource.stored_as) {
                self.stored_resources.insert(bucket, resource.clone());
            }
        }
        self.registry = Arc::new(registry);
    }

    pub(crate) fn bucket(&mut self, resource: &Resource) -> Bucket {
        self.store.bucket(&resource.storage)
    }

    /// The resource that a bucket holds, in the version that is stored; `None` when it is no
    /// longer served.
    pub(crate) fn stored_resource(&self, bucket: Bucket) -> Option<&Arc<Resource>> {
        self.stored_resources.get(&bucket)
    }

    /// Every bucket whose objects live in namespaces, in a fixed order.
    pub(crate) fn namespaced(&self) -> Vec<Bucket> {
        let namespaced = self
            .stored_resources
            .iter()
            .filter(|(_, resource)| resource.namespaced);
        let mut all: Vec<Bucket> = namespaced.map(|(bucket, _)| *bucket).collect();
        all.sort_unstable();
        all
    }

    /// An object that is stored, as `resource` shows it.
    ///
    /// # Errors
    /// 500 where it cannot be converted.
    pub(crate) fn shown(
        &self,
        resource: &Resource,
        stored: &Object,
    ) -> Result<Object, Status> {
        Conversion::of(self, resource).shown(resource, stored)
    }

    /// The newest state of an object as it is stored.
    pub(crate) fn get(&self, bucket: Bucket, key: &Key) -> Option<&Object> {
        self.store.get(bucket, key)
    }

    /// An instant as it is written into objects.
    pub(crate) fn now(&self) -> String {
        meta::time(self.instant())
    }

    /// Stores an object, as it is stored, under the name in its metadata.
    ///
    /// Nothing is written, and the stored state returned, when it is the same already.
    pub(crate) fn put(&mut self, bucket: Bucket, object: Value) -> Object {
        let key = Key::new(meta::namespace(&object), meta::name(&object));
        if let Some(old) = self.store.get(bucket, &key)
            && **old == object
        {
            return old.clone();
        }
        let change = self.store.put(bucket, key, object);
        self.committed(&change);
        change.object.clone()
    }

    /// Removes an object; its last state, or `None` if it was not there.
    pub(crate) fn remove(&mut self, bucket: Bucket, key: &Key) -> Option<Object> {
        let change = self.store.remove(bucket, key)?;
        self.committed(&change);
        Some(change.object.clone())
    }

    /// Stores an object of which some finalizers may be gone: removes it instead when it
    /// was to be deleted and nothing keeps it any longer. Returns what was to be stored.
    pub(crate) fn put_or_finish(&mut self, bucket: Bucket, object: Value) -> Object {
        let key = Key::new(meta::namespace(&object), meta::name(&object));
        if is_finished(&object) {
            self.remove(bucket, &key);
            return Arc::new(object);
        }
        self.put(bucket, object)
    }

    /// Goes on from what `storage` holds, and keeps every write there from now on.
    pub(crate) fn restore(&mut self, storage: Storage) {
        let Restored { version, objects } = storage.load();
        self.journal = Some(Journal::new(storage));
        if version == 0 {
            return;
        }
        self.store.resume_at(version);
        // What the seed gives first was given by the server before.
        self.random = Random::new(self.seed.wrapping_add(version));
        for (resource, key, object) in objects {
            let bucket = self.store.bucket(&resource);
            let change = self.store.load(bucket, key, object);
            self.index.update(&change);
            queue::enqueue(self, &change);
        }
    }

    fn committed(&mut self, change: &Arc<Change>) {
        self.index.update(change);
        match &mut self.journal {
            Some(journal) => journal.note(change),
            None => self.broadcaster.publish(change),
        }
        queue::enqueue(self, change);
    }
}

/// Whether a deleted object has nothing left that keeps it: no finalizers, no grace
/// period, and for a namespace no finalizers in its spec either.
pub(crate) fn is_finished(object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    let namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
    let contents = namespace
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
    meta::is_deleting(object)
        && grace == 0
        && meta::finalizers(object).next().is_none()
        && !contents
}
