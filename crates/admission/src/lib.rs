//! What a Kubernetes API server would answer to an object: structural schemas, CRD
//! validation rules, admission policies.
//!
//! The crate knows no kind of object in particular, no clock and no network. It gives the
//! verdict of a `kube-apiserver` of a chosen [`KubeVersion`] and the words in which that
//! server says it:
//!
//! - [`field`]: one error of one field, printed as Kubernetes prints it;
//! - [`schema`]: structural schemas: prune, default, validate;
//! - [`crd`]: a whole `CustomResourceDefinition`, and what it says to an object;
//! - [`policy`]: `ValidatingAdmissionPolicy` and its bindings;
//! - [`selector`]: label selectors of the `matchLabels`/`matchExpressions` form;
//! - [`object_meta`]: the rules every object's `metadata` has to keep.
//!
//! Where the server leaves an order to chance (it walks Go maps), this crate follows the
//! order of the document.

mod correlate;
pub mod crd;
mod crd_rules;
pub mod field;
mod format;
pub mod name;
pub mod object_meta;
pub mod policy;
mod quote;
pub mod schema;
pub mod selector;
pub mod version;

pub use field::{ErrorKind, FieldError};
pub use fivespot_cel::{Quantity, quantity_error};
pub use version::KubeVersion;
