//! Reads a cluster, and never writes to it.

use std::io;
use std::sync::Arc;

use fivespot_api::verdict::Lease;
use fivespot_api::{ScheduledMachineClass, name};
use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, Options};
use futures::Stream;
use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams};
use kube::client::Body;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt as _, watcher::Config};
use kube::{Client, Resource};
use serde_json::Value;

/// The field selector of Events about ScheduledMachines.
const MACHINE_EVENTS: &str = "involvedObject.kind=ScheduledMachine";

/// The largest number of Events of one machine that are read.
const MAX_EVENTS: u32 = 500;

/// A client of the same server with the same credentials that refuses requests other than GET
/// before they are sent.
pub fn read_only(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let sent: Result<Response<Body>, tower::BoxError> =
                if request.method() == Method::GET {
                    client.send(request).await.map_err(Into::into)
                } else {
                    let method = request.method();
                    Err(io::Error::other(format!(
                        "{method} is not sent: the dashboard only reads"
                    ))
                    .into())
                };
            sent
        }
    });
    Client::new(service, namespace)
}

/// The event stream of a watch.
pub(crate) trait ObjectWatch<K>:
    Stream<Item = watcher::Result<watcher::Event<K>>>
{
}

impl<K, S: Stream<Item = watcher::Result<watcher::Event<K>>>> ObjectWatch<K> for S {}

/// Whether their controllers hold their Leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leases {
    pub(crate) machines: Lease,
    /// The operator's too, unless capacities have a controller of their own.
    pub(crate) capacities: Lease,
}

/// Connects to workload clusters with read-only clients.
struct ReadOnlyConnect(Arc<dyn Connect>);

impl Connect for ReadOnlyConnect {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        self.0.connect(access).map(read_only)
    }
}

/// Reads the cluster of the dashboard.
///
/// It has no method that writes, and its client refuses to.
#[derive(Clone)]
pub struct Reader {
    options: Options,
    namespace: Option<String>,
    lease: LeaseLocation,
}

/// Where the operator holds its Lease.
#[derive(Clone, Debug)]
pub struct LeaseLocation {
    /// Its namespace.
    pub namespace: String,
    /// Its name, unless the operator is divided into shards.
    pub name: String,
}

impl Default for LeaseLocation {
    /// As installed.
    fn default() -> Self {
        Self {
            namespace: name::SYSTEM_NAMESPACE.to_owned(),
            name: name::LEADER_LEASE.to_owned(),
        }
    }
}

impl Default for Leases {
    fn default() -> Self {
        Self {
            machines: Lease::Held,
            capacities: Lease::Held,
        }
    }
}

impl Leases {
    /// Reads the Leases of a namespace.
    pub(crate) fn of(
        leases: &[Value],
        operator: &str,
        namespace: &str,
        now: Timestamp,
    ) -> Self {
        let machines = Lease::of(leases, operator, namespace, now);
        let is_own = |it: &&Value| it["metadata"]["name"] == name::CAPACITY_LEASE;
        let capacities = match leases.iter().find(is_own) {
            Some(own) => Lease::of(
                std::slice::from_ref(own),
                name::CAPACITY_LEASE,
                namespace,
                now,
            ),
            None => machines.clone(),
        };
        Self {
            machines,
            capacities,
        }
    }

    fn not_readable(cause: &str) -> Self {
        let lease = Lease::NotReadable {
            cause: cause.to_owned(),
        };
        Self {
            machines: lease.clone(),
            capacities: lease,
        }
    }
}

impl Reader {
    /// Returns a reader with the client and the settings of `options`, for one namespace or for
    /// all.
    pub fn new(mut options: Options, namespace: Option<String>) -> Self {
        options.client = read_only(options.client);
        options.connect = Arc::new(ReadOnlyConnect(options.connect));
        Self {
            options,
            namespace,
            lease: LeaseLocation::default(),
        }
    }

    /// The same reader for an operator that holds its Lease there.
    #[must_use]
    pub fn with_lease(self, lease: LeaseLocation) -> Self {
        Self { lease, ..self }
    }

    /// Reads whether the operator holds its Lease at `now`, and what reconciles capacities.
    pub(crate) async fn leases(&self, now: Timestamp) -> Leases {
        let LeaseLocation { namespace, name } = &self.lease;
        let resource = ApiResource::erase::<LeaseObject>(&());
        let client = self.options.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        match api.list(&ListParams::default()).await {
            Ok(list) => {
                let leases = list.items.into_iter();
                let leases: Vec<Value> = leases
                    .filter_map(|lease| serde_json::to_value(lease).ok())
                    .collect();
                Leases::of(&leases, name, namespace, now)
            }
            Err(kube::Error::Api(status)) => Leases::not_readable(&status.message),
            Err(error) => Leases::not_readable(&error.to_string()),
        }
    }

    /// The options to inspect a machine as the operator does. The clients only read.
    pub(crate) fn options(&self) -> Options {
        self.options.clone()
    }

    /// Watches the objects of a kind, in the namespace that is shown or in all, to decode them later.
    /// The watch is retried with backoff after an error.
    pub(crate) fn watch<K: Resource<DynamicType = ()>>(
        &self,
    ) -> impl ObjectWatch<DynamicObject> + use<K> {
        let (client, resource) =
            (self.options.client.clone(), ApiResource::erase::<K>(&()));
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        watcher(api, Config::default()).default_backoff()
    }

    /// Watches the classes, which are in no namespace.
    pub(crate) fn classes(&self) -> impl ObjectWatch<DynamicObject> + use<> {
        let resource = ApiResource::erase::<ScheduledMachineClass>(&());
        let api = Api::all_with(self.options.client.clone(), &resource);
        watcher(api, Config::default()).default_backoff()
    }

    /// Watches the Events about ScheduledMachines.
    pub(crate) fn events(&self) -> impl ObjectWatch<Event> + use<> {
        let client = self.options.client.clone();
        let api: Api<Event> = match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        watcher(api, Config::default().fields(MACHINE_EVENTS)).default_backoff()
    }

    /// The Events about one ScheduledMachine, the oldest first.
    ///
    /// # Errors
    /// The Events cannot be read. The error is the message of the API server.
    pub async fn events_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<EventRecord>, String> {
        let api: Api<Event> = Api::namespaced(self.options.client.clone(), namespace);
        let about = format!("{MACHINE_EVENTS},involvedObject.name={name}");
        let params = ListParams::default().fields(&about).limit(MAX_EVENTS);
        let list = api.list(&params).await.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })?;
        let mut events: Vec<_> = list.items.iter().filter_map(EventRecord::of).collect();
        events.sort_by_key(|event| event.at);
        Ok(events)
    }
}

/// An Event about a ScheduledMachine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// When it happened.
    pub at: Timestamp,
    /// Whether its type is `Warning`.
    pub is_warning: bool,
    /// The reason, as one word.
    pub reason: String,
    /// The action, as one word.
    pub action: String,
    /// The message, as one sentence.
    pub note: String,
}

impl EventRecord {
    /// Reads an Event. `None` if it has no time.
    pub fn of(event: &Event) -> Option<Self> {
        let at = event.event_time.as_ref().map(|at| at.0);
        let at = at.or_else(|| event.last_timestamp.as_ref().map(|at| at.0));
        let at =
            at.or_else(|| event.metadata.creation_timestamp.as_ref().map(|at| at.0))?;
        Some(Self {
            at,
            is_warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.clone().unwrap_or_default(),
            action: event.action.clone().unwrap_or_default(),
            note: event.message.clone().unwrap_or_default(),
        })
    }

    /// The phase that the Event reports.
    pub(crate) fn phase(&self) -> Option<fivespot_api::Phase> {
        let name = self.action.strip_prefix("PhaseTransitionTo")?;
        let mut all = fivespot_api::Phase::ALL.into_iter();
        all.find(|phase| phase.as_str() == name)
    }
}
