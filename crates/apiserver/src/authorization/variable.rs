//! The `authorizer` of admission policies.

use std::sync::Arc;

use fivespot_admission::policy::{Abstract, CelValue, RunError};

use super::{Action, Book, Decision, decide};
use crate::user::User;

/// Answers checks for the user of a request: both `authorizer` and
/// `authorizer.requestResource`, whose functions have different names.
#[derive(Clone, Debug)]
pub(crate) struct Authorizer {
    pub(crate) book: Arc<Book>,
    pub(crate) user: User,
    /// What a check without more words is about: the resource of the request.
    pub(crate) action: Action,
}

impl Abstract for Authorizer {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Authorizer"
    }

    fn call<'v>(
        &self,
        name: &str,
        arguments: &[CelValue<'v>],
    ) -> Result<CelValue<'v>, RunError> {
        let words: Vec<&str> = arguments.iter().filter_map(CelValue::as_str).collect();
        let mut next = self.clone();
        match (name, words.as_slice()) {
            ("path", [path]) => {
                full("path", path)?;
                next.action = Action {
                    path: (*path).to_owned(),
                    ..Action::default()
                };
            }
            ("group", [group]) => {
                next.action = Action {
                    group: (*group).to_owned(),
                    ..Action::default()
                };
            }
            ("resource", [resource]) => {
                full("resource", resource)?;
                (*resource).clone_into(&mut next.action.resource);
            }
            ("subresource", [text]) => (*text).clone_into(&mut next.action.subresource),
            ("namespace", [text]) => (*text).clone_into(&mut next.action.namespace),
            ("name", [text]) => (*text).clone_into(&mut next.action.name),
            // Roles cannot tell by selectors.
            ("fieldSelector" | "labelSelector", [_]) => {}
            ("serviceAccount", [namespace, account]) => {
                next.user = User::service_account(namespace, account);
                sound(namespace, 63, "namespace")?;
                sound(account, 253, "name")?;
            }
            ("check", [verb]) => {
                (*verb).clone_into(&mut next.action.verb);
                let decision = decide(&next.book, &next.user, &next.action);
                return Ok(CelValue::Abstract(Arc::new(decision)));
            }
            _ => return Err(wrong(format!("no such function: {name}"))),
        }
        Ok(CelValue::Abstract(Arc::new(next)))
    }
}

fn wrong(text: String) -> RunError {
    RunError::Evaluation(text.into())
}

fn full(what: &str, text: &str) -> Result<(), RunError> {
    if text.trim().is_empty() {
        return Err(wrong(format!("{what} must not be empty")));
    }
    Ok(())
}

/// A name of a service account may have dots, a namespace may not.
fn sound(text: &str, most: usize, what: &str) -> Result<(), RunError> {
    let dots = what == "name";
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.chars().all(|c| plain(c) || c == '-')
            && part.starts_with(plain)
            && part.ends_with(plain)
    };
    let fits =
        text.len() <= most && (dots || !text.contains('.')) && text.split('.').all(part);
    if fits {
        return Ok(());
    }
    Err(wrong(format!("Invalid service account {what}")))
}

impl Abstract for Decision {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }

    fn call<'v>(&self, name: &str, _: &[CelValue<'v>]) -> Result<CelValue<'v>, RunError> {
        match name {
            "allowed" => Ok(CelValue::Bool(self.allowed)),
            "reason" => Ok(CelValue::text(self.reason.clone())),
            "errored" => Ok(CelValue::Bool(false)),
            "error" => Ok(CelValue::text("")),
            _ => Err(wrong(format!("no such function: {name}"))),
        }
    }
}
