//! Authentication of a token.

use super::bootstrap;
use super::claim::{Claims, ISSUER};
use crate::state::State;
use crate::user::User;

/// The user of a token, and the requested audiences that it is valid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthenticatedToken {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

/// Authenticates a token.
///
/// # Errors
/// Why the token is not valid, or not valid any longer, for one of `audiences`.
pub(crate) fn authenticate_token(
    state: &State,
    token: &str,
    audiences: &[String],
) -> Result<AuthenticatedToken, String> {
    if let Some(parts) = bootstrap::parts(token) {
        let own = audiences.iter().filter(|it| *it == ISSUER).cloned();
        return bootstrap::user(state, parts).map(|user| AuthenticatedToken {
            user,
            audiences: own.collect(),
        });
    }
    let payload = state
        .token_key
        .verify(token)
        .ok_or("invalid bearer token")?;
    let claims = Claims::read(&payload);
    let own = claims.audiences.iter().filter(|it| audiences.contains(it));
    let own: Vec<String> = own.cloned().collect();
    let reason = if claims.issuer != ISSUER {
        Err(format!("token issuer {:?} is invalid", claims.issuer))
    } else if own.is_empty() {
        Err(format!(
            "token audiences {} is invalid for the target audiences {}",
            listed(&claims.audiences),
            listed(audiences)
        ))
    } else {
        claims.valid_user(state)
    };
    match reason {
        Ok(user) => Ok(AuthenticatedToken {
            user,
            audiences: own,
        }),
        Err(why) => Err(format!("[invalid bearer token, {why}]")),
    }
}

fn listed(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
