//! Addresses and names of the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address; leading zeros in IPv4 parts are accepted, as Kubernetes does.
fn ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let part = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u8>().ok()).flatten()
    };
    let parts: Option<Vec<u8>> = text.split('.').map(part).collect();
    match parts?.as_slice() {
        [a, b, c, d] => Some(Ipv4Addr::new(*a, *b, *c, *d).into()),
        _ => None,
    }
}

pub(super) fn is_ip(text: &str) -> bool {
    ip(text).is_some()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// 6, 8 or 20 bytes in hexadecimal, in pairs with colons or hyphens or in fours with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        let groups: Vec<_> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups.iter().all(|group| {
                group.len() == width && group.bytes().all(|it| it.is_ascii_hexdigit())
            })
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// A host name as in RFC 1034, with letters and symbols of any script; the last of
/// several labels has at least two letters.
pub(super) fn is_hostname(text: &str) -> bool {
    let is_letter = |c: char| {
        c.is_ascii_alphanumeric()
            || (!c.is_ascii() && (c.is_alphabetic() || !c.is_numeric()))
    };
    let is_label = |label: &str| {
        let inner = |c: char| is_letter(c) || c == '-';
        label.len() <= 63
            && label.starts_with(is_letter)
            && label.ends_with(is_letter)
            && label.chars().all(inner)
    };
    if text.len() > 255 {
        return false;
    }
    match text.rsplit_once('.') {
        None => is_label(text),
        Some((rest, last)) => {
            let letters =
                |c: char| c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic();
            (2..=63).contains(&last.chars().count())
                && last.chars().all(letters)
                && rest.split('.').all(is_label)
        }
    }
}

/// What Go's `mail.ParseAddress` accepts, without comments: `a@b` or `Name <a@b>`.
pub(super) fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(at), Some(inner)) => inner.get(at + 1..).unwrap_or_default(),
        (None, None) => text.trim(),
        _ => return false,
    };
    let is_atom_text = |c: char| {
        c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
    };
    let is_dotted = |text: &str| {
        text.split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_atom_text))
    };
    let is_quoted =
        |text: &str| text.len() >= 2 && text.starts_with('"') && text.ends_with('"');
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        (is_dotted(local) || is_quoted(local)) && is_dotted(domain)
    })
}

/// What Go's `url.ParseRequestURI` accepts: an absolute URI or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    let rest = match scheme(text) {
        Some(rest) => rest,
        None if text.starts_with('/') => text,
        None => return false,
    };
    if !rest.starts_with('/') {
        // As in `mailto:a@b`: nothing further is looked at.
        return rest.len() < text.len();
    }
    let path = rest.split('?').next().unwrap_or(rest);
    match path.strip_prefix("//") {
        Some(authority) if rest.len() < text.len() => {
            let end = authority.find('/').unwrap_or(authority.len());
            let (authority, path) = authority.split_at(end);
            is_authority(authority) && has_good_escapes(path)
        }
        _ => has_good_escapes(path),
    }
}

fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    (starts && scheme.chars().all(is_inner)).then_some(rest)
}

fn is_authority(text: &str) -> bool {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let (name, port) = match host.rfind(']') {
        Some(end) if host.starts_with('[') => host.split_at(end + 1),
        Some(_) => return false,
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let in_name = |c: char| c != ' ' && !"\"<>\\^`{|}".contains(c);
    port.bytes().all(|byte| byte.is_ascii_digit())
        && name.chars().all(in_name)
        && has_good_escapes(name)
}

fn has_good_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    })
}
