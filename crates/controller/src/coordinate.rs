//! Agreeing with other instances on who acts.

use std::sync::Arc;

use fivespot_api::name::{SHARD_LABEL, SHARD_PREFIX};
use fivespot_runtime::lease::{
    Instance, Lease, Observer, Role, ShardNames, act_unless_held, lead, share,
};
use tokio::sync::oneshot;

use crate::Coordination;
use crate::context::Context;

/// Holds, or waits for, what [`Coordination`] asks for, until `leave` says to let it go, or is
/// dropped.
pub(crate) async fn coordinate(context: Arc<Context>, leave: oneshot::Receiver<()>) {
    let instance = |lease: Lease| Instance {
        client: context.api.clone(),
        fence: context.fence.clone(),
        clock: context.clock.clone(),
        backoff: context.backoff,
        identity: context.options.identity.clone(),
        lease,
        observer: Arc::new(RoleListener(context.clone())),
    };
    match context.options.coordination.clone() {
        Coordination::Alone => {}
        Coordination::Unelected(lease) => act_unless_held(instance(lease), leave).await,
        Coordination::Leader(lease) => lead(instance(lease), leave).await,
        Coordination::Shards { lease, count } => {
            let names = ShardNames {
                prefix: SHARD_PREFIX.to_owned(),
                label: SHARD_LABEL.to_owned(),
            };
            share(instance(lease), names, count.get(), leave).await;
        }
    }
}

struct RoleListener(Arc<Context>);

impl Observer for RoleListener {
    fn role(&self, role: Role) {
        self.0.note_role(role);
    }

    fn gained(&self) {
        self.0.wake_own();
    }

    fn failed(&self, what: &'static str, error: &str) {
        self.0.outage.warn(format_args!("{what}"), error);
    }
}
