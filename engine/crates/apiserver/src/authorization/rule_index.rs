//! Index of roles and bindings, updated on each write.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::rule::Rule;
use crate::store::{Change, Key};
use crate::user::User;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// All roles and bindings; those without a namespace apply to the whole cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleIndex {
    roles: BTreeMap<Key, Vec<Arc<Rule>>>,
    bindings: BTreeMap<Key, Arc<Binding>>,
}

#[derive(Debug)]
struct Binding {
    key: Key,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// The role that a binding refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    namespace: String,
    name: String,
}

/// A rule that applies to a user, and its binding.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    binding: Arc<Binding>,
    subject: usize,
    pub(crate) rule: Arc<Rule>,
}

impl RoleRef {
    pub(crate) fn read(binding: &Value) -> Self {
        let text = |key: &str| {
            let text = binding["roleRef"][key].as_str();
            text.unwrap_or_default().to_owned()
        };
        Self {
            kind: text("kind"),
            name: text("name"),
        }
    }

    /// The resource of the role.
    ///
    /// # Errors
    /// The message for a kind that is not one of roles.
    pub(super) fn resource(&self) -> Result<&'static str, String> {
        match self.kind.as_str() {
            "Role" => Ok("roles"),
            "ClusterRole" => Ok("clusterroles"),
            other => Err(format!("unsupported role reference kind: {other:?}")),
        }
    }
}

impl Subject {
    fn read(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Self {
            kind: text("kind"),
            namespace: text("namespace"),
            name: text("name"),
        }
    }

    /// Whether this subject is `user`, for a binding in `namespace`.
    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let own = match self.namespace.as_str() {
                    "" => namespace,
                    own => own,
                };
                !own.is_empty() && user.is_service_account(own, &self.name)
            }
            _ => false,
        }
    }
}

impl RuleIndex {
    /// Updates the index with a written role or binding.
    pub(crate) fn update(&mut self, change: &Change) {
        let key = change.key.clone();
        let is_role =
            matches!(change.object["kind"].as_str(), Some("Role" | "ClusterRole"));
        match (&change.after, is_role) {
            (Some(role), true) => {
                let rules = Rule::all_of(role).into_iter().map(Arc::new);
                self.roles.insert(key, rules.collect());
            }
            (None, true) => {
                self.roles.remove(&key);
            }
            (Some(binding), false) => {
                let subjects = binding["subjects"].as_array().into_iter().flatten();
                let binding = Binding {
                    key: key.clone(),
                    role: RoleRef::read(binding),
                    subjects: subjects.map(Subject::read).collect(),
                };
                self.bindings.insert(key, Arc::new(binding));
            }
            (None, false) => {
                self.bindings.remove(&key);
            }
        }
    }

    /// The rules of the role that a binding in `namespace` refers to.
    ///
    /// # Errors
    /// The message for a role that is missing, or is of another kind.
    pub(crate) fn rules(
        &self,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<Vec<Arc<Rule>>, String> {
        let (scope, word) = match role.resource()? {
            "roles" => (namespace, "role"),
            _ => ("", "clusterrole"),
        };
        let found = self.roles.get(&Key::new(scope, &role.name));
        found
            .cloned()
            .ok_or_else(|| format!("{word}.{} \"{}\" not found", GROUP, role.name))
    }

    /// The rules that apply to `user` in `namespace`, or in the whole cluster if it is empty.
    /// Cluster-wide rules are first. A role that is missing yields its error message.
    pub(crate) fn grants<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = Result<Grant, String>> + use<'a> {
        let scopes = [Some(""), Some(namespace).filter(|it| !it.is_empty())];
        let bindings = scopes.into_iter().flatten().flat_map(|scope| {
            let low = Bound::Included(Key::new(scope, ""));
            let found = self.bindings.range((low, Bound::Unbounded));
            found.take_while(move |(key, _)| &*key.namespace == scope)
        });
        bindings.flat_map(|(key, binding)| {
            let found = binding
                .subjects
                .iter()
                .position(|it| it.is(user, &key.namespace));
            let Some(subject) = found else {
                return Vec::new();
            };
            match self.rules(&binding.role, &key.namespace) {
                Err(missing) => vec![Err(missing)],
                Ok(rules) => rules
                    .into_iter()
                    .map(|rule| {
                        Ok(Grant {
                            binding: binding.clone(),
                            subject,
                            rule,
                        })
                    })
                    .collect(),
            }
        })
    }
}

impl Grant {
    /// The binding that grants the rule, as reviews print it.
    pub(crate) fn source(&self) -> String {
        let Binding { key, role, .. } = &*self.binding;
        let (kind, name) = if key.namespace.is_empty() {
            ("ClusterRoleBinding", key.name.to_string())
        } else {
            ("RoleBinding", format!("{}/{}", key.name, key.namespace))
        };
        let to = match self.binding.subjects.get(self.subject) {
            Some(it) if it.kind == "ServiceAccount" => {
                let own = match it.namespace.as_str() {
                    "" => &*key.namespace,
                    own => own,
                };
                format!("{} {:?}", it.kind, format!("{}/{own}", it.name))
            }
            Some(it) => format!("{} {:?}", it.kind, it.name),
            None => String::new(),
        };
        format!("{kind} {name:?} of {} {:?} to {to}", role.kind, role.name)
    }
}
