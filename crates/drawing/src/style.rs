//! Colours and patterns.
//!
//! Every rule has its values written out instead of custom properties, so that programs other than
//! browsers can read an SVG file too. The hues are those of Okabe and Ito, darkened to a contrast
//! of at least 3 to 1 against a white background. Each has its own pattern for black and white.

use std::fmt::Write as _;

use crate::Kind;

/// A rule: selector, property, value on a light and on a dark background.
type Rule = (&'static str, &'static str, &'static str, &'static str);

const RULES: &[Rule] = &[
    (".bg", "fill", "#ffffff", "#14181d"),
    (".ink", "fill", "#1b2026", "#e8ecf1"),
    (".soft", "fill", "#4f5964", "#a9b4c0"),
    (".weekend", "fill", "#f0f2f5", "#1d232a"),
    (".band", "fill", "#f7f8fa", "#181d23"),
    (".line-day", "stroke", "#8d97a3", "#5b6672"),
    (".line-hour", "stroke", "#e2e6ea", "#272e36"),
    (".line-now", "stroke", "#b3123c", "#ff7d9c"),
    (".now", "fill", "#b3123c", "#ff7d9c"),
    (".clock", "stroke", "#6b4fbb", "#b9a5ff"),
    (".clock-mark", "fill", "#6b4fbb", "#b9a5ff"),
    (".curve", "fill", "#c3daea", "#1f4661"),
    (".curve-line", "stroke", "#0a5f97", "#6cb8ec"),
    (".box", "fill", "#ffffff", "#1d232a"),
    (".box-line", "stroke", "#4f5964", "#a9b4c0"),
    (".k-window", "fill", "#0a6aa8", "#56aee6"),
    (".k-xrun", "fill", "#00815e", "#35c79c"),
    (".k-xstop", "fill", "#96600a", "#e6ad3f"),
    (".k-orun", "fill", "#93337d", "#e19acb"),
    (".k-ostop", "fill", "#b8410a", "#ff9364"),
    (".k-hold", "fill", "#545d68", "#b4bdc7"),
    (".k-starting", "fill", "#00815e", "#35c79c"),
    (".k-running", "fill", "#1b2026", "#e8ecf1"),
    (".k-leaving", "fill", "#96600a", "#e6ad3f"),
    (".k-failed", "fill", "#b3123c", "#ff7d9c"),
];

/// The rules that do not depend on the background.
const FIXED: &str = "\
.fivespot{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:12px}
.fivespot .small{font-size:10.5px}
.fivespot .strong{font-weight:600}
.fivespot .title{font-size:15px;font-weight:600}
.fivespot .title .small{font-size:11px;font-weight:400}
.fivespot .line-now{stroke-width:1.5}
.fivespot .clock{stroke-width:1;stroke-dasharray:2 2}
.fivespot .curve-line{fill:none;stroke-width:1.3}
.fivespot .box-line{stroke-width:1.2}
.fivespot .edge{stroke-width:.7}
";

/// The style sheet of all pictures: light, dark if the reader prefers it, light in print.
pub fn sheet() -> String {
    let light = rules(|rule| rule.2);
    let dark = rules(|rule| rule.3);
    format!(
        "{FIXED}{light}@media (prefers-color-scheme:dark){{{dark}}}\n\
         @media print{{{light}.fivespot{{print-color-adjust:exact}}}}\n"
    )
}

fn rules(value: impl Fn(&Rule) -> &'static str) -> String {
    let mut all = String::new();
    for rule in RULES {
        let _ = writeln!(all, ".fivespot {}{{{}:{}}}", rule.0, rule.1, value(rule));
        // The edge of a shape of a kind has its colour too.
        if let Some(kind) = rule.0.strip_prefix(".k-") {
            let _ = writeln!(all, ".fivespot .s-{kind}{{stroke:{}}}", value(rule));
        }
    }
    all
}

/// The patterns of some kinds as `<defs>`. `prefix` makes the ids of two pictures in one page
/// different.
pub(crate) fn patterns(prefix: &str, kinds: &[Kind]) -> String {
    let mut defs = String::from("<defs>");
    for kind in kinds {
        let class = kind.class();
        let Some((size, turn, shapes)) = pattern(*kind) else {
            continue;
        };
        let _ = write!(
            defs,
            r#"<pattern id="{prefix}{class}" width="{size}" height="{size}" patternUnits="userSpaceOnUse"{turn}><g class="k-{class}">{shapes}</g></pattern>"#
        );
    }
    defs.push_str("</defs>");
    defs
}

/// The size of a tile, its rotation, and its shapes. `None` if the kind has a solid fill.
fn pattern(kind: Kind) -> Option<(u8, &'static str, &'static str)> {
    const ROTATED: &str = r#" patternTransform="rotate(45)""#;
    const STRIPE: &str = r#"<rect width="3" height="5"/>"#;
    const DOT: &str = r#"<circle cx="2.5" cy="2.5" r="1.1"/>"#;
    const CROSS: &str = r#"<rect width="1.3" height="5"/><rect width="5" height="1.3"/>"#;
    const LEVEL: &str = r#"<rect width="4" height="1.6"/>"#;
    const UPRIGHT: &str = r#"<rect width="2.4" height="4"/>"#;
    match kind {
        Kind::Window | Kind::Running | Kind::Failed => None,
        Kind::ExceptionRun | Kind::ShuttingDown => Some((5, ROTATED, STRIPE)),
        Kind::ExceptionStop => Some((5, "", DOT)),
        Kind::OverrideRun | Kind::Starting => Some((4, "", UPRIGHT)),
        Kind::OverrideStop => Some((5, ROTATED, CROSS)),
        Kind::OverrideHold => Some((4, "", LEVEL)),
    }
}

/// The attributes that fill a kind's shapes: its pattern, or a class with a solid fill.
pub(crate) fn fill(prefix: &str, kind: Kind) -> String {
    if pattern(kind).is_some() {
        let class = kind.class();
        format!(r#" fill="url(#{prefix}{class})" class="edge s-{class}""#)
    } else {
        format!(r#" class="k-{}""#, kind.class())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2.
    fn luminance(color: &str) -> f64 {
        let channel = |range: std::ops::Range<usize>| {
            let part = f64::from(u8::from_str_radix(&color[range], 16).unwrap()) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1..3) + 0.7152 * channel(3..5) + 0.0722 * channel(5..7)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_bars_stand_out_against_both_backgrounds() {
        let (light, dark) = (RULES[0].2, RULES[0].3);
        for (selector, _, on_light, on_dark) in RULES {
            let least = match *selector {
                ".ink" | ".soft" | ".now" => 4.5,
                it if it.starts_with(".k-") || it.starts_with(".curve-line") => 3.0,
                _ => continue,
            };
            assert!(contrast(on_light, light) >= least, "{selector} on white");
            assert!(contrast(on_dark, dark) >= least, "{selector} on dark");
        }
    }

    #[test]
    fn no_rule_paints_over_a_pattern() {
        // A rule of a style sheet overrides the `fill` attribute that refers to the pattern.
        let sheet = sheet();
        for kind in Kind::ALL
            .into_iter()
            .filter(|kind| pattern(*kind).is_some())
        {
            let attributes = fill("", kind);
            let (_, classes) = attributes.split_once("class=\"").unwrap();
            for class in classes.trim_end_matches('"').split(' ') {
                let own = sheet
                    .lines()
                    .filter(|line| line.contains(&format!(".{class}{{")));
                for rule in own {
                    assert!(!rule.contains("fill:"), "{kind:?}: {rule}");
                }
            }
        }
    }

    #[test]
    fn no_two_kinds_of_a_row_look_alike_without_colour() {
        let planned = &Kind::ALL[..6];
        for (place, kind) in planned.iter().enumerate() {
            for other in &planned[..place] {
                assert_ne!(pattern(*kind), pattern(*other), "{kind:?}, {other:?}");
            }
        }
    }
}
