//! The validation of certificate signing requests and of their updates
//! (pkg/apis/certificates/validation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::{DECISIONS, conditions, of_type};
use crate::identity::signing_request::{SigningRequest, check_certificates};
use crate::kind::field::{Errors, Field};
use crate::kind::{Write, column, text};

/// The default signer of removed API versions.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
/// These conditions must have status `True`.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
/// In alphabetical order, as in error messages.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The bytes of a base64 field; decoding has already rejected invalid base64.
fn bytes(value: &Value) -> Vec<u8> {
    STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap_or_default()
}

/// The validation errors of a request on create and update; values that were invalid before are
/// accepted.
pub(super) fn errors(write: &Write<'_>) -> Errors {
    let mut errors = Vec::new();
    let spec = Field::of(write.object, "spec");
    let request = spec.child("request");
    let read = SigningRequest::read(&bytes(request.value));
    if let Err(why) = read.and_then(|it| it.check_signature()) {
        errors.push(request.invalid(why));
    }
    usage_errors(&spec.child("usages"), write.old, &mut errors);
    let signer = spec.child("signerName");
    let was_legacy = write
        .old
        .is_some_and(|it| it["spec"]["signerName"] == LEGACY_SIGNER);
    if signer.text() == LEGACY_SIGNER && !was_legacy {
        let why = "the legacy signerName is not allowed via this API version";
        errors.push(signer.invalid(why));
    } else {
        signer_errors(&signer, &mut errors);
    }
    let seconds = spec.child("expirationSeconds");
    if seconds.number().is_some_and(|it| it < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(seconds.invalid(why));
    }
    condition_errors(write.object, write.old, &mut errors);
    let certificate = &write.object["status"]["certificate"];
    let before = write.old.map(|it| &it["status"]["certificate"]);
    let is_let_be = before
        .is_some_and(|it| it == certificate || check_certificates(&bytes(it)).is_err());
    if !is_let_be && let Err(why) = check_certificates(&bytes(certificate)) {
        let actual = json!("<certificate data>");
        errors.push(FieldError::invalid("status.certificate", actual, why));
    }
    errors
}

fn usage_errors(usages: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    if usages.len() == 0 {
        errors.push(usages.required(""));
    }
    let unknown = |it: &Field<'_>| !USAGES.contains(&it.text());
    let old = old.map(|it| Field::of(it, "spec").child("usages"));
    if !old
        .as_ref()
        .is_some_and(|it| it.items().any(|it| unknown(&it)))
    {
        let wrong = usages.items().filter(unknown);
        errors.extend(wrong.map(|it| it.not_supported(&USAGES)));
    }
    if old.as_ref().is_none_or(|it| repeated(it).next().is_none()) {
        errors.extend(repeated(usages).map(|it| it.duplicate()));
    }
}

/// The items that duplicate an earlier item of a list.
fn repeated<'a>(all: &Field<'a>) -> impl Iterator<Item = Field<'a>> + use<'a> {
    let values = column::list(all.value);
    let items = all.items().enumerate();
    items.filter_map(|(index, it)| values[..index].contains(it.value).then_some(it))
}

/// `ValidateSignerName` in pkg/apis/core/validation.
fn signer_errors(signer: &Field<'_>, errors: &mut Errors) {
    const DOMAIN: usize = 253;
    const WHOLE: usize = DOMAIN + 1 + DOMAIN + 63 + 1;
    if signer.text().is_empty() {
        errors.push(signer.required(""));
        return;
    }
    let segments: Vec<&str> = signer.text().split('/').collect();
    let [domain, path] = segments[..] else {
        errors.push(signer.invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
        return;
    };
    let at = &signer.path;
    if domain.len() > DOMAIN {
        errors.push(FieldError::too_long(at, DOMAIN as u64));
    }
    let wrong = |segment: &str, rule: fn(&str) -> Vec<String>| {
        let mut labels = segment.split('.').map(|it| (it, rule(it)));
        let (label, found) = labels.find(|(_, found)| !found.is_empty())?;
        let found = found.into_iter();
        let found = found.map(|it| {
            let why = format!("validating label {label:?}: {it}");
            FieldError::invalid(at, segment.into(), why)
        });
        Some(found.collect::<Vec<_>>())
    };
    errors.extend(wrong(domain, name::dns_label).into_iter().flatten());
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(at, domain.into(), why));
    }
    errors.extend(wrong(path, name::dns_subdomain).into_iter().flatten());
    if signer.text().len() > WHOLE {
        errors.push(FieldError::too_long(at, WHOLE as u64));
    }
}

/// Whether a condition type occurs twice.
fn has_repeated(conditions: &[Value]) -> bool {
    let types: Vec<_> = conditions.iter().map(|it| text(it, "type")).collect();
    let repeated = |(index, kind): (usize, &&str)| types[..index].contains(kind);
    types.iter().enumerate().any(repeated)
}

fn condition_errors(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let before = old.map(conditions).unwrap_or_default();
    let previous = |kind: &str| before.iter().any(|it| text(it, "type") == kind);
    let both = DECISIONS.iter().all(|it| previous(it));
    let status = Field::of(object, "status");
    let all = status.child("conditions");
    let mut seen: Vec<&str> = Vec::new();
    for condition in all.items() {
        let kind = condition.child("type");
        if kind.text().is_empty() && !previous("") {
            errors.push(kind.required(""));
        }
        let actual = condition.child("status");
        let known: &[&str] = if FINAL.contains(&kind.text()) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        if actual.text().is_empty() {
            errors.push(actual.required(""));
        } else if !known.contains(&actual.text()) {
            errors.push(actual.not_supported(known));
        }
        let other = DECISIONS.iter().find(|it| **it != kind.text());
        let is_decision = DECISIONS.contains(&kind.text());
        if !both && is_decision && other.is_some_and(|it| seen.contains(it)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&all.path, kind.value.clone(), why));
        }
        if seen.contains(&kind.text()) && !has_repeated(before) {
            errors.push(kind.duplicate());
        }
        seen.push(kind.text());
    }
}

/// The errors of changes that an update must not make.
pub(super) fn changes(write: &Write<'_>, old: &Value) -> Errors {
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: String| {
        errors.push(FieldError::forbidden(format!("status.{field}"), why));
    };
    let (object, at) = (write.object, "conditions");
    for kind in FINAL {
        if of_type(object, kind).len() < of_type(old, kind).len() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            forbid(at, why);
        }
    }
    for kind in DECISIONS.iter().filter(|_| write.subresource != "approval") {
        let (now, before) = (of_type(object, kind), of_type(old, kind));
        if now.len() > before.len() {
            forbid(
                at,
                format!("updates may not add a condition of type {kind:?}"),
            );
        } else if now.len() == before.len() && now != before {
            forbid(
                at,
                format!("updates may not modify a condition of type {kind:?}"),
            );
        }
    }
    let (now, before) = (
        text(&object["status"], "certificate"),
        text(&old["status"], "certificate"),
    );
    if now != before {
        if write.subresource != "status" {
            forbid(
                "certificate",
                "updates may not set certificate content".to_owned(),
            );
        } else if !before.is_empty() {
            let why = "updates may not modify existing certificate content";
            forbid("certificate", why.to_owned());
        }
    }
    errors
}
