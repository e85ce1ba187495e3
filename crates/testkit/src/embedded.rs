//! The embedded server and the simulated Cluster API.

use std::sync::{Arc, Mutex, PoisonError};

use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, NetworkConnect};
use fivespot_sim::Contract;
use kube::Client;
use kubemu_apiserver::{Audit, AuditEvent, Credentials, ForkOptions, Server, User};
use kubemu_clock::Clock;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::{request, rights};

/// The user of the simulated Cluster API in the audit log.
const SIMULATOR: &str = "system:serviceaccount:capi-system:capi-manager";

/// The address in the kubeconfig of the workload cluster; no server listens there.
const ADDRESS: &str = "127.0.0.1:6443";

/// The time at which everything was installed.
const INSTALLED: &str = "2020-01-01T00:00:00Z";

/// A server for each contract with everything installed, of which each cluster is a fork: to install
/// it takes longer than most tests.
static PREPARED: [OnceCell<Server>; 2] = [const { OnceCell::const_new() }; 2];

async fn prepared(contract: Contract) -> &'static Server {
    let [older, newest] = &PREPARED;
    let cell = match contract {
        Contract::V1Beta1 => older,
        Contract::V1Beta2 => newest,
    };
    cell.get_or_init(|| install(contract)).await
}

#[expect(clippy::expect_used, clippy::panic, reason = "a panic fails the test")]
async fn install(contract: Contract) -> Server {
    let clock = Clock::stopped_at(INSTALLED.parse().expect("a time"));
    let mut options = kubemu_apiserver::Options::new(clock.clone());
    // No fork has this seed, so its uids are others.
    options.seed = Some(u64::MAX);
    // The simulated kubelets report their nodes ready at once.
    options
        .disable_plugins
        .push("TaintNodesByCondition".to_owned());
    let server = Server::new(options).expect("the default plugins are known");
    fivespot_sim::define(&simulation(&server, contract))
        .await
        .expect("the simulated resources");
    let minor = kubemu_apiserver::KubeVersion::default().minor();
    let installed = fivespot_api::manifest::installed(minor).into_iter();
    let all = installed
        .chain(rights::account())
        .chain(rights::cluster_wide());
    let client = Client::new(server.in_process(), "default");
    for object in all {
        let applied = request::apply(&client, &object).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    clock.wait_until_idle().await;
    server
}

fn simulation(server: &Server, contract: Contract) -> fivespot_sim::Options {
    fivespot_sim::Options {
        client: server.client_as(User::new(SIMULATOR, &["system:masters"])),
        clock: server.clock().clone(),
        contract,
        kubeconfig: None,
    }
}

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
    /// Starts both on `clock`, with everything installed, and with uids that are derived from `seed`.
    pub(crate) async fn start(clock: &Clock, contract: Contract, seed: u64) -> Self {
        let log: Arc<Mutex<Vec<AuditEvent>>> = Arc::default();
        let recorded = log.clone();
        let audit = Audit::new(move |event| {
            recorded
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone());
        });
        let server = prepared(contract).await.fork_with(ForkOptions {
            clock: Some(clock.clone()),
            seed: Some(seed),
            audit: Some(audit),
        });
        let credentials = Credentials::generate().expect("credentials");
        let address = ADDRESS.parse().expect("an address");
        let kubeconfig = credentials.certificate_kubeconfig(address, "workload");
        let mut simulation = simulation(&server, contract);
        // It is as old as the cluster.
        fivespot_sim::create_node(&simulation)
            .await
            .expect("the permanent node");
        simulation.kubeconfig = Some(kubeconfig);
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
