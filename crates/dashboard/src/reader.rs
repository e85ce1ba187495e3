//! Reading a cluster, and nothing else.

use std::io;
use std::sync::Arc;

use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, Options};
use futures::Stream;
use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::client::Body;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt as _, watcher::Config};

use crate::listed::Listed;

/// The Events that are about a ScheduledMachine.
const ABOUT_MACHINES: &str = "involvedObject.kind=ScheduledMachine";

/// How many Events of one machine are read.
const MOST_EVENTS: u32 = 500;

/// A client of the same server, with the same rights, whose requests other than GET are refused
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

/// What a watch reports.
pub(crate) trait Changes:
    Stream<Item = watcher::Result<watcher::Event<DynamicObject>>>
{
}

impl<S: Stream<Item = watcher::Result<watcher::Event<DynamicObject>>>> Changes for S {}

/// Workload clusters are only read as well.
struct ReadOnlyConnect(Arc<dyn Connect>);

impl Connect for ReadOnlyConnect {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        self.0.connect(access).map(read_only)
    }
}

/// Reads the cluster of the dashboard.
///
/// There is no method that writes, and the client within refuses to.
#[derive(Clone)]
pub struct Reader {
    options: Options,
    namespace: Option<String>,
}

impl Reader {
    /// Reads with the client and the settings of `options`, in one namespace or in all.
    pub fn new(mut options: Options, namespace: Option<String>) -> Self {
        options.client = read_only(options.client);
        options.connect = Arc::new(ReadOnlyConnect(options.connect));
        Self { options, namespace }
    }

    /// What the operator decides from, to look at one machine. Its clients only read.
    pub(crate) fn options(&self) -> Options {
        self.options.clone()
    }

    /// The ScheduledMachines and every change of them; errors are followed by another try.
    pub(crate) fn machines(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<Listed>>> + use<> {
        let client = self.options.client.clone();
        let api: Api<Listed> = match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        watcher(api, Config::default()).default_backoff()
    }

    /// The objects of a kind and every change of them; errors are followed by another try.
    pub(crate) fn all<K: kube::Resource<DynamicType = ()>>(
        &self,
    ) -> impl Changes + use<K> {
        let resource = ApiResource::erase::<K>(&());
        let client = self.options.client.clone();
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        watcher(api, Config::default()).default_backoff()
    }

    /// The Events about ScheduledMachines, and those to come.
    pub(crate) fn events(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<Event>>> + use<> {
        let client = self.options.client.clone();
        let api: Api<Event> = match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        watcher(api, Config::default().fields(ABOUT_MACHINES)).default_backoff()
    }

    /// The Events about one ScheduledMachine, the oldest first.
    ///
    /// # Errors
    /// They cannot be read; in the API server's words.
    pub async fn events_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<EventRecord>, String> {
        let api: Api<Event> = Api::namespaced(self.options.client.clone(), namespace);
        let about = format!("{ABOUT_MACHINES},involvedObject.name={name}");
        let asked = ListParams::default().fields(&about).limit(MOST_EVENTS);
        let found = api.list(&asked).await.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })?;
        let mut events: Vec<_> = found.items.iter().filter_map(EventRecord::of).collect();
        events.sort_by_key(|event| event.at);
        Ok(events)
    }
}

/// An Event about a ScheduledMachine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// When it happened.
    pub at: Timestamp,
    /// Whether somebody should look.
    pub is_warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// What was done, in one word.
    pub action: String,
    /// What happened, in one sentence.
    pub note: String,
}

impl EventRecord {
    /// Reads an Event; none if it has no time.
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

    /// The phase that it announces.
    pub(crate) fn phase(&self) -> Option<fivespot_api::Phase> {
        let name = self.action.strip_prefix("PhaseTransitionTo")?;
        let mut all = fivespot_api::Phase::ALL.into_iter();
        all.find(|phase| phase.as_str() == name)
    }
}
