//! The server and the resource of a request.

use std::sync::Arc;

use fivespot_api::name;
use fivespot_plan::{Request, Side, Target};
use fivespot_runtime::Key;
use fivespot_runtime::http::ApiClient;
use kube::api::ApiResource;
use kube::core::Status;
use kube::core::response::StatusDetails;

use crate::context::Context;
use crate::kind::{
    cache_name, config_map, lease, node, pod, schedule_override, scheduled_machine,
};
use crate::observe::projection::CachedKind;
use crate::observe::workload::{Link, pods_of};

/// The destination of a request, and the cache that will show its effect.
pub(super) struct Route {
    pub(super) api: ApiClient,
    pub(super) resource: ApiResource,
    pub(super) cache: String,
    pub(super) projection: CachedKind,
}

pub(super) async fn route(
    context: &Arc<Context>,
    key: &Key,
    request: &Request,
) -> kube::Result<Route> {
    let object = &request.target.object;
    match request.side {
        Side::Management => {
            let (resource, projection) = if is_scheduled_machine(&request.target) {
                (scheduled_machine(), CachedKind::ScheduledMachine)
            } else if object.kind == name::OVERRIDE_KIND {
                (schedule_override(), CachedKind::Override)
            } else if object.kind == "Lease" {
                (lease(), CachedKind::HostClaim)
            } else {
                let discovery = context.discovery.resource(object).await?;
                let discovery = discovery.ok_or_else(|| missing(&object.kind))?;
                let is_machine = object.group == fivespot_capi::version::GROUP;
                let projection = if is_machine {
                    CachedKind::Machine
                } else {
                    CachedKind::Provider
                };
                (discovery, projection)
            };
            Ok(Route {
                api: context.api.clone(),
                cache: cache_name(&resource),
                resource,
                projection,
            })
        }
        Side::Workload => {
            let workload = context
                .used_by(key)
                .ok_or_else(|| missing("workload cluster"))?;
            let Link::Up(api) = workload.link() else {
                return Err(missing("workload cluster"));
            };
            let cluster = workload.cluster().clone();
            let (resource, cache, projection) = match object.kind.as_str() {
                "Pod" => (pod(), pods_of(key), CachedKind::Pod(key.clone())),
                "ConfigMap" => {
                    let cache = workload.agent_configs();
                    (config_map(), cache, CachedKind::AgentConfig(cluster))
                }
                _ => (node(), workload.nodes(), CachedKind::Node(cluster)),
            };
            Ok(Route {
                api,
                resource,
                cache,
                projection,
            })
        }
    }
}

/// The error of an API server for an object that does not exist.
fn missing(what: &str) -> kube::Error {
    // The name distinguishes this error from that of an API that is not served.
    let details = StatusDetails {
        name: what.to_owned(),
        group: String::new(),
        kind: what.to_owned(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    };
    kube::Error::Api(Box::new(
        Status::failure(&format!("{what} not found"), "NotFound")
            .with_code(404)
            .with_details(details),
    ))
}

pub(super) fn is_scheduled_machine(target: &Target) -> bool {
    target.object.group == name::GROUP && target.object.kind == name::KIND
}
