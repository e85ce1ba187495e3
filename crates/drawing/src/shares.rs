//! Shares of a total as bars, for savings: the used part of the time that a machine could run.

use std::fmt::Write as _;

use crate::markup::{escape, px, shortened};

/// Horizontal bars, each a share of its own total.
#[derive(Clone, Debug)]
pub struct Shares {
    /// The title.
    pub title: String,
    /// The prefix of the ids of the picture, so that two pictures in one page have different ids.
    pub prefix: &'static str,
    /// The bars, from top to bottom.
    pub rows: Vec<Share>,
    /// The width in pixels that the page has for the picture. `None` if it is not known.
    pub width: Option<u32>,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Share {
    /// The name at the left.
    pub name: String,
    /// The used share of what a machine that is always on has, from 0 to 1: the length of the bar.
    pub part: f64,
    /// The wanted share, from 0 to 1: the position of a line. `None` if there is no line.
    pub line: Option<f64>,
    /// The value as text.
    pub text: String,
}

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 28;

/// The most characters of a text.
const MAX_TEXT_CHARS: usize = 34;

/// The height of a row.
const ROW: u32 = 26;

/// The width of the total in pixels: in a file, and at most in a wide page.
const BAR_WIDTH: f64 = 300.0;
const MAX_BAR_WIDTH: f64 = 2_000.0;

/// The width in pixels of the bar of the total.
fn bar_width(shares: &Shares, others: f64) -> f64 {
    let available = shares.width.map_or(0.0, |width| f64::from(width) - others);
    available.clamp(BAR_WIDTH, MAX_BAR_WIDTH)
}

/// The picture for a page that has [`style::sheet`](crate::style::sheet).
pub fn svg_part(shares: &Shares) -> String {
    let names = width(&shares.rows, MAX_NAME_CHARS, |row| &row.name);
    let texts = width(&shares.rows, MAX_TEXT_CHARS, |row| &row.text);
    let whole = bar_width(shares, names + texts + 20.0);
    let rows = u32::try_from(shares.rows.len()).unwrap_or(u32::MAX / (2 * ROW));
    let height = rows.saturating_mul(ROW) + ROW + 8;
    let prefix = shares.prefix;
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="fivespot" width="{w}" height="{height}" viewBox="0 0 {w} {height}" role="img" aria-labelledby="{prefix}title {prefix}desc"><title id="{prefix}title">{}</title><desc id="{prefix}desc">{}</desc>"#,
        escape(&shares.title),
        escape(&description(shares)),
        w = px(names + whole + texts + 20.0),
    );
    for (index, row) in (0..).zip(&shares.rows) {
        bar(&mut out, row, names, whole, index * ROW);
    }
    legend(&mut out, shares, rows.saturating_mul(ROW) + 12);
    out.push_str("</svg>");
    out
}

/// The width in pixels of the longest of the texts.
#[expect(clippy::cast_precision_loss, reason = "at most 34 characters")]
fn width(rows: &[Share], max_chars: usize, text: impl Fn(&Share) -> &str) -> f64 {
    let longest = rows
        .iter()
        .map(|row| text(row).chars().count().min(max_chars));
    longest.max().unwrap_or(0) as f64 * 7.0 + 8.0
}

fn bar(out: &mut String, row: &Share, left: f64, whole: f64, top: u32) {
    let share = |part: f64| whole * part.clamp(0.0, 1.0);
    let (middle, inner) = (top + 17, top + 5);
    let _ = write!(
        out,
        r#"<text class="ink" x="0" y="{middle}">{}</text><rect class="weekend" x="{x}" y="{inner}" width="{w}" height="16"/><rect class="k-window" x="{x}" y="{inner}" width="{}" height="16"/><rect class="box-line" fill="none" x="{x}" y="{inner}" width="{w}" height="16"/>"#,
        escape(&shortened(&row.name, MAX_NAME_CHARS)),
        px(share(row.part)),
        x = px(left),
        w = px(whole),
    );
    if let Some(line) = row.line {
        let _ = write!(
            out,
            r#"<rect class="k-running" x="{}" y="{}" width="2" height="20"/>"#,
            px(left + share(line) - 1.0),
            top + 3,
        );
    }
    let _ = write!(
        out,
        r#"<text class="ink" x="{}" y="{middle}">{}</text>"#,
        px(left + whole + 10.0),
        escape(&shortened(&row.text, MAX_TEXT_CHARS)),
    );
}

fn legend(out: &mut String, shares: &Shares, top: u32) {
    let (middle, y) = (top + 12, top + 2);
    let _ = write!(
        out,
        r#"<g aria-hidden="true"><rect class="k-window" x="0" y="{y}" width="14" height="12"/><text class="soft" x="20" y="{middle}">used</text><rect class="weekend box-line" x="90" y="{y}" width="14" height="12"/><text class="soft" x="110" y="{middle}">always on</text>"#,
    );
    if shares.rows.iter().any(|row| row.line.is_some()) {
        let _ = write!(
            out,
            r#"<rect class="k-running" x="200" y="{top}" width="2" height="16"/><text class="soft" x="210" y="{middle}">wanted</text>"#,
        );
    }
    out.push_str("</g>");
}

/// All bars as text.
fn description(shares: &Shares) -> String {
    let rows = shares.rows.iter().take(MAX_DESCRIBED);
    let rows: Vec<String> = rows
        .map(|row| format!("{}: {}", row.name, row.text))
        .collect();
    rows.join("; ")
}

/// The largest number of bars in the text. A table of the page has all of them.
const MAX_DESCRIBED: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> Shares {
        let row = |name: &str, part, line| Share {
            name: name.to_owned(),
            part,
            line,
            text: "100.0 of 744.0 h".to_owned(),
        };
        Shares {
            title: "Hours by team".to_owned(),
            prefix: "team-",
            width: None,
            rows: vec![row("a <b>", 0.5, Some(0.25)), row("c", 1.5, None)],
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_longer_than_the_whole() {
        let svg = svg_part(&shares());
        assert!(svg.contains(r#"width="150" height="16""#), "{svg}");
        assert_eq!(svg.matches(r#"class="k-window" x="#).count(), 3, "{svg}");
        assert!(!svg.contains(r#"width="450""#), "{svg}");
    }

    #[test]
    fn bars_fill_the_width_of_a_wide_page() {
        let wide = Shares {
            width: Some(1_200),
            ..shares()
        };
        let svg = svg_part(&wide);
        assert!(svg.contains(r#" width="1200" height="#), "{svg}");
        let narrow = Shares {
            width: Some(100),
            ..shares()
        };
        assert_eq!(svg_part(&narrow), svg_part(&shares()));
    }

    #[test]
    fn the_bars_are_described_as_text_and_untrusted_text_is_escaped() {
        let svg = svg_part(&shares());
        assert!(
            svg.contains("a &lt;b&gt;: 100.0 of 744.0 h; c: 100.0"),
            "{svg}"
        );
        assert!(!svg.contains("style="), "{svg}");
    }
}
