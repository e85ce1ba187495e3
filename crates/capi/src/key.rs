//! Cluster API's labels, annotations and finalizers.

/// Label: the Cluster that an object belongs to; also on the Secret of its kubeconfig. As an
/// annotation on a Node: the Cluster of the Machine that it is of.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Label on a CustomResourceDefinition: clusterctl looks for objects of its kind. It puts the label on
/// what it installs itself.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";

/// Label on a CustomResourceDefinition that has [`CLUSTERCTL`]: `clusterctl move` takes its objects
/// along, also those that belong to no Cluster.
pub const CLUSTERCTL_MOVE: &str = "clusterctl.cluster.x-k8s.io/move";

/// Annotation: whoever reconciles the object shall leave it alone; its presence counts.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Annotation on a Machine: its Node is not drained before deletion; its presence counts.
pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";

/// Annotation on a Machine: deletion does not wait for volumes; its presence counts.
pub const EXCLUDE_VOLUME_DETACH: &str =
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";

/// Finalizer that Cluster API puts on every Machine at first sight.
pub const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";

/// Condition by which a health check asks a Machine's owner to replace it.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";

/// Annotation on a Node: the name of the Machine that it is of.
pub const MACHINE: &str = "cluster.x-k8s.io/machine";

/// Annotation on a Node: the namespace of that Machine, and of its Cluster.
pub const CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
