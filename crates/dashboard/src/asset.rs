//! The style sheet and the script.

use fivespot_drawing::{html, style};

/// The script that keeps pages up to date. When the server sends an event, the script fetches the
/// part that changes again. Pages work without it.
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
