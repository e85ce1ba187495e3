//! IP addresses, after `netip.ParseAddr` (src/net/netip/netip.go), with its error messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::strconv::QuotedBytes;

/// The error, and the rest of the text if Go reports it.
type ParseError<'t> = (&'static str, Option<&'t str>);

/// Parses an address; returns it and whether it has a zone.
///
/// ```
/// use kubemu_gostd::netip;
/// assert!(netip::parse("fe80::1%eth0").is_ok_and(|(_, has_zone)| has_zone));
/// assert_eq!(
///     netip::parse("10.0.0.256").unwrap_err(),
///     r#"ParseAddr("10.0.0.256"): IPv4 field has value >255"#
/// );
/// ```
///
/// # Errors
/// Go's whole message.
pub fn parse(text: &str) -> Result<(IpAddr, bool), String> {
    parse_bytes(text.as_bytes())
}

/// Same as [`parse`] for bytes that need not be UTF-8, such as an unescaped URL host.
///
/// # Errors
/// Go's whole message.
pub fn parse_bytes(bytes: &[u8]) -> Result<(IpAddr, bool), String> {
    let text = String::from_utf8_lossy(bytes);
    read(&text).map_err(|(what, at)| {
        let place = at.map_or_else(String::new, |at| {
            // The text before this position has been parsed, and is ASCII.
            let from = at.as_ptr() as usize - text.as_ptr() as usize;
            let has_all = from + at.len() == text.len();
            let zone = bytes.iter().position(|byte| !has_all && *byte == b'%');
            let at = bytes.get(from..zone.unwrap_or(bytes.len()));
            format!(" (at {})", QuotedBytes(at.unwrap_or_default()))
        });
        format!("ParseAddr({}): {what}{place}", QuotedBytes(bytes))
    })
}

fn read(text: &str) -> Result<(IpAddr, bool), ParseError<'_>> {
    match text.find(['.', ':', '%']).and_then(|at| text.get(at..)) {
        Some(rest) if rest.starts_with('.') => {
            v4(text).map(|fields| (Ipv4Addr::from(fields).into(), false))
        }
        Some(rest) if rest.starts_with(':') => {
            let (address, zone) = match text.split_once('%') {
                Some((_, "")) => return Err(("zone must be a non-empty string", None)),
                Some((address, _)) => (address, true),
                None => (text, false),
            };
            Ok((v6(address)?.into(), zone))
        }
        Some(_) => Err(("missing IPv6 address", None)),
        None => Err(("unable to parse IP", None)),
    }
}

fn v4(text: &str) -> Result<[u8; 4], ParseError<'_>> {
    let mut fields = [0; 4];
    let (mut field, mut digits, mut place) = (0_u16, 0, 0);
    let at = |index: usize| text.get(index..);
    let mut before = None;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && field == 0 {
                    return Err(("IPv4 field has octet with leading zero", None));
                }
                field = field * 10 + u16::from(byte - b'0');
                digits += 1;
                if field > 255 {
                    return Err(("IPv4 field has value >255", None));
                }
            }
            b'.' => {
                let is_last = index + 1 == text.len();
                if is_last || before.is_none_or(|before| before == b'.') {
                    let what = "IPv4 field must have at least one digit";
                    return Err((what, at(index)));
                }
                if place == 3 {
                    return Err(("IPv4 address too long", None));
                }
                put(&mut fields, place, field);
                place += 1;
                (field, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", at(index))),
        }
        before = Some(byte);
    }
    if place < 3 {
        return Err(("IPv4 address too short", None));
    }
    put(&mut fields, 3, field);
    Ok(fields)
}

fn put(fields: &mut [u8; 4], place: usize, field: u16) {
    if let (Some(to), Ok(field)) = (fields.get_mut(place), u8::try_from(field)) {
        *to = field;
    }
}

fn v6(text: &str) -> Result<Ipv6Addr, ParseError<'_>> {
    let mut rest = text;
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut gap = None;
    if let Some(after) = rest.strip_prefix("::") {
        (gap, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok(Ipv6Addr::UNSPECIFIED);
        }
    }
    while groups.len() < 8 {
        let (group, after) = group(rest)?;
        if after.starts_with('.') {
            if gap.is_none() && groups.len() != 6 {
                let what = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((what, Some(rest)));
            }
            if groups.len() > 6 {
                let what = "too many hex fields to fit an embedded IPv4 at the end of the \
                            address";
                return Err((what, Some(rest)));
            }
            let [a, b, c, d] = v4(rest)?;
            groups.push(u16::from_be_bytes([a, b]));
            groups.push(u16::from_be_bytes([c, d]));
            rest = "";
            break;
        }
        groups.push(group);
        if after.is_empty() {
            rest = after;
            break;
        }
        let Some(next) = after.strip_prefix(':') else {
            return Err(("unexpected character, want colon", Some(after)));
        };
        if next.is_empty() {
            return Err(("colon must be followed by more characters", Some(after)));
        }
        rest = next;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", Some(rest)));
            }
            (gap, rest) = (Some(groups.len()), after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", Some(rest)));
    }
    expanded(groups, gap)
}

/// The next group and the rest of the text.
fn group(text: &str) -> Result<(u16, &str), ParseError<'_>> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    match digits.len() {
        0 => {
            let what = "each colon-separated field must have at least one digit";
            Err((what, Some(text)))
        }
        1..=4 => Ok((u16::from_str_radix(digits, 16).unwrap_or_default(), after)),
        _ => Err(("each group must have 4 or less digits", Some(text))),
    }
}

/// All eight groups, with zeros for the gap.
fn expanded(
    mut groups: Vec<u16>,
    gap: Option<usize>,
) -> Result<Ipv6Addr, ParseError<'static>> {
    let missing = 8_usize.saturating_sub(groups.len());
    match gap {
        None if missing > 0 => return Err(("address string too short", None)),
        Some(_) if missing == 0 => {
            let what = "the :: must expand to at least one field of zeros";
            return Err((what, None));
        }
        Some(gap) => drop(groups.splice(gap..gap, std::iter::repeat_n(0, missing))),
        None => {}
    }
    let groups: [u16; 8] = groups.try_into().unwrap_or_default();
    Ok(groups.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_by_the_standard_library() {
        let texts = [
            "1.2.3.4",
            "0.0.0.0",
            "::",
            "::1",
            "1::",
            "fe80::1:2",
            "1:2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "2001:DB8::a",
        ];
        for text in texts {
            let wanted = text.parse().map(|address| (address, false));
            assert_eq!(
                parse(text),
                wanted.map_err(|error: std::net::AddrParseError| error.to_string()),
                "{text}"
            );
        }
        assert_eq!(parse("fe80::1%eth0").map(|(_, zone)| zone), Ok(true));
    }

    #[test]
    fn invalid_addresses_have_gos_messages() {
        let rows = [
            ("", "unable to parse IP"),
            ("12", "unable to parse IP"),
            ("%a", "missing IPv6 address"),
            ("256.0.0.1", "IPv4 field has value >255"),
            ("01.2.3.4", "IPv4 field has octet with leading zero"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            (
                "1..2.3",
                "IPv4 field must have at least one digit (at \".2.3\")",
            ),
            ("1.2.3.a", "unexpected character (at \"a\")"),
            ("::1%", "zone must be a non-empty string"),
            ("1:2", "address string too short"),
            (
                "1:2:",
                "colon must be followed by more characters (at \":\")",
            ),
            (
                ":1",
                "each colon-separated field must have at least one digit (at \":1\")",
            ),
            (
                "::g",
                "each colon-separated field must have at least one digit (at \"g\")",
            ),
            (
                "12345::",
                "each group must have 4 or less digits (at \"12345::\")",
            ),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            (
                "1:2:3:4:5:6:7:8:9",
                "trailing garbage after address (at \"9\")",
            ),
            (
                "::1:2:3:4:5:6:7:8",
                "the :: must expand to at least one field of zeros",
            ),
        ];
        let zones = [
            (
                "::g%eth0",
                "each colon-separated field must have at least one digit (at \"g\")",
            ),
            (
                "12345::%a%b",
                "each group must have 4 or less digits (at \"12345::\")",
            ),
        ];
        for (text, why) in rows.into_iter().chain(zones) {
            let wanted = format!("ParseAddr({text:?}): {why}");
            assert_eq!(parse(text), Err(wanted));
        }
    }
}
