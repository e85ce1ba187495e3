//! Selects the cluster of a command, as kubectl does.

use std::path::Path;

use clap_complete::engine::ArgValueCompleter;
use fivespot_api::resource::SCHEDULED_MACHINE;
use fivespot_api::{Resource, name};
pub(crate) use fivespot_program::cluster::{Source, block_on, no_client};
use http::Response;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, ListParams};
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Client, Config};
pub(crate) use kubemu::apply::error_message;
use kubemu_clock::Clock;

use crate::named::Named;
use crate::{Failure, completion};

/// The API server cannot be reached, or its response is not valid.
pub(crate) fn unreachable(address: &str, error: &kube::Error) -> Failure {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failure::new(format!("cannot reach {address}"), cause)
        .remedy("start the API server, or select another with --kubeconfig and --context")
}

/// A request for ScheduledMachines failed: the cluster cannot be reached, 5-Spot is not installed
/// in it, or it refuses.
pub(crate) fn failed_request(what: &str, address: &str, error: kube::Error) -> Failure {
    failed_request_of(&name::crd(), what, address, error)
}

/// As [`failed_request`], for objects of another CustomResourceDefinition of 5-Spot.
pub(crate) fn failed_request_of(
    crd: &str,
    what: &str,
    address: &str,
    error: kube::Error,
) -> Failure {
    match error {
        kube::Error::Api(status) if is_not_served(&status) => Failure::new(
            what,
            format!("5-Spot is not installed in {address}: there is no CRD {crd}"),
        )
        .remedy("apply deploy/install.yaml or install the chart"),
        kube::Error::Api(status) => Failure::new(what, status.message.clone()).remedy(
            "ask for access, or select another cluster with --kubeconfig and --context",
        ),
        other => unreachable(address, &other),
    }
}

/// The objects of a kind: of all namespaces, or of the selected one.
pub(crate) fn objects(
    client: &Client,
    resource: &ApiResource,
    is_all: bool,
) -> Api<DynamicObject> {
    if is_all {
        Api::all_with(client.clone(), resource)
    } else {
        Api::default_namespaced_with(client.clone(), resource)
    }
}

/// Reads the object that an argument names, in the selected namespace.
///
/// # Errors
/// 5-Spot is not installed, there is no such object, or it may not be read.
pub(crate) async fn named(
    client: &Client,
    address: &str,
    named: Named<'_>,
) -> Result<DynamicObject, Failure> {
    let namespace = client.default_namespace();
    let (served, Named { resource, name }) = (named.served(), named);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &served);
    let what = format!("reading {} {namespace}/{name}", resource.kind);
    let crd = resource.definition_name();
    let failed = |error| failed_request_of(&crd, &what, address, error);
    if let Some(found) = api.get_opt(name).await.map_err(failed)? {
        return Ok(found);
    }
    // Without the CRD, every name is missing. A user who may not list them is not told.
    let one = api.list(&ListParams::default().limit(1)).await;
    match one {
        Err(kube::Error::Api(status)) if is_not_served(&status) => {
            Err(failed(kube::Error::Api(status)))
        }
        _ => Err(not_found(resource, namespace, name)),
    }
}

/// Reads an object, if the user may read it and it exists.
pub(crate) async fn readable(
    client: &Client,
    namespace: &str,
    named: Named<'_>,
) -> Option<DynamicObject> {
    let served = named.served();
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &served);
    api.get_opt(named.name).await.ok().flatten()
}

/// There is no ScheduledMachine of that name in that namespace.
pub(crate) fn no_such_machine(namespace: &str, name: &str) -> Failure {
    not_found(SCHEDULED_MACHINE, namespace, name)
}

fn not_found(resource: &Resource, namespace: &str, name: &str) -> Failure {
    let what = format!("reading {} {namespace}/{name}", resource.kind);
    Failure::new(what, "not found")
        .remedy("give its namespace with -n; `5spot status -A` lists all")
}

/// Whether the resource itself is not served. Such a 404 has no object name.
pub(crate) fn is_not_served(status: &kube::core::Status) -> bool {
    status.code == 404 && status.details.as_ref().is_none_or(|it| it.name.is_empty())
}

/// If the server's clock differs from this machine's by more than this, the server's time is used.
/// More than the skew of synchronized clocks and the duration of a request.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// The current time for data that is read from this cluster: the time of this machine, unless the
/// server's `Date` differs from it, as with `5spot dev --start`.
pub(crate) async fn now(client: &Client) -> Timestamp {
    now_at(server_time(client).await)
}

/// The time that the server tells, to the second. `None` if it tells none.
pub(crate) async fn server_time(client: &Client) -> Option<Timestamp> {
    date(&request_version(client).await.ok()?)
}

/// The current time for data that is read from a cluster whose server told this time.
pub(crate) fn now_at(server_time: Option<Timestamp>) -> Timestamp {
    let local_time = Clock::system().now();
    match server_time {
        Some(told) if told.duration_since(local_time).abs() > MAX_CLOCK_DIFFERENCE => {
            told
        }
        _ => local_time,
    }
}

/// Requests the version of the server. A response with an error status is not an error.
async fn request_version(client: &Client) -> Result<Response<Body>, kube::Error> {
    let request = http::Request::get("/version").body(Body::empty());
    client.send(request.map_err(kube::Error::HttpError)?).await
}

/// The server responds to requests.
///
/// # Errors
/// It does not. The failure contains its address and the cause.
pub(crate) async fn require_reachable(
    client: &Client,
    address: &str,
) -> Result<Timestamp, Failure> {
    let response = request_version(client).await;
    let response = response.map_err(|error| unreachable(address, &error))?;
    Ok(now_at(date(&response)))
}

/// The `Date` header of a response.
fn date(response: &Response<Body>) -> Option<Timestamp> {
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    parser.parse_timestamp(date).ok()
}

/// A cluster that has responded.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// Its address, for messages.
    pub(crate) address: String,
    /// Its current time.
    pub(crate) now: Timestamp,
}

/// Flags that select a cluster and a namespace.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Access {
    #[command(flatten)]
    source: Source,
    /// Namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME", add = ArgValueCompleter::new(completion::namespaces))]
    pub(crate) namespace: Option<String>,
}

impl Access {
    /// The path of the kubeconfig, where one is selected.
    pub(crate) fn kubeconfig(&self) -> Option<&Path> {
        self.source.kubeconfig.as_deref()
    }

    /// A client with the selected namespace as its default namespace.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used. Sends no request.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        Client::try_from(self.config().await?).map_err(no_client)
    }

    /// Connects a client as [`client`](Self::client).
    ///
    /// # Errors
    /// No kubeconfig, or the cluster does not respond. The failure contains its address and the cause.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        let config = self.config().await?;
        let address = self.address(&config);
        let client = Client::try_from(config).map_err(no_client)?;
        let now = require_reachable(&client, &address).await?;
        Ok(Connection {
            client,
            address,
            now,
        })
    }

    /// The flags as given, for a further command about the same cluster and namespace: ` -n team-a`.
    pub(crate) fn flags(&self) -> String {
        let kubeconfig = self.source.kubeconfig.as_ref();
        let kubeconfig = kubeconfig.map(|path| path.display().to_string());
        let flags = [
            ("-n", self.namespace.clone()),
            ("--kubeconfig", kubeconfig),
            ("--context", self.source.context.clone()),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value?)));
        let words = given.map(|(flag, value)| format!(" {flag} {}", shell_word(&value)));
        words.collect::<Vec<_>>().concat()
    }

    /// The address of the selected cluster, with the name of its context if there is one.
    pub(crate) fn address(&self, config: &Config) -> String {
        self.source.address(config)
    }

    /// The client configuration, with the selected namespace as the default namespace.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used. Sends no request.
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        Ok(self.in_namespace(self.source.config().await?))
    }

    /// As [`config`](Self::config). In a pod without the flags of a cluster, the in-cluster
    /// configuration.
    ///
    /// # Errors
    /// As [`config`](Self::config), and no service account of a pod.
    pub(crate) async fn config_or_in_cluster(&self) -> Result<Config, Failure> {
        Ok(self.in_namespace(self.source.config_or_in_cluster().await?))
    }

    /// The configuration with the selected namespace.
    fn in_namespace(&self, mut config: Config) -> Config {
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        config
    }
}

/// A text as one word of a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:@+".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
