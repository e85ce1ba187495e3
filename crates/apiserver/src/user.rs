//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The group whose members may do everything, whatever the roles say.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of everybody whose name is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody else.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of everybody else.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

const ACCOUNT: &str = "system:serviceaccount:";
const ACCOUNTS: &str = "system:serviceaccounts";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name, such as `kubernetes-admin`.
    pub name: String,
    /// What distinguishes the user from others of the same name; empty for nothing.
    pub uid: String,
    /// The groups; `system:authenticated` is not added.
    pub groups: Vec<String>,
    /// What else is known, such as the node that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody in some groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The one who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &[MASTERS, AUTHENTICATED])
    }

    /// The service account `name` of `namespace`, in the groups that every one is in. What
    /// it may do is a matter of roles and bindings alone.
    ///
    /// ```
    /// use fivespot_apiserver::User;
    /// let user = User::service_account("tools", "builder");
    /// assert_eq!(user.name, "system:serviceaccount:tools:builder");
    /// assert!(user.groups.contains(&"system:serviceaccounts:tools".to_owned()));
    /// ```
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("{ACCOUNTS}:{namespace}");
        let name = format!("{ACCOUNT}{namespace}:{name}");
        Self::new(&name, &[ACCOUNTS, &own, AUTHENTICATED])
    }

    /// Somebody of whom nothing is known.
    pub(crate) fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|it| it == group)
    }

    /// Whether this is the service account `name` of `namespace`.
    pub(crate) fn is_service_account(&self, namespace: &str, name: &str) -> bool {
        service_account(&self.name) == Some((namespace, name))
    }

    /// As a `userInfo`; what is empty is left out.
    pub(crate) fn to_value(&self) -> Value {
        let mut info = Map::new();
        for (key, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// Namespace and name of the service account that a user name stands for.
pub(crate) fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let sound = |part: &str| !part.is_empty() && !part.contains(':');
    (sound(namespace) && sound(name)).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_stand_for_service_accounts() {
        assert_eq!(
            service_account("system:serviceaccount:a:b"),
            Some(("a", "b"))
        );
        for other in ["system:serviceaccount:a", "system:serviceaccount::b", "a:b"] {
            assert_eq!(service_account(other), None, "{other}");
        }
    }
}
