//! ServiceCIDRs: the networks from which services get addresses. The server assigns addresses
//! from its own, which is the object `kubernetes`, whatever others there are.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, StatusMetadata, Write, column, rule, workload};
use crate::resource::{Column, Resource, Subresource};

/// `servicecidrs` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ServiceCidr;

/// The maximum number of networks: one for each IP family.
const MAX_NETWORKS: usize = 2;

const IMMUTABLE: &str = "field is immutable";

impl BuiltinKind for ServiceCidr {
    fn resource(&self) -> Resource {
        let of = "networking.v1.ServiceCIDRSpec";
        Resource::new("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs")
            .cluster_scoped()
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                column::described("CIDRs", "string", of, "cidrs"),
                Column::age(),
            ])
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::RESET
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.subresource == "status" {
            return Vec::new();
        }
        let networks = Field::of(write.object, "spec").child("cidrs");
        let mut errors = Errors::new();
        let Some(old) = write.old else {
            all(&networks, &mut errors);
            return errors;
        };
        let old = column::list(&old["spec"]["cidrs"]);
        let changed = networks
            .items()
            .zip(old)
            .filter(|(it, old)| it.value != *old);
        match (old.len(), networks.len()) {
            (before, after) if before == after => {
                errors.extend(changed.map(|(it, _)| it.invalid(IMMUTABLE)));
            }
            (1, 2) => {
                errors.extend(changed.map(|(it, _)| it.invalid(IMMUTABLE)));
                all(&networks, &mut errors);
            }
            _ => errors.push(networks.invalid(IMMUTABLE)),
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let networks = column::list(&object["spec"]["cidrs"]).iter();
        let networks: Vec<&str> = networks.filter_map(Value::as_str).collect();
        vec![
            column::name(object),
            networks.join(",").into(),
            column::age(object, now),
        ]
    }
}

fn all(networks: &Field<'_>, errors: &mut Errors) {
    if networks.len() == 0 {
        errors.push(networks.required("at least one CIDR required"));
        return;
    }
    if networks.len() > MAX_NETWORKS {
        let shown = json!({"CIDRs": networks.value});
        let why = "may only hold up to 2 values";
        errors.push(FieldError::invalid(&networks.path, shown, why));
        return;
    }
    let mut families = Vec::new();
    for network in networks.items() {
        if let Some(found) = rule::canonical_network(&network, errors) {
            families.push(found.address.is_ipv4());
        }
    }
    if matches!(families.as_slice(), [one, other] if one == other) {
        errors.push(networks.invalid(
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
             2001:db8::/64",
        ));
    }
}
