//! The server behind a socket: TLS, a bearer token, limits, an orderly end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::body::Body;
use crate::credentials::Credentials;
use crate::server::Server;
use crate::service::{bearer_token, refuse, respond};
use crate::status::Status;
use crate::user::User;

/// How long a client may take for its handshake, and for the head of a request. An idle
/// connection that is kept for a further HTTP/1 request ends with it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an HTTP/2 client is asked whether it is still there, and how long it may
/// take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long requests that are being answered have when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address can be reached from other machines.
    #[error(
        "the API server listens on loopback addresses alone, not on {0}; use 127.0.0.1"
    )]
    NotLoopback(SocketAddr),
    /// The socket failed.
    #[error("the listening socket failed")]
    Socket(#[from] io::Error),
}

impl Server {
    /// Serves clients over TLS until `stop` ends: an administrator with the token of
    /// `credentials`, service accounts with theirs. Then waits up to two seconds for requests that are being answered. Clients behind a
    /// socket never hold a virtual clock.
    ///
    /// Without a token clients are `system:anonymous`, who may ask for health and version.
    ///
    /// # Errors
    /// The listener is not on a loopback address, or fails for good.
    pub async fn serve(
        &self,
        listener: TcpListener,
        credentials: &Credentials,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback(address));
        }
        let door = Arc::new(Door {
            server: self.clone(),
            credentials: credentials.clone(),
        });
        let acceptor = TlsAcceptor::from(credentials.tls());
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (door, acceptor) = (door.clone(), acceptor.clone());
                        let stopped = stopped.clone();
                        connections.spawn(connection(stream, acceptor, door, stopped));
                    }
                    // The connection that failed is the client's; too many open files
                    // pass when others close.
                    Err(error) => {
                        tracing::debug!(%error, "connection not accepted");
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                },
            }
        }
        drop(listener);
        // Nobody may be listening any more.
        let _ = stopping.send(true);
        let ended = async { while connections.join_next().await.is_some() {} };
        // Watches do not end by themselves and are cut off.
        let _ = tokio::time::timeout(FAREWELL, ended).await;
        connections.shutdown().await;
        Ok(())
    }
}

/// Finds out who asks.
struct Door {
    server: Server,
    credentials: Credentials,
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match self.user(&request) {
            Ok(user) => respond(&self.server, user, request, None).await,
            Err(refused) => refuse(&self.server, refused),
        }
    }

    fn user(&self, request: &Request<Incoming>) -> Result<User, Status> {
        match bearer_token(request.headers()) {
            None => Ok(User::anonymous()),
            Some(token) if self.credentials.accepts(token) => Ok(User::admin()),
            Some(token) => self.server.authenticate(token),
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    door: Arc<Door>,
    mut stopped: watch::Receiver<bool>,
) {
    // Events are small and must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = handshake else {
        tracing::debug!("no TLS handshake");
        return;
    };
    let service = service_fn(move |request| {
        let door = door.clone();
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended");
    }
}
