//! The course of one shutdown, drawn from top to bottom.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::fleet::zone_name;
use crate::length;
use crate::markup::{escape, px};
use crate::style;

/// The course of a shutdown.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The title.
    pub title: String,
    /// The time zone of the clock times.
    pub zone: TimeZone,
    /// Past and planned events, the earliest first.
    pub entries: Vec<Entry>,
}

/// One event of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time of the event.
    pub at: Timestamp,
    /// A sentence that describes it.
    pub text: String,
    /// Its meaning for the shutdown.
    pub mark: Mark,
}

/// The meaning of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The shutdown begins.
    Begin,
    /// A step was completed.
    Step,
    /// A step was refused or failed.
    Failure,
    /// The current time, while the shutdown is in progress.
    Now,
    /// The shutdown has ended.
    End,
    /// An event in the future.
    Planned,
}

impl Mark {
    /// The mark as one character, for text output.
    pub fn symbol(self) -> char {
        match self {
            Self::Begin => '┬',
            Self::Step => '├',
            Self::Failure => '!',
            Self::Now => '▸',
            Self::End => '┴',
            Self::Planned => '┊',
        }
    }

    /// The mark as one word: `begins`, `step`, `trouble`, `now`, `over`, `planned`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Begin => "begins",
            Self::Step => "step",
            Self::Failure => "trouble",
            Self::Now => "now",
            Self::End => "over",
            Self::Planned => "planned",
        }
    }
}

/// The most characters of a sentence in a picture.
const MAX_SENTENCE_CHARS: usize = 140;

/// The height of an entry.
const ROW: u32 = 26;

/// The width in pixels of the bar of durations.
const BAR_WIDTH: f64 = 700.0;

/// The shutdown as lines of text: the local time, the time since the first entry, and the sentence.
pub fn text(timeline: &Timeline) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} ({})", timeline.title, zone_name(&timeline.zone));
    for entry in &timeline.entries {
        let _ = writeln!(
            out,
            "  {}  {:>8}  {} {}",
            clock(timeline, entry.at),
            since(timeline, entry.at),
            entry.mark.symbol(),
            entry.text
        );
    }
    out
}

/// The picture as a self-contained SVG file.
pub fn svg(timeline: &Timeline) -> String {
    draw(timeline, &format!("<style>{}</style>", style::sheet())) + "\n"
}

/// The picture for a page that has [`style::sheet`].
pub fn svg_part(timeline: &Timeline) -> String {
    draw(timeline, "")
}

fn draw(timeline: &Timeline, style: &str) -> String {
    let top = 78;
    let rows = u32::try_from(timeline.entries.len())
        .unwrap_or(1_000)
        .min(1_000);
    let height = top + rows * ROW + 8;
    let longest = timeline
        .entries
        .iter()
        .map(|entry| entry.text.chars().count());
    let letters =
        u32::try_from(longest.max().unwrap_or(0).min(MAX_SENTENCE_CHARS)).unwrap_or(110);
    let width = (200 + letters * 7).max(760);
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="fivespot" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="timeline-title timeline-desc"><title id="timeline-title">{}</title><desc id="timeline-desc">{}</desc>{style}<rect class="bg" width="100%" height="100%"/><text class="ink title" x="12" y="22">{}<tspan class="soft small" dx="12">{}</tspan></text>"#,
        escape(&timeline.title),
        escape(&text(timeline).replace('\n', ". ")),
        escape(&timeline.title),
        escape(zone_name(&timeline.zone)),
    );
    durations(&mut out, timeline);
    let last = top + rows.saturating_sub(1) * ROW;
    let _ = write!(out, r#"<path class="box-line" d="M146 {top}V{last}"/>"#);
    for (entry, y) in timeline.entries.iter().zip((top..last + ROW).step_by(26)) {
        let _ = write!(
            out,
            r#"<g transform="translate(0,{y})"><title>{}</title><text class="ink small" x="12" y="4">{}</text><text class="soft small" x="132" y="4" text-anchor="end">{}</text>{}<text class="ink" x="162" y="4">{}</text></g>"#,
            entry.mark.word(),
            clock(timeline, entry.at),
            since(timeline, entry.at),
            shape(entry.mark),
            escape(&truncated(&entry.text)),
        );
    }
    out.push_str("</svg>");
    out
}

/// A sentence cut to the width of the picture. The page and [`text`] show it in full.
fn truncated(sentence: &str) -> String {
    if sentence.chars().count() <= MAX_SENTENCE_CHARS {
        return sentence.to_owned();
    }
    sentence
        .chars()
        .take(MAX_SENTENCE_CHARS - 1)
        .chain(['…'])
        .collect()
}

/// The shape of a mark on the line, different for each kind.
fn shape(mark: Mark) -> &'static str {
    match mark {
        Mark::Begin => r#"<circle class="k-window" cx="146" cy="0" r="6"/>"#,
        Mark::Step => r#"<circle class="box box-line" cx="146" cy="0" r="4.5"/>"#,
        Mark::Failure => r#"<path class="k-failed" d="M146 -8l8 14h-16z"/>"#,
        Mark::Now => r#"<path class="now" d="M140 -6l10 6l-10 6z"/>"#,
        Mark::End => r#"<rect class="k-running" x="140" y="-6" width="12" height="12"/>"#,
        Mark::Planned => r#"<path class="box box-line" d="M146 -7l7 7l-7 7l-7 -7z"/>"#,
    }
}

/// Draws a bar from the first to the last entry, with a mark at the time of each entry.
#[expect(clippy::cast_precision_loss, reason = "seconds of a shutdown")]
fn durations(out: &mut String, timeline: &Timeline) {
    let at = timeline.entries.iter().map(|entry| entry.at.as_second());
    let (Some(first), Some(last)) = (at.clone().min(), at.max()) else {
        return;
    };
    let seconds = (last - first).max(1) as f64;
    let x =
        |at: i64| 12.0 + (at - first).clamp(0, last - first) as f64 / seconds * BAR_WIDTH;
    let _ = write!(
        out,
        r#"<rect class="curve" x="12" y="40" width="{BAR_WIDTH}" height="8"/>"#
    );
    for entry in &timeline.entries {
        let x = x(entry.at.as_second());
        let class = match entry.mark {
            Mark::Failure => "k-failed",
            Mark::Planned => "k-leaving",
            Mark::Begin | Mark::Step | Mark::End => "k-running",
            Mark::Now => {
                let _ = write!(
                    out,
                    r#"<path class="now" d="M{} 30h8l-4 6z"/>"#,
                    px(x - 4.0)
                );
                continue;
            }
        };
        let _ = write!(
            out,
            r#"<rect class="{class}" x="{}" y="36" width="2" height="16"/>"#,
            px(x - 1.0)
        );
    }
    let total = SignedDuration::from_secs(last - first);
    let _ = write!(
        out,
        r#"<text class="soft small" x="12" y="63">0</text><text class="soft small" x="{}" y="63" text-anchor="end">{}</text>"#,
        12.0 + BAR_WIDTH,
        length(total)
    );
}

fn clock(timeline: &Timeline, at: Timestamp) -> String {
    timeline
        .zone
        .to_datetime(at)
        .strftime("%a %H:%M:%S")
        .to_string()
}

/// `+1m 2s` since the first entry.
fn since(timeline: &Timeline, at: Timestamp) -> String {
    let first = timeline.entries.first().map_or(at, |entry| entry.at);
    format!("+{}", length(at.duration_since(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shutdown() -> Timeline {
        let entry = |at: &str, mark, text: &str| Entry {
            at: at.parse().unwrap(),
            text: text.to_owned(),
            mark,
        };
        Timeline {
            title: "Last shutdown of default/<worker>".to_owned(),
            zone: TimeZone::get("America/New_York").unwrap(),
            entries: vec![
                entry(
                    "2026-03-06T23:00:00Z",
                    Mark::Begin,
                    "shutdown begins: the schedule has closed",
                ),
                entry("2026-03-06T23:00:01Z", Mark::Step, "cordoned Node/worker"),
                entry(
                    "2026-03-06T23:00:02Z",
                    Mark::Failure,
                    "the budget of shop-1 refuses",
                ),
                entry("2026-03-06T23:01:30Z", Mark::Now, "now: evicting 1 pod"),
                entry("2026-03-06T23:05:00Z", Mark::Planned, "deadline"),
            ],
        }
    }

    #[test]
    fn a_shutdown_is_described_line_by_line() {
        insta::assert_snapshot!(text(&shutdown()), @r"
        Last shutdown of default/<worker> (America/New_York)
          Fri 18:00:00       +0s  ┬ shutdown begins: the schedule has closed
          Fri 18:00:01       +1s  ├ cordoned Node/worker
          Fri 18:00:02       +2s  ! the budget of shop-1 refuses
          Fri 18:01:30   +1m 30s  ▸ now: evicting 1 pod
          Fri 18:05:00       +5m  ┊ deadline
        ");
    }

    #[test]
    fn the_picture_contains_all_entries_and_is_self_contained() {
        let drawn = svg(&shutdown());
        assert!(drawn.contains("default/&lt;worker&gt;") && !drawn.contains("<worker>"));
        for entry in shutdown().entries {
            assert!(drawn.contains(&entry.text), "{drawn}");
        }
        assert!(!svg_part(&shutdown()).contains("<style"));
    }

    #[test]
    fn a_long_sentence_is_cut_in_the_picture_and_complete_in_its_description() {
        let mut timeline = shutdown();
        let held =
            "now: evicting 2 pods; default/shop-0 is not evicted: Cannot evict pod";
        let long = format!("{held}{} at the end", " as it is".repeat(20));
        timeline.entries[3].text.clone_from(&long);
        let drawn = svg(&timeline);
        assert!(drawn.contains(&format!("{long}. ")), "{drawn}");
        assert!(
            drawn.contains(&format!(">{held}")) && drawn.contains("…</text>"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("at the end").count(), 1);
    }
}
