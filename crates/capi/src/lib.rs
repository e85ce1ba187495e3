//! Reads and writes Cluster API objects, per contract version.
//!
//! Only this crate contains field paths of Cluster API objects. Reading returns plain, normalised
//! data ([`Machine`], [`Cluster`], [`Provider`]) that is the same for both contract versions.
//! Writing ([`MachineDraft`], [`MachinePatch`]) returns the JSON of the requested version, without
//! fields that are unset.
//!
//! - [`version`]: the contract versions and which one to use
//! - [`key`]: labels, annotations and finalizers
//! - [`object`]: the parts common to all objects: metadata, owners, references
//! - [`machine`], [`cluster`], [`provider`]: reading each kind
//! - [`draft`], [`patch`]: writing
//! - [`condition`], [`duration`]: the two value formats that differ between versions
//!
//! No client, no clock, no I/O.

pub mod cluster;
pub mod condition;
pub mod draft;
pub mod duration;
pub mod key;
mod line;
pub mod machine;
pub mod object;
pub mod patch;
pub mod provider;
pub mod version;

pub use cluster::Cluster;
pub use condition::{Condition, ConditionState};
pub use draft::MachineDraft;
pub use line::{is_active_character, one_line, one_line_within, shortened};
pub use machine::{Machine, NodeLink};
pub use object::{Meta, Owner, Reference};
pub use patch::MachinePatch;
pub use provider::Provider;
pub use version::Contract;

/// Why an object could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object lacks a field that every stored object has.
    #[error("{kind} has no {field}; read it from an API server, not from a manifest")]
    Missing {
        /// Kind of the object, or `object` if it has none.
        kind: String,
        /// Path of the field.
        field: &'static str,
    },
    /// The object has a version that this crate does not support.
    #[error("apiVersion is `{found}`, expected cluster.x-k8s.io/v1beta1 or v1beta2")]
    UnknownVersion {
        /// The `apiVersion` of the object.
        found: String,
    },
}
