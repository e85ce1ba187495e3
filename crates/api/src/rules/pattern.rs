//! The regular expressions of the rules. Each is written once, for its CEL expression and for the
//! same predicate in Rust.

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression that several rules have, as a literal.
macro_rules! pattern {
    (duration) => {
        "^[0-9]+[smh]$"
    };
    (days) => {
        concat!("^", pattern!(range of days), "(,", pattern!(range of days), ")*$")
    };
    (range of days) => {
        "(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?"
    };
    (hours) => {
        "^[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*$"
    };
    (hours of a day) => {
        concat!(
            "^([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?",
            "(,([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)*$"
        )
    };
    (cron) => {
        "^[^ ]+( +[^ ]+){4}$"
    };
    // A date that exists, `YYYY-MM-DD`.
    (date) => {
        concat!(
            "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])",
            "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
            "|([0-9]{2}(0[48]|[2468][048]|[13579][26])",
            "|([02468][048]|[13579][26])00)-02-29)"
        )
    };
    // An RFC 3339 time. Every part is within its bounds, so that CEL's `timestamp()` parses every
    // match of this millennium.
    (time) => {
        concat!(
            "^",
            pattern!(date),
            "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?",
            "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
        )
    };
    (kind) => {
        "^[A-Z][A-Za-z0-9]{0,62}$"
    };
    (object name) => {
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    };
    (label value) => {
        "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
    };
    // Kubernetes' qualified name, as of a label or a taint; the second one bounds the domain.
    (qualified name) => {
        concat!(
            "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
            "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    };
    (bounded domain) => {
        "^([^/]{1,253}/)?[^/]+$"
    };
    // What no taint may have: Kubernetes' own controllers set and remove these.
    (reserved taint) => {
        concat!(
            "^(5spot[.]finos[.]org|kubernetes[.]io",
            "|node[.]kubernetes[.]io|node-role[.]kubernetes[.]io)/"
        )
    };
}
pub(super) use pattern;

/// Whether a text matches a regular expression, which is compiled once.
macro_rules! is_match {
    ($text:expr, $pattern:expr) => {{
        static PATTERN: std::sync::LazyLock<Option<regex::bytes::Regex>> =
            std::sync::LazyLock::new(|| $crate::rules::pattern::compiled($pattern));
        PATTERN
            .as_ref()
            .is_some_and(|it| it.is_match($text.as_bytes()))
    }};
}
pub(super) use is_match;

/// Of bytes, which takes less memory. It makes no difference: whatever counts letters
/// allows ASCII only. `None` for a malformed expression, which no text matches then.
pub(super) fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

/// The requirement that a text matches a regular expression: always, if it matches another one, or
/// unless it is empty.
macro_rules! matching {
    (if $other:expr, $pattern:expr, $message:expr) => {
        Requirement::new(
            concat!(
                "!self.matches('",
                $other,
                "') || self.matches('",
                $pattern,
                "')"
            ),
            |node, _| {
                text(node, |text| {
                    !is_match!(text, $other) || is_match!(text, $pattern)
                })
            },
            $message,
        )
    };
    (unless empty, $pattern:expr, $message:expr) => {
        Requirement::new(
            concat!("self.size() == 0 || self.matches('", $pattern, "')"),
            |node, _| text(node, |text| text.is_empty() || is_match!(text, $pattern)),
            $message,
        )
    };
    ($pattern:expr, $message:expr) => {
        Requirement::new(
            concat!("self.matches('", $pattern, "')"),
            |node, _| text(node, |text| is_match!(text, $pattern)),
            $message,
        )
    };
}
pub(super) use matching;
