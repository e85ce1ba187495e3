//! A virtual clock stands still while the server, or a watcher, has work.

use std::future::Future;

use fivespot_apiserver::Selector;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::fixture::{MAPS, map, next, request, send, server, summary};

/// Whether the clock, asked to move on by an hour, does so although nobody else runs.
async fn moves(clock: &fivespot_clock::Clock) -> bool {
    let before = clock.now();
    let to = before + SignedDuration::from_hours(1);
    let mut advance = std::pin::pin!(clock.advance_to(to));
    for _ in 0..200 {
        let polled = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(advance.as_mut().poll(cx).is_ready())
        });
        if polled.await {
            return clock.now() > before;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test]
async fn an_idle_watch_lets_time_pass() {
    let server = server();
    let mut watch = server
        .client()
        .watch(MAPS, &Selector::default(), "")
        .unwrap();
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(watch.poll_next_unpin(cx).is_pending())
    });
    assert!(polled.await);
    assert!(moves(server.clock()).await);
}

#[tokio::test]
async fn time_stands_still_until_an_event_has_been_handled() {
    let server = server();
    let client = server.client();
    let mut watch = client.watch(MAPS, &Selector::default(), "").unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    assert!(!moves(server.clock()).await, "the event is not delivered");
    assert_eq!(summary(&next(&mut watch).await), "ADDED x");
    assert!(!moves(server.clock()).await, "the event is being handled");
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(watch.poll_next_unpin(cx).is_pending())
    });
    assert!(polled.await);
    assert!(
        moves(server.clock()).await,
        "the watcher has come back for more"
    );
}

#[tokio::test]
async fn a_watcher_that_goes_away_does_not_hold_time() {
    let server = server();
    let client = server.client();
    let watch = client.watch(MAPS, &Selector::default(), "").unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    drop(watch);
    assert!(moves(server.clock()).await);
}

#[tokio::test]
async fn time_stands_still_until_an_answer_has_been_read() {
    let server = server();
    let response = send(&server, request("GET", MAPS, &Value::Null)).await;
    assert!(!moves(server.clock()).await);
    response.into_body().collect().await.unwrap();
    assert!(moves(server.clock()).await);
}

#[tokio::test]
async fn objects_are_stamped_with_virtual_time() {
    let server = server();
    let later: Timestamp = "2026-03-09T13:00:00Z".parse().unwrap();
    server.clock().advance_to(later).await;
    let made = server.client().create(MAPS, map("x")).await.unwrap();
    assert_eq!(
        made["metadata"]["creationTimestamp"],
        "2026-03-09T13:00:00Z"
    );
}
