//! Role-based access control.
//!
//! Members of `system:masters` may do everything. Other users may do what the rules of the
//! roles bound to them allow, as in Kubernetes' RBAC authorizer
//! (plugin/pkg/auth/authorizer/rbac). A request is either allowed or not allowed; there are no
//! deny rules.

mod action;
pub(crate) mod bootstrap;
mod decision;
mod escalation;
pub(crate) mod parameters;
mod review;
mod rule;
pub(crate) mod rule_index;
mod selector;
mod variable;

pub(crate) use action::Action;
pub(crate) use decision::decide;
pub(crate) use escalation::check_escalation;
pub(crate) use review::reply;
pub(crate) use variable::Authorizer;

use crate::call::Call;
use crate::state::State;
use crate::status::{Details, Reason, Status};
use crate::user::{MASTERS, User};

/// Authorizes a request.
///
/// # Errors
/// 403 with Kubernetes' message.
pub(crate) fn check(state: &State, call: &Call) -> Result<(), Status> {
    if call.user.is_in(MASTERS) {
        return Ok(());
    }
    authorize(state, &call.user, &Action::of(call))
}

/// Authorizes `action` for `user`.
///
/// # Errors
/// 403 with Kubernetes' message.
pub(crate) fn authorize(
    state: &State,
    user: &User,
    action: &Action,
) -> Result<(), Status> {
    let requested = action.clone().with_own_group(&state.aliases);
    let decision = decide(&state.rules, user, &requested);
    if decision.allowed {
        return Ok(());
    }
    Err(refusal(user, action, &decision.reason))
}

/// 403 with Kubernetes' message and a reason, which may be empty.
pub(crate) fn refusal(user: &User, action: &Action, reason: &str) -> Status {
    let mut why = action.forbidden_message(&user.name);
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let what = crate::resource::GroupResource::new(&action.group, &action.resource);
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
