//! The costs of many machines in the dashboard and in a picture.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The file of the measurement, below the root.
const RECORD: &str = "e2e/browser/figures.json";

/// The section of the page.
///
/// # Errors
/// The numbers cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let kept = fs::read_to_string(root.join(RECORD))?;
    Ok(text(&serde_json::from_str(&kept)?))
}

fn text(record: &Value) -> String {
    let figures: &[Value] = record["figures"].as_array().map_or(&[], Vec::as_slice);
    let mut text = format!(
        "\n## The dashboard and a picture\n\n\
         `5spot dashboard -A` with {} machines on the embedded server, seen with a headless Chromium; \
         server, dashboard and browser run on one computer with {} cores and {} GiB. The times of the \
         page end when the browser has painted. `quiet` is on an idle computer, `busy` with one \
         compute-bound process per two cores. Each number is the median of \
         {} runs with the profile `{}`:\n\n\
         ```console\n\
         $ cargo build --release --bin 5spot --features fivespot-cli/allocator\n\
         $ cd e2e/browser && npm ci\n\
         $ RECORD=1 FIVESPOT=../../target/release/5spot npm run figures\n\
         ```\n\n\
         | what | bound | quiet | busy |\n\
         |---|---:|---:|---:|\n",
        record["machines"],
        record["machine"]["cores"],
        record["machine"]["memoryGib"],
        record["rounds"],
        record["profile"].as_str().unwrap_or_default(),
    );
    for of in figures {
        let unit = of["unit"].as_str().unwrap_or_default();
        let number = |name: &str| match of[name].as_u64() {
            Some(number) => format!("{number} {unit}"),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            what(of),
            number("bound"),
            number("quiet"),
            number("busy")
        );
    }
    text.push_str(&exceeded(figures));
    text
}

/// A sentence with the figures that exceed their bounds.
fn exceeded(figures: &[Value]) -> String {
    let over = figures.iter().filter(|of| {
        let most = of["quiet"].as_u64().max(of["busy"].as_u64());
        of["bound"].as_u64().is_some_and(|bound| most > Some(bound))
    });
    let over: Vec<&str> = over.map(what).collect();
    if over.is_empty() {
        "\nNo figure is above its bound.\n".to_owned()
    } else {
        format!("\nAbove the bound: {}.\n", over.join("; "))
    }
}

fn what(of: &Value) -> &str {
    of["what"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(busy: u64) -> Value {
        serde_json::json!({
            "machine": {"cores": 2, "memoryGib": 24},
            "profile": "release",
            "machines": 5000,
            "rounds": 3,
            "figures": [
                {"what": "first view", "unit": "ms", "bound": 500, "quiet": 200, "busy": busy},
                {"what": "memory", "unit": "MiB", "bound": null, "quiet": 38, "busy": 39},
            ],
        })
    }

    #[test]
    fn a_figure_above_its_bound_is_named() {
        let kept = text(&record(500));
        assert!(
            kept.contains("| first view | 500 ms | 200 ms | 500 ms |\n"),
            "{kept}"
        );
        assert!(kept.contains("| memory |  | 38 MiB | 39 MiB |\n"), "{kept}");
        assert!(
            kept.ends_with("\nNo figure is above its bound.\n"),
            "{kept}"
        );
        let above = text(&record(501));
        assert!(
            above.ends_with("\nAbove the bound: first view.\n"),
            "{above}"
        );
    }
}
