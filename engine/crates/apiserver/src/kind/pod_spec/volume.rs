//! Volumes of a pod.

mod claim;
mod projected;
pub(in crate::kind) mod source;
pub(in crate::kind) mod storage_network;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Owner;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

pub(in crate::kind) use claim::errors as claim_errors;

/// The valid volumes, by name.
#[derive(Debug, Default)]
pub(super) struct Volumes<'a>(BTreeMap<&'a str, &'a Value>);

impl Volumes<'_> {
    /// Whether there is a volume with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether there is a persistent volume claim with this volume name.
    pub(super) fn is_claim(&self, name: &str) -> bool {
        let claims = ["persistentVolumeClaim", "ephemeral"];
        let found = self.0.get(name);
        found.is_some_and(|it| claims.iter().any(|claim| !it[claim].is_null()))
    }
}

/// Validates the volumes of a spec. Returns the valid ones by name.
pub(super) fn volumes<'a>(
    list: &Field<'a>,
    owner: Owner,
    errors: &mut Errors,
) -> Volumes<'a> {
    let mut volumes = Volumes::default();
    let mut names = BTreeSet::new();
    for volume in list.items() {
        let mut found = Errors::new();
        source::source(&volume, owner, &mut found);
        let name = volume.child("name");
        if name.text().is_empty() {
            found.push(name.required(""));
        } else {
            rule::dns_label(&name, &mut found);
        }
        if names.contains(name.text()) {
            found.push(name.duplicate());
        }
        if found.is_empty() {
            names.insert(name.text());
            volumes.0.insert(name.text(), volume.value);
        }
        errors.extend(found);
    }
    volumes
}
