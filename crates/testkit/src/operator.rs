//! Operators that a test starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{
    Connect, Instruments, Namespaces, NetworkConnect, Options, run,
};
use kube::Client;
use kubemu_apiserver::User;
use kubemu_clock::Clock;
use tokio::task::JoinHandle;

use crate::cluster::{BackendState, Cluster};
use crate::embedded::InProcess;
use crate::proxy::{CrashSwitch, Proxy, ProxyService};
use crate::rights::{GROUPS, OPERATOR};
use crate::traffic::{RecordingClient, Traffic};

/// A running operator. Dropping it stops it immediately, without a shutdown.
#[derive(Debug)]
pub struct Operator {
    instruments: Instruments,
    running: JoinHandle<()>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Operator {
    /// Its metrics and health.
    pub fn instruments(&self) -> &Instruments {
        &self.instruments
    }

    /// How many reconciles of a ScheduledMachine have ended so far.
    pub fn reconciles(&self) -> u64 {
        let metrics = self.instruments.metrics();
        let of_passes = metrics
            .lines()
            .filter(|line| line.starts_with("fivespot_reconciliations_total{"));
        let counts =
            of_passes.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    }
}

/// A running operator behind a [`Proxy`], which may crash it. It counts as crashed
/// then, but holds the clock until it is dropped.
#[derive(Debug)]
pub struct CrashableOperator {
    crash_switch: CrashSwitch,
    operator: Operator,
}

impl CrashableOperator {
    /// Whether it has crashed; a proxy may crash it.
    pub fn crash_switch(&self) -> &CrashSwitch {
        &self.crash_switch
    }

    /// Its metrics and health.
    pub fn instruments(&self) -> &Instruments {
        &self.operator.instruments
    }

    /// Whether it has terminated on its own, which is an error.
    pub fn has_ended(&self) -> bool {
        self.operator.running.is_finished()
    }
}

/// A proxy that passes everything.
struct PassAll;

impl Proxy for PassAll {}

impl Cluster {
    /// Starts an operator.
    pub fn operator(&self) -> Operator {
        self.operator_with(|_| {})
    }

    /// Starts an operator with changed options.
    pub fn operator_with(&self, change: impl FnOnce(&mut Options)) -> Operator {
        self.operator_behind(Arc::new(PassAll), change).operator
    }

    /// Starts an operator behind a proxy, with changed options.
    pub fn operator_behind(
        &self,
        proxy: Arc<dyn Proxy>,
        change: impl FnOnce(&mut Options),
    ) -> CrashableOperator {
        let crash_switch = CrashSwitch::default();
        let options = self.options((proxy, crash_switch.clone()), change);
        let operator = Operator {
            instruments: options.instruments.clone(),
            running: tokio::spawn(async move { match run(options).await {} }),
        };
        CrashableOperator {
            crash_switch,
            operator,
        }
    }

    fn options(
        &self,
        (proxy, crash_switch): (Arc<dyn Proxy>, CrashSwitch),
        change: impl FnOnce(&mut Options),
    ) -> Options {
        let mut options = match self.backend() {
            BackendState::Embedded(embedded) => {
                let user = User::new(OPERATOR, &GROUPS);
                let service = ProxyService {
                    inner: embedded.server.in_process_as(user),
                    user: OPERATOR,
                    clock: self.clock().clone(),
                    proxy,
                    crash_switch,
                };
                let client = Client::new(service, "default");
                let mut options = Options::new(client.clone(), self.clock().clone());
                options.connect = Arc::new(InProcess(client));
                options
            }
            BackendState::Kubernetes(real) => {
                let connector = RecordingConnector {
                    traffic: real.traffic.clone(),
                    clock: self.clock().clone(),
                    proxy,
                    crash_switch,
                };
                let client = connector.client(OPERATOR, real.operator.clone());
                let mut options = Options::new(client, self.clock().clone());
                options.connect = Arc::new(connector);
                let namespaces: BTreeSet<String> =
                    self.names().namespaces().into_iter().collect();
                options.namespaces = Namespaces::Only(namespaces);
                options
            }
        };
        // The test clusters of both backends are on this host.
        options.workload_servers.local = true;
        change(&mut options);
        options
    }
}

/// The user name of the operator in a real workload cluster. The embedded server uses one user
/// name for both.
pub(crate) const WORKLOAD: &str = "workload-admin";

/// Creates an operator's clients for a real cluster. Their traffic is recorded, and they may
/// crash together.
struct RecordingConnector {
    traffic: Traffic,
    clock: Clock,
    proxy: Arc<dyn Proxy>,
    crash_switch: CrashSwitch,
}

impl RecordingConnector {
    fn client(&self, user: &'static str, inner: Client) -> Client {
        let proxied = ProxyService {
            inner: RecordingClient::new(inner, user, self.traffic.clone()),
            user,
            clock: self.clock.clone(),
            proxy: self.proxy.clone(),
            crash_switch: self.crash_switch.clone(),
        };
        Client::new(proxied, "default")
    }
}

impl Connect for RecordingConnector {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        Ok(self.client(WORKLOAD, NetworkConnect.connect(access)?))
    }
}
