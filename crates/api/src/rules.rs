//! The validation rules: one table for each kind, from which everything else is generated.
//!
//! The CRD's validation rules ([`crate::crd`]), the admission policy ([`crate::vap`]), the
//! operator's own check before it acts ([`check`]) and the reference page iterate over [`all`].
//! A rule is written once, in CEL on `self`, next to its message and its examples.

mod calendar_table;
mod capacity_table;
mod capital_markets_table;
mod class;
mod class_table;
mod created;
mod example;
mod node;
mod override_table;
mod pattern;
mod reference;
mod requirement;
mod schedule;
mod set_table;
mod table;
#[cfg(test)]
mod tests;
mod time_based_table;

use std::fmt;

use serde_json::{Value, json};

use crate::resource::{
    CAPITAL_MARKETS_SCHEDULE, RESOURCES, Resource, SCHEDULE_CALENDAR, SCHEDULE_OVERRIDE,
    SCHEDULED_CAPACITY, SCHEDULED_MACHINE, SCHEDULED_MACHINE_CLASS,
    SCHEDULED_MACHINE_SET, TIME_BASED_SPOT_SCHEDULE,
};
use crate::schedule_calendar::ScheduleCalendar;
use crate::schedule_override::ScheduleOverride;
use crate::scheduled_capacity::ScheduledCapacity;
use crate::scheduled_machine::{NodeTaint, ScheduleSpec, ScheduledMachine};
use crate::scheduled_machine_class::ScheduledMachineClass;
use crate::scheduled_machine_set::ScheduledMachineSet;
use crate::schema::MAX_NAME;
use crate::spot_schedule::{SharedSchedule, SharedSpec};

pub use calendar_table::CALENDAR_RULES;
pub use capacity_table::capacity_rules;
pub use capital_markets_table::CAPITAL_MARKETS_RULES;
pub use class_table::class_rules;
#[cfg(test)]
pub(crate) use example::acceptable;
pub use override_table::OVERRIDE_RULES;
pub use requirement::{Examples, Layer, Predicate, Requirement};
pub use set_table::set_rules;
pub use table::RULES;
pub use time_based_table::time_based_rules;

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The stable number, `SM001`; never reused for another rule.
    pub id: &'static str,
    /// The node that `self` is, e.g. `spec.clusterName`. `[]` represents each item of a list,
    /// an empty path the whole object.
    pub path: &'static str,
    /// What the node must be.
    pub requirement: Requirement,
    /// Why the rule exists.
    pub why: &'static str,
}

/// Every rule about every kind: kind by kind, those of a kind in the order of their ids.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    RESOURCES.iter().flat_map(Resource::rules)
}

impl Rule {
    /// The kind to which the rule applies.
    pub fn resource(&self) -> &'static Resource {
        let is_in =
            |resource: &&Resource| resource.rules().iter().any(|rule| rule.id == self.id);
        RESOURCES.iter().find(is_in).unwrap_or(SCHEDULED_MACHINE)
    }

    /// The same with another number, about another kind.
    fn numbered(self, number: u16) -> Self {
        let id = format!("SM{number:03}").leak();
        Self { id, ..self }
    }

    /// The same with a number that is higher by `offset`.
    fn renumbered(self, offset: u16) -> Self {
        self.numbered(self.number().unwrap_or_default() + offset)
    }

    fn number(&self) -> Option<u16> {
        self.id.get(2..)?.parse().ok()
    }

    /// Finds a rule by its id, in any case, or by its number only.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::rules::Rule;
    /// assert_eq!(Rule::find("sm001").map(|rule| rule.path), Some("spec.clusterName"));
    /// assert_eq!(Rule::find("7").map(|rule| rule.id), Some("SM007"));
    /// ```
    pub fn find(id: &str) -> Option<&'static Self> {
        let digits = match id.get(..2) {
            Some(prefix) if prefix.eq_ignore_ascii_case("SM") => id.get(2..)?,
            _ => id,
        };
        let wanted: u16 = digits.parse().ok()?;
        all().find(|rule| rule.number() == Some(wanted))
    }

    /// The field that the rule checks, without indices.
    pub fn field(&self) -> &'static str {
        self.path.strip_suffix("[]").unwrap_or(self.path)
    }

    /// The message with the field before it, unless it already starts with the field.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::rules::Rule;
    /// let text = |id| Rule::find(id).map(Rule::full_message).unwrap_or_default();
    /// assert_eq!(text("SM001"), "spec.clusterName must not be empty");
    /// assert_eq!(text("SM008"), "spec.bootstrapSpec.apiVersion: must use a namespaced API group");
    /// ```
    pub fn full_message(&self) -> String {
        sentence(self.field(), self.requirement.message)
    }

    /// The last segment of the path, if the rule is that this member must not be missing.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let member = self.path.rsplit_once('.').map(|(_, member)| member);
        member.filter(|_| self.requirement.is_about_absence)
    }

    /// The path of the node that `self` is: the parent of a member that must not be missing.
    pub(crate) fn node_path(&self) -> &'static str {
        match self.path.rsplit_once('.') {
            Some((parent, _)) if self.requirement.is_about_absence => parent,
            _ => self.path,
        }
    }

    /// The nodes of `object` to which the rule applies, each with its path. Empty if the field
    /// is absent or null.
    pub fn nodes<'o>(&self, object: &'o Value) -> Vec<(String, &'o Value)> {
        let path = self.node_path();
        let mut found = Vec::new();
        visit(object, path, &mut Vec::new(), &mut |node, indices| {
            found.push((numbered(path, indices), node));
        });
        found
    }
}

/// Calls `visitor` with each node at `path` below `node`, and the indices of the items on its way.
fn visit<'o>(
    node: &'o Value,
    path: &str,
    indices: &mut Vec<usize>,
    visitor: &mut impl FnMut(&'o Value, &[usize]),
) {
    if path.is_empty() {
        visitor(node, indices);
        return;
    }
    let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
    let member = segment.strip_suffix("[]");
    match node.get(member.unwrap_or(segment)) {
        None | Some(Value::Null) => {}
        Some(next) if member.is_none() => visit(next, rest, indices, visitor),
        Some(list) => {
            for (index, item) in list.as_array().into_iter().flatten().enumerate() {
                indices.push(index);
                visit(item, rest, indices, visitor);
                indices.pop();
            }
        }
    }
}

/// The path with an index in each `[]`.
fn numbered(path: &str, indices: &[usize]) -> String {
    indices.iter().fold(path.to_owned(), |path, index| {
        path.replacen("[]", &format!("[{index}]"), 1)
    })
}

fn sentence(field: &str, message: &str) -> String {
    if field.is_empty() || message.starts_with(field) {
        message.to_owned()
    } else {
        format!("{field}: {message}")
    }
}

/// A violation of one rule by one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, e.g. `SM002`.
    pub rule: &'static str,
    /// The field, e.g. `spec.schedule.hoursOfDay[0]`.
    pub field: String,
    /// What the field must be.
    pub message: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&sentence(&self.field, self.message))
    }
}

/// Returns every violation of the object, in the order of the rules; empty if it is acceptable.
///
/// The operator calls it before it acts on an object that may have been stored before the rules
/// were in force. Rules about a change and the bounds of the schema are not checked.
///
/// # Example
/// ```
/// use fivespot_api::{ScheduledMachine, rules};
/// # let text = r#"{"metadata": {"name": "worker"},
/// #     "spec": {"schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
/// #              "clusterName": "prod",
/// #              "bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1",
/// #                                "kind": "K0sWorkerConfig", "spec": {}},
/// #              "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1",
/// #                                     "kind": "RemoteMachine", "spec": {}}}}"#;
/// let mut machine: ScheduledMachine = serde_json::from_str(text)?;
/// assert_eq!(rules::check(&machine), []);
/// machine.spec.schedule.hours_of_day = vec!["9-17".into(), "9-24".into()];
/// let broken = rules::check(&machine);
/// assert_eq!(broken[0].to_string(), "spec.schedule.hoursOfDay[1]: hours must be from 0 to 23");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn check(object: &ScheduledMachine) -> Vec<Violation> {
    check_value(
        SCHEDULED_MACHINE,
        &json!({
            "metadata": {
                "name": object.metadata.name,
                "namespace": object.metadata.namespace,
            },
            "spec": object.spec,
        }),
    )
}

/// The violations of [`check`] that are about `spec.schedule`, without a look at the rest of the object.
pub fn check_schedule(schedule: &ScheduleSpec) -> Vec<Violation> {
    let rules = SCHEDULED_MACHINE.rules().iter();
    check_rules(
        rules.filter(|rule| rule.path.starts_with("spec.schedule")),
        &json!({"spec": {"schedule": schedule}}),
    )
}

/// Whether `spec.nodeTaints` may contain that taint: it is within the schema's bounds and
/// satisfies SM042, SM043 and SM044. If a record of applied taints contains any other taint,
/// the operator did not write it.
pub fn is_acceptable_taint(taint: &NodeTaint) -> bool {
    taint.key.len() <= MAX_NAME as usize
        && created::is_qualified_name(&taint.key)
        && !created::is_reserved_for_taints(&taint.key)
        && created::is_label_value(&taint.value)
}

/// As [`check`], for a ScheduleOverride.
pub fn check_override(object: &ScheduleOverride) -> Vec<Violation> {
    check_value(
        SCHEDULE_OVERRIDE,
        &json!({
            "metadata": {"creationTimestamp": object.metadata.creation_timestamp},
            "spec": object.spec,
        }),
    )
}

/// As [`check`], for a ScheduleCalendar.
pub fn check_calendar(object: &ScheduleCalendar) -> Vec<Violation> {
    check_value(SCHEDULE_CALENDAR, &json!({"spec": object.spec}))
}

/// As [`check`], for a ScheduledCapacity.
pub fn check_capacity(object: &ScheduledCapacity) -> Vec<Violation> {
    check_value(SCHEDULED_CAPACITY, &json!({"spec": object.spec}))
}

/// As [`check`], for a ScheduledMachineClass.
pub fn check_class(object: &ScheduledMachineClass) -> Vec<Violation> {
    check_value(SCHEDULED_MACHINE_CLASS, &json!({"spec": object.spec}))
}

/// As [`check`], for a ScheduledMachineSet.
pub fn check_set(object: &ScheduledMachineSet) -> Vec<Violation> {
    check_value(
        SCHEDULED_MACHINE_SET,
        &json!({"metadata": {"name": object.metadata.name}, "spec": object.spec}),
    )
}

impl SharedSchedule {
    /// The first rule that it violates. `None` if it violates none.
    pub fn fault(&self) -> Option<&str> {
        self.fault_or(|spec| {
            let broken = match spec {
                SharedSpec::TimeBased(spec) => {
                    check_value(TIME_BASED_SPOT_SCHEDULE, &json!({"spec": spec}))
                }
                SharedSpec::CapitalMarkets(spec) => {
                    check_value(CAPITAL_MARKETS_SCHEDULE, &json!({"spec": spec}))
                }
            };
            broken.first().map(Violation::to_string)
        })
    }
}

/// As [`check`], for an object of that kind in JSON form.
pub(crate) fn check_value(resource: &Resource, object: &Value) -> Vec<Violation> {
    check_rules(resource.rules().iter(), object)
}

fn check_rules<'r>(
    rules: impl Iterator<Item = &'r Rule>,
    object: &Value,
) -> Vec<Violation> {
    let mut broken = Vec::new();
    for rule in rules {
        let Some(holds) = rule.requirement.predicate else {
            continue;
        };
        let path = rule.node_path();
        visit(object, path, &mut Vec::new(), &mut |node, indices| {
            if !holds(node, object) {
                let field = match rule.missing() {
                    Some(_) => rule.path.to_owned(),
                    None => numbered(path, indices),
                };
                broken.push(Violation {
                    rule: rule.id,
                    field,
                    message: rule.requirement.message,
                });
            }
        });
    }
    broken
}
