//! Letting programs from outside in.

use std::future::pending;

use crate::cluster::Ground;
use crate::site::Site;

use fivespot_apiserver::Credentials;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Cluster;

/// A listening server. Dropping it ends it.
#[derive(Debug)]
pub struct Listening {
    kubeconfig: String,
    /// Where the cluster is in this process.
    task: Option<JoinHandle<()>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Listening {
    /// The text of a kubeconfig with every right, by client certificate.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "what goes wrong in a test's own cluster ends the test"
)]
impl Cluster {
    /// Listens on a free loopback port, for programs that know nothing of this process.
    /// They do not hold the clock.
    ///
    /// A real cluster listens anyway.
    pub async fn listen(&self) -> Listening {
        if matches!(self.ground(), Ground::Kubernetes(_)) {
            return Listening {
                kubeconfig: Site::get().await.management().kubeconfig().to_owned(),
                task: None,
            };
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the port's number");
        let credentials = Credentials::generate().expect("credentials");
        let kubeconfig = credentials.certificate_kubeconfig(address, "test");
        let server = self.server().clone();
        let task = tokio::spawn(async move {
            // A test that still talks to a listener that failed gets the error.
            let _ = server.serve(listener, &credentials, pending()).await;
        });
        Listening {
            kubeconfig,
            task: Some(task),
        }
    }
}
