use std::sync::OnceLock;

use fivespot_capi::Reference;
use http::{Request as HttpRequest, Response};
use jiff::Timestamp;
use kube::client::Body;
use kubemu_clock::Clock;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, service_fn};

use fivespot_api::name;
use fivespot_plan::{Request, Target};

use super::*;
use crate::Options;
use crate::observe::projection::KindInformer;

#[tokio::test]
async fn a_list_that_began_before_the_response_does_not_show_the_write() {
    let lists: Arc<OnceLock<Arc<KindInformer>>> = Arc::default();
    let own = lists.clone();
    // While the write is under way, the objects are listed in their earlier state.
    let answer = move |_: HttpRequest<Body>| {
        if let Some(informer) = own.get() {
            informer.store.begin(&None);
            informer.store.end(&None);
        }
        let answer = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        let body = Body::from(answer.to_string().into_bytes());
        async move { Ok::<_, BoxError>(Response::new(body)) }
    };
    let client = kube::Client::new(service_fn(answer), "default");
    let clock = Clock::stopped_at(Timestamp::UNIX_EPOCH);
    let (tasks, _started) = unbounded_channel();
    let context = Arc::new(Context::new(Options::new(client, clock), tasks));
    let informer = context.scheduled_machines.clone();
    lists.set(informer.clone()).unwrap();
    let key = Key::new("default", "worker");
    let request = Request {
        side: Side::Management,
        target: Target {
            object: Reference::new(name::API_VERSION, name::KIND, "worker"),
            namespace: Some("default".to_owned()),
        },
        call: Call::Patch(json!({})),
    };
    let reads = LiveReads::default();
    let action = Action {
        step: Step::DisableSchedule,
        request,
    };
    send(&context, &key, &action, &reads).await.unwrap();
    let has_seen = |_: &str, object: &Key, written: &Expectation| {
        informer.store.has_seen(object, written)
    };
    let is_settled =
        context.state(&key, |state| state.expectations.are_satisfied(has_seen));
    assert!(!is_settled);
}
