//! What Kubernetes says about the columns of built-in kinds: the descriptions of the fields
//! that they show, or those of its printers (pkg/printers/internalversion/printers.go).

/// The description of a column; empty where none is known.
pub(super) fn of(kind: &str, column: &str) -> &'static str {
    let row = ROWS
        .iter()
        .find(|(kinds, name, _)| *name == column && kinds.contains(&kind));
    row.map_or("", |(_, _, text)| text)
}

/// Kinds, column, description.
const ROWS: &[(&[&str], &str, &str)] = &[
    (
        &["ConfigMap"],
        "Data",
        "Data contains the configuration data. Each key must consist of alphanumeric \
         characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the \
         BinaryData field. The keys stored in Data must not overlap with the keys in the \
         BinaryData field, this is enforced during validation process.",
    ),
    (
        &["Secret"],
        "Type",
        "Used to facilitate programmatic handling of secret data. More info: \
         https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
    ),
    (
        &["Secret"],
        "Data",
        "Data contains the secret data. Each key must consist of alphanumeric characters, \
         '-', '_' or '.'. The serialized form of the secret data is a base64 encoded \
         string, representing the arbitrary (possibly non-string) data value here. \
         Described in https://tools.ietf.org/html/rfc4648#section-4",
    ),
    (
        &["Lease"],
        "Holder",
        "holderIdentity contains the identity of the holder of a current lease. If \
         Coordinated Leader Election is used, the holder identity must be equal to the \
         elected LeaseCandidate.metadata.name field.",
    ),
    (&["Node"], "Status", "The status of the node"),
    (&["Node"], "Roles", "The roles of the node"),
    (
        &["Node"],
        "Version",
        "Kubelet Version reported by the node.",
    ),
    (&["Node"], "Internal-IP", INTERNAL_IP),
    (&["Node"], "External-IP", INTERNAL_IP),
    (
        &["Node"],
        "OS-Image",
        "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 \
         (wheezy)).",
    ),
    (
        &["Node"],
        "Kernel-Version",
        "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).",
    ),
    (
        &["Node"],
        "Container-Runtime",
        "ContainerRuntime Version reported by the node through runtime remote API (e.g. \
         containerd://1.4.2).",
    ),
    (&["Namespace"], "Status", "The status of the namespace"),
    (
        &["PodDisruptionBudget"],
        "Min Available",
        "The minimum number of pods that must be available.",
    ),
    (
        &["PodDisruptionBudget"],
        "Max Unavailable",
        "The maximum number of pods that may be unavailable.",
    ),
    (
        &["PodDisruptionBudget"],
        "Allowed Disruptions",
        "Calculated number of pods that may be disrupted at this time.",
    ),
    (
        &["RoleBinding", "ClusterRoleBinding"],
        "Role",
        "RoleRef can reference a Role in the current namespace or a ClusterRole in the \
         global namespace. If the RoleRef cannot be resolved, the Authorizer must return \
         an error.",
    ),
    (
        &["RoleBinding", "ClusterRoleBinding"],
        "Users",
        "Users in the roleBinding",
    ),
    (
        &["RoleBinding", "ClusterRoleBinding"],
        "Groups",
        "Groups in the roleBinding",
    ),
    (
        &["RoleBinding", "ClusterRoleBinding"],
        "ServiceAccounts",
        "ServiceAccounts in the roleBinding",
    ),
    (
        &["Event"],
        "Last Seen",
        "The time at which the most recent occurrence of this event was recorded.",
    ),
    (
        &["Event"],
        "Type",
        "Type of this event (Normal, Warning), new types could be added in the future",
    ),
    (
        &["Event"],
        "Reason",
        "This should be a short, machine understandable string that gives the reason for \
         the transition into the object's current status.",
    ),
    (&["Event"], "Object", "The object that this event is about."),
    (
        &["Event"],
        "Subobject",
        "If referring to a piece of an object instead of an entire object, this string \
         should contain a valid JSON/Go field access statement, such as \
         desiredState.manifest.containers[2]. For example, if the object reference is to \
         a container within a pod, this would take on a value like: \
         \"spec.containers{name}\" (where \"name\" refers to the name of the container \
         that triggered the event) or if no container name is specified \
         \"spec.containers[2]\" (container with index 2 in this pod). This syntax is \
         chosen only to have some well-defined way of referencing a part of an object.",
    ),
    (
        &["Event"],
        "Source",
        "The component reporting this event. Should be a short machine understandable \
         string.",
    ),
    (
        &["Event"],
        "Message",
        "A human-readable description of the status of this operation.",
    ),
    (
        &["Event"],
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in \
         TypeMeta.)",
    ),
    (
        &["Event"],
        "Count",
        "The number of times this event has occurred.",
    ),
    (
        &["Event"],
        "Name",
        "Name must be unique within a namespace. Is required when creating resources, \
         although some resources may allow a client to request the generation of an \
         appropriate name automatically. Name is primarily intended for creation \
         idempotence and configuration definition. Cannot be updated. More info: \
         https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    ),
    (
        &["Pod"],
        "Ready",
        "The aggregate readiness state of this pod for accepting traffic.",
    ),
    (
        &["Pod"],
        "Status",
        "The aggregate status of the containers in this pod.",
    ),
    (
        &["Pod"],
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the \
         last container in this pod has restarted.",
    ),
    (
        &["Pod"],
        "IP",
        "podIP address allocated to the pod. Routable at least within the cluster. Empty \
         if not yet allocated.",
    ),
    (
        &["Pod"],
        "Node",
        "NodeName indicates in which node this pod is scheduled. If empty, this pod is a \
         candidate for scheduling by the scheduler defined in schedulerName. Once this \
         field is set, the kubelet for this node becomes responsible for the lifecycle of \
         this pod. This field should not be used to express a desire for the pod to be \
         scheduled on a specific node. \
         https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
    ),
    (
        &["Pod"],
        "Nominated Node",
        "nominatedNodeName is set only when this pod preempts other pods on the node, but \
         it cannot be scheduled right away as preemption victims receive their graceful \
         termination periods. This field does not guarantee that the pod will be \
         scheduled on this node. Scheduler may decide to place the pod elsewhere if other \
         nodes become available sooner. Scheduler may also decide to give the resources \
         on this node to a higher priority pod that is created after preemption. As a \
         result, this field may be different than PodSpec.nodeName when the pod is \
         scheduled.",
    ),
    (
        &["Pod"],
        "Readiness Gates",
        "If specified, all readiness gates will be evaluated for pod readiness. A pod is \
         ready when all its containers are ready AND all conditions specified in the \
         readiness gates have status equal to \"True\" More info: \
         https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
    ),
];

const INTERNAL_IP: &str = "List of addresses reachable to the node. Queried from cloud provider, if \
         available. More info: \
         https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This \
         field is declared as mergeable, but the merge key is not sufficiently unique, \
         which can cause data corruption when it is merged. Callers should instead use a \
         full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers \
         should assume that addresses can change during the lifetime of a Node. However, \
         there are some exceptions where this may not be possible, such as Pods that \
         inherit a Node's address in its own status or consumers of the downward API \
         (status.hostIP).";
