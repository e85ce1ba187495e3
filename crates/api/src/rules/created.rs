//! What is required of the objects that are created for a machine: their kinds and versions, and
//! their names, labels, annotations and taints.

use serde_json::Value;

use super::node::{every_entry, is_set, text};
use super::pattern::{is_match, matching, pattern};
use super::requirement::{Examples, Requirement};
use crate::name::{BOOTSTRAP_GROUPS, INFRASTRUCTURE_GROUPS};

macro_rules! version {
    () => {
        "^[^/]*/v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$"
    };
}

pub(super) const VERSION: Requirement = Requirement::new(
    concat!("!self.contains('/') || self.matches('", version!(), "')"),
    |node, _| {
        text(node, |text| {
            !text.contains('/') || is_match!(text, version!())
        })
    },
    "must end in a version such as 'v1beta1'",
)
.examples(Examples::Text {
    accepts: &[
        "k0smotron.io/v1",
        "k0smotron.io/v1beta2",
        "k0smotron.io/v2alpha1",
    ],
    rejects: &[
        "k0smotron.io/",
        "k0smotron.io/1",
        "k0smotron.io/v0",
        "k0smotron.io/v1/x",
        "k0smotron.io/../../../api/v1/namespaces",
    ],
});

/// Kubernetes' qualified name, as of a label or a taint.
macro_rules! is_qualified {
    ($text:literal) => {
        concat!(
            $text,
            ".matches('",
            pattern!(qualified name),
            "') && ",
            $text,
            ".matches('",
            pattern!(bounded domain),
            "')"
        )
    };
}

pub(super) fn is_qualified_name(text: &str) -> bool {
    is_match!(text, pattern!(qualified name)) && is_match!(text, pattern!(bounded domain))
}

pub(super) const QUALIFIED_NAME: Requirement = Requirement::new(
    is_qualified!("self"),
    |node, _| text(node, is_qualified_name),
    "must be a qualified name: at most 63 letters, digits, '-', '_' and '.', \
    optionally after a DNS subdomain and '/'",
)
.examples(Examples::Text {
    accepts: &["workload", "gpu_type", "example.com/dedicated"],
    rejects: &[
        "",
        "work load",
        "/x",
        "Example.com/x",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
    ],
});
pub(super) const QUALIFIED_KEYS: Requirement = Requirement::new(
    concat!("self.all(key, ", is_qualified!("key"), ")"),
    |node, _| every_entry(node, |key, _| is_qualified_name(key)),
    "keys must be qualified names: at most 63 letters, digits, '-', '_' and '.', \
    optionally after a DNS subdomain and '/'",
)
.only_in_policy()
.examples(Examples::Json {
    accepts: &["{}", r#"{"team": "a", "example.com/cost-centre": "7"}"#],
    rejects: &[
        r#"{"bad key!": "a"}"#,
        r#"{"/x": "a"}"#,
        r#"{"Example.com/x": "a"}"#,
        r#"{"-x": "a"}"#,
    ],
});

/// The prefixes of keys of Kubernetes, Cluster API and 5-Spot, those of them that users may set, and
/// the single keys that they may set.
macro_rules! reserved_keys {
    (prefixes) => {
        concat!(
            "^([^/]*[.])?(5spot[.]finos[.]org|5spot[.]eribourg[.]dev",
            "|kubernetes[.]io|k8s[.]io|cluster[.]x-k8s[.]io)/"
        )
    };
    (except) => {
        concat!(
            "^(node-role[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io",
            "|node[.]cluster[.]x-k8s[.]io)/"
        )
    };
}

pub(super) const NO_RESERVED_KEYS: Requirement = Requirement::new(
    concat!(
        "self.all(key, !key.matches('",
        reserved_keys!(prefixes),
        "') || key.matches('",
        reserved_keys!(except),
        "') || key in ['cluster.x-k8s.io/skip-remediation', ",
        "'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach'])"
    ),
    |node, _| {
        let single = [
            "cluster.x-k8s.io/skip-remediation",
            "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
        ];
        every_entry(node, |key, _| {
            !is_match!(key, reserved_keys!(prefixes))
                || is_match!(key, reserved_keys!(except))
                || single.contains(&key)
        })
    },
    "keys must not be reserved by Kubernetes, Cluster API or 5-Spot",
)
.only_in_policy()
.examples(Examples::Json {
    accepts: &[
        r#"{"example.com/x": "a"}"#,
        r#"{"node-role.kubernetes.io/batch": ""}"#,
        r#"{"node-restriction.kubernetes.io/zone": "a"}"#,
        r#"{"node.cluster.x-k8s.io/zone": "a"}"#,
        r#"{"cluster.x-k8s.io/skip-remediation": ""}"#,
        r#"{"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}"#,
    ],
    rejects: &[
        r#"{"5spot.finos.org/scheduled-machine": "other"}"#,
        r#"{"sub.5spot.finos.org/x": "a"}"#,
        r#"{"5spot.eribourg.dev/managed": "true"}"#,
        r#"{"topology.kubernetes.io/zone": "a"}"#,
        r#"{"k8s.io/x": "a"}"#,
        r#"{"cluster.x-k8s.io/cluster-name": "other"}"#,
        r#"{"cluster.x-k8s.io/control-plane": ""}"#,
        r#"{"machine.cluster.x-k8s.io/exclude-node-draining": ""}"#,
        r#"{"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}"#,
        r#"{"sub.node.cluster.x-k8s.io/x": ""}"#,
    ],
});

pub(super) fn is_label_value(text: &str) -> bool {
    is_match!(text, pattern!(label value))
}

pub(super) const LABEL_VALUE: Requirement = matching!(
    pattern!(label value),
    "must be empty, or at most 63 letters, digits, '-', '_' and '.' with a \
    letter or digit at both ends"
)
.examples(Examples::Text {
    accepts: &["", "batch", "a.b_c-d"],
    rejects: &["a b", "-a", "a."],
});
pub(super) const LABEL_VALUES: Requirement = Requirement::new(
    concat!(
        "self.all(key, self[key].matches('",
        pattern!(label value),
        "'))"
    ),
    |node, _| every_entry(node, |_, value| text(value, is_label_value)),
    "values must be empty, or at most 63 letters, digits, '-', '_' and '.' with \
    a letter or digit at both ends",
)
.examples(Examples::Json {
    accepts: &[r#"{"team": "a", "empty": ""}"#],
    rejects: &[
        r#"{"team": "a b"}"#,
        r#"{"team": "-a"}"#,
        r#"{"team": "a_"}"#,
    ],
});

pub(super) const NO_RESERVED_TAINT: Requirement = Requirement::new(
    concat!("!self.matches('", pattern!(reserved taint), "')"),
    |node, _| text(node, |text| !is_reserved_for_taints(text)),
    "must not begin with 5spot.finos.org/, kubernetes.io/, node.kubernetes.io/ \
    or node-role.kubernetes.io/",
)
.examples(Examples::Text {
    accepts: &["example.com/x", "not-kubernetes.io/x"],
    rejects: &[
        "5spot.finos.org/x",
        "kubernetes.io/x",
        "node.kubernetes.io/unreachable",
        "node-role.kubernetes.io/control-plane",
    ],
});

pub(super) fn is_reserved_for_taints(key: &str) -> bool {
    is_match!(key, pattern!(reserved taint))
}

pub(super) const KUBERNETES_VERSION: Requirement = matching!(
    "^v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$",
    "must be a Kubernetes version such as 'v1.31.2'"
)
.examples(Examples::Text {
    accepts: &["v1.31.2", "1.31.2", "v1.30.0+k0s.0", "v1.32.0-rc.1"],
    rejects: &["", "latest", "v1.31", "v1.31.x", "1.31.2.3", "V1.31.2"],
});

/// The maximum total size of keys and values of the annotations of an object, in bytes.
const MAX_ANNOTATION_BYTES: usize = 65_536;

pub(super) const BOUNDED_SIZE: Requirement = Requirement::new(
    "self.map(key, bytes(key).size() + bytes(self[key]).size()).sum() <= 65536",
    |node, _| {
        let entries = node.as_object().into_iter().flatten();
        let bytes = entries.map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            key.len().saturating_add(value.len())
        });
        bytes.fold(0, usize::saturating_add) <= MAX_ANNOTATION_BYTES
    },
    "keys and values together must be at most 64 KiB",
)
.only_in_policy()
.examples(Examples::Sizes {
    accepts: &["0 bytes", "65536 bytes"],
    rejects: &["65537 bytes"],
});

/// Bootstrap and infrastructure are objects of different kinds, whatever their versions: both get the
/// name of the ScheduledMachine.
pub(super) const TWO_KINDS: Requirement = Requirement::new(
    "!has(self.bootstrapSpec) || !has(self.infrastructureSpec) \
    || self.bootstrapSpec.kind != self.infrastructureSpec.kind \
    || self.bootstrapSpec.apiVersion.split('/')[0] \
    != self.infrastructureSpec.apiVersion.split('/')[0]",
    |node, _| {
        let kind_of = |role: &str| {
            let object = node.get(role)?;
            let group = object.get("apiVersion")?.as_str()?.split('/').next()?;
            Some((group, object.get("kind")?.as_str()?))
        };
        let kinds = kind_of("bootstrapSpec").zip(kind_of("infrastructureSpec"));
        kinds.is_none_or(|(bootstrap, infrastructure)| bootstrap != infrastructure)
    },
    "bootstrapSpec and infrastructureSpec must not have the same group and kind",
)
.reading(&[
    "bootstrapSpec.apiVersion",
    "bootstrapSpec.kind",
    "infrastructureSpec.apiVersion",
    "infrastructureSpec.kind",
]).examples(Examples::Json {
            accepts: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "K0sWorkerConfig", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
            rejects: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta2", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
        });

pub(super) const NO_NAME: Requirement = Requirement::new(
    "!has(self.name)",
    |node, _| !is_set(node, "name"),
    "name must not be set: the object has the name of the ScheduledMachine",
)
.reading(&["name"])
.examples(Examples::Json {
    accepts: &["{}", r#"{"labels": {"team": "a"}}"#],
    rejects: &[r#"{"name": "other"}"#],
});

pub(super) const NO_NAMESPACE: Requirement = Requirement::new(
    "!has(self.namespace)",
    |node, _| !is_set(node, "namespace"),
    "namespace must not be set: the object is in the namespace of the ScheduledMachine",
)
.examples(Examples::Json {
    accepts: &["{}", r#"{"labels": {"team": "a"}}"#],
    rejects: &[r#"{"namespace": "default"}"#],
});

pub(super) const GROUP: Requirement = Requirement::new(
    "self.contains('/')",
    |node, _| text(node, |text| text.contains('/')),
    "must use a namespaced API group",
)
.examples(Examples::Text {
    accepts: &["k0smotron.io/v1beta1"],
    rejects: &["", "v1"],
});

fn is_of_group(node: &Value, groups: &[&str]) -> bool {
    text(node, |text| {
        text.split_once('/')
            .is_none_or(|(group, _)| groups.contains(&group))
    })
}

pub(super) const BOOTSTRAP_GROUP: Requirement = Requirement::new(
    "!self.contains('/') || self.startsWith('bootstrap.cluster.x-k8s.io/') \
    || self.startsWith('k0smotron.io/')",
    |node, _| is_of_group(node, &BOOTSTRAP_GROUPS),
    "must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io",
)
.examples(Examples::Text {
    accepts: &["bootstrap.cluster.x-k8s.io/v1beta1", "k0smotron.io/v1beta1"],
    rejects: &[
        "rbac.authorization.k8s.io/v1",
        "apps/v1",
        "bootstrap.cluster.x-k8s.io.evil.example/v1",
    ],
});

pub(super) const INFRASTRUCTURE_GROUP: Requirement = Requirement::new(
    "!self.contains('/') || self.startsWith('infrastructure.cluster.x-k8s.io/') \
    || self.startsWith('k0smotron.io/')",
    |node, _| is_of_group(node, &INFRASTRUCTURE_GROUPS),
    "must be from an allowed group: infrastructure.cluster.x-k8s.io or k0smotron.io",
)
.examples(Examples::Text {
    accepts: &[
        "infrastructure.cluster.x-k8s.io/v1beta1",
        "k0smotron.io/v1beta1",
    ],
    rejects: &[
        "rbac.authorization.k8s.io/v1",
        "apps/v1",
        "infrastructure.cluster.x-k8s.io.evil.example/v1",
    ],
});

macro_rules! shared_kind {
    () => {
        "(Template|Cluster|List|Identity)$"
    };
}

pub(super) const KIND_OF_ONE_MACHINE: Requirement = Requirement::new(
    concat!("!self.matches('", shared_kind!(), "')"),
    |node, _| text(node, |text| !is_match!(text, shared_kind!())),
    "must be the kind of an object of one machine, not a template, cluster, list or \
    identity",
)
.examples(Examples::Text {
    accepts: &["K0sWorkerConfig"],
    rejects: &[
        "K0sWorkerConfigTemplate",
        "AWSCluster",
        "RemoteMachineList",
        "AWSClusterStaticIdentity",
    ],
});

pub(super) const OWN_NAMESPACE: Requirement = Requirement::new(
    "self == object.metadata.?namespace.orValue(self)",
    |node, object| {
        // A file that is checked offline may omit its namespace; `kubectl apply` sets it.
        let own = object.pointer("/metadata/namespace");
        own.is_none_or(|own| own.is_null() || node == own)
    },
    "must be the namespace of the ScheduledMachine",
)
.only_in_policy()
.examples(Examples::Text {
    accepts: &["default"],
    rejects: &["kube-system", ""],
});

pub(super) const KIND: Requirement = matching!(
    unless empty,
    pattern!(kind),
    "must be at most 63 letters and digits, the first an upper-case letter"
)
.examples(Examples::Text {
    accepts: &["RemoteMachine"],
    rejects: &["k0s", "Foo/Bar", "Foo-Bar", "Foo Bar"],
});
