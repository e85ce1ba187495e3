//! OpenAPI documents of the served resources, and checks of objects against their schemas.

pub(crate) mod definitions;
mod document;
mod documents;
pub(crate) mod format;
mod gnostic;
pub(crate) mod go_text;
pub(crate) mod go_type;
mod naming;
pub(crate) mod object_field;
mod operation;
pub(crate) mod schema;
pub(crate) mod shape;
pub(crate) mod strictness;
mod swagger;

use kubemu_admission::policy::KnownKind;

use crate::resource::Resource;

pub use documents::{Document, Documents};
pub use schema::Schema;
pub use strictness::{type_error, unknown_fields};

/// The built-in kind of a resource, for type checking of policies; `None` for a custom
/// resource.
pub(crate) fn known_kind(resource: &Resource) -> Option<KnownKind<'_>> {
    let schema = resource.schema.as_ref().filter(|_| !resource.custom)?;
    Some(KnownKind {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
        resource: &resource.plural,
        schema: schema.document(),
        find: definitions::find,
    })
}

#[cfg(test)]
mod tests;
