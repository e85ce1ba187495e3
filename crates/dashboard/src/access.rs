//! Access control: only the holder of the printed URL, on this machine; or whoever a proxy lets
//! through.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use http::header::{COOKIE, HOST};
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The name of the cookie. Those of several dashboards have different paths.
const COOKIE_NAME: &str = "5spot-dashboard";

/// The token of the URL, the cookie that replaces it, and the accepted host names.
///
/// A browser sends the cookies of a host to every port of it, so that the page of another local
/// server would receive one with the path `/`. It sends this one only below a path that nobody else
/// knows, and the path alone opens nothing.
#[derive(Debug)]
pub(crate) struct Access {
    /// `None` after it has been used.
    token: Mutex<Option<String>>,
    session: String,
    root: String,
    hosts: [String; 3],
    /// Whether a proxy authenticates the users, so that there is neither token nor session.
    is_behind_proxy: bool,
}

impl Access {
    /// Creates a new token, a new session, and the path of its pages.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(port: u16) -> Result<Self, ring::error::Unspecified> {
        Ok(Self {
            token: Mutex::new(Some(secret()?)),
            session: secret()?,
            root: format!("/{}", secret()?),
            hosts: ["127.0.0.1", "localhost", "[::1]"]
                .map(|host| format!("{host}:{port}")),
            is_behind_proxy: false,
        })
    }

    /// Access for everybody who can connect: a proxy that authenticates its users.
    pub(crate) fn behind_proxy() -> Self {
        Self {
            token: Mutex::new(None),
            session: String::new(),
            root: String::new(),
            hosts: Default::default(),
            is_behind_proxy: true,
        }
    }

    /// The token, if it has not been used.
    pub(crate) fn token(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Whether the `Host` header has a name that only this machine has. A web site whose own name
    /// resolves to loopback sends that name.
    pub(crate) fn is_allowed_host(&self, headers: &HeaderMap) -> bool {
        if self.is_behind_proxy {
            return true;
        }
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let is_known = host.is_some_and(|host| self.hosts.iter().any(|it| it == host));
        is_known && hosts.next().is_none()
    }

    /// The path below which all pages are, without a slash at its end.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Exchanges the token for the cookie, once. `None` if the token is wrong or used.
    pub(crate) fn redeem(&self, presented: &str) -> Option<HeaderValue> {
        let mut token = self.lock();
        if !token
            .as_deref()
            .is_some_and(|token| is_equal(token, presented))
        {
            return None;
        }
        *token = None;
        let (root, session) = (&self.root, &self.session);
        let value =
            format!("{COOKIE_NAME}={session}; Path={root}; HttpOnly; SameSite=Strict");
        HeaderValue::from_str(&value).ok()
    }

    /// Whether a request has the session cookie, or comes from the proxy.
    pub(crate) fn has_session(&self, headers: &HeaderMap) -> bool {
        if self.is_behind_proxy {
            return true;
        }
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|header| header.to_str().ok());
        let mut pairs = cookies
            .flat_map(|header| header.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE_NAME && is_equal(value, &self.session))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares digests, so that the duration reveals nothing about a secret.
fn is_equal(one: &str, other: &str) -> bool {
    let hash = |text: &str| digest(&SHA256, text.as_bytes());
    hash(one).as_ref() == hash(other).as_ref()
}

/// 256 random bits in hexadecimal digits.
fn secret() -> Result<String, ring::error::Unspecified> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes)?;
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_token_is_exchanged_once_and_a_wrong_one_does_not_use_it_up() {
        let access = Access::new(8080).unwrap();
        let token = access.token().unwrap();
        assert_eq!(access.redeem("wrong"), None);
        assert_eq!(access.redeem(""), None);
        let cookie = access.redeem(&token).unwrap();
        assert_eq!(access.redeem(&token), None);
        assert_eq!(access.token(), None);
        let cookie = cookie.to_str().unwrap();
        let attributes = format!("; Path={}; HttpOnly; SameSite=Strict", access.root());
        assert!(cookie.ends_with(&attributes), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        assert!(access.has_session(&headers(&[(COOKIE, &format!("a=b; {pair}"))])));
        assert!(!access.has_session(&headers(&[(COOKIE, "5spot-dashboard=")])));
        assert!(!access.has_session(&headers(&[])));
    }

    #[test]
    fn the_cookie_is_sent_only_below_a_path_that_no_other_server_knows() {
        let (one, other) = (Access::new(8080).unwrap(), Access::new(8080).unwrap());
        let random = one.root().strip_prefix('/').unwrap();
        assert!(random.len() == 64 && random.bytes().all(|it| it.is_ascii_hexdigit()));
        assert_ne!(one.root(), other.root());
        let cookie = one.redeem(&one.token().unwrap()).unwrap();
        assert!(
            !cookie
                .to_str()
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .contains(random)
        );
    }

    #[test]
    fn only_host_names_of_this_machine_are_accepted() {
        let access = Access::new(8080).unwrap();
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"] {
            assert!(access.is_allowed_host(&headers(&[(HOST, host)])), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:8080.evil",
        ] {
            assert!(!access.is_allowed_host(&headers(&[(HOST, host)])), "{host}");
        }
        assert!(!access.is_allowed_host(&headers(&[])));
    }
}
