//! Processes the work items of the controllers, between requests.

use tokio::runtime::Handle;

use super::{MAX_ATTEMPTS, Server};
use crate::controller::queue;
use crate::conversion::WebhookCalls;
use crate::state::State;
use crate::work_queue::WorkItem;

/// How many work items call webhooks at the same time.
pub(super) const MAX_WAITING: usize = 16;

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
        is_idle: true,
        is_done: false,
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(worker.run())),
        Err(_) => worker.run_alone(),
    }
}

/// Starts a worker after the end of one, of whatever kind: nobody might send the next request, and a
/// virtual clock would stand still. Without a runtime nothing starts, because after a panic the next
/// one would end the process.
fn spawn_next(server: &Server) {
    if Handle::try_current().is_ok() {
        spawn(server);
    }
}

/// Processes the queued items until there is none.
///
/// It may be dropped before: with the runtime of its task, or by a panic of a plugin. Then the next
/// request starts another worker for what is left, also on another runtime.
#[derive(Debug)]
struct Worker {
    server: Server,
    /// Whether it is between two polls. If it is dropped then, its runtime has ended, and so would
    /// that of the next one.
    is_idle: bool,
    /// Whether the queue was empty, so that another worker may already run.
    is_done: bool,
}

/// What became of the next work item.
enum Step {
    /// There was none.
    Empty,
    /// It was processed.
    Done,
    /// It was set aside, because webhooks have to be called first.
    SetAside(WorkItem, Box<WebhookCalls>),
}

impl Worker {
    async fn run(mut self) {
        loop {
            match self.step() {
                Step::Empty => return,
                Step::Done => {}
                Step::SetAside(item, calls) => {
                    let waiting = WaitingItem::new(&self.server, item, *calls);
                    tokio::spawn(waiting.run());
                }
            }
            self.is_idle = true;
            tokio::task::yield_now().await;
        }
    }

    /// Processes what needs no webhooks. The rest stays in the queue for a worker with a runtime.
    fn run_alone(mut self) {
        let mut rest = Vec::new();
        loop {
            match self.step() {
                Step::Empty => break,
                Step::Done => {}
                Step::SetAside(item, _) => rest.push(item),
            }
        }
        let mut state = self.server.state();
        for item in rest.iter().rev() {
            state.queue.put_back(item);
        }
    }

    fn step(&mut self) -> Step {
        self.is_idle = false;
        let mut state = self.server.state();
        let Some(item) = state.queue.next() else {
            state.queue.has_worker = false;
            self.is_done = true;
            return Step::Empty;
        };
        let mut calls = WebhookCalls::default();
        if process(&mut state, &item, &mut calls) {
            Step::Done
        } else {
            Step::SetAside(item, Box::new(calls))
        }
    }
}

/// Processes an item with the webhook responses received so far. If further webhook calls are needed,
/// the item is set aside. Returns whether it was processed.
fn process(state: &mut State, item: &WorkItem, calls: &mut WebhookCalls) -> bool {
    state.attempt(calls, |state| queue::process(state, item.clone()));
    if !calls.is_complete() {
        state.queue.set_aside(item);
    }
    // If this fails, the next request is rejected with the reason.
    let _ = state.flush();
    calls.is_complete()
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
        if !self.is_idle {
            spawn_next(&self.server);
        }
    }
}

/// An item that was set aside. Its webhooks are called while the worker processes others, so that one
/// webhook that does not respond does not stop every controller.
///
/// If it is dropped before its end, the item is the next one of the queue again.
struct WaitingItem {
    server: Server,
    item: WorkItem,
    calls: WebhookCalls,
    /// As that of [`Worker`].
    is_idle: bool,
}

impl WaitingItem {
    fn new(server: &Server, item: WorkItem, calls: WebhookCalls) -> Self {
        Self {
            server: server.clone(),
            item,
            calls,
            is_idle: true,
        }
    }

    async fn run(mut self) {
        let server = self.server.clone();
        // It is never closed.
        let _permit = server.0.waiting.acquire().await;
        for _ in 1..MAX_ATTEMPTS {
            self.is_idle = true;
            self.calls.call_webhooks().await;
            self.is_idle = false;
            let mut state = server.state();
            if !state.queue.resume(&self.item)
                || process(&mut state, &self.item, &mut self.calls)
            {
                return;
            }
        }
    }
}

impl Drop for WaitingItem {
    fn drop(&mut self) {
        let mut state = self.server.state();
        state.queue.put_back(&self.item);
        state.queue.release_if_empty();
        drop(state);
        if !self.is_idle {
            spawn_next(&self.server);
        }
    }
}
