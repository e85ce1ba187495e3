//! The server: its state, its clock, and its clients.

mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use kubemu_admission::KubeVersion;
use kubemu_clock::Clock;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::alias::GroupAlias;
use crate::api_response::ApiResponse;
use crate::audit::{Audit, AuditEvent};
use crate::authorization::bootstrap;
use crate::call::Call;
use crate::client::Client;
use crate::controller::queue;
use crate::conversion::WebhookCalls;
use crate::document::{DocumentCache, not_ready};
use crate::identity::{self, TokenKey, claim::ISSUER};
use crate::impersonation;
use crate::initial;
use crate::kind::BuiltinKind;
use crate::kind::builtin::served;
use crate::kind::namespace::INITIAL;
use crate::namespace;
use crate::plugin::Plugin;
use crate::plugin::selection::PluginSelection;
use crate::query::MAX_TIMEOUT;
use crate::random;
use crate::registry::Registry;
use crate::resource::{Resource, Verb};
use crate::route::{self, Route};
use crate::service::InProcess;
use crate::start::StartError;
use crate::state::{InitialState, State};
use crate::status::Status;
use crate::storage::Storage;
use crate::user::User;
use crate::verb;
use worker::MAX_WAITING;

/// Maximum number of attempts of a request that needs responses of webhooks: for a write each
/// version of the object may need a separate conversion, and mutating webhooks are called one
/// after the other. See `internals/decisions/0120-admission-webhooks-are-called-between-attempts.md`.
const MAX_ATTEMPTS: usize = 256;

/// A Kubernetes API server. Clones share the same state.
///
/// Requests and the server's own controllers (garbage collector, namespace controller,
/// disruption controller) take turns; each sees all changes of those before it. Controllers
/// run on the tokio runtime of the request that enqueued their work items and hold a virtual
/// clock until the items are processed. An item that waits for a webhook does not delay the others.
///
/// ```
/// use kubemu_apiserver::{Clock, Options, Selector, Server};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let server = Server::new(Options::new(Clock::system())).unwrap();
/// let client = server.client();
/// let config = json!({"metadata": {"name": "colors"}, "data": {"sky": "blue"}});
/// client.create("/api/v1/namespaces/default/configmaps", config).await.unwrap();
/// let all = client.list("/api/v1/configmaps", &Selector::default()).await.unwrap();
/// assert_eq!(all.items[0]["data"]["sky"], "blue");
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    clock: Clock,
    audit: Option<Audit>,
    documents: DocumentCache,
    /// A permit for each work item whose webhooks are called.
    waiting: Semaphore,
}

/// The options of a [`Server`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of timestamps; it is held while there is work.
    pub clock: Clock,
    /// Uids and generated names are derived from it; without it they differ from those of every
    /// other server.
    pub seed: Option<u64>,
    /// The Kubernetes release to emulate.
    pub kube: KubeVersion,
    /// Admission plugins to enable in addition to the default ones.
    pub enable_plugins: Vec<String>,
    /// Admission plugins to disable.
    pub disable_plugins: Vec<String>,
    /// Whether `enable_plugins` may contain plugins that Kubernetes has removed.
    pub removed_plugins: bool,
    /// Admission plugins in addition to the built-in ones.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// The configurations of admission plugins, by name.
    pub plugin_configurations: BTreeMap<String, Value>,
    /// Kinds that are served in addition to the built-in ones and those of
    /// CustomResourceDefinitions.
    pub kinds: Vec<Arc<dyn BuiltinKind>>,
    /// The number of recent writes from which a client can watch or list; fewer if their objects
    /// take more than 128 MiB.
    pub history: usize,
    /// Records every request.
    pub audit: Option<Audit>,
    /// Aliases of API groups that CustomResourceDefinitions define.
    pub aliases: Vec<GroupAlias>,
    /// The storage of objects; without it they exist only in memory.
    pub storage: Option<Storage>,
    /// The key that signs service account tokens; if absent, one is generated when it is
    /// needed.
    pub token_key: Option<TokenKey>,
    /// The certificate authority with which clients verify the server, PEM; every namespace
    /// has it in a ConfigMap `kube-root-ca.crt`. Without it that ConfigMap does not exist.
    pub authority: Option<String>,
    /// The certificate authority of client certificates, PEM; the ConfigMap
    /// `kube-system/extension-apiserver-authentication` has it. Without it that ConfigMap does not
    /// exist.
    pub client_authority: Option<String>,
    /// Whether namespaces have neither a ServiceAccount `default` nor a ConfigMap
    /// `kube-root-ca.crt`, as with a kube-apiserver without kube-controller-manager.
    pub bare_namespaces: bool,
}

impl Options {
    /// No seed, the default release and plugins, a history of 16,384 writes, no audit.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            seed: None,
            kube: KubeVersion::default(),
            enable_plugins: Vec::new(),
            disable_plugins: Vec::new(),
            removed_plugins: false,
            plugins: Vec::new(),
            plugin_configurations: BTreeMap::new(),
            kinds: Vec::new(),
            history: 16_384,
            audit: None,
            aliases: Vec::new(),
            storage: None,
            token_key: None,
            authority: None,
            client_authority: None,
            bare_namespaces: false,
        }
    }
}

/// What a fork has of its own.
#[derive(Clone, Debug, Default)]
pub struct ForkOptions {
    /// The source of timestamps. Without it a virtual clock is a new one that stands at the same
    /// time, and that of the system is shared.
    pub clock: Option<Clock>,
    /// Uids and generated names are derived from it. Without it they follow from the seed of the
    /// forked server and the number of its forks and writes before.
    pub seed: Option<u64>,
    /// Records every request.
    pub audit: Option<Audit>,
}

impl Server {
    /// A server with the four initial namespaces.
    ///
    /// # Errors
    /// A plugin name is unknown or removed, is both enabled and disabled, or the plugin
    /// rejects its configuration; a kind is served already; or a stored object is not valid
    /// for the chosen release.
    pub fn new(options: Options) -> Result<Self, StartError> {
        let chain = PluginSelection {
            kube: options.kube,
            additional: &options.plugins,
            enable: &options.enable_plugins,
            disable: &options.disable_plugins,
            removed: options.removed_plugins,
            configurations: &options.plugin_configurations,
        }
        .chain()?;
        let registry = registry(chain.kinds().chain(options.kinds))?;
        let token_key = options.token_key.unwrap_or_else(TokenKey::lazy);
        let documents =
            DocumentCache::new(options.kube, token_key.clone(), options.clock.now());
        let mut state = State::new(InitialState {
            clock: options.clock.clone(),
            kube: options.kube,
            seed: options.seed.unwrap_or_else(random::seed),
            history: options.history,
            chain,
            registry,
            aliases: options.aliases,
            token_key,
            authority: options.authority.map(Arc::from),
            bare_namespaces: options.bare_namespaces,
        });
        if let Some(storage) = options.storage {
            state.restore(storage);
        }
        if let Some(error) = state.invalid.take() {
            return Err(error);
        }
        for name in INITIAL {
            namespace::ensure(&mut state, name);
        }
        bootstrap::install(&mut state);
        while queue::process_next(&mut state) {}
        initial::install(&mut state, options.client_authority.as_deref());
        // If the disk fails, the first request is rejected.
        let _ = state.flush();
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(state),
            clock: options.clock,
            audit: options.audit,
            documents,
            waiting: Semaphore::new(MAX_WAITING),
        })))
    }

    /// A server of its own with the objects of this one, which [`fork_with`](Self::fork_with)
    /// describes.
    ///
    /// ```
    /// use kubemu_apiserver::{Clock, Options, Server};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let prepared = Server::new(Options::new(Clock::system())).unwrap();
    /// let (one, other) = (prepared.fork(), prepared.fork());
    /// let maps = "/api/v1/namespaces/default/configmaps";
    /// let config = json!({"metadata": {"name": "colors"}});
    /// one.client().create(maps, config).await.unwrap();
    /// let path = format!("{maps}/colors");
    /// assert!(one.client().get(&path).await.is_ok());
    /// assert!(other.client().get(&path).await.is_err());
    /// # });
    /// ```
    #[must_use]
    pub fn fork(&self) -> Self {
        self.fork_with(ForkOptions::default())
    }

    /// A server of its own with the objects, the history and the work items of this one. Writes to
    /// either do not change the other. What neither has changed is in memory once, so that a fork
    /// takes the same time however many objects there are.
    ///
    /// It exists only in memory, whatever the storage of this one. Watches of this one do not see
    /// its writes. Admission plugins are shared, so what one keeps of its own in memory, such as the
    /// rates of EventRateLimit, is of all forks together.
    #[must_use]
    pub fn fork_with(&self, options: ForkOptions) -> Self {
        let clock = options.clock.unwrap_or_else(|| {
            let own = &self.0.clock;
            if own.is_virtual() {
                Clock::stopped_at(own.now())
            } else {
                own.clone()
            }
        });
        let state = self.state().fork(clock.clone(), options.seed);
        let fork = Self(Arc::new(Inner {
            state: Mutex::new(state),
            documents: self.0.documents.fork(clock.now()),
            clock,
            audit: options.audit,
            waiting: Semaphore::new(MAX_WAITING),
        }));
        worker::spawn(&fork);
        fork
    }

    /// The server as an in-process tower service, authenticated as an administrator, for
    /// `kube::Client::new`.
    pub fn in_process(&self) -> InProcess {
        self.in_process_as(User::admin())
    }

    /// The server as an in-process tower service, authenticated as `user`.
    pub fn in_process_as(&self, user: User) -> InProcess {
        InProcess::new(self.clone(), user)
    }

    /// A client of JSON values, authenticated as an administrator.
    pub fn client(&self) -> Client {
        self.client_as(User::admin())
    }

    /// A client of JSON values, authenticated as `user`.
    pub fn client_as(&self, user: User) -> Client {
        Client::new(self.clone(), user)
    }

    /// The clock of the server.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The registry of the currently served resources.
    pub fn registry(&self) -> Arc<Registry> {
        self.state().registry.clone()
    }

    /// The resourceVersion of the last write.
    pub fn version(&self) -> u64 {
        self.state().store.version()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a request, and calls the webhooks that it needs.
    ///
    /// # Errors
    /// The error `Status` of the request.
    pub(crate) async fn handle(&self, call: &Call) -> Result<ApiResponse, Status> {
        let mut calls = WebhookCalls::default();
        let response = self.attempt(call, &mut calls);
        if calls.is_complete() {
            return response;
        }
        let attempts = async {
            for _ in 1..MAX_ATTEMPTS {
                calls.call_webhooks().await;
                let response = self.attempt(call, &mut calls);
                if calls.is_complete() {
                    return response;
                }
            }
            Err(Status::timed_out())
        };
        // Only a request without an end may have another text.
        let timeout = call.query.timeout().unwrap_or(MAX_TIMEOUT);
        let result = tokio::time::timeout(timeout, attempts).await;
        result.unwrap_or_else(|_| Err(Status::timed_out()))
    }

    /// Handles a request without calling webhooks; fails if it needs one.
    ///
    /// # Errors
    /// The error `Status` of the request.
    pub(crate) fn perform(&self, call: &Call) -> Result<ApiResponse, Status> {
        self.attempt(call, &mut WebhookCalls::default())
    }

    /// Performs a request with the webhook responses received so far. Changes nothing if
    /// further webhook calls are needed.
    fn attempt(
        &self,
        call: &Call,
        calls: &mut WebhookCalls,
    ) -> Result<ApiResponse, Status> {
        let mut state = self.state();
        let route = route::find(&state.registry, &call.path);
        let response = match (state.rights().check(call), &route) {
            (Err(refused), _) => Err(refused),
            (Ok(()), Route::Resource(target)) => {
                let perform = |state: &mut State| perform(state, call, target);
                let response = state.attempt(calls, perform);
                if !calls.is_complete() {
                    return response;
                }
                response
            }
            (Ok(()), Route::Other) => {
                let registry = state.registry.clone();
                let is_ready = state.journal.as_ref().is_none_or(|it| it.check().is_ok());
                drop(state);
                let document = match not_ready(&call.path) {
                    Some(why) if !is_ready => why,
                    _ => self.0.documents.find(&registry, call),
                };
                let response = Ok(document);
                state = self.state();
                response
            }
        };
        self.record(call, &route, &response);
        drop(state);
        worker::spawn(self);
        response
    }

    /// Checks whether the user of a request may send it, from all but its body.
    ///
    /// # Errors
    /// 403 with the missing right; the request has been recorded then.
    pub(crate) fn authorize(&self, call: &Call) -> Result<(), Status> {
        let state = self.state();
        state.rights().check(call).inspect_err(|refused| {
            let route = route::find(&state.registry, &call.path);
            self.record(call, &route, &Err(refused.clone()));
        })
    }

    /// Counts a request and writes it to the audit log.
    fn record(&self, call: &Call, route: &Route, response: &Result<ApiResponse, Status>) {
        let code = match response {
            Ok(response) => response.code,
            Err(status) => status.code,
        };
        self.0.documents.metrics.count(call, route, code);
        if let Some(audit) = &self.0.audit {
            audit.record(&self.event(call, route, response));
        }
    }

    /// Whether a path refers to objects of a built-in kind.
    pub(crate) fn is_built_in(&self, path: &str) -> bool {
        let route = route::find(&self.state().registry, path);
        matches!(route, Route::Resource(target) if !target.resource.custom)
    }

    /// Whether what a path refers to is returned as a table on request.
    pub(crate) fn has_table(&self, path: &str) -> bool {
        match route::find(&self.state().registry, path) {
            Route::Resource(target) => target.has_table(),
            Route::Other => true,
        }
    }

    /// Whether a request is a watch or a connection, which has no timeout.
    pub(crate) fn is_endless(&self, method: &Method, path: &str, watch: bool) -> bool {
        let route = route::find(&self.state().registry, path);
        matches!(route, Route::Resource(target)
            if target.verb(method, watch) == Some(Verb::Watch) || target.is_connection())
    }

    /// Authenticates a token. Returns its service account, with its groups and the bound
    /// objects of the token.
    ///
    /// # Errors
    /// 401 for a token that is not valid, or not valid any longer.
    pub fn authenticate(&self, token: &str) -> Result<User, Status> {
        let audiences = [ISSUER.to_owned()];
        match identity::authenticate_token(&self.state(), token, &audiences) {
            Ok(authenticated) => Ok(authenticated.user),
            Err(why) => {
                tracing::debug!(why, "token rejected");
                Err(Status::unauthorized())
            }
        }
    }

    /// The user that a request's headers impersonate.
    ///
    /// # Errors
    /// 403 for a user that `user` may not impersonate for this request.
    pub(crate) fn impersonated(
        &self,
        user: &User,
        head: &http::request::Parts,
    ) -> Result<Option<User>, Status> {
        impersonation::requested_user(&mut self.state(), user, head)
    }

    fn event(
        &self,
        call: &Call,
        route: &Route,
        response: &Result<ApiResponse, Status>,
    ) -> AuditEvent {
        let (code, annotations) = match response {
            Ok(response) => (response.code, response.annotations.clone()),
            Err(status) => (status.code, std::collections::BTreeMap::new()),
        };
        let (impersonator, impersonated) = match &call.impersonator {
            Some(impersonator) => (impersonator, call.user.name.clone()),
            None => (&call.user, String::new()),
        };
        let mut event = AuditEvent {
            at: self.0.clock.now(),
            user: impersonator.name.clone(),
            impersonated,
            verb: call.method.as_str().to_ascii_lowercase(),
            path: call.path.clone(),
            group: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            label_selector: call.query.label_selector.clone(),
            code,
            annotations,
        };
        if let Route::Resource(target) = route {
            if let Some(verb) = target.verb(&call.method, call.query.watch) {
                verb.as_str().clone_into(&mut event.verb);
            }
            event.group.clone_from(&target.resource.group);
            event.resource.clone_from(&target.resource.plural);
            event.subresource.clone_from(&target.subresource);
            event.namespace.clone_from(&target.namespace);
            event.name.clone_from(&target.name);
        }
        event
    }
}

/// The built-in kinds and additional ones.
fn registry(
    kinds: impl Iterator<Item = Arc<dyn BuiltinKind>>,
) -> Result<Registry, StartError> {
    let mut registry = Registry::builtin();
    for resource in kinds.map(served) {
        let Resource {
            group,
            version,
            plural,
            ..
        } = &resource;
        if registry.find(group, version, plural).is_some() {
            return Err(StartError::DuplicateKind(resource.qualified()));
        }
        registry.insert(resource);
    }
    Ok(registry)
}

/// Performs a request, and writes its changes to disk before the response.
fn perform(
    state: &mut State,
    call: &Call,
    target: &route::Target,
) -> Result<ApiResponse, Status> {
    if let Some(journal) = &state.journal {
        journal.check()?;
    }
    let response = verb::perform(state, call, target);
    state.flush()?;
    response
}
