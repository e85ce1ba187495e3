//! Operators that a test starts.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_apiserver::User;
use fivespot_clock::Clock;
use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, Dial, Instruments, Namespaces, Options, run};
use kube::Client;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Ground};
use crate::crash::{Crash, Tally};
use crate::embedded::InProcess;
use crate::proxy::{Life, Proxied, Proxy};
use crate::rights::{GROUPS, OPERATOR};
use crate::wire::{Traffic, Wire};

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

/// A running operator behind a [`Proxy`], which may end its [`Life`]. It counts as crashed
/// then, but holds the clock until it is dropped.
#[derive(Debug)]
pub struct Mortal {
    life: Life,
    operator: Operator,
}

impl Mortal {
    /// Whether it still runs; a proxy may end it.
    pub fn life(&self) -> &Life {
        &self.life
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
struct Open;

impl Proxy for Open {}

impl Cluster {
    /// Starts an operator.
    pub fn operator(&self) -> Operator {
        self.operator_through(Tally::default())
    }

    /// Starts an operator with changed options.
    pub fn operator_with(&self, change: impl FnOnce(&mut Options)) -> Operator {
        let between = (Arc::new(Open) as Arc<dyn Proxy>, Life::default());
        self.start_operator(Tally::default(), between, change)
    }

    /// Starts an operator whose writes are counted. If the tally has a limit, the operator
    /// crashes when it is reached.
    pub fn operator_through(&self, tally: Tally) -> Operator {
        let between = (Arc::new(Open) as Arc<dyn Proxy>, Life::default());
        self.start_operator(tally, between, |_| {})
    }

    /// Starts an operator behind a proxy, with changed options.
    pub fn operator_behind(
        &self,
        proxy: Arc<dyn Proxy>,
        change: impl FnOnce(&mut Options),
    ) -> Mortal {
        let life = Life::default();
        let between = (proxy, life.clone());
        let operator = self.start_operator(Tally::default(), between, change);
        Mortal { life, operator }
    }

    fn start_operator(
        &self,
        tally: Tally,
        (proxy, life): (Arc<dyn Proxy>, Life),
        change: impl FnOnce(&mut Options),
    ) -> Operator {
        let mut options = match self.ground() {
            Ground::Embedded(embedded) => {
                let user = User::new(OPERATOR, &GROUPS);
                let service = Crash::new(embedded.server.in_process_as(user), tally);
                let service = Proxied {
                    inner: service,
                    user: OPERATOR,
                    clock: self.clock().clone(),
                    proxy,
                    life,
                };
                let client = Client::new(service, "default");
                let mut options = Options::new(client.clone(), self.clock().clone());
                options.connect = Arc::new(InProcess(client));
                options
            }
            Ground::Kubernetes(real) => {
                let watched = Watched {
                    traffic: real.traffic.clone(),
                    tally,
                    clock: self.clock().clone(),
                    proxy,
                    life,
                };
                let client = watched.client(OPERATOR, real.operator.clone());
                let mut options = Options::new(client, self.clock().clone());
                options.connect = Arc::new(watched);
                let namespaces: BTreeSet<String> =
                    self.home().namespaces().into_iter().collect();
                options.namespaces = Namespaces::Only(namespaces);
                options
            }
        };
        // The test clusters of both backends are on this host.
        options.workload_servers.local = true;
        change(&mut options);
        Operator {
            instruments: options.instruments.clone(),
            running: tokio::spawn(async move { match run(options).await {} }),
        }
    }
}

/// The user name of the operator in a real workload cluster. The embedded server uses one user
/// name for both.
pub(crate) const WORKLOAD: &str = "workload-admin";

/// Creates an operator's clients for a real cluster. Their traffic is recorded, and they may
/// crash together.
struct Watched {
    traffic: Traffic,
    tally: Tally,
    clock: Clock,
    proxy: Arc<dyn Proxy>,
    life: Life,
}

impl Watched {
    fn client(&self, user: &'static str, inner: Client) -> Client {
        let wire = Wire::new(inner, user, self.traffic.clone());
        let proxied = Proxied {
            inner: Crash::new(wire, self.tally.clone()),
            user,
            clock: self.clock.clone(),
            proxy: self.proxy.clone(),
            life: self.life.clone(),
        };
        Client::new(proxied, "default")
    }
}

impl Connect for Watched {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        Ok(self.client(WORKLOAD, Dial.connect(access)?))
    }
}
