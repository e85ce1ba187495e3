//! Access for programs outside of this process.

use std::future::pending;

use crate::cluster::BackendState;
use crate::shared_cluster::SharedCluster;

use kubemu_apiserver::Credentials;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Cluster;

/// A listening server. Dropping it ends it.
#[derive(Debug)]
pub struct ListeningServer {
    kubeconfig: String,
    /// `Some` if the cluster is in this process.
    task: Option<JoinHandle<()>>,
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl ListeningServer {
    /// The text of a kubeconfig with all permissions, by client certificate.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a panic fails the test"
)]
impl Cluster {
    /// Listens on a free loopback port, for programs outside of this process. They do not hold
    /// the clock.
    ///
    /// A real cluster listens in any case.
    pub async fn listen(&self) -> ListeningServer {
        if matches!(self.backend(), BackendState::Kubernetes(_)) {
            return ListeningServer {
                kubeconfig: SharedCluster::get()
                    .await
                    .management()
                    .kubeconfig()
                    .to_owned(),
                task: None,
            };
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the port's number");
        let credentials = Credentials::generate().expect("credentials");
        let kubeconfig = credentials.certificate_kubeconfig(address, "test");
        let server = self.server().clone();
        let task = tokio::spawn(async move {
            // If the listener failed, a test that still uses it gets the error.
            let _ = server.serve(listener, &credentials, pending()).await;
        });
        ListeningServer {
            kubeconfig,
            task: Some(task),
        }
    }
}
