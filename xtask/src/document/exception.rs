//! Which examples no test uses, and why.

use super::read::Form;

/// An example, by its place: the text of the documents is not repeated here.
pub(super) struct Exception {
    pub(super) document: &'static str,
    pub(super) heading: &'static str,
    pub(super) form: Form,
    /// Its number among those of its form below the heading, from 1.
    pub(super) ordinal: usize,
    pub(super) reason: &'static str,
}

pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        document: "002",
        heading: "Note that the failurePolicy",
        form: Form::Block,
        ordinal: 1,
        reason: "A part is left out of it; the corpus sets `failurePolicy: Ignore` in a whole policy.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 1,
        reason: "Names a file that there is not; the tests of webhooks configure the plugin with others.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 2,
        reason: "The form is that of EventRateLimit, which a test reads; its file is the one above.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 3,
        reason: "Names certificates that there are not; tests of webhooks write a kubeconfig of their own.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 4,
        reason: "Names certificates that there are not; tests of webhooks write a kubeconfig of their own.",
    },
    Exception {
        document: "004",
        heading: "Request Payloads",
        form: Form::Block,
        ordinal: 1,
        reason: "The server sends such a request, which tests of webhooks read, with images of their own.",
    },
    Exception {
        document: "004",
        heading: "Request Payloads",
        form: Form::Block,
        ordinal: 2,
        reason: "A service of the tests of webhooks answers so, by a value and not as text.",
    },
    Exception {
        document: "004",
        heading: "Request Payloads",
        form: Form::Block,
        ordinal: 3,
        reason: "A service of the tests of webhooks answers so, by a value and not as text.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 5,
        reason: "Has placeholders for values; the page of plugins has it with a selector.",
    },
    Exception {
        document: "004",
        heading: "Configuration File Format",
        form: Form::Block,
        ordinal: 6,
        reason: "The form is that of EventRateLimit, which a test reads; its file is the one above.",
    },
];
