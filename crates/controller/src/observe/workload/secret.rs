//! The Secret that holds the kubeconfig of a workload cluster.

use std::pin::pin;
use std::sync::Arc;

use fivespot_api::name;
use fivespot_capi::key::CLUSTER_NAME;
use fivespot_capi::one_line;
use fivespot_plan::Access;
use fivespot_runtime::cache::{Task, WatchFailure, WholeObject};
use fivespot_runtime::http::{Address, ApiClient, Exchange};
use fivespot_runtime::watch::{Selector, Sink, Watch, follow};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use kubemu_clock::{Busy, Clock, Sleep};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{RETRY, Workload, follow_nodes};
use crate::context::Context;
use crate::observe::watch::retry;
use crate::{failure, kubeconfig};

/// The kubeconfig in use, and the watch of Nodes through it.
#[derive(Default)]
struct Session {
    kubeconfig: Option<Vec<u8>>,
    nodes: Option<Task>,
}

/// Watches the Secret and uses its kubeconfig for as long as the future is polled.
pub(super) async fn follow_secret(context: Arc<Context>, workload: Arc<Workload>) {
    let name = name::kubeconfig_secret(&workload.cluster.name);
    let (watch, mut events) = watch_secret(&context, &workload.cluster.namespace, &name);
    let mut watch = pin!(watch);
    let mut session = Session::default();
    let mut retry_sleep = None;
    loop {
        let event = tokio::select! {
            biased;
            Some(event) = events.recv() => event,
            () = &mut watch => continue,
            () = workload.credentials_refused.notified() => {
                if let Ok(Some(secret)) = read_secret(&context, &workload).await {
                    session.use_secret(&context, &workload, &secret);
                }
                continue;
            }
            // Events of the Secret are processed during the wait.
            () = workload.connection_lost.notified(), if retry_sleep.is_none() => {
                retry_sleep = Some(context.clock.sleep(RETRY));
                continue;
            }
            () = due(&mut retry_sleep) => {
                retry_sleep = None;
                let found = read_secret(&context, &workload).await;
                session.reconnect(&context, &workload, found);
                continue;
            }
        };
        match event.state {
            SecretState::Secret(secret) => {
                session.use_secret(&context, &workload, &secret);
            }
            SecretState::Missing => {
                session = Session::default();
                let message = format!("there is no Secret {name}");
                workload.mark_down(&context, Access::KubeconfigMissing { message });
            }
            SecretState::Failed(failure) => {
                session.handle_read_failure(&context, &workload, &failure);
            }
        }
    }
}

/// The Secret, read live.
async fn read_secret(
    context: &Context,
    workload: &Workload,
) -> kube::Result<Option<Secret>> {
    let at = Address {
        resource: &ApiResource::erase::<Secret>(&()),
        namespace: Some(&workload.cluster.namespace),
        name: &name::kubeconfig_secret(&workload.cluster.name),
        projection: None,
    };
    let found = context.api.get(&at).await?;
    found.map(parse_secret).transpose()
}

fn parse_secret(object: Value) -> kube::Result<Secret> {
    serde_json::from_value(object).map_err(kube::Error::SerdeError)
}

/// An event of the watch of the Secret. A virtual clock is stopped until it has been processed.
struct Event {
    state: SecretState,
    _processing: Busy,
}

enum SecretState {
    /// The Secret exists.
    Secret(Box<Secret>),
    /// The Secret does not exist.
    Missing,
    /// The Secret could not be watched.
    Failed(WatchFailure),
}

/// Watches one Secret for as long as the future is polled.
fn watch_secret(
    context: &Context,
    namespace: &str,
    name: &str,
) -> (
    impl Future<Output = ()> + Send + use<>,
    UnboundedReceiver<Event>,
) {
    let (send, events) = unbounded_channel();
    let watch = Watch {
        client: context.api.clone(),
        resource: ApiResource::erase::<Secret>(&()),
        namespace: Some(namespace.to_owned()),
        selector: Some(Selector::named(name)),
        projection: Arc::new(WholeObject),
    };
    let sink = SecretEvents {
        clock: context.clock.clone(),
        is_listed: false,
        send,
    };
    (follow(watch, retry(context, name), sink), events)
}

struct SecretEvents {
    clock: Clock,
    /// Whether the list under way contains it.
    is_listed: bool,
    send: UnboundedSender<Event>,
}

impl SecretEvents {
    fn send(&self, state: SecretState) {
        let event = Event {
            state,
            _processing: self.clock.busy(),
        };
        // The receiver is in the task that polls this future.
        let _ = self.send.send(event);
    }
}

impl Sink for SecretEvents {
    fn list_begins(&mut self) {
        self.is_listed = false;
    }

    fn listed(&mut self, object: Value) -> kube::Result<()> {
        self.is_listed = true;
        self.modified(object)
    }

    fn list_ends(&mut self) {
        if !self.is_listed {
            self.send(SecretState::Missing);
        }
    }

    fn modified(&mut self, object: Value) -> kube::Result<()> {
        let secret = parse_secret(object)?;
        self.send(SecretState::Secret(Box::new(secret)));
        Ok(())
    }

    fn deleted(&mut self, _object: Value) {
        self.send(SecretState::Missing);
    }

    fn failed(&mut self, error: &kube::Error) {
        self.send(SecretState::Failed(WatchFailure::of(error)));
    }
}

/// Ready when `sleep` is; pending forever without one.
async fn due(sleep: &mut Option<Sleep>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

impl Session {
    /// Uses the kubeconfig that was found, even if it is already in use.
    fn reconnect(
        &mut self,
        context: &Arc<Context>,
        workload: &Arc<Workload>,
        found: kube::Result<Option<Secret>>,
    ) {
        match found {
            Ok(Some(secret)) => {
                *self = Self::default();
                self.use_secret(context, workload, &secret);
            }
            // The watch of the Secret reports that.
            Ok(None) => {}
            Err(_) => workload.connection_lost.notify_one(),
        }
    }

    /// Uses the kubeconfig in `secret`, unless it is in use already.
    fn use_secret(
        &mut self,
        context: &Arc<Context>,
        workload: &Arc<Workload>,
        secret: &Secret,
    ) {
        match kubeconfig_in(secret, &workload.cluster.name) {
            Ok(bytes) if self.kubeconfig.as_deref() == Some(bytes) => {}
            Ok(bytes) => {
                self.nodes = None;
                workload.reconnect(context);
                self.kubeconfig = Some(bytes.to_vec());
                match connect(context, bytes) {
                    Ok(api) => {
                        self.nodes = Some(follow_nodes(context, workload, api));
                    }
                    Err(message) => {
                        let refusal = Access::KubeconfigRefused { message };
                        workload.mark_down(context, refusal);
                    }
                }
            }
            Err(access) => {
                *self = Self::default();
                workload.mark_down(context, access);
            }
        }
    }

    /// A kubeconfig that was read before stays in use: the management cluster has not responded.
    fn handle_read_failure(
        &self,
        context: &Context,
        workload: &Workload,
        failure: &WatchFailure,
    ) {
        if self.kubeconfig.is_some() {
            return;
        }
        let message = one_line(&failure.message);
        let access = match failure.code {
            Some(403) => Access::KubeconfigMissing { message },
            _ => Access::Unreachable {
                message: format!(
                    "Secret {} cannot be read from the management cluster: {message}",
                    name::kubeconfig_secret(&workload.cluster.name),
                ),
            },
        };
        workload.mark_down(context, access);
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

fn connect(context: &Context, kubeconfig: &[u8]) -> Result<ApiClient, String> {
    let access = kubeconfig::Access::parse(kubeconfig, context.options.workload_servers)
        .map_err(|error| error.to_string())?;
    let client = context.options.connect.connect(&access);
    let client = client.map_err(|error| failure::message(&error))?;
    let metrics = context.metrics.clone();
    let observer =
        move |exchange: &Exchange<'_>| metrics.count_request("workload", exchange);
    Ok(ApiClient::new(client, name::FIELD_MANAGER).observed_by(Arc::new(observer)))
}
