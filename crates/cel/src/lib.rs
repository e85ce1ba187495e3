//! Kubernetes' dialect of the Common Expression Language.
