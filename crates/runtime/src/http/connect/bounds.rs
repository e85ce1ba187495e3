//! Responses that are bounded in time and in size.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tower::layer::layer_fn;
use tower::timeout::error::Elapsed;
use tower::{BoxError, Layer, Service};

use crate::http::{is_page, is_watch};

/// The bounds of a server's responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long a response may take, from the request to its last byte. A watch must only begin
    /// within it.
    pub(super) time: Duration,
    /// How many bytes a response may have, and each event of a watch. A page of a list may have
    /// any number: its reader holds one object at a time.
    pub(super) bytes: usize,
}

/// Why the rest of a response is not read.
#[derive(Debug, Error)]
enum BoundExceeded {
    /// It takes too long.
    #[error("the server did not complete its response within {} s", .0.as_secs_f64())]
    Time(Duration),
    /// It is too large.
    #[error("the server's response is larger than {0} bytes")]
    Bytes(usize),
}

/// The body of a response, bounded as it is read.
pub(super) struct Bounded<B> {
    inner: B,
    /// When the response must be complete; `None` for a watch, which ends when the server ends
    /// it.
    end: Option<Pin<Box<Sleep>>>,
    bounds: Bounds,
    /// How many bytes have arrived: of the response, or since an event of a watch ended.
    read: usize,
}

/// Bounds the responses of a service.
pub(super) fn layer<S>(bounds: Bounds) -> impl Layer<S, Service = BoundedService<S>> {
    layer_fn(move |inner| BoundedService { inner, bounds })
}

/// A service with bounded responses.
#[derive(Clone)]
pub(super) struct BoundedService<S> {
    inner: S,
    bounds: Bounds,
}

impl<S, T, B> Service<Request<T>> for BoundedService<S>
where
    S: Service<Request<T>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<T>) -> Self::Future {
        let bounds = self.bounds;
        let is_watch = is_watch(request.uri());
        let end = (!is_watch).then(|| Instant::now() + bounds.time);
        let bytes = if is_page(request.uri()) {
            usize::MAX
        } else {
            bounds.bytes
        };
        let bounds = Bounds { bytes, ..bounds };
        let response = timeout(bounds.time, self.inner.call(request));
        Box::pin(async move {
            let response = response.await.map_err(|_| Elapsed::new())?;
            let bounded = |inner| Bounded {
                inner,
                end: end.map(|end| Box::pin(sleep_until(end))),
                bounds,
                read: 0,
            };
            Ok(response.map_err(Into::into)?.map(bounded))
        })
    }
}

impl<B> Bounded<B> {
    /// Counts the bytes that have arrived, and returns whether they are too many.
    fn is_too_large(&mut self, chunk: &[u8]) -> bool {
        let is_watch = self.end.is_none();
        // Each event of a watch is a line.
        let line = chunk.iter().rposition(|byte| is_watch && *byte == b'\n');
        self.read = match line {
            Some(end) => chunk.len() - end - 1,
            None => self.read.saturating_add(chunk.len()),
        };
        self.read > self.bounds.bytes
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(end) = &mut self.end
            && end.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(BoundExceeded::Time(self.bounds.time).into())));
        }
        let frame = match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let is_too_large = frame.data_ref().is_some_and(|data| self.is_too_large(data));
        Poll::Ready(Some(if is_too_large {
            Err(BoundExceeded::Bytes(self.bounds.bytes).into())
        } else {
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream::{self, BoxStream, StreamExt as _};
    use http_body_util::{BodyExt as _, StreamBody};
    use tower::service_fn;

    use super::*;

    const BOUNDS: Bounds = Bounds {
        time: Duration::from_secs(30),
        bytes: 8,
    };

    type Chunks = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

    /// Reads a response of these pieces, each an hour after the one before.
    async fn read(path: &str, pieces: &'static [&'static str]) -> Result<Bytes, String> {
        let response = service_fn(move |_: Request<()>| {
            let pieces = stream::iter(pieces).then(async |piece| {
                tokio::time::sleep(Duration::from_hours(1)).await;
                Ok(Frame::data(Bytes::from_static(piece.as_bytes())))
            });
            let pieces: Chunks = pieces.boxed();
            async { Ok::<_, Infallible>(Response::new(StreamBody::new(pieces))) }
        });
        let request = Request::get(path).body(()).unwrap();
        let response = layer(BOUNDS).layer(response).call(request).await.unwrap();
        let body = response.into_body().collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_does_not_end_in_time_is_given_up() {
        let read = read("/api/v1/nodes/a", &["{", "}"]).await;
        let expected = "the server did not complete its response within 30 s";
        assert_eq!(read, Err(expected.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_not_limited_in_time() {
        let read = read("/api/v1/nodes?watch=true", &["1234567\n", "1234567\n"]).await;
        assert_eq!(read, Ok(Bytes::from_static(b"1234567\n1234567\n")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_too_large_ends_a_watch() {
        let read = read("/api/v1/nodes?watch=true", &["1\n2345", "67890"]).await;
        let expected = "the server's response is larger than 8 bytes";
        assert_eq!(read, Err(expected.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_of_a_list_is_not_limited_in_size() {
        let response = service_fn(async |_: Request<()>| {
            let body = http_body_util::Full::new(Bytes::from_static(b"123456789"));
            Ok::<_, Infallible>(Response::new(body))
        });
        let request = Request::get("/api/v1/nodes?limit=100").body(()).unwrap();
        let response = layer(BOUNDS).layer(response).call(request).await.unwrap();
        let read = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(read.len(), 9);
    }

    #[tokio::test]
    async fn a_response_that_is_too_large_is_not_read_to_its_end() {
        let response = service_fn(async |_: Request<()>| {
            let body = http_body_util::Full::new(Bytes::from_static(b"123456789"));
            Ok::<_, Infallible>(Response::new(body))
        });
        let request = Request::get("/api/v1/nodes").body(()).unwrap();
        let response = layer(BOUNDS).layer(response).call(request).await.unwrap();
        let error = response
            .into_body()
            .collect()
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the server's response is larger than 8 bytes");
    }
}
