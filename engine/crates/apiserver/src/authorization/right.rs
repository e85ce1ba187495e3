//! What users may do.

use super::action::Action;
use super::decision::decide;
use super::rule_index::RuleIndex;
use crate::alias::GroupAlias;
use crate::call::Call;
use crate::resource::GroupResource;
use crate::status::{Details, Reason, Status};
use crate::user::{MASTERS, User};

/// What decides about requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights<'a> {
    pub(crate) rules: &'a RuleIndex,
    /// The rules name groups, and not their aliases.
    pub(crate) aliases: &'a [GroupAlias],
}

impl Rights<'_> {
    /// Authorizes a request.
    ///
    /// # Errors
    /// 403 with Kubernetes' message.
    pub(crate) fn check(self, call: &Call) -> Result<(), Status> {
        if call.user.is_in(MASTERS) {
            return Ok(());
        }
        self.authorize(&call.user, &Action::of(call))
    }

    /// Authorizes `action` for `user`.
    ///
    /// # Errors
    /// 403 with Kubernetes' message.
    pub(crate) fn authorize(self, user: &User, action: &Action) -> Result<(), Status> {
        let requested = action.clone().with_own_group(self.aliases);
        let decision = decide(self.rules, user, &requested);
        if decision.allowed {
            return Ok(());
        }
        Err(refusal(user, action, &decision.reason))
    }
}

/// 403 with Kubernetes' message and a reason, which may be empty.
pub(crate) fn refusal(user: &User, action: &Action, reason: &str) -> Status {
    let mut why = action.forbidden_message(&user.name);
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let what = GroupResource::new(&action.group, &action.resource);
    let message = if !action.is_about_resource() {
        format!("forbidden: {why}")
    } else if action.name.is_empty() {
        format!("{what} is forbidden: {why}")
    } else {
        format!("{what} \"{}\" is forbidden: {why}", action.name)
    };
    Status::new(403, Reason::Forbidden, message).with_details(Details {
        name: action.name.clone(),
        group: action.group.clone(),
        kind: action.resource.clone(),
        ..Details::default()
    })
}
