//! Waiting for an instant.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use jiff::Timestamp;

use crate::virtual_time::{Ticket, Virtual};

/// Ready when its instant has come; see [`Clock::sleep_until`](crate::Clock::sleep_until).
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep(Kind);

#[derive(Debug)]
enum Kind {
    System(Pin<Box<tokio::time::Sleep>>),
    Virtual { clock: Arc<Virtual>, ticket: Ticket },
}

impl Sleep {
    pub(crate) fn system(span: Duration) -> Self {
        Self(Kind::System(Box::pin(tokio::time::sleep(span))))
    }

    pub(crate) fn on(clock: Arc<Virtual>, due: Timestamp) -> Self {
        let ticket = clock.register(due);
        Self(Kind::Virtual { clock, ticket })
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Kind::System(sleep) => sleep.as_mut().poll(cx),
            Kind::Virtual { clock, ticket } => clock.poll(*ticket, cx),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Kind::Virtual { clock, ticket } = &self.0 {
            clock.forget(*ticket);
        }
    }
}
