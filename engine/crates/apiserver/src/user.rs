//! Users.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The group whose members may do everything, independent of roles.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of unauthenticated users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of an unauthenticated user.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

const ACCOUNT: &str = "system:serviceaccount:";
const ACCOUNTS: &str = "system:serviceaccounts";

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user name, such as `kubernetes-admin`.
    pub name: String,
    /// The uid, which distinguishes users of the same name; empty if there is none.
    pub uid: String,
    /// The groups; `system:authenticated` is not added.
    pub groups: Vec<String>,
    /// Extra attributes, such as the node that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user in some groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// An administrator in `system:masters`.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &[MASTERS, AUTHENTICATED])
    }

    /// The service account `name` of `namespace`, in the groups of all service accounts. Its
    /// permissions come only from roles and bindings.
    ///
    /// ```
    /// use kubemu_apiserver::User;
    /// let user = User::service_account("tools", "builder");
    /// assert_eq!(user.name, "system:serviceaccount:tools:builder");
    /// assert!(user.groups.contains(&"system:serviceaccounts:tools".to_owned()));
    /// ```
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("{ACCOUNTS}:{namespace}");
        let name = format!("{ACCOUNT}{namespace}:{name}");
        Self::new(&name, &[ACCOUNTS, &own, AUTHENTICATED])
    }

    /// An unauthenticated user.
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

    /// As a `userInfo`; empty fields are omitted.
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

/// Namespace and name of the service account with this user name.
pub(crate) fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    let sound = |part: &str| !part.is_empty() && !part.contains(':');
    (sound(namespace) && sound(name)).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_names_are_service_accounts() {
        assert_eq!(
            service_account("system:serviceaccount:a:b"),
            Some(("a", "b"))
        );
        for other in ["system:serviceaccount:a", "system:serviceaccount::b", "a:b"] {
            assert_eq!(service_account(other), None, "{other}");
        }
    }
}
