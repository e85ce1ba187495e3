//! What is known before a decision: the objects, where they are looked for, whose they are, and
//! what could not be found out.

pub mod location;
pub mod node;
pub(crate) mod owned;
pub(crate) mod provider;
pub mod state;
pub(crate) mod subject;
