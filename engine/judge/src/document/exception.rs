//! The examples that no test uses, with the reasons.

use super::read::Form;

/// An example, identified by its position: the text of the documents is not repeated here.
pub(super) struct Exception {
    pub(super) document: &'static str,
    pub(super) heading: &'static str,
    pub(super) form: Form,
    /// Its number among the examples of its form below the heading, from 1.
    pub(super) ordinal: usize,
    pub(super) reason: &'static str,
}

pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        document: "002",
        heading: "Note that the failurePolicy",
        form: Form::Block,
        ordinal: 1,
        reason: "It is only a part of a policy; the corpus sets `failurePolicy: Ignore` in a whole policy.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 3,
        reason: "An incomplete kubeconfig, without its certificates; tests write a complete one.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 4,
        reason: "An incomplete kubeconfig, without its certificates; tests write a complete one.",
    },
    Exception {
        document: "004",
        heading: "Request Payloads",
        form: Form::Block,
        ordinal: 1,
        reason: "It is not valid JSON: a list in it has a key; tests of webhooks read such requests.",
    },
];
