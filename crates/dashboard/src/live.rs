//! Server-sent events: that something has changed, not what.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};

use crate::serve::Shared;

/// How long changes are gathered before they are sent to a browser.
const GATHERED: Duration = Duration::from_millis(250);

/// Sends `change` with a number whenever something has changed, at once for the first time, so
/// that a page that was loaded a moment ago misses nothing.
pub(crate) async fn live(
    State(shared): State<Arc<Shared>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = shared.state.changes();
    let events = stream::unfold((changes, true), |(mut changes, is_first)| async move {
        if !is_first {
            changes.changed().await.ok()?;
            tokio::time::sleep(GATHERED).await;
        }
        let version = *changes.borrow_and_update();
        let event = Event::default().event("change").data(version.to_string());
        Some((Ok(event), (changes, false)))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
