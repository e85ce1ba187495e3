//! The floor: a client that only creates the objects, without any decisions.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::Args;
use crate::fleet::{BoxError, Fleet, now};

/// How long Cluster API may take to observe that a Cluster is paused.
const CALM: Duration = Duration::from_secs(30);

/// Creates the three objects of each machine, with a number of machines in flight. The namespace is
/// left behind with its Cluster paused.
pub(crate) async fn measure(args: &Args) -> Result<SignedDuration, BoxError> {
    let fleet = Fleet::create(args).await?;
    let begun = now();
    let created = stream::iter(0..fleet.machines).map(async |number| {
        for object in owned(&fleet.name(number)) {
            fleet.test_namespace.create(object).await?;
        }
        Ok::<_, BoxError>(())
    });
    created
        .buffer_unordered(args.in_flight)
        .try_for_each(async |()| Ok(()))
        .await?;
    let took = now().duration_since(begun);
    // Deleting thousands of machines takes Cluster API longer than the whole measurement.
    let paused = json!({"spec": {"paused": true}});
    fleet
        .test_namespace
        .merge(&fleet.cluster_path(), &paused)
        .await?;
    tokio::time::sleep(CALM).await;
    Ok(took)
}

/// The objects of a machine, in the order in which they are created.
fn owned(name: &str) -> [Value; 3] {
    let metadata = json!({
        "name": name,
        "labels": {"cluster.x-k8s.io/cluster-name": "production-cluster"},
    });
    let group = |of: &str| format!("{of}.cluster.x-k8s.io");
    [
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "K0sWorkerConfig",
            "metadata": metadata,
            "spec": {"version": "v1.30.0+k0s.0"},
        }),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachine",
            "metadata": metadata,
            "spec": {"address": format!("{name}.example"), "port": 22},
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": metadata,
            "spec": {
                "clusterName": "production-cluster",
                "bootstrap": {"configRef": {
                    "apiGroup": group("bootstrap"), "kind": "K0sWorkerConfig", "name": name,
                }},
                "infrastructureRef": {
                    "apiGroup": group("infrastructure"), "kind": "RemoteMachine", "name": name,
                },
            },
        }),
    ]
}
