//! What a node must be: a CEL expression, the same predicate in Rust, and the message. Several
//! fields share one requirement.
//!
//! Expressions use nothing newer than the CEL environment of Kubernetes 1.29, and write `[.]` for
//! `\\.` so that they need no escapes in CEL, JSON or YAML.

use serde_json::Value;

use std::str::FromStr as _;

use fivespot_schedule::Duration;

use super::node::{is_set, text};
use super::pattern::{is_match, matching, pattern};

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
    /// Values that satisfy and violate it, at every node that has it.
    pub examples: Examples,
    /// Whether it is that the last member of the rule's path must not be missing. The node is then
    /// the one before it, and API servers report it as they report a missing field.
    pub(crate) is_about_absence: bool,
}

/// Values of a rule's node.
#[derive(Clone, Copy, Debug)]
pub enum Examples {
    /// Strings.
    Text {
        /// Those that satisfy the rule.
        accepts: &'static [&'static str],
        /// Those that violate it.
        rejects: &'static [&'static str],
    },
    /// JSON texts.
    Json {
        /// Those that satisfy the rule.
        accepts: &'static [&'static str],
        /// Those that violate it.
        rejects: &'static [&'static str],
    },
    /// Maps of texts, each given by the total size of its keys and values: `7 bytes`.
    Sizes {
        /// Those that satisfy the rule.
        accepts: &'static [&'static str],
        /// Those that violate it.
        rejects: &'static [&'static str],
    },
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
            examples: Examples::Text {
                accepts: &[],
                rejects: &[],
            },
            is_about_absence: false,
        }
    }

    /// A requirement that compares the object with its previous value.
    pub(super) const fn of_change(cel: &'static str, message: &'static str) -> Self {
        Self {
            layer: Layer::Change,
            predicate: None,
            ..Self::new(cel, |_, _| true, message)
        }
    }

    pub(super) const fn examples(self, examples: Examples) -> Self {
        Self { examples, ..self }
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
    Requirement::new("self.size() > 0", holds, message).examples(Examples::Text {
        accepts: &["A1"],
        rejects: &[""],
    })
}

/// A duration as [`Duration`] reads it.
pub(super) const DURATION: Requirement = matching!(
    pattern!(duration),
    "must be a duration string such as '5m', '30s', or '1h'"
)
.examples(Examples::Text {
    accepts: &["10m", "600s", "0010m"],
    rejects: &[
        "",
        "5",
        "5 m",
        "m5",
        "five minutes",
        "1.5h",
        "1d",
        "-5m",
        "5M",
    ],
});

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

pub(super) const AT_MOST_A_DAY: Requirement = lasting!(at most "24h", of 5 digits)
    .examples(Examples::Text {
        accepts: &["0s", "24h", "1440m", "86400s", "0000086400s"],
        rejects: &["25h", "1441m", "86401s", "99999999999999999999h"],
    });
pub(super) const AT_MOST_TWO_HOURS: Requirement = lasting!(at most "2h", of 4 digits)
    .examples(Examples::Text {
        accepts: &["0s", "2h", "120m", "7200s"],
        rejects: &["3h", "121m", "7201s", "99999999999999999999h"],
    });
pub(super) const A_FIRING: Requirement = lasting!(from "1m" to "168h", of 6 digits)
    .examples(Examples::Text {
        accepts: &["1m", "60s", "168h", "604800s"],
        rejects: &["0s", "59s", "169h", "9999999h"],
    });
pub(super) const A_MINUTE_TO_A_DAY: Requirement =
    lasting!(from "1m" to "24h", of 5 digits).examples(Examples::Text {
        accepts: &["1m", "60s", "24h"],
        rejects: &["0s", "59s", "25h", "99999999999999999999h"],
    });

pub(super) const NO_KATA: Requirement = Requirement::new(
    "!has(self.kata)",
    |node, _| !is_set(node, "kata"),
    "kata is not part of this API; remove it and configure the host's container runtime \
    outside of 5-Spot, see docs/migration.md",
)
.reading(&["kata"]).examples(Examples::Json {
            accepts: &["{}", r#"{"priority": 7}"#],
            rejects: &[
                r#"{"kata": {}}"#,
                r#"{"kata": {"kind": "ConfigMap", "name": "kata", "restartService": "containerd"}}"#,
            ],
        });

pub(super) const COMMANDS_ONCE: Requirement = Requirement::new(
    "!has(self.killIfCommands) || !has(self.reclaim) || !has(self.reclaim.commands)",
    |node, _| !is_set(node, "killIfCommands") || !is_set(&node["reclaim"], "commands"),
    "killIfCommands is mutually exclusive with reclaim.commands — set one or the other, not both",
)
.reading(&["killIfCommands", "reclaim"]).examples(Examples::Json {
            accepts: &[
                r#"{"killIfCommands": ["steam"], "reclaim": {"return": {"after": "30m"}}}"#,
                r#"{"reclaim": {"commands": ["steam"]}}"#,
            ],
            rejects: &[
                r#"{"killIfCommands": ["steam"], "reclaim": {"commands": ["steam"]}}"#,
                r#"{"killIfCommands": [], "reclaim": {"commands": []}}"#,
            ],
        });

pub(super) const NAME: Requirement = matching!(
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "must be a DNS label of at most 63 characters: lower-case letters, digits \
    and '-', a letter or digit at both ends"
)
.examples(Examples::Text {
    accepts: &["night", "5spot-1"],
    rejects: &["", "Night", "a.b", "-a"],
});

pub(super) const CLUSTER_NAME: Requirement = matching!(
    unless empty,
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    "must be at most 63 letters, digits, '.', '_' and '-', the first a letter or digit"
)
.examples(Examples::Text {
    accepts: &["prod", "Prod-1.eu_west"],
    rejects: &[
        "-prod",
        "prod/1",
        "prod cluster",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
    ],
});

pub(super) const SAME_CLUSTER: Requirement = Requirement::of_change(
    "!has(oldSelf.status) \
    || !(has(oldSelf.status.machineRef) && has(oldSelf.status.machineRef.uid) \
    || has(oldSelf.status.bootstrapRef) && has(oldSelf.status.bootstrapRef.uid) \
    || has(oldSelf.status.infrastructureRef) \
    && has(oldSelf.status.infrastructureRef.uid)) \
    || has(self.spec.clusterName) == has(oldSelf.spec.clusterName) \
    && (!has(self.spec.clusterName) || self.spec.clusterName == oldSelf.spec.clusterName)",
    "must not change while the machine exists; wait until it is removed",
).examples(Examples::Json {
            accepts: &[r#"{"from": "prod", "to": "prod"}"#],
            rejects: &[r#"{"from": "prod", "to": "staging"}"#],
        });

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
).examples(Examples::Json {
            accepts: &[
                r#"{"from": "Enforce", "to": "Enforce"}"#,
                r#"{"from": "Audit", "to": "Audit"}"#,
                r#"{"from": "Audit", "to": "Enforce"}"#,
            ],
            rejects: &[r#"{"from": "Enforce", "to": "Audit"}"#],
        });

pub(super) const NOT_BLANK: Requirement = matching!("[^ ]", "must not be blank")
    .examples(Examples::Text {
        accepts: &["chrome", " x"],
        rejects: &["", " "],
    });
