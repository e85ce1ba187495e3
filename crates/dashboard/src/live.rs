//! Server-sent events: that something has changed, not what.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::StreamExt as _;
use futures::stream::{self, Stream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::serve::Shared;

/// How often a browser is notified at most. What changes meanwhile is gathered.
const AT_MOST_EVERY: Duration = Duration::from_millis(250);

/// Sends `change` with a number whenever something has changed, at once for the first time, so
/// that a page that was loaded a moment ago misses nothing.
pub(crate) async fn live(
    State(shared): State<Arc<Shared>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let versions = versions(shared.state.changes());
    let events = versions
        .map(|version| Ok(Event::default().event("change").data(version.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// The present version, and each that follows. A change after a time without is reported at once.
fn versions(changes: watch::Receiver<u64>) -> impl Stream<Item = u64> {
    let begin: Option<Instant> = None;
    stream::unfold((changes, begin), |(mut changes, last)| async move {
        if let Some(last) = last {
            changes.changed().await.ok()?;
            tokio::time::sleep_until(last + AT_MOST_EVERY).await;
        }
        let version = *changes.borrow_and_update();
        Some((version, (changes, Some(Instant::now()))))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_is_reported_at_once_and_those_that_follow_soon_as_one() {
        let (sender, changes) = watch::channel(1_u64);
        let begun = Instant::now();
        let mut versions = pin!(versions(changes));
        assert_eq!(versions.next().await, Some(1));
        tokio::time::sleep(Duration::from_mins(1)).await;
        sender.send_replace(2);
        assert_eq!(versions.next().await, Some(2));
        assert_eq!(begun.elapsed(), Duration::from_mins(1));
        sender.send_replace(3);
        sender.send_replace(4);
        assert_eq!(versions.next().await, Some(4));
        assert_eq!(begun.elapsed(), Duration::from_millis(60_250));
        drop(sender);
        assert_eq!(versions.next().await, None);
    }
}
