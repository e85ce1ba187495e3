//! ASN.1 values in DER (X.690), as far as certificates and requests for them need them: seven tags.
//! `x509-parser` would add eight crates for them.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const UTF8: u8 = 0x0c;
pub(super) const PRINTABLE: u8 = 0x13;
pub(super) const IA5: u8 = 0x16;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The tag of the extensions in a certificate.
pub(super) const EXTENSIONS: u8 = 0xa3;

/// The tag and the contents of the first value, and the bytes after it. `None` if it is
/// truncated or longer than 64 KiB.
pub(super) fn read(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((tag, value, rest))
}

/// The contents of the first value, if it has the tag, and the bytes after it.
pub(super) fn tagged(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, value, rest) = read(der)?;
    (found == tag).then_some((value, rest))
}
