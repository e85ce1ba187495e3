//! OpenAPI v3 documents of what is served, and what the schemas say about a place.

pub(crate) mod definitions;
pub(crate) mod shape;
