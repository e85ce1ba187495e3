//! What is known before a decision: the objects, where they are looked for, whose they are, and
//! what could not be found out.

pub mod node;
pub mod place;
pub(crate) mod provider;
pub mod seen;
pub(crate) mod subject;
pub(crate) mod triple;
