//! The agreement of the embedded server with the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube::Client;
use kubemu_apiserver::{KubeVersion, Options, Server};
use kubemu_clock::Clock;
use serde_json::{Value, json};

use super::corpus::{self, Case};
use super::difference::{self, Difference, Gap};
use super::run::{RetryMode, Runner};
use super::{BoxError, fixture, folder};

/// The recorded releases.
pub const MINORS: [&str; 2] = ["1.30", "1.36"];

/// The result of sending the corpus to the embedded server.
#[derive(Debug, Default)]
pub struct Agreement {
    /// Counts by release and area.
    counts: BTreeMap<String, BTreeMap<String, Counts>>,
    /// For each listed difference and each of its patterns, the responses with the difference.
    shown: Vec<BTreeMap<usize, BTreeSet<String>>>,
    /// Unlisted differences, as text. Empty if there are none.
    pub unexpected: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    answers: u32,
    deliberate: u32,
    open: u32,
}

/// Sends every recorded case to the embedded server and compares the responses.
///
/// # Errors
/// A file cannot be read, or a case cannot be run.
pub async fn measure(differences: &[Difference]) -> Result<Agreement, BoxError> {
    let folder = folder();
    let mut agreement = Agreement {
        shown: vec![BTreeMap::new(); differences.len()],
        ..Agreement::default()
    };
    for case in corpus::read(&folder.join("corpus"))? {
        for minor in MINORS {
            let path = fixture::path(&folder, minor, &case);
            if let Some(real) = fixture::read(&path)? {
                let ours = answers(&case, minor).await;
                let ours =
                    ours.map_err(|error| format!("Kubernetes {minor}: {error}"))?;
                agreement.compare(minor, &case, (&real, &ours), differences);
            }
        }
    }
    Ok(agreement)
}

/// The embedded server's responses to a case.
///
/// Its clock is stopped. Otherwise, the managers of fields would be in a different order if a case
/// continued into the next second, because Kubernetes sorts them by time.
async fn answers(case: &Case, minor: &str) -> Result<Vec<Value>, BoxError> {
    let mut options = Options::new(Clock::stopped_at(Clock::system().now()));
    options.seed = Some(0);
    options.client_authority = Some("certificate".to_owned());
    options.kube = minor.parse::<KubeVersion>().map_err(|it| it.to_string())?;
    let server = Server::new(options)?;
    let client = Client::new(server.in_process(), "default");
    Runner::new(client, RetryMode::Yield, case).run().await
}

impl Agreement {
    fn compare(
        &mut self,
        minor: &str,
        case: &Case,
        (real, ours): (&[Value], &[Value]),
        differences: &[Difference],
    ) {
        for index in 0..real.len().max(ours.len()) {
            let none = Value::Null;
            let (real, ours) = (real.get(index), ours.get(index));
            let (real, ours) = (real.unwrap_or(&none), ours.unwrap_or(&none));
            let step = match real["id"].as_str() {
                Some(id) => id.to_owned(),
                None => (index + 1).to_string(),
            };
            let key = format!("{}/{step}", case.key());
            let gaps = difference::gaps(real, ours);
            let mut unexpected = Vec::new();
            let mut open = false;
            let reordered = difference::differ_in_order_alone(real, ours);
            for gap in &gaps {
                let mut covered = false;
                let candidates = differences.iter().zip(&mut self.shown);
                for (difference, shown) in
                    candidates.filter(|(it, _)| reordered || !it.order)
                {
                    if let Some(by) = difference.covers(minor, &key, &gap.place) {
                        covered = true;
                        let answers = shown.entry(by).or_default();
                        answers.insert(format!("{minor} {key}"));
                        open |= difference.open;
                    }
                }
                if !covered {
                    unexpected.push(gap);
                }
            }
            if !unexpected.is_empty() {
                let head = format!("Kubernetes {minor}, {key}: {}", ours["request"]);
                self.unexpected.push(described(&head, &unexpected));
            }
            let areas = self.counts.entry(minor.to_owned()).or_default();
            let counts = areas.entry(case.area.clone()).or_default();
            counts.answers += 1;
            counts.open += u32::from(open);
            counts.deliberate += u32::from(!gaps.is_empty() && !open);
        }
    }

    /// Patterns of listed differences without a matching response: the difference no longer exists.
    pub fn idle(&self, differences: &[Difference]) -> Vec<String> {
        let mut idle = Vec::new();
        for (difference, shown) in differences.iter().zip(&self.shown) {
            for (index, answer) in difference.answers.iter().enumerate() {
                if !shown.contains_key(&index) {
                    idle.push(format!("{}: {answer}", difference.what));
                }
            }
        }
        idle
    }

    /// The numbers as written to the file for the documentation.
    pub fn summary(&self, differences: &[Difference]) -> Value {
        let counts = |areas: &BTreeMap<String, Counts>| -> serde_json::Map<_, _> {
            let rows = areas.iter().map(|(area, it)| {
                let equal = it.answers - it.deliberate - it.open;
                let row = json!({
                    "answers": it.answers, "equal": equal,
                    "deliberate": it.deliberate, "open": it.open,
                });
                (area.clone(), row)
            });
            rows.collect()
        };
        let answers: serde_json::Map<_, _> = self
            .counts
            .iter()
            .map(|(minor, areas)| (minor.clone(), counts(areas).into()))
            .collect();
        let differences: Vec<_> = differences
            .iter()
            .zip(&self.shown)
            .map(|(it, shown)| {
                let answers: BTreeSet<_> = shown.values().flatten().collect();
                json!({
                    "what": it.what, "answers": answers.len(), "why": it.why,
                    "open": it.open,
                })
            })
            .collect();
        json!({"answers": answers, "differences": differences})
    }
}

fn described(head: &str, gaps: &[&Gap]) -> String {
    let show = |it: &Option<Value>| match it {
        Some(value) => value.to_string(),
        None => "(nothing)".to_owned(),
    };
    // If the verdict differs, only it is shown. Differences that follow from it would hide it.
    let verdict = |gap: &&&Gap| gap.place == ["code"] || gap.place == ["body", "message"];
    let other_verdict = gaps.iter().any(|gap| gap.place == ["code"]);
    let shown = gaps.iter().filter(|gap| !other_verdict || verdict(gap));
    let lines = shown.map(|gap| {
        format!(
            "\n  at /{}\n    real: {}\n    ours: {}",
            gap.place.join("/"),
            show(&gap.real),
            show(&gap.ours)
        )
    });
    format!("{head}{}", lines.collect::<String>())
}

/// The file with the numbers.
pub fn path(folder: &Path) -> std::path::PathBuf {
    folder.join("agreement.json")
}

/// The numbers as text.
pub fn text(summary: &Value) -> String {
    format!("{summary:#}\n")
}
