//! User, host and port.

use std::fmt;
use std::net::IpAddr;

use super::escape::{Mode, escape, text, unescape};
use crate::netip;
use crate::strconv::Quoted;

/// The part between `//` and the path.
#[derive(Clone, Debug, Default)]
pub(super) struct Authority {
    user: Option<User>,
    /// Host and port, unescaped.
    pub(super) host: Vec<u8>,
}

#[derive(Clone, Debug)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl Authority {
    pub(super) fn parse(scheme: &str, authority: &str) -> Result<Self, String> {
        let Some((user, host)) = authority.rsplit_once('@') else {
            let host = parse_host(scheme, authority)?;
            return Ok(Self { user: None, host });
        };
        let host = parse_host(scheme, host)?;
        if !user.bytes().all(is_user_byte) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        let decode = |part: &str| unescape(part, Mode::UserPassword);
        let name = decode(name)?;
        let password = password.map(decode).transpose()?;
        let user = Some(User { name, password });
        Ok(Self { user, host })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.user.is_none() && self.host.is_empty()
    }

    pub(super) fn hostname(&self) -> String {
        text(self.split().0)
    }

    pub(super) fn port(&self) -> String {
        text(self.split().1)
    }

    /// Host without brackets, and port.
    fn split(&self) -> (&[u8], &[u8]) {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|byte| *byte == b':');
        let (host, port) = match colon.and_then(|at| host.split_at_checked(at)) {
            Some((name, [b':', port @ ..])) if port.iter().all(u8::is_ascii_digit) => {
                (name, port)
            }
            _ => (host, &[][..]),
        };
        match host {
            [b'[', inner @ .., b']'] => (inner, port),
            host => (host, port),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(User { name, password }) = &self.user {
            f.write_str(&escape(name, Mode::UserPassword))?;
            if let Some(password) = password {
                write!(f, ":{}", escape(password, Mode::UserPassword))?;
            }
            f.write_str("@")?;
        }
        f.write_str(&escape(&self.host, Mode::Host))
    }
}

/// Characters of user and password (RFC 3986, section 3.2.1), and `@`, which is common there.
fn is_user_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => ip_literal(host),
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = host.find(':') {
                // Several colons are an error only in web URLs.
                let is_web = matches!(scheme, "http" | "https");
                let last = host.rfind(':').filter(|_| !is_web).unwrap_or(first);
                check_port(host.get(last..).unwrap_or_default())?;
            }
            unescape(host, Mode::Host)
        }
    }
}

/// An IPv6 address in brackets, with its port.
fn ip_literal(host: &str) -> Result<Vec<u8>, String> {
    let inner = host.strip_prefix('[').unwrap_or(host);
    let Some((address, port)) = inner.rsplit_once(']') else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(port)?;
    let port = unescape(port, Mode::Host)?;
    let mut decoded = match address.find("%25") {
        Some(at) => {
            let (address, zone) = address.split_at(at);
            let mut decoded = unescape(address, Mode::Host)?;
            decoded.extend(unescape(zone, Mode::Zone)?);
            decoded
        }
        None => unescape(address, Mode::Host)?,
    };
    match netip::parse_bytes(&decoded) {
        Ok((IpAddr::V6(_), _)) => {}
        Ok((IpAddr::V4(_), _)) => return Err("invalid IP-literal".to_owned()),
        Err(why) => return Err(format!("invalid host: {why}")),
    }
    decoded.insert(0, b'[');
    decoded.push(b']');
    decoded.extend(port);
    Ok(decoded)
}

/// Checks that the port is empty, or a colon followed by digits or nothing.
fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    let is_port = digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    if is_port || port.is_empty() {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", Quoted(port)))
    }
}
