//! The server's state, to which [`commit`](crate::commit) writes.

mod buckets;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kubemu_admission::{FieldError, KubeVersion};
use kubemu_clock::Clock;
use serde_json::Value;

use crate::alias::GroupAlias;
use crate::authorization::Rights;
use crate::authorization::rule_index::RuleIndex;
use crate::broadcaster::Broadcaster;
use crate::conversion::webhook::Webhook;
use crate::conversion::{self, Conversion, WebhookCalls};
use crate::decode::Definitions;
use crate::expiry::EventExpiry;
use crate::identity::key::TokenKey;
use crate::impersonation::mode::LastModes;
use crate::index::Index;
use crate::journal::Journal;
use crate::meta;
use crate::plugin::chain::Chain;
use crate::plugin::mutating_admission_policy::source::MutatingPolicySource;
use crate::plugin::validating_admission_policy::source::PolicySource;
use crate::plugin::webhook::source::WebhookSource;
use crate::random::Random;
use crate::registry::Registry;
use crate::resource::{GroupResource, Resource};
use crate::start::StartError;
use crate::status::Status;
use crate::store::{Bucket, Key, Object, Range, Store};
use crate::webhook_client::Services;
use crate::work_queue::WorkQueue;
use buckets::Buckets;

/// The state of the server, as admission plugins see it. Requests and controllers take turns;
/// each sees the changes of those before it.
#[derive(Debug)]
pub struct State {
    pub(crate) clock: Clock,
    pub(crate) kube: KubeVersion,
    pub(crate) store: Store,
    pub(crate) registry: Arc<Registry>,
    pub(crate) index: Index,
    pub(crate) broadcaster: Broadcaster,
    pub(crate) seed: u64,
    pub(crate) random: Random,
    pub(crate) queue: WorkQueue,
    pub(crate) expiry: EventExpiry,
    pub(crate) chain: Chain,
    /// The active ValidatingAdmissionPolicies.
    pub(crate) policies: PolicySource,
    /// The active MutatingAdmissionPolicies.
    pub(crate) mutating_policies: MutatingPolicySource,
    /// The active admission webhooks.
    pub(crate) admission_webhooks: WebhookSource,
    /// The RBAC roles and bindings.
    pub(crate) rules: Arc<RuleIndex>,
    /// Writes changes to disk, if there is a storage.
    pub(crate) journal: Option<Journal>,
    pub(crate) aliases: Vec<GroupAlias>,
    pub(crate) token_key: TokenKey,
    /// The certificate of the server's authority, if clients need it; PEM.
    pub(crate) authority: Option<Arc<str>>,
    /// Whether nothing is created in new namespaces.
    pub(crate) bare_namespaces: bool,
    pub(crate) definitions: Definitions,
    /// `spec.conversion.webhook` of the definitions with webhook conversion.
    pub(crate) webhooks: HashMap<GroupResource, Arc<Value>>,
    /// The webhook calls of the request in progress.
    pub(crate) webhook_calls: conversion::SharedWebhookCalls,
    /// How users have last impersonated others.
    pub(crate) last_modes: LastModes,
    pub(crate) buckets: Buckets,
    /// The first stored object that is invalid.
    pub(crate) invalid: Option<StartError>,
    /// Each bucket's resource in the storage version.
    stored_resources: Arc<HashMap<Bucket, Arc<Resource>>>,
}

/// The initial values of a state.
#[derive(Debug)]
pub(crate) struct InitialState {
    pub(crate) clock: Clock,
    pub(crate) kube: KubeVersion,
    pub(crate) seed: u64,
    pub(crate) history: usize,
    pub(crate) chain: Chain,
    pub(crate) registry: Registry,
    pub(crate) aliases: Vec<GroupAlias>,
    pub(crate) token_key: TokenKey,
    pub(crate) authority: Option<Arc<str>>,
    pub(crate) bare_namespaces: bool,
}

/// The interface for plugins.
impl State {
    /// The emulated Kubernetes release.
    pub fn kube(&self) -> KubeVersion {
        self.kube
    }

    /// The time of the server's clock. It stays the same during one request, including its
    /// further attempts after responses of webhooks.
    pub fn instant(&self) -> Timestamp {
        let started_at = self.webhook_calls.lock().started_at;
        started_at.unwrap_or_else(|| self.clock.now())
    }

    /// Whether this is a further attempt of a request, after responses of webhooks.
    pub(crate) fn is_retry(&self) -> bool {
        self.webhook_calls.lock().is_retry
    }

    /// The registry of the currently served resources.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The current state of an object, in its storage version; the namespace is empty for a
    /// cluster-scoped object. `None` if the object does not exist.
    pub fn object(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let bucket = self.store.known_bucket(resource)?;
        self.get(bucket, &Key::new(namespace, name)).cloned()
    }

    /// The current states of all objects of a resource, in one namespace or in all, in their
    /// storage version, sorted by name.
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
    pub(crate) fn new(initial: InitialState) -> Self {
        let mut store = Store::new(initial.history);
        let buckets = Buckets::of(&mut store);
        let mut state = Self {
            queue: WorkQueue::new(initial.clock.clone()),
            clock: initial.clock,
            kube: initial.kube,
            index: Index::new(buckets.pods, buckets.definitions),
            store,
            registry: Arc::default(),
            broadcaster: Broadcaster::default(),
            expiry: EventExpiry::default(),
            seed: initial.seed,
            random: Random::new(initial.seed),
            chain: initial.chain,
            policies: PolicySource::default(),
            mutating_policies: MutatingPolicySource::default(),
            admission_webhooks: WebhookSource::default(),
            rules: Arc::default(),
            journal: None,
            aliases: initial.aliases,
            token_key: initial.token_key,
            authority: initial.authority,
            bare_namespaces: initial.bare_namespaces,
            definitions: Definitions::new(),
            webhooks: HashMap::new(),
            webhook_calls: conversion::SharedWebhookCalls::default(),
            last_modes: LastModes::default(),
            buckets,
            invalid: None,
            stored_resources: Arc::default(),
        };
        state.serve(initial.registry);
        state
    }

    /// A state with the same objects, which changes apart from this one. It exists only in memory,
    /// and nobody watches it yet. Without a seed its random numbers follow from those of this state.
    pub(crate) fn fork(&mut self, clock: Clock, seed: Option<u64>) -> Self {
        let random = match seed {
            Some(seed) => Random::new(seed),
            None => self.random.fork(),
        };
        Self {
            queue: self.queue.fork(clock.clone()),
            clock,
            kube: self.kube,
            store: self.store.clone(),
            registry: self.registry.clone(),
            index: self.index.clone(),
            broadcaster: Broadcaster::default(),
            seed: seed.unwrap_or(self.seed),
            random,
            expiry: self.expiry.clone(),
            chain: self.chain.clone(),
            policies: self.policies.clone(),
            mutating_policies: self.mutating_policies.clone(),
            admission_webhooks: self.admission_webhooks.clone(),
            rules: self.rules.clone(),
            journal: None,
            aliases: self.aliases.clone(),
            token_key: self.token_key.clone(),
            authority: self.authority.clone(),
            bare_namespaces: self.bare_namespaces,
            definitions: self.definitions.clone(),
            webhooks: self.webhooks.clone(),
            webhook_calls: conversion::SharedWebhookCalls::default(),
            last_modes: self.last_modes.clone(),
            buckets: self.buckets,
            invalid: None,
            stored_resources: self.stored_resources.clone(),
        }
    }

    /// Replaces the registry of served resources.
    pub(crate) fn serve(&mut self, registry: Registry) {
        let mut stored_resources = HashMap::new();
        for resource in registry.all() {
            let bucket = self.store.bucket(&resource.storage);
            if resource.is_served_as(&resource.stored_as) {
                stored_resources.insert(bucket, resource.clone());
            }
        }
        self.stored_resources = Arc::new(stored_resources);
        self.registry = Arc::new(registry);
    }

    pub(crate) fn bucket(&mut self, resource: &Resource) -> Bucket {
        self.store.bucket(&resource.storage)
    }

    /// The resource of a bucket, in the storage version; `None` if it is not served any
    /// longer.
    pub(crate) fn stored_resource(&self, bucket: Bucket) -> Option<&Arc<Resource>> {
        self.stored_resources.get(&bucket)
    }

    /// All buckets of namespaced resources, in a fixed order.
    pub(crate) fn namespaced(&self) -> Vec<Bucket> {
        let namespaced = self
            .stored_resources
            .iter()
            .filter(|(_, resource)| resource.namespaced);
        let mut all: Vec<Bucket> = namespaced.map(|(bucket, _)| *bucket).collect();
        all.sort_unstable();
        all
    }

    /// The conversion of `resource` by its current definition.
    pub(crate) fn conversion(&self, resource: &Resource) -> Conversion {
        if !resource.custom {
            return Conversion::default();
        }
        let webhook = self.webhooks.get(&resource.storage);
        let key = Key::new("", &resource.storage.to_string());
        let definition = self.get(self.buckets.definitions, &key);
        Conversion {
            defined: definition
                .and_then(|it| conversion::written(it))
                .unwrap_or_default(),
            definition: self.definitions.get(&resource.storage).cloned(),
            webhook: webhook.map(|it| Webhook::of(&self.services(), it)),
            calls: self.webhook_calls.clone(),
        }
    }

    /// What decides about requests.
    pub(crate) fn rights(&self) -> Rights<'_> {
        Rights {
            rules: &self.rules,
            aliases: &self.aliases,
        }
    }

    /// The services that webhooks are reached by.
    pub(crate) fn services(&self) -> Services<'_> {
        Services {
            store: &self.store,
            bucket: self.buckets.services,
        }
    }

    /// Stops before a write while a webhook call of the request is pending.
    ///
    /// # Errors
    /// 500, which no client receives: the request is performed again.
    pub(crate) fn check_complete(&self) -> Result<(), Status> {
        if self.webhook_calls.lock().is_complete() {
            return Ok(());
        }
        Err(Status::internal("a webhook has not been called yet"))
    }

    /// A stored object, converted to the version of `resource`.
    ///
    /// # Errors
    /// 500 if it cannot be converted.
    pub(crate) fn in_version_of(
        &self,
        resource: &Resource,
        stored: &Object,
    ) -> Result<Object, Status> {
        self.conversion(resource).in_version_of(resource, stored)
    }

    /// The current state of an object, in its storage version.
    pub(crate) fn get(&self, bucket: Bucket, key: &Key) -> Option<&Object> {
        self.store.get(bucket, key)
    }

    /// The current time in the format of object fields.
    pub(crate) fn now(&self) -> String {
        meta::time(self.instant())
    }

    /// Performs work with the webhook responses received so far, and with the time and the random
    /// numbers of the first attempt, so that the reviews are the same and the responses apply. If
    /// calls are still pending, other work gets other numbers.
    pub(crate) fn attempt<T>(
        &mut self,
        calls: &mut WebhookCalls,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        calls.started_at.get_or_insert_with(|| self.clock.now());
        let shared = calls
            .random
            .as_ref()
            .map(|own| std::mem::replace(&mut self.random, own.clone()));
        calls.random.get_or_insert_with(|| self.random.clone());
        *self.webhook_calls.lock() = std::mem::take(calls);
        let result = work(self);
        *calls = std::mem::take(&mut *self.webhook_calls.lock());
        match shared {
            Some(shared) => self.random = shared,
            None if calls.is_complete() => {}
            None => self.random = self.random.fork(),
        }
        result
    }

    /// Records that a stored object is invalid, which prevents the start of the server. This only
    /// happens while objects are loaded from disk: objects in requests are validated before they
    /// are written.
    pub(crate) fn record_invalid(&mut self, object: &Value, errors: &[FieldError]) {
        let error = StartError::stored(object, self.kube, errors);
        tracing::error!(%error, "stored object is not valid");
        self.invalid.get_or_insert(error);
    }
}
