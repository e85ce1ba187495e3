//! Users with a client certificate (k8s.io/apiserver/pkg/authentication/request/x509).

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

use super::der::{IA5, OBJECT_ID, PRINTABLE, SEQUENCE, SET, UTF8, read};
use crate::user::{AUTHENTICATED, User};

/// `id-at-commonName` (RFC 5280).
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// `id-at-organizationName`.
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// The user of a verified certificate: its common name, with its organizations as groups.
/// `None` if it has no common name.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    // The available certificate parser only returns the subject of trust anchors.
    let mut store = RootCertStore::empty();
    store.add(certificate.clone().into_owned()).ok()?;
    let subject = &store.roots.first()?.subject;
    let (name, mut groups) = names(subject.as_ref());
    let name = name.filter(|it| !it.is_empty())?;
    groups.push(AUTHENTICATED.to_owned());
    Some(User {
        name,
        groups,
        ..User::default()
    })
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
