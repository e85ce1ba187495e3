//! CertificateSigningRequests. Nobody signs them here but who writes their status; the certificate
//! plugins say who may approve and sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fivespot_admission::{FieldError, name};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, FieldSelector, FinalizerRule, NameRule, Write, column, text};
use crate::identity::signing_request::{SigningRequest, check_certificates};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};
use crate::table::human_duration;
use crate::user::User;

/// `certificatesigningrequests` of `certificates.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct CertificateSigningRequest;

const SIGNER: &str = "Requested signer for the request. It is a qualified name in the form: \
     `scope-hostname.io/name`. If empty, it will be defaulted:\n 1. If it's a kubelet client \
     certificate, it is assigned\n    \"kubernetes.io/kube-apiserver-client-kubelet\".\n 2. If \
     it's a kubelet serving certificate, it is assigned\n    \"kubernetes.io/kubelet-serving\".\n \
     3. Otherwise, it is assigned \"kubernetes.io/legacy-unknown\".\nDistribution of trust for \
     signers happens out of band. You can select on this field using `spec.signerName`.";
const DURATION: &str = "expirationSeconds is the requested duration of validity of the issued \
     certificate. The certificate signer may issue a certificate with a different validity \
     duration so a client must check the delta between the notBefore and and notAfter fields in \
     the issued certificate to determine the actual duration.\n\nThe v1.22+ in-tree \
     implementations of the well-known Kubernetes signers will honor this field as long as the \
     requested duration is not greater than the maximum duration they will honor per the \
     --cluster-signing-duration CLI flag to the Kubernetes controller manager.\n\nCertificate \
     signers may not honor this field for various reasons:\n\n  1. Old signer that is unaware of \
     the field (such as the in-tree\n     implementations prior to v1.22)\n  2. Signer whose \
     configured maximum is shorter than the requested duration\n  3. Signer whose configured \
     minimum is longer than the requested duration\n\nThe minimum valid value for \
     expirationSeconds is 600, i.e. 10 minutes.";

/// The signer of requests that named none, in versions of the kind that are gone.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
/// What a request may be approved or denied by; only `True` may be said of them and of `Failed`.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
/// In the order of the alphabet, as they are listed in errors.
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

impl BuiltinKind for CertificateSigningRequest {
    fn resource(&self) -> Resource {
        let (kind, plural) = ("CertificateSigningRequest", "certificatesigningrequests");
        Resource::new("certificates.k8s.io", "v1", kind, plural)
            .in_the_cluster()
            .with_short_names(&["csr"])
            .without_generation()
            .with_subresources(&[Subresource::Approval, Subresource::Status])
            .with_columns(vec![
                Column::age(),
                Column::new("SignerName", "string", SIGNER),
                Column::new("Requestor", "string", "Base64-encoded PKCS#10 CSR data"),
                Column::new("RequestedDuration", "string", DURATION),
                Column::new(
                    "Condition",
                    "string",
                    "Conditions applied to the request, such as approval or denial.",
                ),
            ])
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const SELECTORS: &[FieldSelector] = &[FieldSelector::new("spec.signerName")];
        SELECTORS
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Owned
    }

    fn prepare_create(&self, object: &mut Value) {
        meta::fields(object).insert("status".to_owned(), json!({}));
    }

    fn note_requester(&self, object: &mut Value, user: &User) {
        let spec = meta::field(meta::fields(object), "spec");
        for key in ["username", "uid", "groups", "extra"] {
            spec.shift_remove(key);
        }
        let mut note = |key: &str, value: Value, is_empty: bool| {
            if !is_empty {
                spec.insert(key.to_owned(), value);
            }
        };
        note("username", json!(user.name), user.name.is_empty());
        note("uid", json!(user.uid), user.uid.is_empty());
        note("groups", json!(user.groups), user.groups.is_empty());
        note("extra", json!(user.extra), user.extra.is_empty());
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        meta::copy_field(old, object, "spec");
    }

    fn reset_fields(&self, subresource: &str) -> Option<Vec<Vec<&'static str>>> {
        let status = match subresource {
            "status" => vec!["status", "conditions"],
            "approval" => vec!["status", "certificate"],
            _ => vec!["status"],
        };
        Some(vec![vec!["spec"], status])
    }

    fn prepare_subresource(
        &self,
        subresource: &str,
        object: &mut Value,
        old: &Value,
        now: &str,
    ) {
        if subresource == "approval" {
            let mut status = old["status"].clone();
            let fields = meta::fields(&mut status);
            match object["status"].get("conditions") {
                Some(said) => fields.insert("conditions".to_owned(), said.clone()),
                None => fields.shift_remove("conditions"),
            };
            meta::fields(object).insert("status".to_owned(), status);
        } else {
            for kind in DECISIONS {
                keep_decision(object, old, kind);
            }
        }
        note_times(object, old, now);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = errors(write);
        if let Some(old) = write.old {
            errors.extend(changes(write, old));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let seconds = spec["expirationSeconds"].as_i64();
        let duration =
            seconds.and_then(|it| now.checked_add(SignedDuration::from_secs(it)).ok());
        let duration = duration.map(|end| human_duration(now, end));
        let signer = text(spec, "signerName");
        vec![
            column::name(object),
            column::age(object, now),
            if signer.is_empty() { "<none>" } else { signer }.into(),
            column::string(&spec["username"]),
            duration.unwrap_or_else(|| "<none>".to_owned()).into(),
            state(object).into(),
        ]
    }
}

/// What has become of a request, for people.
fn state(object: &Value) -> String {
    let is = |kind: &str| conditions(object).iter().any(|it| it["type"] == kind);
    let decided = match (is("Denied"), is("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    };
    let failed = if is("Failed") { ",Failed" } else { "" };
    let certificate = text(&object["status"], "certificate");
    let issued = if certificate.is_empty() {
        ""
    } else {
        ",Issued"
    };
    format!("{decided}{failed}{issued}")
}

fn conditions(object: &Value) -> &[Value] {
    column::list(&object["status"]["conditions"])
}

fn of_type<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    let all = conditions(object).iter();
    all.filter(|it| it["type"] == kind).collect()
}

fn edit_conditions(object: &mut Value) -> &mut [Value] {
    let found = object["status"]["conditions"].as_array_mut();
    found.map(Vec::as_mut_slice).unwrap_or_default()
}

/// Keeps what a decision said, which a write of the status cannot change; where it adds or
/// removes one it is refused later.
fn keep_decision(object: &mut Value, old: &Value, kind: &str) {
    let before = of_type(old, kind);
    if before.len() != of_type(object, kind).len() || before.is_empty() {
        return;
    }
    let now = edit_conditions(object).iter_mut();
    for (condition, before) in now.filter(|it| it["type"] == kind).zip(before) {
        *condition = before.clone();
    }
}

/// Notes when conditions were updated and changed where that is not said.
fn note_times(object: &mut Value, old: &Value, now: &str) {
    if conditions(object).is_empty() {
        return;
    }
    let before = conditions(old);
    for condition in edit_conditions(object) {
        let same = before.iter().find(|it| {
            it["type"] == condition["type"]
                && it["status"] == condition["status"]
                && it["lastTransitionTime"].is_string()
        });
        let changed =
            same.map_or_else(|| now.into(), |it| it["lastTransitionTime"].clone());
        for (key, instant) in [
            ("lastUpdateTime", now.into()),
            ("lastTransitionTime", changed),
        ] {
            if condition[key].is_null() {
                meta::fields(condition).insert(key.to_owned(), instant);
            }
        }
    }
}

/// Bytes of a field in base64; what cannot be read was refused when it was decoded.
fn bytes(value: &Value) -> Vec<u8> {
    STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap_or_default()
}

/// The rules that hold of a request at any time; what was wrong before is let be.
fn errors(write: &Write<'_>) -> Errors {
    let mut errors = Vec::new();
    let spec = Field::of(write.object, "spec");
    let request = spec.child("request");
    let read = SigningRequest::read(&bytes(request.value));
    if let Err(why) = read.and_then(|it| it.check_signature()) {
        errors.push(request.invalid_text(why));
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
        let said = json!("<certificate data>");
        errors.push(FieldError::invalid("status.certificate", said, why));
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

/// The items that came before in a list.
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

/// Whether one condition comes twice.
fn has_repeated(conditions: &[Value]) -> bool {
    let types: Vec<_> = conditions.iter().map(|it| text(it, "type")).collect();
    let repeated = |(index, kind): (usize, &&str)| types[..index].contains(kind);
    types.iter().enumerate().any(repeated)
}

fn condition_errors(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let before = old.map(conditions).unwrap_or_default();
    let had = |kind: &str| before.iter().any(|it| text(it, "type") == kind);
    let both = DECISIONS.iter().all(|it| had(it));
    let status = Field::of(object, "status");
    let all = status.child("conditions");
    let mut seen: Vec<&str> = Vec::new();
    for condition in all.items() {
        let kind = condition.child("type");
        if kind.text().is_empty() && !had("") {
            errors.push(kind.required(""));
        }
        let said = condition.child("status");
        let known: &[&str] = if FINAL.contains(&kind.text()) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        if said.text().is_empty() {
            errors.push(said.required(""));
        } else if !known.contains(&said.text()) {
            errors.push(said.not_supported(known));
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

/// What an update may not change.
fn changes(write: &Write<'_>, old: &Value) -> Errors {
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
