//! The `format` keyword of schemas: the supported formats and their validation.

mod email;
mod net;
mod number;
mod time;

use std::sync::LazyLock;

use regex::Regex;

use crate::{KubeVersion, name};

/// String formats that every version validates, without hyphens, as Kubernetes compares them.
const ALWAYS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

/// String formats that are validated from 1.34 on.
const SINCE_34: &[&str] = &["k8sshortname", "k8slongname"];

fn normal(format: &str) -> String {
    format.replace('-', "")
}

/// Whether this version validates the format in a schema of type `kind`; others are ignored.
pub(crate) fn is_checked(
    kind: &str,
    int_or_string: bool,
    format: &str,
    version: KubeVersion,
) -> bool {
    match kind {
        _ if int_or_string => is_string_format(format, version),
        "" | "string" => is_string_format(format, version),
        "integer" => version.is_at_least(36) && matches!(format, "int32" | "int64"),
        "number" => version.is_at_least(36) && matches!(format, "float" | "double"),
        _ => false,
    }
}

fn is_string_format(format: &str, version: KubeVersion) -> bool {
    let normal = normal(format);
    let normal = normal.as_str();
    ALWAYS.contains(&normal) || version.is_at_least(34) && SINCE_34.contains(&normal)
}

/// Whether `format` is a format of strings.
pub(crate) fn is_known(format: &str) -> bool {
    !format.is_empty() && is_string_format(format, KubeVersion::NEWEST)
}

static UUID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}$").ok()
});

/// Whether `text` conforms to a known format; every text conforms to an unknown one.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match normal(format).as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "uri" => kubemu_gostd::url::is_request_uri(text),
        "email" => email::is_email(text),
        "hostname" => net::is_hostname(text),
        "ipv4" => net::is_ip(text) && text.contains('.'),
        "ipv6" => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => net::is_cidr(text),
        "mac" => net::is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "isbn" => number::is_isbn10(text) || number::is_isbn13(text),
        "isbn10" => number::is_isbn10(text),
        "isbn13" => number::is_isbn13(text),
        "creditcard" => number::is_credit_card(text),
        "ssn" => number::is_ssn(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "rgbcolor" => number::is_rgb_color(text),
        "byte" => is_base64(text),
        "date" => time::is_date(text),
        "duration" => kubemu_cel::read_duration(text).is_ok(),
        "datetime" => time::is_date_time(text),
        "k8sshortname" => name::dns_label(text).is_empty(),
        "k8slongname" => name::dns_subdomain(text).is_empty(),
        _ => true,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let Some(captures) = UUID.as_ref().and_then(|uuid| uuid.captures(text)) else {
        return false;
    };
    let digit = |at: usize| captures.get(at).and_then(|it| it.as_str().bytes().next());
    let is_variant = matches!(digit(2), Some(b'8' | b'9' | b'a' | b'b' | b'A' | b'B'));
    version.is_none_or(|version| {
        digit(1) == Some(version) && (version == b'3' || is_variant)
    })
}

/// Base64 with padding, without line breaks.
fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    let in_alphabet =
        |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && data.bytes().all(in_alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_valid_and_rejects_invalid_texts() {
        let rows = [
            ("uri", "https://example.com/a?b", "example.com"),
            ("email", "Jane <jane@example.com>", "jane@"),
            ("hostname", "example.com", "-a"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fd00::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:00:5e:00:53:01", "00:00:5e"),
            (
                "uuid4",
                "a8098c1a-f86e-41da-bd1a-00112444be1e",
                "a8098c1a-f86e-11da-bd1a-00112444be1e",
            ),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "0321751043", "0321751044"),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
            ("ssn", "078-05-1120", "078-05-112"),
            ("hexcolor", "#FFFfff", "#FFFF"),
            ("rgbcolor", "rgb(255, 0,10)", "rgb(256,0,0)"),
            ("byte", "aGVsbG8=", "aGVsbG8"),
            ("date", "2024-02-29", "2023-02-29"),
            (
                "date-time",
                "2014-12-15T19:30:20.000Z",
                "2014-12-15 19:30:20Z",
            ),
            ("duration", "1h15m", "five minutes"),
            ("k8s-short-name", "my-name", "my.name"),
            ("k8s-long-name", "my.name", "my..name"),
        ];
        for (format, good, bad) in rows {
            assert!(matches(format, good), "{format} {good}");
            assert!(!matches(format, bad), "{format} {bad}");
        }
    }

    #[test]
    fn names_are_validated_from_1_34_and_number_formats_from_1_36() {
        let (old, new) = (KubeVersion::OLDEST, KubeVersion::NEWEST);
        assert!(!is_checked("string", false, "k8s-short-name", old));
        assert!(is_checked("string", false, "k8s-short-name", new));
        assert!(!is_checked("integer", false, "int32", old));
        assert!(is_checked("integer", false, "int32", new));
        assert!(!is_checked("string", false, "int32", new));
        assert!(is_checked("", true, "date-time", old));
    }
}
