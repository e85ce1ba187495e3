//! The server on a socket: TLS, authentication, limits, graceful shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use kubemu_https::{ClientCertificates, Lifetimes, Limits};
use tokio::net::TcpListener;

use crate::body::Body;
use crate::compress;
use crate::credentials::Credentials;
use crate::identity::certificate;
use crate::server::Server;
use crate::service::{bearer_token, respond};
use crate::status::Status;
use crate::user::User;

/// Limits of client connections. A watch is a request without an end, and is cut off when the
/// server stops.
const LIMITS: Limits = Limits {
    connections: 4096,
    streams: 1000,
    lifetimes: Lifetimes {
        idle: Duration::from_mins(10),
        request: None,
    },
    shutdown_timeout: Duration::from_secs(2),
};

/// The reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is reachable from other machines.
    #[error(
        "the API server listens only on loopback addresses, not on {0}; use 127.0.0.1"
    )]
    NotLoopback(SocketAddr),
    /// The socket failed.
    #[error("the listening socket failed")]
    Socket(#[from] io::Error),
}

impl Server {
    /// Serves clients over TLS until `stop` completes. It authenticates client certificates
    /// issued by `credentials`, the administrator's token, service account tokens and
    /// bootstrap tokens. Then waits up to two seconds for requests in progress. Clients behind
    /// a socket never hold a virtual clock.
    ///
    /// Clients without a certificate or token are `system:anonymous`, who may only read health
    /// and version.
    ///
    /// # Errors
    /// The listener is not on a loopback address, or fails permanently.
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
        let authenticator = Arc::new(Authenticator {
            server: self.clone(),
            credentials: credentials.clone(),
        });
        let server = kubemu_https::Server {
            listener,
            tls: credentials.tls(),
            limits: LIMITS,
        };
        let respond = move |request| {
            let authenticator = authenticator.clone();
            async move { authenticator.respond(request).await }
        };
        server.serve(respond, stop).await;
        Ok(())
    }
}

/// Authenticates requests.
struct Authenticator {
    server: Server,
    credentials: Credentials,
}

impl Authenticator {
    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let user = self.user(&request);
        let accepts_gzip = compress::is_accepted(request.headers());
        let response = respond(&self.server, user, request, None).await;
        if accepts_gzip {
            compress::compress(response)
        } else {
            response
        }
    }

    fn user(&self, request: &Request<Incoming>) -> Result<User, Status> {
        let shown = request.extensions().get::<ClientCertificates>();
        let own = shown.and_then(|it| certificate::user(it.0.first()?));
        if let Some(user) = own {
            return Ok(user);
        }
        match bearer_token(request.headers()) {
            None => Ok(User::anonymous()),
            Some(token) if self.credentials.accepts(token) => Ok(User::admin()),
            Some(token) => self.server.authenticate(token),
        }
    }
}
