//! What the rules decide about an action of a user.

use super::action::Action;
use super::rule_index::RuleIndex;
use crate::user::{MASTERS, User};

/// The decision of the authorizer on an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The binding that allows the action, or the roles that are missing; often empty.
    pub(crate) reason: String,
}

/// Decides whether `user` may do `action`.
pub(crate) fn decide(rules: &RuleIndex, user: &User, action: &Action) -> Decision {
    if user.is_in(MASTERS) {
        return Decision {
            allowed: true,
            reason: String::new(),
        };
    }
    let mut missing = Vec::new();
    for grant in rules.grants(user, &action.namespace) {
        match grant {
            Ok(grant) if grant.rule.allows(action) => {
                return Decision {
                    allowed: true,
                    reason: format!("RBAC: allowed by {}", grant.source()),
                };
            }
            Ok(_) => {}
            Err(error) => missing.push(error),
        }
    }
    let reason = match aggregate_text(&missing) {
        text if text.is_empty() => text,
        text => format!("RBAC: {text}"),
    };
    Decision {
        allowed: false,
        reason,
    }
}

/// Several errors as Kubernetes prints them in one message; empty if there are none.
pub(super) fn aggregate_text(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&error.as_str()) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
