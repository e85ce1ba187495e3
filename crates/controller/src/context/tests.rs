use fivespot_capi::Contract;

use super::*;
use crate::kind::cluster_api;

/// A context with a server that never responds.
fn context() -> Arc<Context> {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<
            Result<http::Response<kube::client::Body>, std::convert::Infallible>,
        >()
    });
    let client = kube::Client::new(silent, "default");
    let clock = Clock::stopped_at(jiff::Timestamp::UNIX_EPOCH);
    let (tasks, _) = tokio::sync::mpsc::unbounded_channel();
    Arc::new(Context::new(Options::new(client, clock), tasks))
}

#[tokio::test]
async fn after_an_upgrade_only_the_newer_version_is_watched() {
    let context = context();
    let [old, new] = [Contract::V1Beta1, Contract::V1Beta2]
        .map(|contract| cluster_api(contract, "Machine"));
    for resource in [&old, &new] {
        context.informer(resource, CachedKind::Machine);
    }
    context.use_version(&new.group, &new.version);
    assert!(context.cache(&cache_name(&old)).is_none());
    assert!(context.cache(&cache_name(&new)).is_some());
    assert!(context.cache(&context.scheduled_machines.name).is_some());
}
