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
mod right;
mod rule;
pub(crate) mod rule_index;
mod selector;
mod variable;

pub(crate) use action::Action;
pub(crate) use decision::decide;
pub(crate) use escalation::check_escalation;
pub(crate) use review::reply;
pub(crate) use right::{Rights, refusal};
pub(crate) use variable::Authorizer;
