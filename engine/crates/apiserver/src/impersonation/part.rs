//! One attribute of a user, and the users made of them.

use std::collections::BTreeMap;

use crate::authorization::Action;
use crate::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};

/// One attribute to impersonate.
pub(super) struct Part {
    pub(super) kind: &'static str,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The key of an extra value.
    pub(super) key: String,
}

pub(super) fn user_from(parts: &[Part]) -> User {
    let mut user = User::default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let has_groups = parts.iter().any(|it| it.kind == "Group");
    for part in parts {
        match part.kind {
            "ServiceAccount" => {
                let account = User::service_account(&part.namespace, &part.name);
                user.name = account.name;
                if !has_groups {
                    user.groups = account.groups;
                }
            }
            "User" => user.name.clone_from(&part.name),
            "Group" => user.groups.push(part.name.clone()),
            "UID" => user.uid.clone_from(&part.name),
            _ => {
                let values = extra.entry(part.key.clone()).or_default();
                values.push(part.name.clone());
            }
        }
    }
    user.extra = extra;
    let (own, other) = if user.name == ANONYMOUS {
        (UNAUTHENTICATED, UNAUTHENTICATED)
    } else {
        (AUTHENTICATED, UNAUTHENTICATED)
    };
    if !user.is_in(own) && !user.is_in(other) {
        user.groups.push(own.to_owned());
    }
    user
}

/// A user without a name as Go prints it.
pub(super) fn go_user(parts: &[Part]) -> String {
    let named = |kind: &str| {
        let all = parts.iter().filter(|it| it.kind == kind);
        all.map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    let uid = named("UID").concat();
    let mut extra: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for part in parts.iter().filter(|it| it.kind == "UserExtra") {
        let values = extra.entry(&part.key).or_default();
        values.push(part.name.clone());
    }
    let listed = |all: &[String]| {
        let all: Vec<String> = all.iter().map(|it| format!("{it:?}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    let groups = named("Group");
    let groups = if groups.is_empty() {
        "(nil)".to_owned()
    } else {
        listed(&groups)
    };
    let extra = if extra.is_empty() {
        "(nil)".to_owned()
    } else {
        let all = extra.iter();
        let all = all.map(|(key, values)| format!("{key:?}:[]string{}", listed(values)));
        format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:[]string{groups}, \
         Extra:map[string][]string{extra}}}"
    )
}

impl Part {
    pub(super) fn action(&self) -> Action {
        let (group, resource) = match self.kind {
            "ServiceAccount" => ("", "serviceaccounts"),
            "User" => ("", "users"),
            "Group" => ("", "groups"),
            "UID" => ("authentication.k8s.io", "uids"),
            _ => ("authentication.k8s.io", "userextras"),
        };
        Action {
            verb: "impersonate".to_owned(),
            namespace: self.namespace.clone(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: self.key.clone(),
            name: self.name.clone(),
            path: String::new(),
        }
    }

    /// The object reference as Go prints it.
    pub(super) fn printed(&self) -> String {
        let Self {
            kind,
            namespace,
            name,
            key,
        } = self;
        let version = match *kind {
            "UserExtra" | "UID" => "authentication.k8s.io/v1",
            _ => "",
        };
        format!("{{{kind} {namespace} {name}  {version}  {key}}}")
    }
}
