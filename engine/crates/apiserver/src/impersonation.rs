//! Impersonation: the `Impersonate-*` headers.

mod constrained;
pub(crate) mod mode;
mod part;

use http::HeaderMap;

use crate::authorization::{Action, Rights};
use crate::query::{Query, percent};
use crate::state::State;
use crate::status::Status;
use crate::user::{User, service_account};
use part::{Part, go_user, user_from};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

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
        let rights = Rights {
            rules: &state.rules,
            aliases: &state.aliases,
        };
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let request = constrained::ImpersonationRequest {
            requester: user,
            action: Action::of_request(&head.method, head.uri.path(), &query),
            parts: &parts,
        };
        return constrained::impersonate(rights, &mut state.last_modes, &request)
            .map(Some);
    }
    for part in &parts {
        state.rights().authorize(user, &part.action())?;
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
