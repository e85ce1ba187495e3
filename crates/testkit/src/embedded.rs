//! The embedded server and the simulated Cluster API.

use std::sync::{Arc, Mutex, PoisonError};

use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, NetworkConnect};
use fivespot_sim::Contract;
use kube::Client;
use kubemu_apiserver::{Audit, AuditEvent, Credentials, Server, User};
use kubemu_clock::Clock;
use tokio::task::JoinHandle;

/// The user of the simulated Cluster API in the audit log.
const SIMULATOR: &str = "system:serviceaccount:capi-system:capi-manager";

/// The address in the kubeconfig of the workload cluster; no server listens there.
const ADDRESS: &str = "127.0.0.1:6443";

/// A cluster in this process. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) server: Server,
    log: Arc<Mutex<Vec<AuditEvent>>>,
    simulator: JoinHandle<()>,
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.simulator.abort();
    }
}

#[expect(clippy::expect_used, reason = "a panic fails the test")]
impl Embedded {
    /// Starts both on `clock`, with uids that are derived from `seed`.
    pub(crate) async fn start(clock: &Clock, contract: Contract, seed: u64) -> Self {
        let log: Arc<Mutex<Vec<AuditEvent>>> = Arc::default();
        let recorded = log.clone();
        let mut options = kubemu_apiserver::Options::new(clock.clone());
        options.seed = Some(seed);
        // The simulated kubelets report their nodes ready at once.
        options
            .disable_plugins
            .push("TaintNodesByCondition".to_owned());
        options.audit = Some(Audit::new(move |event| {
            recorded
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone());
        }));
        let server = Server::new(options).expect("the default plugins are known");
        let credentials = Credentials::generate().expect("credentials");
        let address = ADDRESS.parse().expect("an address");
        let simulation = fivespot_sim::Options {
            client: server.client_as(User::new(SIMULATOR, &["system:masters"])),
            clock: clock.clone(),
            contract,
            kubeconfig: Some(credentials.certificate_kubeconfig(address, "workload")),
        };
        fivespot_sim::install(&simulation)
            .await
            .expect("the simulated resources");
        let simulator = tokio::spawn(fivespot_sim::run(simulation));
        Self {
            server,
            log,
            simulator,
        }
    }

    /// Every request since the last call, in the order of the responses; they are removed from
    /// the log.
    pub(crate) fn take_requests(&self) -> Vec<AuditEvent> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *log)
    }

    /// Every request so far, in the order of the responses.
    pub(crate) fn requests(&self) -> Vec<AuditEvent> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Connects to the cluster in this process if the kubeconfig has its address; dials other
/// servers.
pub(crate) struct InProcess(pub(crate) Client);

impl Connect for InProcess {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        let authority = access.server().authority();
        if authority.is_some_and(|it| it.as_str() != ADDRESS) {
            return NetworkConnect.connect(access);
        }
        Ok(self.0.clone())
    }
}
