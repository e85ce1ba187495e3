//! CertificateSigningRequests. No controller signs them here; a client writes the certificate into
//! the status. The certificate admission plugins decide who may approve and sign.

mod validation;

use jiff::{SignedDuration, Timestamp};
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::{BuiltinKind, FieldSelector, FinalizerRule, NameRule, Write, column, text};
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

/// The condition types that approve or deny a request.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

impl BuiltinKind for CertificateSigningRequest {
    fn resource(&self) -> Resource {
        let (kind, plural) = ("CertificateSigningRequest", "certificatesigningrequests");
        Resource::new("certificates.k8s.io", "v1", kind, plural)
            .cluster_scoped()
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

    fn record_requester(&self, object: &mut Value, user: &User) {
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
                Some(value) => fields.insert("conditions".to_owned(), value.clone()),
                None => fields.shift_remove("conditions"),
            };
            meta::fields(object).insert("status".to_owned(), status);
        } else {
            for kind in DECISIONS {
                restore_decision(object, old, kind);
            }
        }
        set_times(object, old, now);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = validation::errors(write);
        if let Some(old) = write.old {
            errors.extend(validation::changes(write, old));
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

/// The condition of a request, as a table shows it.
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

/// Restores the conditions of a decision, which a write of the status cannot change. If the write
/// adds or removes one, validation rejects it later.
fn restore_decision(object: &mut Value, old: &Value, kind: &str) {
    let before = of_type(old, kind);
    if before.len() != of_type(object, kind).len() || before.is_empty() {
        return;
    }
    let now = edit_conditions(object).iter_mut();
    for (condition, before) in now.filter(|it| it["type"] == kind).zip(before) {
        *condition = before.clone();
    }
}

/// Sets the update and transition times of conditions that lack them.
fn set_times(object: &mut Value, old: &Value, now: &str) {
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
