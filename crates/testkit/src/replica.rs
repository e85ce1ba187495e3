//! One of several operator replicas.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fivespot_controller::{
    Coordination, Instruments, Lease, LeaseTiming, Options, run_until,
};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use kubemu_apiserver::{AuditEvent, User};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Service;

use crate::Cluster;
use crate::embedded::InProcess;

/// A running operator replica. Dropping it stops it immediately, without a shutdown.
#[derive(Debug)]
pub struct Replica {
    name: String,
    is_cut_off: Arc<AtomicBool>,
    instruments: Instruments,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Replica {
    /// Its identity in Leases, and its user in the audit log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its metrics and health.
    pub fn instruments(&self) -> &Instruments {
        &self.instruments
    }

    /// Requests it to stop, and waits until it has.
    pub async fn shut_down(mut self) {
        drop(self.stop.take());
        // The result is not needed; the task is never aborted before.
        let _ = (&mut self.running).await;
    }

    /// From now on its writes to Leases do not reach the server and get no response. Its other
    /// writes reach the server.
    pub fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
    }

    /// Its writes to Leases reach the server again; earlier ones are lost.
    pub fn reconnect(&self) {
        self.is_cut_off.store(false, Ordering::Relaxed);
    }
}

impl Cluster {
    /// Starts a replica that takes part in leader election.
    pub fn candidate(&self, name: &str) -> Replica {
        self.replica(name, Coordination::Leader(lease()))
    }

    /// Starts a replica that shares `count` shards with others.
    pub fn shard(&self, name: &str, count: NonZeroU32) -> Replica {
        let lease = lease();
        self.replica(name, Coordination::Shards { lease, count })
    }

    /// Starts an operator that starts at most this many machines per minute.
    pub fn limited(&self, name: &str, max_starts_per_minute: NonZeroU32) -> Replica {
        self.replica_with(name, |options| {
            options.max_starts_per_minute = Some(max_starts_per_minute);
        })
    }

    fn replica(&self, name: &str, coordination: Coordination) -> Replica {
        self.replica_with(name, |options| options.coordination = coordination)
    }

    fn replica_with(&self, name: &str, change: impl FnOnce(&mut Options)) -> Replica {
        let is_cut_off = Arc::new(AtomicBool::new(false));
        let user = User::new(name, &["system:masters"]);
        let (mut server, is_lost) =
            (self.server().in_process_as(user), is_cut_off.clone());
        // Writes to Leases while it is cut off are lost.
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_write = request.method() != Method::GET;
            let is_renewal = is_write && request.uri().path().contains("/leases");
            let is_lost = is_renewal && is_lost.load(Ordering::Relaxed);
            let response = (!is_lost).then(|| server.call(request));
            async move {
                match response {
                    Some(response) => response.await,
                    None => std::future::pending().await,
                }
            }
        });
        let client = Client::new(service, "default");
        let mut options = Options::new(client.clone(), self.clock().clone());
        options.connect = Arc::new(InProcess(client));
        options.workload_servers.local = true;
        change(&mut options);
        name.clone_into(&mut options.identity);
        let instruments = options.instruments.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let _ = run_until(options, stopped).await;
        });
        Replica {
            name: name.to_owned(),
            is_cut_off,
            instruments,
            stop: Some(stop),
            running,
        }
    }

    /// Every write so far by any of `replicas`, except those to Leases and Events, in order.
    pub fn writes_of(&self, replicas: &[&str]) -> Vec<AuditEvent> {
        let is_own = |event: &AuditEvent| {
            event.is_write()
                && replicas.contains(&event.user.as_str())
                && !["leases", "events"].contains(&event.resource.as_str())
        };
        self.requests().into_iter().filter(is_own).collect()
    }
}

fn lease() -> Lease {
    Lease {
        namespace: "default".to_owned(),
        name: "5spot-leader".to_owned(),
        timing: LeaseTiming::default(),
    }
}
