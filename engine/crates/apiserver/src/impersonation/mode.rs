//! The ways to impersonate, and which one users have used last.

use std::collections::HashMap;

/// The maximum number of users whose last mode is kept.
const MAX_LAST_MODES: usize = 10_000;

/// A way to impersonate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The only one without a constraint.
    Legacy,
}

/// The modes in the order in which they are tried.
pub(super) const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

impl Mode {
    /// Its name in verbs; `None` for the mode without a constraint.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }
}

/// The last successful mode of each user name, which is tried first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastModes(pub(super) HashMap<String, Mode>);

impl LastModes {
    pub(super) fn record(&mut self, user: &str, mode: Mode) {
        if self.0.len() >= MAX_LAST_MODES && !self.0.contains_key(user) {
            self.0.clear();
        }
        self.0.insert(user.to_owned(), mode);
    }
}
