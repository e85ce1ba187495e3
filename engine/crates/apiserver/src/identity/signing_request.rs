//! The content of a CertificateSigningRequest: a PKCS #10 certificate request (RFC 2986) in
//! PEM, and the certificates issued for it.

use kubemu_gostd::pem;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls_pki_types::CertificateDer;

use super::certificate;
use super::der::{self, BIT_STRING, SEQUENCE};

const REQUEST: &[u8] = b"CERTIFICATE REQUEST";
const CERTIFICATE: &[u8] = b"CERTIFICATE";

/// A parsed certificate request.
#[derive(Debug)]
pub(crate) struct SigningRequest {
    /// The signed bytes.
    signed: Vec<u8>,
    /// The algorithm of the public key: the contents of its sequence.
    key_algorithm: Vec<u8>,
    key: Vec<u8>,
    signature_algorithm: Vec<u8>,
    signature: Vec<u8>,
    /// The common name of the subject: the name of the user. Empty if absent.
    pub(crate) common_name: String,
    /// The organizations of the subject: the groups of the user.
    pub(crate) organizations: Vec<String>,
}

impl SigningRequest {
    /// Parses the first PEM block.
    ///
    /// # Errors
    /// Go's message if the block is not a certificate request; errors deeper inside the DER
    /// have less specific messages than in Go.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        match pem::decode(text) {
            Some((block, _)) if block.label == REQUEST => {
                of_der(&block.bytes).ok_or_else(|| unreadable(&block.bytes))
            }
            _ => Err("PEM block type must be CERTIFICATE REQUEST".to_owned()),
        }
    }

    /// Checks that the request is signed with its own key.
    ///
    /// # Errors
    /// Go's message if it is not, or if the algorithm is not supported.
    pub(crate) fn check_signature(&self) -> Result<(), String> {
        let known = default_provider().signature_verification_algorithms.all;
        let fitting = known.iter().find(|it| {
            it.public_key_alg_id().as_ref() == self.key_algorithm
                && it.signature_alg_id().as_ref() == self.signature_algorithm
        });
        let Some(algorithm) = fitting else {
            return Err(
                "x509: cannot verify signature: algorithm unimplemented".to_owned()
            );
        };
        let verified =
            algorithm.verify_signature(&self.key, &self.signed, &self.signature);
        verified.map_err(|_| failure(&self.key_algorithm).to_owned())
    }
}

/// Go's message for a signature that the key did not make.
fn failure(key_algorithm: &[u8]) -> &'static str {
    /// `rsaEncryption` and `id-Ed25519`, as object identifiers in DER.
    const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
    const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];
    if key_algorithm.starts_with(RSA) {
        "crypto/rsa: verification error"
    } else if key_algorithm == ED25519 {
        "x509: Ed25519 verification failure"
    } else {
        "x509: ECDSA verification failure"
    }
}

/// Parses a `CertificationRequest`; `None` if it is malformed.
fn of_der(der: &[u8]) -> Option<SigningRequest> {
    let (whole, rest) = der::tagged(der, SEQUENCE)?;
    if !rest.is_empty() {
        return None;
    }
    let (info, after) = der::tagged(whole, SEQUENCE)?;
    let signed = whole.get(..whole.len() - after.len())?.to_vec();
    let (signature_algorithm, after) = der::tagged(after, SEQUENCE)?;
    let (signature, _) = der::tagged(after, BIT_STRING)?;
    let (_version, info) = der::tagged(info, der::INTEGER)?;
    let (subject, info) = der::tagged(info, SEQUENCE)?;
    let (key_info, _) = der::tagged(info, SEQUENCE)?;
    let (key_algorithm, key) = der::tagged(key_info, SEQUENCE)?;
    let (key, _) = der::tagged(key, BIT_STRING)?;
    let (common_name, organizations) = certificate::names(subject);
    Some(SigningRequest {
        signed,
        key_algorithm: key_algorithm.to_vec(),
        key: whole_bytes(key)?,
        signature_algorithm: signature_algorithm.to_vec(),
        signature: whole_bytes(signature)?,
        common_name: common_name.unwrap_or_default(),
        organizations,
    })
}

/// Go's message for DER that is not a request: the tag found in place of that of a sequence.
fn unreadable(der: &[u8]) -> String {
    const SEQUENCE: u8 = 0x30;
    let syntax = || "asn1: syntax error".to_owned();
    let [tag, length, ..] = *der else {
        return syntax();
    };
    // Tags and lengths of several bytes are not distinguished.
    if tag == SEQUENCE || tag & 0x1f == 0x1f || length >= 0x80 {
        return syntax();
    }
    format!(
        "asn1: structure error: tags don't match (16 vs {{class:{} tag:{} length:{length} \
         isCompound:{}}}) {{optional:false explicit:false application:false private:false \
         defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} \
         certificateRequest @2",
        tag >> 6,
        tag & 0x1f,
        tag & 0x20 != 0
    )
}

/// The bytes of a bit string whose first byte states that no bits are unused.
fn whole_bytes(bits: &[u8]) -> Option<Vec<u8>> {
    Some(bits.strip_prefix(&[0])?.to_vec())
}

/// Checks that a text contains only PEM certificates. It may be empty.
///
/// # Errors
/// The first other content.
pub(crate) fn check_certificates(mut text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    while let Some((block, rest)) = pem::decode(text) {
        if block.label != CERTIFICATE {
            let label = String::from_utf8_lossy(&block.label);
            return Err(format!(
                "only CERTIFICATE PEM blocks are allowed, found {label:?}"
            ));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        let added =
            RootCertStore::empty().add(CertificateDer::from(block.bytes.as_slice()));
        added.map_err(|_| "x509: malformed certificate".to_owned())?;
        count += 1;
        text = rest;
    }
    if count == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SignatureAlgorithm};

    use super::*;

    fn request(algorithm: &'static SignatureAlgorithm, organization: &str) -> String {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
        params.serialize_request(&key).unwrap().pem().unwrap()
    }

    #[test]
    fn a_request_is_signed_with_its_own_key() {
        for (algorithm, words) in [
            (&rcgen::PKCS_ED25519, "x509: Ed25519 verification failure"),
            (
                &rcgen::PKCS_ECDSA_P256_SHA256,
                "x509: ECDSA verification failure",
            ),
        ] {
            let pem = request(algorithm, "team");
            let mut read = SigningRequest::read(pem.as_bytes()).unwrap();
            assert_eq!(read.organizations, ["team"]);
            assert_eq!(read.check_signature(), Ok(()));
            read.signature[9] ^= 1;
            assert_eq!(read.check_signature(), Err(words.to_owned()));
        }
    }

    #[test]
    fn a_truncated_request_is_rejected() {
        let pem = request(&rcgen::PKCS_ED25519, "team");
        let (block, _) = pem::decode(pem.as_bytes()).unwrap();
        for length in 0..block.bytes.len() {
            assert!(of_der(&block.bytes[..length]).is_none(), "{length}");
        }
        let refused = SigningRequest::read(b"words").unwrap_err();
        assert_eq!(refused, "PEM block type must be CERTIFICATE REQUEST");
    }
}
