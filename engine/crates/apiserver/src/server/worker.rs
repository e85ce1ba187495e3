//! Processes the work items of the controllers, between requests.

use tokio::runtime::Handle;

use super::{MAX_ATTEMPTS, Server};
use crate::controller::queue;
use crate::conversion::WebhookCalls;

/// Starts a worker for the queue if none is running: as a task if there is a runtime.
pub(super) fn spawn(server: &Server) {
    {
        let mut state = server.state();
        if state.queue.is_empty() || state.queue.has_worker {
            return;
        }
        state.queue.has_worker = true;
    }
    let worker = Worker {
        server: server.clone(),
        waits: true,
        is_done: false,
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(worker.run())),
        Err(_) => worker.run_alone(),
    }
}

/// Processes the queued items until there is none.
///
/// It may be dropped before: with the runtime of its task, or by a panic of a plugin. Then the next
/// request starts another worker for what is left, also on another runtime.
#[derive(Debug)]
struct Worker {
    server: Server,
    /// Whether it is between two polls. If it is dropped then, its runtime has ended.
    waits: bool,
    /// Whether the queue was empty, so that another worker may already run.
    is_done: bool,
}

impl Worker {
    async fn run(mut self) {
        while self.run_next().await {
            self.waits = true;
            tokio::task::yield_now().await;
        }
    }

    fn run_alone(mut self) {
        while self.try_next(&mut WebhookCalls::default()) {}
    }

    /// Processes the next work item, and calls the webhooks that its requests need. Returns
    /// whether there was an item.
    async fn run_next(&mut self) -> bool {
        let mut calls = WebhookCalls::default();
        for _ in 1..MAX_ATTEMPTS {
            let found = self.try_next(&mut calls);
            if calls.is_complete() {
                return found;
            }
            self.waits = true;
            calls.call_webhooks().await;
        }
        true
    }

    /// Processes the next work item with the webhook responses received so far. If further
    /// webhook calls are needed, the item is put back at the front.
    fn try_next(&mut self, calls: &mut WebhookCalls) -> bool {
        self.waits = false;
        let mut state = self.server.state();
        let item = state.queue.peek().cloned();
        let found = state.attempt(calls, queue::process_next);
        if let Some(item) = item.filter(|_| !calls.is_complete()) {
            state.queue.add_first(item);
        }
        // If this fails, the next write is rejected with the reason.
        let _ = state.flush();
        state.queue.has_worker = found;
        self.is_done = !found;
        found
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.server.state();
        state.queue.has_worker = false;
        state.queue.release_if_empty();
        drop(state);
        // After a panic nobody might send the next request: a virtual clock would stand still. On a
        // runtime that has ended, a task would be dropped at once. Without one, the next panic
        // during this one would end the process.
        if !self.waits && Handle::try_current().is_ok() {
            spawn(&self.server);
        }
    }
}
