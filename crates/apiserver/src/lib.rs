//! A Kubernetes API server in a process, for development, tests and simulation.

pub mod builtin;
pub mod discovery;
pub mod openapi;
pub mod patch;
mod registry;
mod resource;
mod status;
pub mod table;

pub use registry::Registry;
pub use resource::{Column, GroupResource, Resource, Scale, Subresource, Verb};
pub use status::{Cause, Details, Reason, Status};
