//! Errors that are ignored on update of a definition if the old definition has them too. Older
//! servers have stored such definitions.

use serde_json::Value;

use super::budget;
use super::definition::{self, text};
use crate::{ErrorKind, FieldError, KubeVersion};

/// What an update may keep if the old definition has an error of the same kind.
const FAULTS: &[fn(&FieldError) -> bool] = &[
    non_atomic_set,
    map_key,
    unpruned_default,
    unknown_reviews,
    unknown_type,
];

fn non_atomic_set(error: &FieldError) -> bool {
    error.detail == "must be atomic as item of a list with x-kubernetes-list-type=set"
}

/// An optional or nullable key of a list map, or nullable items of such a list.
fn map_key(error: &FieldError) -> bool {
    let starts = [
        "this property is in x-kubernetes-list-map-keys, so it ",
        "cannot be nullable when x-kubernetes-list-type is ",
    ];
    starts.iter().any(|start| error.detail.starts_with(start))
}

fn unpruned_default(error: &FieldError) -> bool {
    error.path.ends_with(".default") && error.detail == "must not have unknown fields"
}

fn unknown_reviews(error: &FieldError) -> bool {
    error.path.ends_with(".conversionReviewVersions")
        && error.detail.starts_with("must include at least one of ")
}

fn unknown_type(error: &FieldError) -> bool {
    let field = error.path.rsplit('.').next();
    error.kind == ErrorKind::NotSupported && field == Some("type")
}

/// The errors that an update may have because the old definition has such errors.
#[derive(Clone, Debug, Default)]
pub(super) struct Tolerated(Vec<fn(&FieldError) -> bool>);

impl Tolerated {
    /// Those for an update of `old`.
    pub(super) fn of(old: &Value, version: KubeVersion) -> Self {
        let errors = definition::compile(old, None, version).err();
        let errors = errors.unwrap_or_default();
        let faults = FAULTS.iter().copied();
        Self(faults.filter(|it| errors.iter().any(it)).collect())
    }

    pub(super) fn has(&self, error: &FieldError) -> bool {
        self.0.iter().any(|is_fault| is_fault(error))
    }
}

/// Removes the errors about the cost and the number of parts that an update does not change.
pub(super) fn ignore_unchanged(errors: &mut Vec<FieldError>, crd: &Value, old: &Value) {
    errors.retain(|error| {
        let is_cost = budget::is_of_one_expression(error);
        let is_many =
            error.kind == ErrorKind::TooMany && error.path.ends_with(".selectableFields");
        !(is_cost && is_unchanged(error, (crd, old), "schema")
            || is_many && is_unchanged(error, (crd, old), "selectableFields"))
    });
}

/// Whether this part of the version that an error is about is unchanged. Errors of parts that
/// all versions share have no version in their path: then the first version is compared.
fn is_unchanged(error: &FieldError, (crd, old): (&Value, &Value), part: &str) -> bool {
    let inside = error.path.strip_prefix("spec.versions[");
    let at = inside.and_then(|it| it.split_once(']')?.0.parse().ok());
    let Some(version) = versions(crd).nth(at.unwrap_or(0)) else {
        return false;
    };
    let name = text(version, "name");
    let before = versions(old).find(|it| text(it, "name") == name);
    before.is_some_and(|before| version.get(part) == before.get(part))
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    let versions = crd.get("spec").and_then(|it| it.get("versions"));
    versions.and_then(Value::as_array).into_iter().flatten()
}
