//! The hosts of a class, of which each machine has one to itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The hosts of a class, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPool(BTreeMap<String, Map<String, Value>>);

impl FromIterator<(String, Map<String, Value>)> for HostPool {
    /// The hosts with these names and merge patches.
    fn from_iter<I: IntoIterator<Item = (String, Map<String, Value>)>>(hosts: I) -> Self {
        Self(hosts.into_iter().collect())
    }
}

impl HostPool {
    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether it has a host of that name.
    pub fn has(&self, host: &str) -> bool {
        self.0.contains_key(host)
    }

    /// The merge patch of a host; `None` if there is no such host.
    pub fn patch(&self, host: &str) -> Option<&Map<String, Value>> {
        self.0.get(host)
    }
}

/// Applies a JSON merge patch (RFC 7386) to an object.
///
/// # Example
/// ```
/// use serde_json::json;
/// let mut spec = json!({"address": "10.0.0.1", "ssh": {"user": "a", "port": 22}});
/// let patch = json!({"address": "10.0.0.7", "ssh": {"port": null}});
/// fivespot_api::merge(spec.as_object_mut().unwrap(), patch.as_object().unwrap());
/// assert_eq!(spec, json!({"address": "10.0.0.7", "ssh": {"user": "a"}}));
/// ```
pub fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (member, change) in patch {
        match change {
            Value::Null => {
                target.shift_remove(member);
            }
            Value::Object(change) => {
                let inner = target.entry(member.clone()).or_insert(Value::Null);
                if !inner.is_object() {
                    *inner = Value::Object(Map::new());
                }
                if let Value::Object(inner) = inner {
                    merge(inner, change);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(member.clone(), change.clone());
            }
        }
    }
}
