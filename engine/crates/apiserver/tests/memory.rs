//! What a request allocates is limited by its size, whatever its content is.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kubemu_apiserver::{Options, Server};
use kubemu_clock::Clock;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::ServiceExt as _;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocations of the whole process are counted: one test runs at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

fn server() -> Server {
    let start = "2026-03-06T21:30:00Z".parse().unwrap();
    Server::new(Options::new(Clock::stopped_at(start))).unwrap()
}

/// An answer, and the number of bytes that were allocated until it was read.
struct Answer {
    code: StatusCode,
    text: String,
    allocated: usize,
}

fn post(server: &Server, path: &str, body: String) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let region = Region::new(ALLOCATOR);
        let response = server.in_process().oneshot(request).await.unwrap();
        let code = response.status();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let change = region.change();
        Answer {
            code,
            text: String::from_utf8_lossy(&text).into_owned(),
            allocated: change.bytes_allocated
                + usize::try_from(change.bytes_reallocated).unwrap_or(0),
        }
    })
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn the_items_below_a_long_key_do_not_each_copy_the_key() {
    let _turn = turn();
    let items = vec!["1"; 10_000].join(",");
    let key = "k".repeat(64 * KIB);
    let body = format!(r#"{{"metadata": {{"name": "a"}}, "{key}": [{items}]}}"#);
    let answer = post(&server(), MAPS, body);
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    assert!(answer.allocated < 32 * MIB, "{}", answer.allocated);
}

#[test]
fn duplicate_keys_below_a_long_key_do_not_each_copy_the_key() {
    let _turn = turn();
    let key = "k".repeat(64 * KIB);
    let repeated = vec![r#""x": {"a": 1, "a": 1}"#; 10_000].join(",");
    let body = format!(r#"{{"metadata": {{"name": "a"}}, "{key}": {{{repeated}}}}}"#);
    let answer = post(&server(), MAPS, body);
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    assert!(answer.allocated < 32 * MIB, "{}", answer.allocated);
}
