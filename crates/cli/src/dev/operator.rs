//! The operator in the server's process, and the objects that show that it runs.

use std::net::SocketAddr;
use std::sync::Arc;

use fivespot_api::name;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kubemu_apiserver::{Server, User};
use kubemu_clock::Clock;
use serde_json::json;

use super::connect::InProcessConnect;
use super::load;
use super::printer::Printer;
use crate::Failure;
use crate::document::Document;

/// The name of objects that exist only while the operator runs in this process.
const DEV_NAME: &str = "5spot-dev";

/// The duration of the Lease: the longest valid one. Renewing it would need a timer of the virtual
/// clock every two seconds.
const LEASE_SECONDS: i32 = i32::MAX;

/// Starts the operator.
pub(super) fn start(
    server: &Server,
    clock: &Clock,
    address: SocketAddr,
    printer: &Arc<Printer>,
) {
    // The user name of the operator in the audit log.
    let user = name::service_account_user(name::SYSTEM_NAMESPACE, name::CONTROLLER);
    let service = server.in_process_as(User::new(&user, &["system:masters"]));
    let client = Client::new(service, "default");
    let mut options = fivespot_controller::Options::new(client.clone(), clock.clone());
    options.connect = Arc::new(InProcessConnect { address, client });
    options.workload_servers.local = true;
    options.listener = printer.clone();
    tokio::spawn(fivespot_controller::run(options));
}

/// Creates the operator's Lease and the binding of its account, so that `5spot check`, `status` and
/// `uninstall` return the same results as in a production cluster. If no operator runs, removes
/// what the operator of an earlier run has left in a data directory.
///
/// # Errors
/// The server rejects the objects.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    is_running: bool,
) -> Result<(), Failure> {
    if !is_running {
        return unregister(client).await;
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name::SYSTEM_NAMESPACE},
    });
    let now = format!("{:.6}", clock.now());
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name::LEADER_LEASE, "namespace": name::SYSTEM_NAMESPACE},
        "spec": {
            "holderIdentity": DEV_NAME,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": now,
            "renewTime": now,
        },
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": DEV_NAME},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{
            "kind": "ServiceAccount",
            "name": name::CONTROLLER,
            "namespace": name::SYSTEM_NAMESPACE,
        }],
    });
    for object in [namespace, lease, binding] {
        let document = Document {
            origin: "5spot dev".to_owned(),
            object,
            location: None,
        };
        load::apply(client, &document)
            .await
            .map_err(|failure| failure.remedy("choose another or an empty --data-dir"))?;
    }
    Ok(())
}

async fn unregister(client: &Client) -> Result<(), Failure> {
    let failed = |error: kube::Error| {
        Failure::new(
            "removing what the operator of an earlier run has left",
            error,
        )
        .remedy("choose another or an empty --data-dir")
    };
    let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let (resource, _) = pinned_kind(client, &kind).await.map_err(failed)?;
    let leases: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), name::SYSTEM_NAMESPACE, &resource);
    let lease = leases.get_opt(name::LEADER_LEASE).await.map_err(failed)?;
    let is_own = |lease: &DynamicObject| lease.data["spec"]["holderIdentity"] == DEV_NAME;
    if !lease.as_ref().is_some_and(is_own) {
        return Ok(());
    }
    leases
        .delete(name::LEADER_LEASE, &DeleteParams::default())
        .await
        .map_err(failed)?;
    let kind =
        GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding");
    let (resource, _) = pinned_kind(client, &kind).await.map_err(failed)?;
    let bindings: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match bindings.delete(DEV_NAME, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done.map(drop).map_err(failed),
    }
}
