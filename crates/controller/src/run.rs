//! The controller, as one future.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use fivespot_api::name;
use futures::future::select_all;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kubemu_clock::Busy;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span, info_span};

use crate::context::Context;
use crate::coordinate::coordinate;
use crate::observe::crds::follow_crds;
use crate::reconcile::reconcile;
use crate::{
    Key, Options, schedule_override, scheduled_capacity, scheduled_machine_set,
    spot_schedule,
};

/// Runs the controller until the future is dropped; see [`run_until`].
pub async fn run(options: Options) -> Infallible {
    run_until(options, std::future::pending()).await
}

/// Runs the controller until `stop` is ready, then finishes the reconciles under way. Then it
/// releases its Lease, if it holds one, so that another replica can take over at once.
///
/// The future may be dropped at any point and the controller started again, whatever state the
/// cluster is in then. All state is in the API server. A request that is under way when the future
/// is dropped may or may not reach the server.
///
/// On a virtual clock it must be polled on the one thread that drives the clock.
pub async fn run_until<T>(options: Options, stop: impl Future<Output = T>) -> T {
    let (tasks, mut started) = unbounded_channel();
    let context = Arc::new(Context::new(options, tasks));
    context.options.instruments.attach(&context);
    start(&context);
    let (leave, left) = oneshot::channel();
    let mut leave = Some(leave);
    let mut coordinated = pin!(coordinate(context.clone(), left));
    let mut is_coordinated = false;
    let mut beside = FuturesUnordered::new();
    let mut reconciles = FuturesUnordered::new();
    let mut of_other_kinds = FuturesUnordered::new();
    let mut last_id = 0;
    let mut stop = pin!(stop);
    let mut stopped = None;
    loop {
        let is_idle = reconciles.is_empty() && of_other_kinds.is_empty();
        let is_stopped = stopped.is_some();
        if is_stopped && is_idle {
            // The reconciles that have ended have written their results.
            drop(leave.take());
        }
        tokio::select! {
            // In this order, so that equal runs poll equally.
            biased;
            Some(task) = started.recv() => beside.push(task),
            Some(()) = reconciles.next(), if !reconciles.is_empty() => {}
            Some(()) = of_other_kinds.next(), if !of_other_kinds.is_empty() => {}
            value = &mut stop, if stopped.is_none() => stopped = Some(value),
            () = &mut coordinated, if !is_coordinated => is_coordinated = true,
            (key, busy) = context.queue.next(), if !is_stopped => {
                last_id += 1;
                // A slow response takes time, on a virtual clock too.
                let reconciling = reconcile(context.clone(), key, busy, last_id);
                reconciles.push(context.clock.stop_while_busy(reconciling));
            }
            due = next_due(&context), if !is_stopped => {
                last_id += 1;
                let reconciling = reconcile_other(context.clone(), due, last_id);
                of_other_kinds.push(context.clock.stop_while_busy(reconciling.boxed()));
            }
            Some(()) = beside.next(), if !beside.is_empty() => {}
        }
        if is_coordinated
            && reconciles.is_empty()
            && of_other_kinds.is_empty()
            && let Some(value) = stopped.take()
        {
            return value;
        }
    }
}

/// An object that is due, of a kind beside ScheduledMachines.
pub(crate) struct Due {
    /// The place of its kind in [`Context::other_kinds`].
    kind: usize,
    key: Key,
    busy: Busy,
}

/// Waits for the next one that is due. Dropping the future loses none.
pub(crate) async fn next_due(context: &Context) -> Due {
    let queues = context.other_kinds().map(|of| of.queue.next().boxed());
    // Polls in this order, so that equal runs poll equally.
    let ((key, busy), kind, _) = select_all(queues).await;
    Due { kind, key, busy }
}

/// Reconciles one that is due and puts its key back into the queue. The future must be run by
/// [`Clock::stop_while_busy`](kubemu_clock::Clock::stop_while_busy).
pub(crate) async fn reconcile_other(context: Arc<Context>, due: Due, id: u64) {
    let Due { kind, key, busy } = due;
    drop(busy);
    let kind = context.other_kinds()[kind];
    let work = match kind.name {
        name::OVERRIDE_KIND => schedule_override::result(&context, &key).boxed(),
        name::SET_KIND => scheduled_machine_set::result(&context, &key).boxed(),
        name::CAPACITY_KIND => scheduled_capacity::result(&context, &key).boxed(),
        _ => spot_schedule::result(&context, kind, &key).boxed(),
    };
    let work = work.instrument(span(kind.name, &key, id));
    let result = kind.queue.charging(&key, work).await;
    kind.queue.finish(&key, result);
}

/// The span of the log in which an object is reconciled.
fn span(kind: &str, key: &Key, id: u64) -> Span {
    let (namespace, name) = (&key.namespace, &key.name);
    // The names of fields are fixed where a span is made.
    macro_rules! span {
        ($kind:ident) => {
            info_span!("reconcile", namespace, $kind = name, reconcile_id = id)
        };
    }
    match kind {
        name::OVERRIDE_KIND => span!(scheduleoverride),
        name::SET_KIND => span!(scheduledmachineset),
        name::CAPACITY_KIND => span!(scheduledcapacity),
        _ => info_span!("reconcile", namespace, kind, name, reconcile_id = id),
    }
}

/// Starts the watches of ScheduledMachines, of the kinds with a controller of their own, and of
/// CustomResourceDefinitions.
fn start(context: &Arc<Context>) {
    if context.options.controllers.machines {
        context.watch(&context.scheduled_machines, None);
    }
    context.watch_own_kinds();
    context.watch_spot_schedules();
    context.spawn_detached(follow_crds(context.clone()));
}
