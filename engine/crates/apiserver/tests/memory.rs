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

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of `things.example.com` with a map of objects without fields.
const DEFINITION: &str = r#"{
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object", "additionalProperties": {"type": "object"}
            }}}
        }}]
    }
}"#;

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

/// A thing with `number` unknown fields below a long key.
fn thing(number: usize) -> String {
    let key = "k".repeat(64 * KIB);
    let fields: Vec<String> = (0..number).map(|it| format!(r#""x{it}": 1"#)).collect();
    let fields = fields.join(",");
    format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {{"name": "a"}},
            "spec": {{"{key}": {{{fields}}}}}}}"#
    )
}

#[test]
fn the_unknown_fields_below_a_long_key_do_not_each_copy_the_key() {
    let _turn = turn();
    let server = server();
    let defined = post(&server, DEFINITIONS, DEFINITION.to_owned());
    assert_eq!(defined.code, StatusCode::CREATED, "{}", defined.text);
    let answer = post(&server, THINGS, thing(10_000));
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    assert!(answer.allocated < 128 * MIB, "{}", answer.allocated);
    let strict = format!("{THINGS}?fieldValidation=Strict");
    let answer = post(&server, &strict, thing(100));
    assert_eq!(answer.code, StatusCode::BAD_REQUEST);
    assert_eq!(answer.text.matches("unknown field ").count(), 100);
}

/// A definition whose schema has `number` unknown fields below the name of a property.
fn schema(number: usize) -> String {
    let key = "k".repeat(64 * KIB);
    let fields: Vec<String> = (0..number).map(|it| format!(r#""x{it}": 1"#)).collect();
    let fields = fields.join(",");
    DEFINITION.replace(
        r#""spec": {
                "#,
        &format!(
            r#""{key}": {{"type": "object", {fields}}}, "spec": {{
                "#
        ),
    )
}

#[test]
fn the_unknown_fields_of_a_built_in_kind_below_a_long_key_do_not_each_copy_the_key() {
    let _turn = turn();
    let answer = post(&server(), DEFINITIONS, schema(10_000));
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    assert!(answer.allocated < 128 * MIB, "{}", answer.allocated);
    let strict = format!("{DEFINITIONS}?fieldValidation=Strict");
    let answer = post(&server(), &strict, schema(120));
    assert_eq!(answer.code, StatusCode::BAD_REQUEST);
    assert_eq!(answer.text.matches("unknown field ").count(), 100);
}
