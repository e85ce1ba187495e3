//! Which fields of an object are kept.

use fivespot_api::name;
use fivespot_capi::{machine, provider};

use fivespot_runtime::cache::FieldMask;

/// The domains of the labels and annotations that are read of any object: ours, Cluster API's with
/// its subdomains, and those of Kubernetes on Nodes and pods.
const DOMAINS: [&str; 6] = [
    "5spot.finos.org",
    "cluster.x-k8s.io",
    ".cluster.x-k8s.io",
    "kubernetes.io",
    "app.kubernetes.io",
    "node-role.kubernetes.io",
];

/// The fields that are read of any object's metadata, besides its labels and annotations.
const META_FIELDS: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "ownerReferences",
];

/// The metadata that is read of any object.
pub(super) const META: FieldMask = FieldMask::Only(
    META_FIELDS,
    &[
        ("labels", FieldMask::Domains(&DOMAINS)),
        ("annotations", FieldMask::Domains(&DOMAINS)),
    ],
);

/// The kind of an object; items of a list may omit it.
pub(super) const KIND: &[&str] = &["apiVersion", "kind"];

/// The same with all labels: overrides may select by any label.
pub(super) const LABELLED_META: FieldMask = FieldMask::Only(
    META_FIELDS,
    &[
        ("labels", FieldMask::All),
        ("annotations", FieldMask::Domains(&DOMAINS)),
    ],
);

/// A target of ScheduledCapacities: paths of its spec and its status are read.
pub(super) static CAPACITY_TARGET: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("spec", FieldMask::All),
        ("status", FieldMask::All),
    ],
);

/// A namespace: its labels, by which classes select it.
pub(super) static NAMESPACE: FieldMask =
    FieldMask::Only(KIND, &[("metadata", LABELLED_META)]);

/// The claim of a host: who has it.
pub(super) static HOST_CLAIM: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("spec", FieldMask::Only(&["holderIdentity"], &[])),
    ],
);

pub(super) static CLUSTER: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("spec", FieldMask::Only(&["paused"], &[])),
        (
            "status",
            FieldMask::Only(
                &["infrastructureReady", "initialization"],
                &[(
                    "conditions",
                    FieldMask::Conditions(&["ControlPlaneInitialized"]),
                )],
            ),
        ),
    ],
);

pub(super) static MACHINE: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("spec", FieldMask::Only(&machine::SPEC, &[])),
        (
            "status",
            FieldMask::Only(
                &machine::STATUS,
                &[("conditions", FieldMask::Conditions(&machine::CONDITIONS))],
            ),
        ),
    ],
);

pub(super) static PROVIDER: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        (
            "status",
            FieldMask::Only(
                &provider::STATUS,
                &[(
                    "deprecated",
                    FieldMask::Only(
                        &[],
                        &[("v1beta1", FieldMask::Only(&provider::FAILURE, &[]))],
                    ),
                )],
            ),
        ),
    ],
);

pub(super) static NODE: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        (
            "spec",
            FieldMask::Only(&["providerID", "unschedulable", "taints"], &[]),
        ),
        (
            "status",
            FieldMask::Only(&[], &[("conditions", FieldMask::Conditions(&["Ready"]))]),
        ),
    ],
);

pub(super) static POD: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("spec", FieldMask::Only(&["nodeName"], &[])),
        ("status", FieldMask::Only(&["phase"], &[])),
    ],
);

pub(super) static AGENT_CONFIG: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        ("data", FieldMask::Only(&[name::RECLAIM_CONFIG_KEY], &[])),
    ],
);

/// An override or a calendar: small, and all fields are read.
pub(super) static SCHEDULE_INPUT: FieldMask = FieldMask::Only(
    &["apiVersion", "kind", "spec", "status"],
    &[("metadata", META)],
);

/// A schedule of another provider: its status is read, and nothing of its spec.
pub(super) static PROVIDED_SCHEDULE: FieldMask = FieldMask::Only(
    KIND,
    &[
        ("metadata", META),
        (
            "status",
            FieldMask::Only(
                &["active", "nextTransitionTime", "observedGeneration"],
                &[("conditions", FieldMask::Conditions(&["Ready"]))],
            ),
        ),
    ],
);
