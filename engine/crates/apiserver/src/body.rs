//! Response bodies: bytes, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use kubemu_clock::Busy;

use crate::content_negotiation::WatchForm;
use crate::watch::Watch;

/// The body of a response.
///
/// A virtual clock is stopped until a body of bytes has been read or dropped. The body of a
/// watch releases the clock while there is nothing to deliver. Each event holds the clock from
/// the write that caused it until the body is polled again after the event's frame, or is
/// dropped.
#[derive(Debug)]
pub struct Body(Content);

#[derive(Debug)]
enum Content {
    Bytes {
        bytes: Option<Bytes>,
        busy: Option<Busy>,
    },
    Watch(Box<(Watch, WatchForm)>),
}

impl Body {
    pub(crate) fn bytes(bytes: Bytes, busy: Option<Busy>) -> Self {
        let bytes = Some(bytes).filter(|it| !it.is_empty());
        Self(Content::Bytes { bytes, busy })
    }

    /// The bytes, if there are at least `minimum`.
    ///
    /// # Errors
    /// The body itself, if there are fewer, or it is a watch.
    pub(crate) fn into_bytes(
        self,
        minimum: usize,
    ) -> Result<(Bytes, Option<Busy>), Self> {
        match self.0 {
            Content::Bytes {
                bytes: Some(bytes),
                busy,
            } if bytes.len() >= minimum => Ok((bytes, busy)),
            other => Err(Self(other)),
        }
    }

    pub(crate) fn watch(watch: Watch, form: WatchForm) -> Self {
        Self(Content::Watch(Box::new((watch, form))))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Bytes { bytes, busy } => {
                let bytes = bytes.take();
                if bytes.is_none() {
                    *busy = None;
                }
                Poll::Ready(bytes.map(|it| Ok(Frame::data(it))))
            }
            Content::Watch(parts) => {
                let (watch, form) = &mut **parts;
                watch.poll_event(cx).map(|event| {
                    let line = form.line(&event?, &watch.resource);
                    Some(Ok(Frame::data(line.into())))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Bytes { bytes: None, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Bytes { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64))
            }
            Content::Watch(_) => SizeHint::default(),
        }
    }
}
