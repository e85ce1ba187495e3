//! The listener and the state shared by all requests.

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

/// The largest number of concurrent connections. More connections wait until one has ended.
const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest size of the buffer of a connection. Requests have no body.
const MAX_BYTES: usize = 32 * 1024;

/// The largest number of machines that are inspected in the cluster at the same time.
const MAX_INSPECTIONS: usize = 4;

/// How long a page waits for the first list. After that it is shown with the machines received so
/// far, and updated live, so that the first page is fast for any number of machines.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns the current time of the cluster.
pub type Now = Arc<dyn Fn() -> BoxFuture<'static, Timestamp> + Send + Sync>;

/// The settings of a dashboard.
pub struct Options {
    /// A listener on a loopback address.
    pub listener: TcpListener,
    /// Reads the cluster.
    pub reader: Reader,
    /// Returns the current time of the cluster.
    pub now: Now,
    /// The name of the cluster, shown at the top of every page.
    pub title: String,
    /// The costs of machines, for the savings. Without them, savings are in hours only.
    pub rates: Option<Rates>,
    /// Who may open the pages.
    pub audience: Audience,
}

/// Who may open the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// The holder of the printed URL.
    #[default]
    UrlHolder,
    /// Whoever can connect to the listener: a proxy in the same pod that authenticates its users.
    Proxy,
}

/// A dashboard that is not served yet.
pub struct Dashboard {
    listener: TcpListener,
    shared: Arc<Shared>,
    url: String,
}

/// The state shared by all requests.
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) state: State,
    pub(crate) reader: Reader,
    pub(crate) now: Now,
    pub(crate) title: String,
    pub(crate) rates: Option<Rates>,
    pub(crate) inspections: Semaphore,
    /// Notified by the first request for a page, which starts following the cluster.
    follow_requested: Notify,
}

impl Shared {
    /// Starts following the cluster, and waits at most [`FIRST_LIST_TIMEOUT`] for the first list.
    pub(crate) async fn wait_for_first_list(&self) {
        if self.state.is_initialized() {
            return;
        }
        self.follow_requested.notify_one();
        let mut changes = self.state.changes();
        let listed = async {
            while !self.state.is_initialized() && changes.changed().await.is_ok() {}
        };
        let _ = tokio::time::timeout(FIRST_LIST_TIMEOUT, listed).await;
    }
}

impl Dashboard {
    /// Creates the token. Requests are neither sent nor accepted before [`serve`](Self::serve).
    ///
    /// # Errors
    /// The listener is not on a loopback address, or the system has no random numbers.
    pub fn new(options: Options) -> io::Result<Self> {
        let address = options.listener.local_addr()?;
        if !address.ip().is_loopback() {
            let why = "the dashboard listens on loopback addresses only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let access = match options.audience {
            Audience::UrlHolder => Access::new(address.port())
                .map_err(|_| io::Error::other("the system has no random numbers"))?,
            Audience::Proxy => Access::behind_proxy(),
        };
        let url = match access.token() {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        };
        Ok(Self {
            listener: options.listener,
            url,
            shared: Arc::new(Shared {
                access,
                state: State::new(),
                reader: options.reader,
                now: options.now,
                title: options.title,
                rates: options.rates,
                inspections: Semaphore::new(MAX_INSPECTIONS),
                follow_requested: Notify::new(),
            }),
        })
    }

    /// Follows the cluster as soon as the dashboard is served, not from the first page on. The
    /// first page then has all machines, for a dashboard that is started to be opened.
    #[must_use]
    pub fn follow_immediately(self) -> Self {
        self.shared.follow_requested.notify_one();
        self
    }

    /// The URL, with the token, which works once, unless a proxy authenticates the users.
    pub fn url(&self) -> &str {
        &self.url
    }

    #[cfg(test)]
    pub(crate) fn router(&self) -> Router {
        route::router(self.shared.clone())
    }

    /// Serves until dropped. The cluster is followed from the first page on, so that a dashboard
    /// that is not opened sends no requests; see [`follow_immediately`](Self::follow_immediately).
    pub async fn serve(self) -> Infallible {
        let following = self.shared.clone();
        let follow = async move {
            following.follow_requested.notified().await;
            loop {
                Box::pin(follow::follow(
                    &following.reader,
                    &following.state,
                    &following.now,
                ))
                .await;
                // Watches end only if the client cannot be used at all.
                tokio::time::sleep(HEAD_TIMEOUT).await;
            }
        };
        let router = route::router(self.shared);
        tokio::select! {
            never = follow => never,
            never = accept_connections(self.listener, router) => never,
        }
    }
}

async fn accept_connections(listener: TcpListener, router: Router) -> Infallible {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let slot = slots.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    handle_connection(stream, router).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handle_connection(stream: TcpStream, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
