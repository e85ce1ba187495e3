//! Kinds whose objects are posted and not stored: reviews and bindings.

use crate::resource::Resource;

/// Whether objects of the kind are only posted: reviews and bindings.
pub(crate) fn is_posted(resource: &Resource) -> bool {
    is_review(resource) || is_binding(resource)
}

/// Whether the kind is `Binding`, which assigns a pod to a node and is not stored.
pub(crate) fn is_binding(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "Binding"
}

/// Whether the kind is a review, which is evaluated and not stored.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authorization.k8s.io" | "authentication.k8s.io"
    )
}
