//! Cluster API's labels, annotations and finalizers.

/// Label: the Cluster of an object; also on the Secret with its kubeconfig. As an annotation on a
/// Node: the Cluster of the Node's Machine.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Label on a CustomResourceDefinition: clusterctl discovers objects of its kind. clusterctl adds
/// the label to the definitions that it installs.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";

/// Label on a CustomResourceDefinition that has [`CLUSTERCTL`]: `clusterctl move` moves its
/// objects, including those that belong to no Cluster.
pub const CLUSTERCTL_MOVE: &str = "clusterctl.cluster.x-k8s.io/move";

/// Annotation: controllers must not reconcile the object; any value counts.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Annotation on a Machine: its Node is not drained before deletion; any value counts.
pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";

/// Annotation on a Machine: deletion does not wait for volumes; any value counts.
pub const EXCLUDE_VOLUME_DETACH: &str =
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";

/// Finalizer that Cluster API adds to every Machine in its first reconcile.
pub const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";

/// Condition by which a MachineHealthCheck requests that a Machine's owner replaces it.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";

/// Annotation on a Node: the name of its Machine.
pub const MACHINE: &str = "cluster.x-k8s.io/machine";

/// Annotation on a Node: the namespace of that Machine, and of its Cluster.
pub const CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
