//! A service between a client and its server that counts writes and simulates a crash after
//! one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request};
use tokio::sync::Notify;
use tower::Service;

/// Counts the writes that were served.
#[derive(Clone, Debug, Default)]
pub struct WriteCounter(Arc<CounterState>);

#[derive(Debug, Default)]
struct CounterState {
    writes: AtomicUsize,
    limit: AtomicUsize,
    reached: Notify,
}

impl WriteCounter {
    /// Counts, and notifies when `limit` writes have been served.
    pub fn up_to(limit: usize) -> Self {
        let counter = Self::default();
        counter.0.limit.store(limit, Ordering::Relaxed);
        counter
    }

    /// How many writes the server has served.
    pub fn writes(&self) -> usize {
        self.0.writes.load(Ordering::Relaxed)
    }

    /// Completes when the limit is reached and the writer counts as crashed.
    pub async fn reached(&self) {
        while !self.is_limit_reached() {
            let reached = self.0.reached.notified();
            if !self.is_limit_reached() {
                reached.await;
            }
        }
    }

    fn is_limit_reached(&self) -> bool {
        let limit = self.0.limit.load(Ordering::Relaxed);
        limit > 0 && self.writes() >= limit
    }

    fn count(&self) {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        if self.is_limit_reached() {
            self.0.reached.notify_waiters();
        }
    }
}

/// A service that sends no more responses once its counter reaches its limit: the last write is
/// served, and its response is lost. Events do not count as writes, because nothing depends on
/// them.
#[derive(Clone, Debug)]
pub struct CrashAfterWrites<S> {
    inner: S,
    counter: WriteCounter,
}

impl<S> CrashAfterWrites<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, counter: WriteCounter) -> Self {
        Self { inner, counter }
    }
}

impl<S, B> Service<Request<B>> for CrashAfterWrites<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let counter = self.counter.clone();
        if counter.is_limit_reached() {
            return Box::pin(std::future::pending());
        }
        let is_counted =
            request.method() != Method::GET && !request.uri().path().ends_with("/events");
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            if is_counted {
                counter.count();
            }
            if counter.is_limit_reached() {
                // The response is dropped, because keeping it would hold a virtual clock.
                drop(response);
                return std::future::pending().await;
            }
            response
        })
    }
}
