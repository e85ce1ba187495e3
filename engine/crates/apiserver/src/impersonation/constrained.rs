//! Constrained impersonation (pkg/endpoints/filters/impersonation in k8s.io/apiserver): besides the
//! attributes of the impersonated user, a permission limits the actions in its name. The original
//! impersonation is the last mode.

use std::collections::BTreeMap;

use kubemu_admission::{FieldError, name};

use super::mode::{LastModes, MODES, Mode};
use super::part::{Part, user_from};
use crate::authorization::{self, Action, Rights};
use crate::status::Status;
use crate::user::{AUTHENTICATED, MASTERS, User, service_account};

/// The group of nodes, and the prefix of their user names.
const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
/// The extra attribute with the node that a token is bound to.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";
/// From this number of groups or extra values on, the permission for all is checked first.
const MANY: usize = 4;
/// A request with the headers of impersonation.
pub(super) struct ImpersonationRequest<'a> {
    pub(super) requester: &'a User,
    /// The action in the name of the impersonated user.
    pub(super) action: Action,
    pub(super) parts: &'a [Part],
}

/// The impersonated user in the first mode that allows the request.
///
/// # Errors
/// The first error if no mode does.
pub(super) fn impersonate(
    rights: Rights<'_>,
    last_modes: &mut LastModes,
    request: &ImpersonationRequest<'_>,
) -> Result<User, Status> {
    let requester = &request.requester.name;
    let last = last_modes.0.get(requester).copied();
    let others = MODES.into_iter().filter(|it| Some(*it) != last);
    let mut first_error = None;
    for mode in last.into_iter().chain(others) {
        if !request.is_supported(mode) {
            continue;
        }
        match request.authorize(rights, mode) {
            Ok(()) => {
                last_modes.record(requester, mode);
                return Ok(request.impersonated(mode));
            }
            Err(refused) => {
                first_error.get_or_insert(refused);
            }
        }
    }
    let failed = || Status::internal("all impersonation modes failed");
    Err(first_error.unwrap_or_else(failed))
}

/// The node with this user name.
fn node_name(user: &str) -> Option<&str> {
    let node = user.strip_prefix(NODE_PREFIX)?;
    name::dns_subdomain(node).is_empty().then_some(node)
}

impl ImpersonationRequest<'_> {
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |it| it.kind == kind)
    }

    /// The node to impersonate; `None` for another user.
    fn node(&self) -> Option<&str> {
        self.of_kind("User").find_map(|it| node_name(&it.name))
    }

    /// Whether a mode can impersonate the user.
    fn is_supported(&self, mode: Mode) -> bool {
        let has_only_name = self.parts.len() == 1;
        let is_account = self.of_kind("ServiceAccount").next().is_some();
        match mode {
            Mode::AssociatedNode => has_only_name && self.is_associated(),
            Mode::ArbitraryNode => has_only_name && self.node().is_some(),
            Mode::ServiceAccount => has_only_name && is_account,
            Mode::UserInfo => self.node().is_none() && !is_account,
            Mode::Legacy => true,
        }
    }

    /// Whether the requester is a service account with a token that is bound to the node.
    fn is_associated(&self) -> bool {
        let bound = self.requester.extra.get(NODE_OF_TOKEN).map(Vec::as_slice);
        let (Some(node), Some([bound])) = (self.node(), bound) else {
            return false;
        };
        service_account(&self.requester.name).is_some() && bound == node
    }

    /// Authorizes the action in the name of another user, and each attribute of that user.
    ///
    /// # Errors
    /// 403 for the first one that the requester may not impersonate.
    fn authorize(&self, rights: Rights<'_>, mode: Mode) -> Result<(), Status> {
        if let Some(name) = mode.name() {
            let verb = format!("impersonate-on:{name}:{}", self.action.verb);
            let on = Action {
                verb,
                ..self.action.clone()
            };
            rights.authorize(self.requester, &on)?;
        }
        for kind in ["User", "ServiceAccount", "UID"] {
            self.authorize_each(rights, mode, kind)?;
        }
        self.check_groups(mode)?;
        if !self.may_impersonate_all(rights, mode, "Group") {
            self.authorize_each(rights, mode, "Group")?;
        }
        self.check_extra(mode)?;
        if self.may_impersonate_all(rights, mode, "UserExtra") {
            return Ok(());
        }
        self.authorize_each(rights, mode, "UserExtra")
    }

    fn authorize_each(
        &self,
        rights: Rights<'_>,
        mode: Mode,
        kind: &str,
    ) -> Result<(), Status> {
        for part in self.of_kind(kind) {
            let action = action(mode, part);
            rights.authorize(self.requester, &action)?;
        }
        Ok(())
    }

    /// Whether there are many attributes of a kind, and the requester may impersonate all of them.
    fn may_impersonate_all(&self, rights: Rights<'_>, mode: Mode, kind: &str) -> bool {
        let is_many = self.of_kind(kind).count() >= MANY;
        let Some(part) = self.of_kind(kind).next().filter(|_| is_many) else {
            return false;
        };
        let mut all = action(mode, part);
        "*".clone_into(&mut all.name);
        if !all.subresource.is_empty() {
            "*".clone_into(&mut all.subresource);
        }
        mode != Mode::Legacy
            && authorization::decide(rights.rules, self.requester, &all).allowed
    }

    /// Rejects groups that only the mode without a constraint can impersonate.
    fn check_groups(&self, mode: Mode) -> Result<(), Status> {
        if mode == Mode::Legacy {
            return Ok(());
        }
        for (group, shown) in [("", "empty string"), (MASTERS, MASTERS)] {
            if let Some(part) = self.of_kind("Group").find(|it| it.name == group) {
                let why = format!("impersonating the {shown} group is not allowed");
                let action = action(mode, part);
                return Err(authorization::refusal(self.requester, &action, &why));
            }
        }
        Ok(())
    }

    /// Rejects extra attributes that only the mode without a constraint can impersonate.
    fn check_extra(&self, mode: Mode) -> Result<(), Status> {
        if mode == Mode::Legacy {
            return Ok(());
        }
        let mut extra: BTreeMap<&str, Vec<&Part>> = BTreeMap::new();
        for part in self.of_kind("UserExtra") {
            extra.entry(&part.key).or_default().push(part);
        }
        for (key, values) in extra {
            let wrong = key_error(key).or_else(|| {
                let is_empty = values.iter().any(|it| it.name.is_empty());
                is_empty
                    .then(|| "the empty string value in extra is not allowed".to_owned())
            });
            let Some((why, part)) = wrong.zip(values.first()) else {
                continue;
            };
            let action = Action {
                name: String::new(),
                subresource: String::new(),
                ..action(mode, part)
            };
            let why = format!("impersonating {why}");
            return Err(authorization::refusal(self.requester, &action, &why));
        }
        Ok(())
    }

    fn impersonated(&self, mode: Mode) -> User {
        let mut user = user_from(self.parts);
        if matches!(mode, Mode::AssociatedNode | Mode::ArbitraryNode) {
            user.groups = vec![NODES.to_owned(), AUTHENTICATED.to_owned()];
        }
        user
    }
}

/// The action of impersonating one attribute.
fn action(mode: Mode, part: &Part) -> Action {
    let mut action = part.action();
    let Some(name) = mode.name() else {
        return action;
    };
    action.verb = format!("impersonate:{name}");
    "authentication.k8s.io".clone_into(&mut action.group);
    if let Some(node) = node_name(&part.name).filter(|_| part.kind == "User") {
        "nodes".clone_into(&mut action.resource);
        // The permission does not depend on the node, so that all pods of a DaemonSet have it.
        let is_associated = mode == Mode::AssociatedNode;
        let name = if is_associated { "*" } else { node };
        name.clone_into(&mut action.name);
    }
    action
}

/// Why the key of an extra attribute is not allowed (`IsDomainPrefixedPath`).
fn key_error(key: &str) -> Option<String> {
    const PATH: &str = "extra.key";
    const PUNCTUATION: &str = "/-._~%!$&'()*+,;=:";
    if key.is_empty() {
        return Some("the empty string key in extra is not allowed".to_owned());
    }
    let errors = match key.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            let of_host = name::dns_subdomain(host).into_iter();
            let of_host = of_host.map(|it| FieldError::invalid(PATH, host.into(), it));
            let is_of_path =
                |it: char| it.is_ascii_alphanumeric() || PUNCTUATION.contains(it);
            let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
            let of_path = (!path.chars().all(is_of_path))
                .then(|| FieldError::invalid(PATH, path.into(), why));
            of_host.chain(of_path).collect()
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            vec![FieldError::invalid(PATH, key.into(), why)]
        }
    };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let shown = match errors.as_slice() {
        [] => {
            let lower = key.to_lowercase();
            return (lower != key).then(|| {
                format!("a non-lowercase key in extra is not allowed: {key:?}")
            });
        }
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    Some(format!("an invalid key in extra is not allowed: {shown}"))
}
