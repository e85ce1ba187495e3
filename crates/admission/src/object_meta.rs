//! What every object's `metadata` has to keep.

use serde_json::Value;

use crate::FieldError;

/// How the name of a kind of object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower-case letters, digits, `-` and `.`, at most 253 characters: most kinds and all
    /// custom resources.
    DnsSubdomain,
    /// A single label of at most 63 characters: namespaces.
    DnsLabel,
    /// Anything that can be a segment of a URL path: RBAC objects.
    PathSegment,
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do: `metadata.namespace` has to be set.
    Namespaced,
    /// They do not: `metadata.namespace` must not be set.
    Cluster,
}

/// Checks `metadata` of an object about to be created; paths start at `metadata`.
///
/// `metadata` may be absent or null, which is as good as empty.
pub fn create(metadata: Option<&Value>, rule: NameRule, scope: Scope) -> Vec<FieldError> {
    let _ = (metadata, rule, scope);
    Vec::new()
}

/// Checks `metadata` of an object about to replace one that has `old`.
pub fn update(
    metadata: Option<&Value>,
    old: Option<&Value>,
    scope: Scope,
) -> Vec<FieldError> {
    let _ = (metadata, old, scope);
    Vec::new()
}
