//! The target and the values of a ScheduledCapacity in words.

use serde_json::{Map, Value};

use super::{ScheduledCapacity, ScheduledField};

/// Which of the two values of each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSet {
    /// While the schedule is active.
    Active,
    /// While it is not.
    Inactive,
}

impl From<bool> for ValueSet {
    /// That of a schedule which is active or not.
    fn from(is_active: bool) -> Self {
        if is_active {
            Self::Active
        } else {
            Self::Inactive
        }
    }
}

impl ScheduledCapacity {
    /// The name of the target: that of an object that exists, else its own.
    pub fn target_name(&self) -> &str {
        let own = self.metadata.name.as_deref().unwrap_or_default();
        self.spec.target.name.as_deref().unwrap_or(own)
    }

    /// The target in words: `Deployment web`.
    pub fn target_text(&self) -> String {
        format!("{} {}", self.spec.target.kind, self.target_name())
    }

    /// The values of a set, by their fields.
    pub fn values(&self, set: ValueSet) -> Map<String, Value> {
        let fields = self.spec.all_fields().into_iter();
        let pair = |it: ScheduledField| {
            let value = match set {
                ValueSet::Active => it.active_value,
                ValueSet::Inactive => it.inactive_value,
            };
            (it.field, value)
        };
        fields.map(pair).collect()
    }

    /// The same in words: `minReplicas=5, maxReplicas=20`.
    pub fn values_text(&self, set: ValueSet) -> String {
        let values = self.values(set);
        joined(values.iter().map(|(field, value)| assignment(field, value)))
    }

    /// The values that were last written, as the server stored them. Empty if none were.
    pub fn written_text(&self) -> String {
        let written = self.status.iter().flat_map(|status| &status.written);
        joined(
            written
                .map(|it| assignment(&it.field, it.stored.as_ref().unwrap_or(&it.value))),
        )
    }
}

fn joined(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// `replicas=3`
fn assignment(field: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{field}={text}"),
        other => format!("{field}={other}"),
    }
}
