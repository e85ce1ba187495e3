//! Users with a client certificate (k8s.io/apiserver/pkg/authentication/request/x509).

use rustls_pki_types::CertificateDer;

use super::der::{
    BOOLEAN, EXTENSIONS, IA5, INTEGER, OBJECT_ID, OCTET_STRING, PRINTABLE, SEQUENCE, SET,
    UTF8, read, tagged,
};
use crate::user::{AUTHENTICATED, User};

/// `id-at-commonName` (RFC 5280).
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// `id-at-organizationName`.
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// `id-ce-extKeyUsage`.
const EXTENDED_KEY_USAGE: [u8; 3] = [0x55, 0x1d, 0x25];
/// `anyExtendedKeyUsage`.
const ANY_USAGE: [u8; 4] = [0x55, 0x1d, 0x25, 0x00];
/// `id-kp-serverAuth`.
const SERVER_AUTH: [u8; 8] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// The user of a verified certificate: its common name, with its organizations as groups.
/// `None` if it has no common name.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (name, mut groups) = names(subject(certificate)?);
    let name = name.filter(|it| !it.is_empty())?;
    groups.push(AUTHENTICATED.to_owned());
    Some(User {
        name,
        groups,
        ..User::default()
    })
}

/// The contents of the subject of a certificate.
fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = tagged(certificate, SEQUENCE)?;
    let (fields, _) = tagged(certificate, SEQUENCE)?;
    let (first, _, after) = read(fields)?;
    // The serial number is the first field of a certificate without a version.
    let rest = if first == INTEGER {
        after
    } else {
        read(after)?.2
    };
    let (_, rest) = tagged(rest, SEQUENCE)?;
    let (_issuer, rest) = tagged(rest, SEQUENCE)?;
    let (_validity, rest) = tagged(rest, SEQUENCE)?;
    tagged(rest, SEQUENCE).map(|it| it.0)
}

/// Whether a certificate may be that of a server: its extended key usages, if it has any, contain
/// `serverAuth` or `anyExtendedKeyUsage` (RFC 5280, 4.2.1.12).
pub(crate) fn is_for_servers(certificate: &[u8]) -> bool {
    let Some(mut usages) = extension(certificate, &EXTENDED_KEY_USAGE) else {
        return true;
    };
    while let Some((OBJECT_ID, usage, rest)) = read(usages) {
        if *usage == SERVER_AUTH || *usage == ANY_USAGE {
            return true;
        }
        usages = rest;
    }
    false
}

/// The contents of the sequence in an extension; `None` if the certificate does not have it.
fn extension<'a>(certificate: &'a [u8], id: &[u8]) -> Option<&'a [u8]> {
    let (certificate, _) = tagged(certificate, SEQUENCE)?;
    let (mut fields, _) = tagged(certificate, SEQUENCE)?;
    let mut extensions = loop {
        let (tag, value, rest) = read(fields)?;
        if tag == EXTENSIONS {
            break tagged(value, SEQUENCE)?.0;
        }
        fields = rest;
    };
    while let Some((SEQUENCE, own, rest)) = read(extensions) {
        extensions = rest;
        let (found, mut value) = tagged(own, OBJECT_ID)?;
        if let Some((_, after)) = tagged(value, BOOLEAN) {
            // Whether it is critical.
            value = after;
        }
        if found == id {
            let (contents, _) = tagged(value, OCTET_STRING)?;
            return tagged(contents, SEQUENCE).map(|it| it.0);
        }
    }
    None
}

/// The common name (the last of several, as in Go) and the organizations of a subject, a
/// sequence of sets of pairs in DER.
pub(super) fn names(mut subject: &[u8]) -> (Option<String>, Vec<String>) {
    let (mut common, mut organizations) = (None, Vec::new());
    while let Some((SET, mut set, rest)) = read(subject) {
        subject = rest;
        while let Some((SEQUENCE, pair, rest)) = read(set) {
            set = rest;
            let Some((OBJECT_ID, id, value)) = read(pair) else {
                continue;
            };
            let Some((UTF8 | PRINTABLE | IA5, text, _)) = read(value) else {
                continue;
            };
            let Ok(text) = std::str::from_utf8(text) else {
                continue;
            };
            if *id == COMMON_NAME {
                common = Some(text.to_owned());
            } else if *id == ORGANIZATION {
                organizations.push(text.to_owned());
            }
        }
    }
    (common, organizations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = u8::try_from(contents.len()).unwrap();
        [&[tag, length], contents].concat()
    }

    fn name(id: &[u8], tag: u8, text: &str) -> Vec<u8> {
        let pair = [value(OBJECT_ID, id), value(tag, text.as_bytes())].concat();
        value(SET, &value(SEQUENCE, &pair))
    }

    #[test]
    fn every_organization_is_a_group() {
        let subject = [
            name(&ORGANIZATION, UTF8, "a"),
            name(&[0x55, 0x04, 0x06], PRINTABLE, "XX"),
            name(&ORGANIZATION, PRINTABLE, "b"),
            name(&COMMON_NAME, UTF8, "jane"),
        ];
        let expected = (
            Some("jane".to_owned()),
            vec!["a".to_owned(), "b".to_owned()],
        );
        assert_eq!(names(&subject.concat()), expected);
    }

    #[test]
    fn the_subject_is_found_with_and_without_a_version() {
        let (serial, empty) = (value(INTEGER, &[1]), value(SEQUENCE, &[]));
        let subject = name(&COMMON_NAME, UTF8, "jane");
        let fields = [
            serial,
            empty.clone(),
            empty.clone(),
            empty,
            value(SEQUENCE, &subject),
        ]
        .concat();
        let version = value(0xa0, &value(INTEGER, &[2]));
        for fields in [fields.clone(), [version, fields].concat()] {
            let certificate = value(SEQUENCE, &value(SEQUENCE, &fields));
            let found = user(&certificate.into()).unwrap();
            assert_eq!(found.name, "jane");
            assert_eq!(found.groups, [AUTHENTICATED]);
        }
    }

    #[test]
    fn a_truncated_subject_is_read_up_to_its_end() {
        let whole = [
            name(&ORGANIZATION, UTF8, "a"),
            name(&COMMON_NAME, UTF8, "x"),
        ]
        .concat();
        for length in 0..whole.len() {
            assert_eq!(names(&whole[..length]).0, None, "{length}");
        }
        assert_eq!(names(&[SET, 0x84, 1, 1, 1, 1]), (None, Vec::new()));
    }
}
