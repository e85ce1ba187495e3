//! The listener and what every request shares.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fivespot_usage::Rates;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::access::Access;
use crate::reader::Reader;
use crate::state::State;
use crate::{follow, route};

/// How many connections there are at a time. Another waits until one has ended.
const MOST_CONNECTIONS: usize = 64;

/// How long a client may take to say what it wants.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a request is held: there is nothing to say beyond its head.
const MOST_BYTES: usize = 32 * 1024;

/// How many machines are inspected in the cluster at a time.
const MOST_INSPECTIONS: usize = 4;

/// How long a page waits for the first list. It is shown with what has come by then, and follows the
/// rest live: a person sees something at once, however many machines there are.
const FIRST_LIST: Duration = Duration::from_millis(100);

/// Reads the present instant of the cluster.
pub type Now = Arc<dyn Fn() -> BoxFuture<'static, Timestamp> + Send + Sync>;

/// What a dashboard is made with.
pub struct Options {
    /// A listener on a loopback address.
    pub listener: TcpListener,
    /// Reads the cluster.
    pub reader: Reader,
    /// What time it is there.
    pub now: Now,
    /// The cluster as people know it; shown at the top of every page.
    pub title: String,
    /// What machines cost, for the savings; without, they are in hours only.
    pub rates: Option<Rates>,
}

/// A dashboard that is about to begin.
pub struct Dashboard {
    listener: TcpListener,
    shared: Arc<Shared>,
    url: String,
}

/// What every request can use.
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) state: State,
    pub(crate) reader: Reader,
    pub(crate) now: Now,
    pub(crate) title: String,
    pub(crate) rates: Option<Rates>,
    pub(crate) inspections: Semaphore,
    /// Somebody looks, so that the cluster has to be followed.
    begun: Notify,
}

impl Shared {
    /// Follows the cluster from now on, and waits for the first list for a moment.
    pub(crate) async fn ready(&self) {
        if self.state.is_known() {
            return;
        }
        self.begun.notify_one();
        let mut changes = self.state.changes();
        let listed =
            async { while !self.state.is_known() && changes.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(FIRST_LIST, listed).await;
    }
}

impl Dashboard {
    /// Makes the token. Nothing is read or answered before [`serve`](Self::serve).
    ///
    /// # Errors
    /// The listener is not on a loopback address, or the system has no random numbers.
    pub fn new(options: Options) -> io::Result<Self> {
        let address = options.listener.local_addr()?;
        if !address.ip().is_loopback() {
            let why = "the dashboard listens on loopback addresses only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let access = Access::new(address.port())
            .map_err(|_| io::Error::other("the system has no random numbers"))?;
        let token = access.token().unwrap_or_default();
        Ok(Self {
            listener: options.listener,
            url: format!("http://{address}/?token={token}"),
            shared: Arc::new(Shared {
                access,
                state: State::new(),
                reader: options.reader,
                now: options.now,
                title: options.title,
                rates: options.rates,
                inspections: Semaphore::new(MOST_INSPECTIONS),
                begun: Notify::new(),
            }),
        })
    }

    /// Follows the cluster as soon as it is served, not from the first page on: that has all machines
    /// then, where somebody has started the dashboard to look at it.
    #[must_use]
    pub fn following_at_once(self) -> Self {
        self.shared.begun.notify_one();
        self
    }

    /// The address with the token, which works once.
    pub fn url(&self) -> &str {
        &self.url
    }

    #[cfg(test)]
    pub(crate) fn router(&self) -> Router {
        route::router(self.shared.clone())
    }

    /// Answers until dropped. The cluster is followed from the first page on, so that a dashboard
    /// that nobody opens sends no request; see [`following_at_once`](Self::following_at_once).
    pub async fn serve(self) -> Infallible {
        let following = self.shared.clone();
        let follow = async move {
            following.begun.notified().await;
            loop {
                Box::pin(follow::follow(&following.reader, &following.state)).await;
                // Watches end only where a client cannot be used at all.
                tokio::time::sleep(HEAD_TIMEOUT).await;
            }
        };
        let router = route::router(self.shared);
        tokio::select! {
            never = follow => never,
            never = answer(self.listener, router) => never,
        }
    }
}

async fn answer(listener: TcpListener, router: Router) -> Infallible {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, router).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MOST_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
