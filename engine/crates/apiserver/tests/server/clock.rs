//! A virtual clock is stopped while the server or a watcher has work.

use std::future::Future;

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::Selector;
use serde_json::Value;

use crate::fixture::{MAPS, map, next, request, send, server, summary};

/// Whether the clock advances by an hour while no other task runs.
async fn advances(clock: &kubemu_clock::Clock) -> bool {
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
async fn an_idle_watch_does_not_stop_the_clock() {
    let server = server();
    let mut watch = server
        .client()
        .watch(MAPS, &Selector::default(), "")
        .unwrap();
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(watch.poll_next_unpin(cx).is_pending())
    });
    assert!(polled.await);
    assert!(advances(server.clock()).await);
}

#[tokio::test]
async fn the_clock_is_stopped_until_an_event_has_been_handled() {
    let server = server();
    let client = server.client();
    let mut watch = client.watch(MAPS, &Selector::default(), "").unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    assert!(
        !advances(server.clock()).await,
        "the event is not delivered"
    );
    assert_eq!(summary(&next(&mut watch).await), "ADDED x");
    assert!(
        !advances(server.clock()).await,
        "the event is being handled"
    );
    let polled = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(watch.poll_next_unpin(cx).is_pending())
    });
    assert!(polled.await);
    assert!(
        advances(server.clock()).await,
        "the watcher has polled again"
    );
}

#[tokio::test]
async fn a_dropped_watch_does_not_stop_the_clock() {
    let server = server();
    let client = server.client();
    let watch = client.watch(MAPS, &Selector::default(), "").unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    drop(watch);
    assert!(advances(server.clock()).await);
}

#[tokio::test]
async fn the_clock_is_stopped_until_a_response_has_been_read() {
    let server = server();
    let response = send(&server, request("GET", MAPS, &Value::Null)).await;
    assert!(!advances(server.clock()).await);
    response.into_body().collect().await.unwrap();
    assert!(advances(server.clock()).await);
}

#[tokio::test]
async fn creation_timestamps_are_virtual_time() {
    let server = server();
    let later: Timestamp = "2026-03-09T13:00:00Z".parse().unwrap();
    server.clock().advance_to(later).await;
    let created = server.client().create(MAPS, map("x")).await.unwrap();
    assert_eq!(
        created["metadata"]["creationTimestamp"],
        "2026-03-09T13:00:00Z"
    );
}
