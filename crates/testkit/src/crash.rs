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
pub struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    writes: AtomicUsize,
    limit: AtomicUsize,
    reached: Notify,
}

impl Tally {
    /// Counts, and notifies when `limit` writes have been served.
    pub fn up_to(limit: usize) -> Self {
        let tally = Self::default();
        tally.0.limit.store(limit, Ordering::Relaxed);
        tally
    }

    /// How many writes the server has served.
    pub fn writes(&self) -> usize {
        self.0.writes.load(Ordering::Relaxed)
    }

    /// Completes when the limit is reached and the writer counts as crashed.
    pub async fn reached(&self) {
        while !self.is_dead() {
            let reached = self.0.reached.notified();
            if !self.is_dead() {
                reached.await;
            }
        }
    }

    fn is_dead(&self) -> bool {
        let limit = self.0.limit.load(Ordering::Relaxed);
        limit > 0 && self.writes() >= limit
    }

    fn count(&self) {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        if self.is_dead() {
            self.0.reached.notify_waiters();
        }
    }
}

/// A service that sends no more responses once its tally reaches its limit: the last write is
/// served, and its response is lost. Events do not count as writes, because nothing depends on
/// them.
#[derive(Clone, Debug)]
pub struct Crash<S> {
    inner: S,
    tally: Tally,
}

impl<S> Crash<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, tally: Tally) -> Self {
        Self { inner, tally }
    }
}

impl<S, B> Service<Request<B>> for Crash<S>
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
        let tally = self.tally.clone();
        if tally.is_dead() {
            return Box::pin(std::future::pending());
        }
        let counts =
            request.method() != Method::GET && !request.uri().path().ends_with("/events");
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if counts {
                tally.count();
            }
            if tally.is_dead() {
                // The response is dropped, because keeping it would hold a virtual clock.
                drop(answer);
                return std::future::pending().await;
            }
            answer
        })
    }
}
