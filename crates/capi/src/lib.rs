//! How to read and write Cluster API objects, per contract version.
//!
//! Every path into a Cluster API object stands in this crate and nowhere else. Reading gives
//! plain, normalised data ([`Machine`], [`Cluster`], [`Provider`]) that is the same whichever
//! version the object came in; writing ([`MachineDraft`], [`MachinePatch`]) gives the JSON that
//! the asked version wants, with nothing in it that means "unset".
//!
//! - [`version`]: the contract versions and which one to use
//! - [`key`]: labels, annotations and finalizers
//! - [`object`]: what all objects have: metadata, owners, references
//! - [`machine`], [`cluster`], [`provider`]: what is read of each kind
//! - [`draft`], [`patch`]: what is written
//! - [`condition`], [`duration`]: the two value forms that differ between versions
//!
//! Pure: no client, no clock, no I/O.

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
pub use condition::{Condition, Truth};
pub use draft::MachineDraft;
pub use line::{one_line, one_line_within, shortened};
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
        /// Kind of the object, or `object` where it does not say.
        kind: String,
        /// Path of the field.
        field: &'static str,
    },
    /// The object is of a version that this crate does not know.
    #[error("apiVersion is `{found}`, expected cluster.x-k8s.io/v1beta1 or v1beta2")]
    UnknownVersion {
        /// What the object says.
        found: String,
    },
}
