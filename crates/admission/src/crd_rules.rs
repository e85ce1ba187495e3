//! `x-kubernetes-validations`.
