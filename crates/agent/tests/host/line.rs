//! The line between an agent and its API server, which a test cuts.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::Either;
use kube::client::Body;
use kubemu_apiserver::InProcess;
use tokio::time::{Instant, sleep};
use tower::Service;

/// What happens to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server answers.
    #[default]
    Answered,
    /// Nothing listens.
    Refused,
    /// No answer ever comes.
    Lost,
    /// The server answers, each time after so long.
    Slow(Duration),
    /// The server answers, and ends every watch at once.
    WithoutWatches,
    /// The server answers until it has accepted a change, and then nothing listens.
    UntilChanged,
}

/// The line. Its clones are one.
#[derive(Clone, Default)]
pub(crate) struct Line(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    fate: Fate,
    /// When requests were sent.
    sent: Vec<(Instant, Method, String)>,
}

impl Line {
    /// From now on, also for watches that begin later.
    pub(crate) fn set(&self, fate: Fate) {
        self.0.lock().unwrap().fate = fate;
    }

    /// When such requests were sent so far.
    pub(crate) fn sent(&self, is: impl Fn(&Method, &str) -> bool) -> Vec<Instant> {
        let state = self.0.lock().unwrap();
        let sent = state.sent.iter().filter(|(_, method, uri)| is(method, uri));
        sent.map(|(at, ..)| *at).collect()
    }

    /// The line to this server.
    pub(crate) fn to(&self, server: InProcess) -> Connection {
        Connection {
            line: self.clone(),
            server,
        }
    }

    fn send(&self, request: &Request<Body>) -> Fate {
        let mut state = self.0.lock().unwrap();
        let (method, uri) = (request.method().clone(), request.uri().to_string());
        state.sent.push((Instant::now(), method, uri));
        state.fate
    }
}

/// A client's end of the line.
#[derive(Clone)]
pub(crate) struct Connection {
    line: Line,
    server: InProcess,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Either<kubemu_apiserver::Body, Body>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fate = self.line.send(&request);
        let is_watch = request.uri().to_string().contains("watch=true");
        let is_change = request.method() == Method::PATCH
            && !request.uri().to_string().contains("dryRun");
        let line = self.line.clone();
        let answer = self.server.call(request);
        Box::pin(async move {
            match fate {
                Fate::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
                Fate::Lost => pending().await,
                Fate::WithoutWatches if is_watch => {
                    return Ok(Response::new(Either::Right(Body::empty())));
                }
                Fate::Slow(pause) => sleep(pause).await,
                Fate::Answered | Fate::WithoutWatches | Fate::UntilChanged => {}
            }
            let answer = answer.await.unwrap_or_else(|never| match never {});
            if fate == Fate::UntilChanged && is_change {
                line.set(Fate::Refused);
            }
            Ok(answer.map(Either::Left))
        })
    }
}
