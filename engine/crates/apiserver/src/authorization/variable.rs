//! The `authorizer` of admission policies.

use std::sync::Arc;

use kubemu_admission::policy::{self, Access, Permission, Target};

use super::action::Action;
use super::decision::decide;
use super::rule_index::RuleIndex;
use crate::user::User;

/// Evaluates the authorization checks of policies with the roles as of the start of the
/// request.
#[derive(Clone, Debug)]
pub(crate) struct Authorizer(pub(crate) Arc<RuleIndex>);

impl policy::Authorizer for Authorizer {
    fn authorize(&self, access: &Access<'_>) -> Result<Permission, String> {
        let user = User {
            name: access.user.name.clone(),
            uid: access.user.uid.clone(),
            groups: access.user.groups.clone(),
            extra: access.user.extra.clone(),
        };
        let decision = decide(&self.0, &user, &action(access));
        Ok(Permission {
            allowed: decision.allowed,
            reason: decision.reason,
        })
    }
}

fn action(access: &Access<'_>) -> Action {
    let verb = access.verb.to_owned();
    match access.target {
        Target::Path(path) => Action {
            verb,
            path: path.to_owned(),
            ..Action::default()
        },
        // RBAC rules do not use selectors.
        Target::Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
            ..
        } => Action {
            verb,
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            path: String::new(),
        },
    }
}
