//! IPAddresses: who uses an address of a service network.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, NameRule, Write, column, go_struct, rule, text};
use crate::resource::Resource;

/// `ipaddresses` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct IpAddress;

impl BuiltinKind for IpAddress {
    fn resource(&self) -> Resource {
        let of = "networking.v1.IPAddressSpec";
        Resource::new("networking.k8s.io", "v1", "IPAddress", "ipaddresses")
            .cluster_scoped()
            .with_short_names(&["ip"])
            .without_generation()
            .with_columns(vec![column::described(
                "ParentRef",
                "string",
                of,
                "parentRef",
            )])
    }

    /// The name is an address, which [`validate`](Self::validate) checks.
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let metadata = Field::of(write.object, "metadata");
        rule::canonical_address(&metadata.child("name"), &mut errors);
        let parent = Field::of(write.object, "spec").child("parentRef");
        if parent.is_set() {
            reference(&parent, &mut errors);
        } else {
            errors.push(parent.required(""));
        }
        if write
            .old
            .is_some_and(|it| it["spec"]["parentRef"] != *parent.value)
        {
            let shown = json!({
                "Group": text(parent.value, "group"),
                "Resource": text(parent.value, "resource"),
                "Namespace": text(parent.value, "namespace"),
                "Name": text(parent.value, "name"),
            });
            let why = "field is immutable";
            errors.push(go_struct::invalid(&parent, &shown.to_string(), why));
        }
        errors
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let parent = &object["spec"]["parentRef"];
        let mut shown = text(parent, "resource").to_lowercase();
        for (separator, field) in [('.', "group"), ('/', "namespace")] {
            let part = text(parent, field);
            if !part.is_empty() {
                shown.push(separator);
                shown.push_str(part);
            }
        }
        let shown = if parent.is_object() {
            format!("{shown}/{}", text(parent, "name"))
        } else {
            "<none>".to_owned()
        };
        vec![column::name(object), shown.into()]
    }
}

/// Validates the reference to the object that uses the address. The group of a Service is empty.
fn reference(parent: &Field<'_>, errors: &mut Errors) {
    rule::text_if_set(&parent.child("group"), name::dns_subdomain, errors);
    for field in ["resource", "name"] {
        let field = parent.child(field);
        if field.text().is_empty() {
            errors.push(field.required(""));
        } else {
            rule::text(&field, name::path_segment, errors);
        }
    }
    rule::text_if_set(&parent.child("namespace"), name::path_segment, errors);
}
