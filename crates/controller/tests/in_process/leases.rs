//! Leases while a reconcile computes.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{future, thread};

use fivespot_controller::{
    Coordination, Detail, Lease, LeaseRuntime, LeaseTiming, Listener, Options, Transition,
};
use http::{Method, Request};
use jiff::SignedDuration;
use kube::client::Body;
use kubemu_clock::Clock;
use tokio::runtime::{Builder, Handle};
use tower::service_fn;

use crate::cluster::{TestCluster, forward};

/// Computes in the first reconcile that changes a phase until the Lease has been renewed twice, and
/// does not give the thread back before.
struct Computes {
    renewed: Mutex<Receiver<()>>,
    was_renewed: Arc<AtomicBool>,
    done: Sender<()>,
}

impl Listener for Computes {
    fn transition(&self, _: &Transition) {
        let renewed = self.renewed.lock().unwrap();
        // Renewals before this one do not count.
        while renewed.try_recv().is_ok() {}
        let again = || renewed.recv_timeout(Duration::from_secs(30)).is_ok();
        self.was_renewed
            .store(again() && again(), Ordering::Relaxed);
        let _ = self.done.send(());
    }
}

fn runtime_on_a_thread() -> Handle {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(future::pending::<()>()));
    handle
}

#[tokio::test]
async fn a_leader_keeps_its_lease_however_long_a_reconcile_computes() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let (renewal, renewed) = channel();
    let (done, computed) = channel();
    let server = cluster.server.clone();
    let handle = runtime_on_a_thread();
    let client = {
        let _entered = handle.enter();
        let service = service_fn(move |request: Request<Body>| {
            if request.method() == Method::PUT {
                let _ = renewal.send(());
            }
            forward(server.clone(), request)
        });
        kube::Client::new(service, "default")
    };
    let was_renewed = Arc::new(AtomicBool::new(false));
    let seconds = SignedDuration::from_secs;
    let lease = Lease {
        namespace: "default".to_owned(),
        name: "leader".to_owned(),
        timing: LeaseTiming::new(seconds(8), seconds(3), seconds(1)).unwrap(),
    };
    let instruments = Mutex::new(None);
    let listener = Arc::new(Computes {
        renewed: Mutex::new(renewed),
        was_renewed: was_renewed.clone(),
        done,
    });
    let _running = cluster.run(|main, _| {
        let mut options = Options::new(main, Clock::system());
        options.coordination = Coordination::Leader(lease.clone());
        options.lease_runtime = Some(LeaseRuntime {
            handle: handle.clone(),
            client: client.clone(),
        });
        options.listener = listener.clone();
        *instruments.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    while computed.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    assert!(was_renewed.load(Ordering::Relaxed));
    let instruments = instruments.into_inner().unwrap().unwrap();
    let ready = instruments.on_health_port("/readyz", Detail::Verbose).body;
    assert!(ready.contains("[+]lease ok: leading"), "{ready}");
}
