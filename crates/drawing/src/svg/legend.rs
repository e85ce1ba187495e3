//! The legend of colours, patterns and marks.

use std::fmt::Write as _;

use super::{PREFIX, clock_changes, is_shown};
use crate::axis::Axis;
use crate::markup::px;
use crate::{Fleet, style};

/// The legend in lines of at most `width`, and its height.
pub(super) fn lines(fleet: &Fleet, width: f64) -> (String, u32) {
    const ITEM: f64 = 128.0;
    let mut out = String::new();
    let (mut x, mut y) = (0.0, 0_u32);
    for (mark, label) in marks(fleet) {
        if x + ITEM > width {
            (x, y) = (0.0, y + 20);
        }
        let _ = write!(
            out,
            r#"<g transform="translate({},{y})">{mark}<text class="ink small" x="22" y="13">{label}</text></g>"#,
            px(x)
        );
        x += ITEM;
    }
    (out, y + 20)
}

/// The entries of the legend: the shape, 16 by 16 pixels, and its label.
pub(crate) fn marks(fleet: &Fleet) -> Vec<(String, &'static str)> {
    let mut marks = Vec::new();
    for kind in fleet.kinds() {
        let attributes = style::fill(PREFIX, kind);
        let is_planned = kind.symbol().is_some();
        let shape = if is_planned {
            "M0 3h16v11h-16z"
        } else {
            "M0 7h16v4h-16z"
        };
        marks.push((format!(r#"<path{attributes} d="{shape}"/>"#), kind.label()));
    }
    let axis = Axis::of(fleet.from, fleet.to);
    let zones = fleet.rows.iter().map(|row| &row.zone).chain([&fleet.zone]);
    if zones
        .into_iter()
        .any(|zone| !clock_changes(axis, zone).is_empty())
    {
        let mark = r#"<path class="clock-mark" d="M4 8.5l4 -4.5l4 4.5l-4 4.5z"/>"#;
        marks.push((mark.to_owned(), "clock change"));
    }
    if fleet.now.is_some_and(|now| is_shown(axis, now)) {
        marks.push((r#"<path class="line-now" d="M8 2V15"/>"#.to_owned(), "now"));
    }
    marks
}
