//! Volumes of storage area networks: iSCSI and Fibre Channel.

use kubemu_admission::FieldError;

use super::source::required;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates an iSCSI disk.
pub(super) fn iscsi(source: &Field<'_>, errors: &mut Errors) {
    required(source, &["targetPortal"], errors);
    let name = source.child("iqn");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if !has_kind_of_iscsi_name(name.text()) {
        let why = "must be valid format starting with iqn, eui, or naa";
        errors.push(name.invalid(why));
    } else {
        iscsi_name(&name, errors);
    }
    iscsi_session(source, errors);
    initiator(source, errors);
}

/// Validates an iSCSI disk of the persistent volume with the name `volume`.
pub(in crate::kind) fn persistent_iscsi(
    source: &Field<'_>,
    volume: &str,
    errors: &mut Errors,
) {
    required(source, &["targetPortal"], errors);
    let portal = source.child("targetPortal").text();
    if source.child("initiatorName").is_set() && volume.len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                   characters if iscsi.initiatorName is specified.";
        let at = source.path_of("targetportal");
        errors.push(FieldError::invalid(at, portal.into(), why));
    }
    let name = source.child("iqn");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        iscsi_name(&name, errors);
    }
    iscsi_session(source, errors);
    let secret = source.child("secretRef");
    if secret.is_set() {
        required(&secret, &["name"], errors);
    }
    initiator(source, errors);
}

fn iscsi_session(source: &Field<'_>, errors: &mut Errors) {
    rule::between(&source.child("lun"), 0..=255, errors);
    let checks = ["chapAuthDiscovery", "chapAuthSession"];
    let secret = source.child("secretRef");
    if checks.iter().any(|it| source.child(it).is_true()) && !secret.is_set() {
        errors.push(secret.required(""));
    }
}

/// Validates the initiator name.
fn initiator(source: &Field<'_>, errors: &mut Errors) {
    let name = source.child("initiatorName");
    if !name.is_set() {
        return;
    }
    let name = name.at(source.path_of("initiatorname"));
    if has_kind_of_iscsi_name(name.text()) {
        iscsi_name(&name, errors);
    } else {
        let why = "must be valid format starting with iqn, eui, or naa";
        errors.push(name.invalid(why));
    }
}

fn has_kind_of_iscsi_name(text: &str) -> bool {
    ["iqn", "eui", "naa"].iter().any(|it| text.starts_with(it))
}

fn iscsi_name(name: &Field<'_>, errors: &mut Errors) {
    if !is_iscsi_name(name.text()) {
        errors.push(name.invalid("must be valid format"));
    }
}

/// Whether a name has one of the three forms of RFC 3721, as in the regular expressions of
/// Kubernetes: any character may follow `eui` and `naa`, and `iqn.` may have a prefix.
fn is_iscsi_name(text: &str) -> bool {
    let of_digits = |kind: &str, count: usize| {
        let rest = text.strip_prefix(kind)?;
        let rest = rest.strip_prefix(|it: char| it != '\n')?;
        let is_whole = rest.len() == count;
        Some(is_whole && rest.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    if text.starts_with("iqn") {
        return text.match_indices("iqn.").any(|(at, start)| {
            is_qualified(text.get(at + start.len()..).unwrap_or_default())
        });
    }
    let found = of_digits("eui", 16).or_else(|| of_digits("naa", 32));
    found.unwrap_or_default()
}

/// Whether the part after `iqn.` is valid: a month, a domain, and a name that the domain's owner
/// chose.
fn is_qualified(text: &str) -> bool {
    let Some((date, rest)) = text.split_at_checked(7) else {
        return false;
    };
    let is_month = date.bytes().enumerate().all(|(at, it)| {
        if at == 4 {
            it == b'-'
        } else {
            it.is_ascii_digit()
        }
    });
    let Some((domain, name)) = rest.strip_prefix('.').and_then(|it| it.split_once(':'))
    else {
        return false;
    };
    let is_of_domain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'.';
    let is_barred = |it: char| ",;*&$|".contains(it) || it.is_ascii_whitespace();
    is_month
        && !domain.is_empty()
        && domain.bytes().all(is_of_domain)
        && !name.is_empty()
        && !name.contains(is_barred)
}

/// Validates a Fibre Channel volume.
pub(in crate::kind) fn fibre_channel(source: &Field<'_>, errors: &mut Errors) {
    let (targets, ids) = (source.child("targetWWNs"), source.child("wwids"));
    match (targets.len(), ids.len()) {
        (0, 0) => {
            let why = "must specify either targetWWNs or wwids, but not both";
            errors.push(targets.required(why));
        }
        (1.., 1..) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(targets.invalid(why));
        }
        _ => {}
    }
    let unit = source.child("lun");
    if targets.len() == 0 {
        return;
    }
    if unit.is_set() {
        rule::between(&unit, 0..=255, errors);
    } else {
        errors.push(unit.required("lun is required if targetWWNs is specified"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn errors(check: impl Fn(&Field<'_>, &mut Errors), source: Value) -> Vec<String> {
        let mut errors = Errors::new();
        let object = json!({ "source": source });
        check(&Field::of(&object, "source"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_iscsi_name_has_one_of_three_forms() {
        let hex = "0123456789abcdef";
        for name in [
            "iqn.2026-01.example.com:disk",
            "iqn.2026-01.a-b.c:x:y",
            &format!("eui.{hex}"),
            &format!("naa.{hex}{hex}"),
        ] {
            assert!(is_iscsi_name(name), "{name}");
        }
        for name in [
            "iqn",
            "iqn.2026-1.example.com:disk",
            "iqn.2026-01.example.com",
            "iqn.2026-01.example.com:",
            "iqn.2026-01.example.com:a b",
            "iqn.2026-01.a_b:x",
            "eui.0123",
            "naa.0123",
            "nqn.2026-01.example.com:disk",
        ] {
            assert!(!is_iscsi_name(name), "{name}");
        }
    }

    #[test]
    fn all_fields_of_an_iscsi_persistent_volume_are_validated() {
        let check = |source: &Field<'_>, errors: &mut Errors| {
            persistent_iscsi(source, "v", errors);
        };
        let wrong = json!({"targetPortal": "", "iqn": "x", "lun": 300,
            "chapAuthSession": true, "initiatorName": "y"});
        let expected = [
            "source.targetPortal: Required value",
            "source.iqn: Invalid value: \"x\": must be valid format",
            "source.lun: Invalid value: 300: must be between 0 and 255, inclusive",
            "source.secretRef: Required value",
            "source.initiatorname: Invalid value: \"y\": must be valid format starting with \
             iqn, eui, or naa",
        ];
        assert_eq!(errors(check, wrong), expected);
        let portal = "a".repeat(63);
        let long = json!({"targetPortal": portal, "iqn": "iqn.2026-01.a:b",
            "initiatorName": "iqn.2026-01.a:b", "secretRef": {}});
        let found = errors(check, long);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("source.targetportal: Invalid value"));
        assert_eq!(found[1], "source.secretRef.name: Required value");
    }

    #[test]
    fn fibre_channel_requires_targets_or_wwids() {
        let found = |source| errors(fibre_channel, source);
        let either = "must specify either targetWWNs or wwids, but not both";
        let none = format!("source.targetWWNs: Required value: {either}");
        assert_eq!(found(json!({})), [none]);
        assert_eq!(found(json!({"wwids": ["a"]})), [""; 0]);
        assert_eq!(found(json!({"targetWWNs": ["a"], "lun": 1})), [""; 0]);
        let both = found(json!({"targetWWNs": ["a"], "wwids": ["b"]}));
        assert_eq!(both.len(), 2, "{both:?}");
    }
}
