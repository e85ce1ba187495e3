use std::sync::OnceLock;

use fivespot_capi::Reference;
use fivespot_clock::Clock;
use http::{Request as Asked, Response};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, service_fn};

use super::*;
use crate::Options;
use crate::watch::Feed;

#[tokio::test]
async fn a_list_that_began_before_the_answer_came_does_not_show_the_write() {
    let lists: Arc<OnceLock<Arc<Feed>>> = Arc::default();
    let own = lists.clone();
    // While the write is under way, everything is listed as it was before.
    let answer = move |_: Asked<Body>| {
        if let Some(feed) = own.get() {
            feed.store.begin(&None);
            feed.store.end(&None);
        }
        let answer = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        let body = Body::from(answer.to_string().into_bytes());
        async move { Ok::<_, BoxError>(Response::new(body)) }
    };
    let client = kube::Client::new(service_fn(answer), "default");
    let clock = Clock::stopped_at(Timestamp::UNIX_EPOCH);
    let (tasks, _started) = unbounded_channel();
    let shell = Arc::new(Shell::new(Options::new(client, clock), tasks));
    let feed = shell.scheduled_machines.clone();
    lists.set(feed.clone()).unwrap();
    let key = Key::new("default", "worker");
    let request = Request {
        side: Side::Management,
        target: Target {
            object: Reference::new(name::API_VERSION, name::KIND, "worker"),
            namespace: Some("default".to_owned()),
        },
        call: Call::Patch(json!({})),
    };
    let memo = Memo::default();
    let asked = (&request, Step::DisableSchedule);
    send(&shell, &key, asked, &memo).await.unwrap();
    let has_seen =
        |_: &str, object: &Key, written: &Written| feed.store.has_seen(object, written);
    let is_settled = shell.desk(&key, |desk| desk.ledger.is_settled(has_seen));
    assert!(!is_settled);
}
