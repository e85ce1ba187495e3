//! What is required of a machine with a class, and of one without.

use serde_json::{Value, json};

use super::node::is_set;
use super::requirement::{Examples, Requirement};

/// The members of the spec of a machine of a class, in place of those without one.
const BY_CLASS: &str = r#"{"classRef": {"name": "desks"}, "clusterName": null,
    "bootstrapSpec": null, "infrastructureSpec": null}"#;

pub(super) const CLUSTER_OR_CLASS: Requirement = Requirement::new(
    "has(self.classRef) || has(self.clusterName)",
    |node, _| is_set(node, "classRef") || is_set(node, "clusterName"),
    "must be set, unless classRef names a class",
)
.about_absence()
.examples(Examples::Json {
    accepts: &["{}", BY_CLASS],
    rejects: &[r#"{"clusterName": null}"#],
});

pub(super) const BOOTSTRAP_OR_CLASS: Requirement = Requirement::new(
    "has(self.classRef) || has(self.bootstrapSpec)",
    |node, _| is_set(node, "classRef") || is_set(node, "bootstrapSpec"),
    "must be set, unless classRef names a class",
)
.about_absence()
.examples(Examples::Json {
    accepts: &["{}", BY_CLASS],
    rejects: &[r#"{"bootstrapSpec": null}"#],
});

pub(super) const INFRASTRUCTURE_OR_CLASS: Requirement = Requirement::new(
    "has(self.classRef) || has(self.infrastructureSpec)",
    |node, _| is_set(node, "classRef") || is_set(node, "infrastructureSpec"),
    "must be set, unless classRef names a class",
)
.about_absence()
.examples(Examples::Json {
    accepts: &["{}", BY_CLASS],
    rejects: &[r#"{"infrastructureSpec": null}"#],
});

pub(super) const NO_OBJECT_BESIDE_CLASS: Requirement = Requirement::new(
    "!has(self.classRef) || !has(self.bootstrapSpec) && !has(self.infrastructureSpec)",
    |node, _| {
        let objects = ["bootstrapSpec", "infrastructureSpec"];
        !is_set(node, "classRef") || !objects.iter().any(|object| is_set(node, object))
    },
    "classRef is mutually exclusive with bootstrapSpec and infrastructureSpec: the class has them",
).examples(Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[
                r#"{"classRef": {"name": "desks"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null}"#,
                r#"{"classRef": {"name": "desks"}, "infrastructureSpec": null}"#,
            ],
        });

// The schema has set defaults before a rule is evaluated: a field with its default counts as
// absent.
pub(super) const NO_FIELD_OF_CLASS: Requirement = Requirement::new(
    "!has(self.classRef) \
    || (!has(self.gracefulShutdownTimeout) || self.gracefulShutdownTimeout == '5m') \
    && (!has(self.nodeDrainTimeout) || self.nodeDrainTimeout == '5m') \
    && (!has(self.nodeTaints) || self.nodeTaints.size() == 0) \
    && (!has(self.machineTemplate) || !has(self.machineTemplate.version) \
    && !has(self.machineTemplate.failureDomain) \
    && (!has(self.machineTemplate.labels) || self.machineTemplate.labels.size() == 0) \
    && (!has(self.machineTemplate.annotations) \
    || self.machineTemplate.annotations.size() == 0)) \
    && (!has(self.provisioning) \
    || (!has(self.provisioning.leadTime) || self.provisioning.leadTime == '0s') \
    && (!has(self.provisioning.timeout) || self.provisioning.timeout == '30m') \
    && (!has(self.provisioning.minimumRun) || self.provisioning.minimumRun == '0s')) \
    && (!has(self.shutdown) \
    || (!has(self.shutdown.endPolicy) || self.shutdown.endPolicy == 'StartAtWindowEnd') \
    && (!has(self.shutdown.lastCall) || self.shutdown.lastCall == '0s'))",
    has_no_field_of_class,
    "gracefulShutdownTimeout, nodeDrainTimeout, nodeTaints, machineTemplate, provisioning and \
    shutdown must not be set beside classRef: the class sets them",
).examples(Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "gracefulShutdownTimeout": "1h"}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "nodeDrainTimeout": "1h"}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "machineTemplate": {"labels": {"team": "a"}}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "machineTemplate": {"version": "v1.31.2"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "provisioning": {"leadTime": "10m"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "shutdown": {"lastCall": "10m"}}"#,
            ],
        });

fn has_no_field_of_class(node: &Value, _: &Value) -> bool {
    let is_default = |path: &str, default: Value| {
        let found = node.pointer(path).filter(|found| !found.is_null());
        found.is_none_or(|found| *found == default)
    };
    !is_set(node, "classRef")
        || is_default("/gracefulShutdownTimeout", json!("5m"))
            && is_default("/nodeDrainTimeout", json!("5m"))
            && is_default("/nodeTaints", json!([]))
            && is_default("/machineTemplate/version", Value::Null)
            && is_default("/machineTemplate/failureDomain", Value::Null)
            && is_default("/machineTemplate/labels", json!({}))
            && is_default("/machineTemplate/annotations", json!({}))
            && is_default("/provisioning/leadTime", json!("0s"))
            && is_default("/provisioning/timeout", json!("30m"))
            && is_default("/provisioning/minimumRun", json!("0s"))
            && is_default("/shutdown/endPolicy", json!("StartAtWindowEnd"))
            && is_default("/shutdown/lastCall", json!("0s"))
}
