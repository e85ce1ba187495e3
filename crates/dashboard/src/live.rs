//! Server-sent events that report that something has changed, without the change itself.

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

/// The shortest interval between two notifications. Changes in between are combined.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Sends a `change` event with the version whenever the state changes. The first event is sent
/// immediately, so that a page that was just loaded misses no change.
pub(crate) async fn live(
    State(shared): State<Arc<Shared>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let versions = versions(shared.state.changes());
    let events = versions
        .map(|version| Ok(Event::default().event("change").data(version.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// The current version, and each later one. A change is reported immediately if the last report was
/// longer ago than [`MIN_INTERVAL`].
fn versions(changes: watch::Receiver<u64>) -> impl Stream<Item = u64> {
    let begin: Option<Instant> = None;
    stream::unfold((changes, begin), |(mut changes, last)| async move {
        if let Some(last) = last {
            changes.changed().await.ok()?;
            tokio::time::sleep_until(last + MIN_INTERVAL).await;
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
    async fn a_change_is_reported_at_once_and_later_ones_are_combined() {
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
