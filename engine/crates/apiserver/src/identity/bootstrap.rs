//! Bootstrap tokens: Secrets of `kube-system` with which new nodes join
//! (plugin/pkg/auth/authenticator/token/bootstrap).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::claim::find;
use crate::meta;
use crate::state::State;
use crate::user::{AUTHENTICATED, User};

const TYPE: &str = "bootstrap.kubernetes.io/token";
/// The group of all users with a bootstrap token; the names of extra groups begin with it.
const GROUP: &str = "system:bootstrappers";

/// The parts of a text in the format of a bootstrap token: its id and its secret.
pub(crate) fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_part = |text: &str, length: usize| {
        let known = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        text.len() == length && text.bytes().all(known)
    };
    (is_part(id, 6) && is_part(secret, 16)).then_some((id, secret))
}

/// Authenticates a bootstrap token.
///
/// # Errors
/// Why the token is not valid, or not valid any longer.
pub(crate) fn user(state: &State, (id, secret): (&str, &str)) -> Result<User, String> {
    let name = format!("bootstrap-token-{id}");
    let found = find(state, "secrets", "kube-system", &name);
    let found = found.ok_or_else(|| format!("no secret {name:?}"))?;
    let text = |key: &str| decoded(&found["data"][key]);
    let refuse = |why: &str| Err(format!("secret {name:?} {why}"));
    if meta::is_deleting(&found) {
        return refuse("is being deleted");
    }
    if found["type"] != TYPE || text("token-secret").is_empty() {
        return refuse("does not contain a bootstrap token");
    }
    // Digests have equal length, and comparing equal ones takes as long as comparing others.
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    let pairs = digest(&text("token-secret"));
    let pairs = pairs.iter().zip(digest(secret));
    if pairs.fold(0, |all, (a, b)| all | (a ^ b)) != 0 {
        return refuse("contains a different token");
    }
    if text("token-id") != id {
        return refuse("has a different token ID");
    }
    if has_expired(&text("expiration"), state.clock.now()) {
        return refuse("has expired");
    }
    if text("usage-bootstrap-authentication") != "true" {
        return refuse("is not for authentication");
    }
    let mut groups = vec![GROUP.to_owned()];
    for group in text("auth-extra-groups").split(',') {
        if group.is_empty() {
            continue;
        }
        if !is_extra_group(group) {
            return refuse("contains a group that is not valid for bootstrap tokens");
        }
        groups.push(group.to_owned());
    }
    groups.push(AUTHENTICATED.to_owned());
    Ok(User {
        name: format!("system:bootstrap:{id}"),
        groups,
        ..User::default()
    })
}

fn decoded(data: &Value) -> String {
    let bytes = STANDARD.decode(data.as_str().unwrap_or_default());
    let text = bytes.ok().and_then(|it| String::from_utf8(it).ok());
    text.unwrap_or_default()
}

/// Whether the token has expired: a text that is not a time counts as expired, an empty one
/// never expires.
fn has_expired(expiration: &str, now: Timestamp) -> bool {
    !expiration.is_empty() && expiration.parse::<Timestamp>().map_or(true, |it| it <= now)
}

/// `system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]`.
fn is_extra_group(group: &str) -> bool {
    let rest = group
        .strip_prefix(GROUP)
        .and_then(|it| it.strip_prefix(':'));
    rest.is_some_and(|rest| {
        let sound = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        let last = rest.bytes().last();
        rest.len() <= 256
            && rest
                .bytes()
                .all(|it| sound(it) || matches!(it, b':' | b'-'))
            && last.is_some_and(sound)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_6_and_16_lower_case_letters_and_digits() {
        assert_eq!(
            parts("abc123.0123456789abcdef"),
            Some(("abc123", "0123456789abcdef"))
        );
        for other in [
            "",
            "abc123",
            "abc12.0123456789abcdef",
            "ABC123.0123456789abcdef",
            "abc123.0123456789abcde",
            "abc123.0123456789abcdef.x",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn an_extra_group_is_one_of_the_bootstrappers() {
        for group in [
            "system:bootstrappers:a",
            "system:bootstrappers:kubeadm:default-node-token",
        ] {
            assert!(is_extra_group(group), "{group}");
        }
        for group in [
            "system:masters",
            "system:bootstrappers:",
            "system:bootstrappers:a-",
            "system:bootstrappersx",
            "system:bootstrappers:A",
        ] {
            assert!(!is_extra_group(group), "{group}");
        }
    }

    #[test]
    fn an_expiration_that_is_not_a_time_has_expired() {
        let now = "2026-03-06T21:30:00Z".parse().unwrap();
        assert!(!has_expired("", now));
        assert!(!has_expired("2026-03-06T21:30:01Z", now));
        assert!(has_expired("2026-03-06T21:30:00Z", now));
        assert!(has_expired("tomorrow", now));
    }
}
