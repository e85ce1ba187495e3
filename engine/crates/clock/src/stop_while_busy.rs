//! Work during which a virtual clock is stopped, except while the work waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::{Busy, Clock};

/// Work that holds a virtual clock; see [`Clock::stop_while_busy`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct StopWhileBusy<F> {
    work: Pin<Box<F>>,
    work_waker: Arc<WorkWaker>,
}

/// The waker of the work. From a wake until the next poll, the clock is stopped.
#[derive(Debug)]
struct WorkWaker {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Held from the moment at which the work has something to do.
    busy: Option<Busy>,
    waker: Option<Waker>,
    is_finished: bool,
}

impl WorkWaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WorkWaker {
    fn wake(self: Arc<Self>) {
        let busy = self.clock.busy();
        let mut state = self.state();
        if state.is_finished {
            return;
        }
        state.busy = Some(busy);
        let waker = state.waker.clone();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<F: Future> StopWhileBusy<F> {
    pub(crate) fn new(clock: Clock, work: F) -> Self {
        let state = State {
            busy: Some(clock.busy()),
            waker: None,
            is_finished: false,
        };
        Self {
            work: Box::pin(work),
            work_waker: Arc::new(WorkWaker {
                clock,
                state: Mutex::new(state),
            }),
        }
    }
}

impl<F: Future> Future for StopWhileBusy<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let busy = {
            let mut state = self.work_waker.state();
            state.waker = Some(cx.waker().clone());
            state.busy.take()
        };
        // Polled without a wake: the clock must be stopped during this poll, too.
        let _busy = busy.unwrap_or_else(|| self.work_waker.clock.busy());
        let waker = Waker::from(self.work_waker.clone());
        self.work.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl<F> Drop for StopWhileBusy<F> {
    fn drop(&mut self) {
        let mut state = self.work_waker.state();
        state.is_finished = true;
        state.busy = None;
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use tokio::sync::oneshot;

    use super::*;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    #[tokio::test]
    async fn the_clock_moves_only_while_the_work_waits_for_an_instant() {
        let clock = Clock::stopped_at(start());
        let own = clock.clone();
        let work = tokio::spawn(clock.stop_while_busy(async move {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let before = own.now();
            own.sleep(SignedDuration::from_secs(10)).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            (before, own.now())
        }));
        clock.advance_to(later(60)).await;
        assert_eq!(work.await.unwrap(), (start(), later(10)));
    }

    #[tokio::test]
    async fn dropped_work_does_not_stop_the_clock_when_it_is_woken_later() {
        let clock = Clock::stopped_at(start());
        let (answer, asked) = oneshot::channel::<()>();
        let mut work = clock.stop_while_busy(async { asked.await.is_ok() });
        let waker = Waker::noop();
        let first = Pin::new(&mut work).poll(&mut Context::from_waker(waker));
        assert!(first.is_pending());
        let work_waker = work.work_waker.clone();
        drop(work);
        work_waker.wake();
        drop(answer);
        clock.advance_to(later(60)).await;
        assert_eq!(clock.now(), later(60));
    }
}
