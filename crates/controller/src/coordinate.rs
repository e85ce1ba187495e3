//! Coordinates with other replicas which of them acts.

use std::sync::Arc;

use fivespot_api::name::{SHARD_LABEL, SHARD_PREFIX};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::lease::{
    Lease, Observer, Replica, Role, ShardNames, run_leader_election, run_sharding,
    run_unelected,
};
use tokio::sync::oneshot;

use crate::context::{Context, management_client};
use crate::{Coordination, LeaseRuntime};

/// Acquires and holds the Leases that [`Coordination`] requires, until `leave` receives a value or
/// its sender is dropped. Then releases them.
pub(crate) async fn coordinate(context: Arc<Context>, leave: oneshot::Receiver<()>) {
    let Some(LeaseRuntime { handle, client }) = context.options.lease_runtime.clone()
    else {
        let client = context.api.clone();
        return hold_leases(context, client, leave).await;
    };
    let held = handle.spawn(async move {
        // The client runs on the runtime that creates it.
        let client = management_client(client, &context.metrics, &context.outage);
        hold_leases(context, client, leave).await;
    });
    // Without its runtime this replica lapses.
    let _ = held.await;
}

async fn hold_leases(
    context: Arc<Context>,
    client: ApiClient,
    leave: oneshot::Receiver<()>,
) {
    let replica = |lease: Lease| Replica {
        client: client.clone(),
        fence: context.fence.clone(),
        clock: context.clock.clone(),
        backoff: context.backoff,
        identity: context.options.identity.clone(),
        lease,
        observer: Arc::new(RoleListener(context.clone())),
    };
    match context.options.coordination.clone() {
        Coordination::Alone => {}
        Coordination::Unelected(lease) => run_unelected(replica(lease), leave).await,
        Coordination::Leader(lease) => run_leader_election(replica(lease), leave).await,
        Coordination::Shards { lease, count } => {
            let names = ShardNames {
                prefix: SHARD_PREFIX.to_owned(),
                label: SHARD_LABEL.to_owned(),
            };
            run_sharding(replica(lease), names, count.get(), leave).await;
        }
    }
}

struct RoleListener(Arc<Context>);

impl Observer for RoleListener {
    fn role(&self, role: Role) {
        self.0.set_role(role);
    }

    fn gained(&self) {
        self.0.enqueue_owned();
    }

    fn failed(&self, what: &'static str, error: &str) {
        self.0.outage.warn(format_args!("{what}"), error);
    }
}
