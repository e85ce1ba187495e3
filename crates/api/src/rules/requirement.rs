//! What a node must be: a CEL expression, the same predicate in Rust, and the message. Several
//! fields share one requirement.
//!
//! Expressions use nothing newer than the CEL environment of Kubernetes 1.29, and write `[.]` for
//! `\\.` so that they need no escapes in CEL, JSON or YAML.

use serde_json::Value;

use std::str::FromStr as _;

use fivespot_schedule::Duration;

use super::node::{every_entry, is_set, text};
use super::pattern::{is_match, matching, pattern};
use crate::name::{BOOTSTRAP_GROUPS, INFRASTRUCTURE_GROUPS};

/// A rule in Rust, called with the node and the whole object.
pub type Predicate = fn(&Value, &Value) -> bool;

/// Where a rule can be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// In the CRD's schema, and again in the policy.
    SchemaAndPolicy,
    /// Only in the policy: the schema cannot access what the rule reads, or cannot bound its
    /// cost.
    Policy,
    /// In both; compares the object with its previous value.
    Change,
}

/// What the node of a rule must be.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// The CEL expression that must be true. `self` is the node. An expression of
    /// [`Layer::Policy`] may also use `object`; in one of [`Layer::Change`] `self` and
    /// `oldSelf` are the whole objects.
    pub cel: &'static str,
    /// The members of the node that the expression reads; empty if it reads the node itself.
    pub inputs: &'static [&'static str],
    /// The message: what the node must be.
    pub message: &'static str,
    /// Where it can be enforced.
    pub layer: Layer,
    /// The same in Rust, on the node and the whole object; `None` for a requirement about a
    /// change.
    pub predicate: Option<Predicate>,
    /// Whether it is that the last member of the rule's path must not be missing. The node is then
    /// the one before it, and API servers report it as they report a missing field.
    pub(crate) is_about_absence: bool,
}

impl Requirement {
    pub(super) const fn new(
        cel: &'static str,
        predicate: Predicate,
        message: &'static str,
    ) -> Self {
        Self {
            cel,
            inputs: &[],
            message,
            layer: Layer::SchemaAndPolicy,
            predicate: Some(predicate),
            is_about_absence: false,
        }
    }

    /// A requirement that compares the object with its previous value.
    pub(super) const fn of_change(cel: &'static str, message: &'static str) -> Self {
        Self {
            cel,
            inputs: &[],
            message,
            layer: Layer::Change,
            predicate: None,
            is_about_absence: false,
        }
    }

    pub(super) const fn about_absence(self) -> Self {
        Self {
            is_about_absence: true,
            ..self
        }
    }

    pub(super) const fn reading(self, inputs: &'static [&'static str]) -> Self {
        Self { inputs, ..self }
    }

    pub(super) const fn only_in_policy(self) -> Self {
        Self {
            layer: Layer::Policy,
            ..self
        }
    }
}

/// A text that is not empty; the message differs from field to field.
pub(super) const fn not_empty(message: &'static str) -> Requirement {
    let holds = |node: &Value, _: &Value| text(node, |text| !text.is_empty());
    Requirement::new("self.size() > 0", holds, message)
}

/// A duration as [`Duration`] reads it.
pub(super) const DURATION: Requirement = matching!(
    pattern!(duration),
    "must be a duration string such as '5m', '30s', or '1h'"
);

/// A duration within bounds. Its regular expression allows only as many digits as such a duration
/// can have, so that the argument of CEL's `duration()` is always in its range.
macro_rules! lasting {
    (at most $most:literal, of $digits:literal digits) => {
        Requirement::new(
            lasting!(@cel $digits, concat!("duration(self) <= duration('", $most, "')")),
            |node, _| text(node, |text| lasts(text, "0s", $most)),
            concat!("must be at most ", $most),
        )
    };
    (from $least:literal to $most:literal, of $digits:literal digits) => {
        Requirement::new(
            lasting!(@cel $digits, concat!(
                "duration(self) >= duration('", $least, "') && ",
                "duration(self) <= duration('", $most, "')"
            )),
            |node, _| text(node, |text| lasts(text, $least, $most)),
            concat!("must be from ", $least, " to ", $most),
        )
    };
    (@cel $digits:literal, $bounds:expr) => {
        concat!(
            "!self.matches('", pattern!(duration), "') ",
            "|| self.matches('^0*[0-9]{1,", $digits, "}[smh]$') && ", $bounds
        )
    };
}
pub(super) use lasting;

/// Whether a duration is within bounds. A text that is not a duration violates another rule.
pub(super) fn lasts(text: &str, least: &str, most: &str) -> bool {
    let [least, most] = [least, most].map(Duration::from_str);
    let bounds = least.and_then(|least| Ok((least, most?)));
    let is_within = |duration: Duration| {
        bounds.is_ok_and(|(least, most)| duration.within(least, most).is_ok())
    };
    !is_match!(text, pattern!(duration)) || text.parse().is_ok_and(is_within)
}

pub(super) const AT_MOST_A_DAY: Requirement = lasting!(at most "24h", of 5 digits);
pub(super) const AT_MOST_TWO_HOURS: Requirement = lasting!(at most "2h", of 4 digits);
pub(super) const A_FIRING: Requirement = lasting!(from "1m" to "168h", of 6 digits);
pub(super) const A_MINUTE_TO_A_DAY: Requirement =
    lasting!(from "1m" to "24h", of 5 digits);

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
);

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
);
pub(super) const QUALIFIED_KEYS: Requirement = Requirement::new(
    concat!("self.all(key, ", is_qualified!("key"), ")"),
    |node, _| every_entry(node, |key, _| is_qualified_name(key)),
    "keys must be qualified names: at most 63 letters, digits, '-', '_' and '.', \
    optionally after a DNS subdomain and '/'",
)
.only_in_policy();

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
.only_in_policy();

pub(super) fn is_label_value(text: &str) -> bool {
    is_match!(text, pattern!(label value))
}

pub(super) const LABEL_VALUE: Requirement = matching!(
    pattern!(label value),
    "must be empty, or at most 63 letters, digits, '-', '_' and '.' with a \
    letter or digit at both ends"
);
pub(super) const LABEL_VALUES: Requirement = Requirement::new(
    concat!(
        "self.all(key, self[key].matches('",
        pattern!(label value),
        "'))"
    ),
    |node, _| every_entry(node, |_, value| text(value, is_label_value)),
    "values must be empty, or at most 63 letters, digits, '-', '_' and '.' with \
    a letter or digit at both ends",
);

pub(super) const NO_RESERVED_TAINT: Requirement = Requirement::new(
    concat!("!self.matches('", pattern!(reserved taint), "')"),
    |node, _| text(node, |text| !is_reserved_for_taints(text)),
    "must not begin with 5spot.finos.org/, kubernetes.io/, node.kubernetes.io/ \
    or node-role.kubernetes.io/",
);

pub(super) fn is_reserved_for_taints(key: &str) -> bool {
    is_match!(key, pattern!(reserved taint))
}

pub(super) const KUBERNETES_VERSION: Requirement = matching!(
    "^v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$",
    "must be a Kubernetes version such as 'v1.31.2'"
);

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
.only_in_policy();

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
]);

pub(super) const NO_NAME: Requirement = Requirement::new(
    "!has(self.name)",
    |node, _| !is_set(node, "name"),
    "name must not be set: the object has the name of the ScheduledMachine",
)
.reading(&["name"]);

pub(super) const NO_NAMESPACE: Requirement = Requirement::new(
    "!has(self.namespace)",
    |node, _| !is_set(node, "namespace"),
    "namespace must not be set: the object is in the namespace of the ScheduledMachine",
);

pub(super) const NO_KATA: Requirement = Requirement::new(
    "!has(self.kata)",
    |node, _| !is_set(node, "kata"),
    "kata is not part of this API; remove it and configure the host's container runtime \
    outside of 5-Spot, see docs/migration.md",
)
.reading(&["kata"]);

pub(super) const COMMANDS_ONCE: Requirement = Requirement::new(
    "!has(self.killIfCommands) || !has(self.reclaim) || !has(self.reclaim.commands)",
    |node, _| !is_set(node, "killIfCommands") || !is_set(&node["reclaim"], "commands"),
    "killIfCommands is mutually exclusive with reclaim.commands — set one or the other, not both",
)
.reading(&["killIfCommands", "reclaim"]);

pub(super) const NAME: Requirement = matching!(
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "must be a DNS label of at most 63 characters: lower-case letters, digits \
    and '-', a letter or digit at both ends"
);

pub(super) const GROUP: Requirement = Requirement::new(
    "self.contains('/')",
    |node, _| text(node, |text| text.contains('/')),
    "must use a namespaced API group",
);

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
);

pub(super) const INFRASTRUCTURE_GROUP: Requirement = Requirement::new(
    "!self.contains('/') || self.startsWith('infrastructure.cluster.x-k8s.io/') \
    || self.startsWith('k0smotron.io/')",
    |node, _| is_of_group(node, &INFRASTRUCTURE_GROUPS),
    "must be from an allowed group: infrastructure.cluster.x-k8s.io or k0smotron.io",
);

pub(super) const CLUSTER_NAME: Requirement = matching!(
    unless empty,
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    "must be at most 63 letters, digits, '.', '_' and '-', the first a letter or digit"
);

pub(super) const SAME_CLUSTER: Requirement = Requirement::of_change(
    "!has(oldSelf.status) \
    || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
    || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
    || has(oldSelf.status.infrastructureRef) \
    && has(oldSelf.status.infrastructureRef.uid)) \
    || has(self.spec.clusterName) == has(oldSelf.spec.clusterName) \
    && (!has(self.spec.clusterName) || self.spec.clusterName == oldSelf.spec.clusterName)",
    "must not change while the machine exists; wait until it is removed",
);

pub(super) const NOT_AUDITED_WHILE_IT_EXISTS: Requirement = Requirement::of_change(
    "!has(self.spec.enforcement) || self.spec.enforcement != 'Audit' \
    || has(oldSelf.spec.enforcement) && oldSelf.spec.enforcement == 'Audit' \
    || !has(oldSelf.status) \
    || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
    || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
    || has(oldSelf.status.infrastructureRef) \
    && has(oldSelf.status.infrastructureRef.uid))",
    "must not be changed to Audit while the machine exists; wait until it is removed, or keep it \
    as it is with an override of mode Hold",
);

pub(super) const KIND: Requirement = matching!(
    unless empty,
    pattern!(kind),
    "must be at most 63 letters and digits, the first an upper-case letter"
);

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
);

pub(super) const OWN_NAMESPACE: Requirement = Requirement::new(
    "self == object.metadata.?namespace.orValue(self)",
    |node, object| {
        // A file that is checked offline may omit its namespace; `kubectl apply` sets it.
        let own = object.pointer("/metadata/namespace");
        own.is_none_or(|own| own.is_null() || node == own)
    },
    "must be the namespace of the ScheduledMachine",
)
.only_in_policy();

pub(super) const NOT_BLANK: Requirement = matching!("[^ ]", "must not be blank");
