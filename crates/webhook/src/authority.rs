//! Creates CAs and the certificates that they sign.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde::{Deserialize, Serialize};

/// How long a CA is valid.
pub(crate) const AUTHORITY_VALIDITY: SignedDuration =
    SignedDuration::from_hours(24 * 365);
/// How long a serving certificate is valid.
pub(crate) const SERVING_VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 30);
/// Certificates are valid from the day before they were created, for clients with clocks that are
/// behind.
const LEEWAY: SignedDuration = SignedDuration::from_hours(24);

/// A certificate with its key, both PEM, and when it was created and expires. Certificates expire
/// at midnight UTC.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) made: Timestamp,
    pub(crate) ends: Timestamp,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { made, ends, .. } = self;
        write!(f, "Pair({made} to {ends})")
    }
}

/// Creates a CA.
pub(crate) fn create_ca(now: Timestamp) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = authority_params(now)?;
    let ends = set_validity(&mut params, now, AUTHORITY_VALIDITY);
    Ok(Pair {
        certificate: params.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
        made: now,
        ends,
    })
}

/// Creates a certificate for `names`, signed by `authority`, which it does not outlive.
pub(crate) fn create_serving_certificate(
    authority: &Pair,
    names: &[String],
    now: Timestamp,
) -> Result<Pair, rcgen::Error> {
    let issuer = KeyPair::from_pem(&authority.key)?;
    let issuer = Issuer::new(authority_params(authority.made)?, issuer);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let name = "5spot-webhook";
    params.distinguished_name.push(DnType::CommonName, name);
    let remaining = authority.ends.duration_since(now);
    let ends = set_validity(&mut params, now, SERVING_VALIDITY.min(remaining));
    Ok(Pair {
        certificate: params.signed_by(&key, &issuer)?.pem(),
        key: key.serialize_pem(),
        made: now,
        ends,
    })
}

/// A CA is found by its subject, so that each must have its own.
fn authority_params(made: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let name = format!("5spot-webhook-ca {made}");
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// Limits the validity to whole days and returns when it ends.
fn set_validity(
    params: &mut CertificateParams,
    now: Timestamp,
    validity: SignedDuration,
) -> Timestamp {
    let day = |at: Timestamp| TimeZone::UTC.to_datetime(at).date();
    let at = |date: Date| {
        // The month and the day of a date always fit.
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
    };
    let begin = day(now.saturating_sub(LEEWAY).unwrap_or(Timestamp::MIN));
    let end = day(now.saturating_add(validity).unwrap_or(Timestamp::MAX));
    params.not_before = at(begin);
    params.not_after = at(end);
    let midnight = end.to_zoned(TimeZone::UTC).map(|it| it.timestamp());
    midnight.unwrap_or(now)
}
