//! An API server of a benchmark, in its process and on a socket.

use std::path::Path;

use fivespot_api::name;
use kubemu_apiserver::{Audit, AuditEvent, Client, Credentials, Options, Server, User};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::BoxError;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmission";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The API server. Dropping it stops it.
pub struct ApiServer {
    client: Client,
    task: AbortHandle,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ApiServer {
    /// The user of the benchmark itself.
    pub const USER: &str = "benchmark";

    /// Starts one with the CRDs and policies of 5-Spot and these other CRDs, in real time. Writes a
    /// kubeconfig to this path. `audit` is called for each request.
    ///
    /// # Errors
    /// The socket, the file or an object cannot be created.
    pub async fn start(
        kubeconfig: &Path,
        definitions: impl IntoIterator<Item = Value>,
        audit: impl Fn(&AuditEvent) + Send + Sync + 'static,
    ) -> Result<Self, BoxError> {
        let mut options = Options::new(Clock::system());
        options.audit = Some(Audit::new(audit));
        let server = Server::new(options)?;
        let client = server.client_as(User {
            name: Self::USER.to_owned(),
            ..User::admin()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let credentials = Credentials::generate()?;
        let text = credentials.kubeconfig(listener.local_addr()?, "management");
        std::fs::write(kubeconfig, text)?;
        let task = tokio::spawn(async move {
            let ended = server.serve(listener, &credentials, std::future::pending());
            if let Err(error) = ended.await {
                eprintln!("the API server has ended: {error}");
            }
        });
        let own = Self {
            client,
            task: task.abort_handle(),
        };
        // The operator's Lease is in its own namespace.
        let system = json!({"metadata": {"name": name::SYSTEM_NAMESPACE}});
        own.create("/api/v1/namespaces", system).await?;
        for object in fivespot_api::manifest::installed(36) {
            let path = match object["kind"].as_str() {
                Some("CustomResourceDefinition") => DEFINITIONS.to_owned(),
                Some("ValidatingAdmissionPolicy") => format!("{ADMISSION}policies"),
                _ => format!("{ADMISSION}policybindings"),
            };
            own.create(&path, object).await?;
        }
        for definition in definitions {
            own.create(DEFINITIONS, definition).await?;
        }
        Ok(own)
    }

    /// A client of the benchmark itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates an object in the collection with this path.
    ///
    /// # Errors
    /// The server refuses it; the error has the path and the response.
    pub async fn create(&self, path: &str, object: Value) -> Result<(), BoxError> {
        let created = self.client.create(path, object).await;
        created
            .map(|_| ())
            .map_err(|refusal| format!("{path}: {refusal:?}").into())
    }
}
