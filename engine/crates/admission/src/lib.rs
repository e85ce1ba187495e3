#![doc = include_str!("../README.md")]
//!
//! Where the API server's order is random (iteration of Go maps), this crate uses the order of
//! the document.

mod correlate;
pub mod crd;
mod crd_rules;
pub mod device_selector;
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
pub use kubemu_cel::{Quantity, quantity_error};
pub use version::KubeVersion;
