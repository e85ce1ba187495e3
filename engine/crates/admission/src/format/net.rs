//! Network addresses and host names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kubemu_gostd::unicode::{is_letter, is_letter_or_symbol};

/// An IP address; leading zeros are accepted in every part, as in Kubernetes.
fn ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let groups: Vec<_> = text.split(':').map(without_zeros).collect();
        return groups.join(":").parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    without_zeros(text).parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// A group of an address, or several separated by dots, without leading zeros.
fn without_zeros(group: &str) -> String {
    let parts = group
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        });
    parts.collect::<Vec<_>>().join(".")
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

/// 6, 8 or 20 bytes in hexadecimal: in pairs with colons or hyphens, in groups of four with
/// dots, or without separators.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        let groups: Vec<_> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups.iter().all(|group| {
                group.len() == width && group.bytes().all(|it| it.is_ascii_hexdigit())
            })
    };
    let is_plain = matches!(text.len(), 12 | 16 | 40)
        && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain
        || groups(':', 2, [6, 8, 20])
        || groups('-', 2, [6, 8, 20])
        || groups('.', 4, [3, 4, 10])
}

/// A host name as in Kubernetes' `strfmt`: one label, in which a hyphen may only be the second
/// character, or several, the last of which has at least two letters. Letters and symbols of
/// any script are allowed.
pub(super) fn is_hostname(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_digit() || is_letter_or_symbol(c);
    let is_long = |text: &str| text.chars().count() > 62;
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let Some((rest, last)) = text.rsplit_once('.') else {
        let mut chars = text.chars();
        let first = chars.next().is_some_and(is_inner);
        let more = chars.as_str();
        let after = more.strip_prefix('-').unwrap_or(more);
        return first && !is_long(after) && after.chars().all(is_inner);
    };
    let is_label = |label: &str| {
        label.starts_with(is_inner)
            && label.ends_with(is_inner)
            && label.chars().all(|c| c == '-' || is_inner(c))
    };
    last.chars().count() >= 2
        && last.chars().all(is_letter)
        && rest.split('.').all(is_label)
}
