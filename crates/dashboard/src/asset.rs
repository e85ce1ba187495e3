//! The style sheet and the script.

use fivespot_drawing::{html, style};

/// Keeps pages up to date: where the server says that something has changed, the part that
/// changes is fetched again. Pages work without it.
pub(crate) const SCRIPT: &str = include_str!("live.js");

/// The style sheet of all pages.
pub(crate) fn style() -> String {
    format!(
        "{}{}{}",
        html::SHEET,
        style::sheet(),
        include_str!("page.css")
    )
}
