//! The input of a decision: the objects, where they are read, who owns them, and which facts
//! could not be read.

pub mod hosts;
pub mod location;
pub mod node;
pub(crate) mod owned;
pub(crate) mod provider;
pub mod state;
pub(crate) mod subject;
