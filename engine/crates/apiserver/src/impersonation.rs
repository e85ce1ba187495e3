//! Impersonation: the `Impersonate-*` headers.

mod mode;

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::authorization::{self, Action};
use crate::query::{Query, percent};
use crate::state::State;
use crate::status::Status;
use crate::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User, service_account};

pub(crate) use mode::LastModes;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// One attribute to impersonate.
struct Part {
    kind: &'static str,
    namespace: String,
    name: String,
    /// The key of an extra value.
    key: String,
}

/// The user that the headers impersonate; `None` without such headers.
///
/// # Errors
/// 400 for groups without a user, 403 for attributes that `user` may not impersonate for this
/// request.
pub(crate) fn requested_user(
    state: &mut State,
    user: &User,
    head: &http::request::Parts,
) -> Result<Option<User>, Status> {
    let parts = parts(&head.headers);
    if parts.is_empty() {
        return Ok(None);
    }
    let named = |it: &Part| matches!(it.kind, "User" | "ServiceAccount");
    if !parts.iter().any(named) {
        let message = if state.kube.is_at_least(36) {
            let shown = go_user(&parts);
            format!("requested {shown} without impersonating a user name")
        } else {
            let listed: Vec<String> = parts.iter().map(Part::printed).collect();
            let listed = listed.join(" ");
            format!("requested [{listed}] without impersonating a user")
        };
        return Err(Status::bad_request(message));
    }
    // Constrained impersonation is on by default since 1.36.
    if state.kube.is_at_least(36) {
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let request = mode::ImpersonationRequest {
            requester: user,
            action: Action::of_request(&head.method, head.uri.path(), &query),
            parts: &parts,
        };
        return mode::impersonate(state, &request).map(Some);
    }
    for part in &parts {
        authorization::authorize(state, user, &part.action())?;
    }
    Ok(Some(user_from(&parts)))
}

fn parts(headers: &HeaderMap) -> Vec<Part> {
    let texts = |name: &str| -> Vec<String> {
        // A header is never ignored, whatever its bytes: the request would run as the user
        // who sent it.
        let all = headers.get_all(name).iter();
        all.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
            .collect()
    };
    let one = |name: &str| texts(name).into_iter().next().filter(|it| !it.is_empty());
    let part = |kind, name: String| Part {
        kind,
        namespace: String::new(),
        name,
        key: String::new(),
    };
    let mut parts = Vec::new();
    if let Some(user) = one(USER) {
        parts.push(match service_account(&user) {
            Some((namespace, name)) => Part {
                namespace: namespace.to_owned(),
                ..part("ServiceAccount", name.to_owned())
            },
            None => part("User", user),
        });
    }
    parts.extend(texts(GROUP).into_iter().map(|it| part("Group", it)));
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            parts.extend(texts(name.as_str()).into_iter().map(|it| Part {
                key: percent(key),
                ..part("UserExtra", it)
            }));
        }
    }
    parts.extend(one(UID).map(|it| part("UID", it)));
    parts
}

fn user_from(parts: &[Part]) -> User {
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
fn go_user(parts: &[Part]) -> String {
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
    fn action(&self) -> Action {
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
    fn printed(&self) -> String {
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
