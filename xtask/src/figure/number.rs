//! What each recorded result shows, in a line.

use serde_json::Value;

/// The number, or the few numbers, of a result; empty for one that has a page of its own. `file` is its
/// path.
pub(super) fn of(file: &str, result: &Value) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or_default();
    match (folder, name) {
        ("proof/results", "model.json" | "deep.json") => format!(
            "{} unique states, each checked against {} invariants; {} violations",
            result["unique"], result["laws"], result["violations"]
        ),
        ("proof/results", "mutants.json") => {
            let all = || result.as_object().into_iter().flatten();
            let detected = all().filter(|(_, of)| of["caughtBy"].is_string()).count();
            format!("{detected} of {} deliberate faults detected", all().count())
        }
        ("proof/results", "simulation.json") => format!(
            "{} seeds, {} virtual years, {} checks, {} injected faults; {} violations",
            result["seeds"],
            result["virtualYears"],
            result["checks"],
            sum(&result["faults"]),
            result["violations"]
        ),
        ("proof/results", "haul.json") => format!(
            "{} virtual years of {} machines, {} edges; {} deviations; {} MiB resident in the first \
             months, {} MiB in the last",
            result["virtualYears"],
            result["machines"],
            number(&result["openings"]) + number(&result["closings"]),
            result["broken"],
            result["residentMiB"]["first"],
            result["residentMiB"]["last"]
        ),
        ("proof/results", "day.json") => format!(
            "{} machines for {} minutes with {} faults; {} objects left behind; {} and {} requests a \
             minute, {} and {} KiB resident in the first and the last third",
            result["machines"],
            result["minutes"],
            result["faults"],
            result["leftBehind"],
            result["requestsPerMinute"]["first"],
            result["requestsPerMinute"]["last"],
            result["residentKiB"]["first"],
            result["residentKiB"]["last"]
        ),
        ("proof/results", "reclaim.json") => {
            let p99 = |of: &str| &result[of]["p99"];
            format!(
                "99 in 100 starts are annotated within {} ms of a process event, {} ms of a scan",
                p99("events"),
                p99("scan")
            )
        }
        ("proof/results", "fuzz.json") => {
            let count = items(&result["targets"])
                .filter(|of| of["clean"] != true)
                .count();
            let inputs: f64 = items(&result["targets"])
                .map(|of| number(&of["texts"]))
                .sum();
            format!("{inputs} inputs; {count} targets failed")
        }
        ("proof/results/faults", _) => {
            let all = || result["scenarios"].as_object().into_iter().flatten();
            let total =
                |field: &str| -> f64 { all().map(|(_, of)| number(&of[field])).sum() };
            format!(
                "{} faults in {} scenarios; {} other final states",
                total("faultsOfWrites") + total("faultsOfWatches"),
                all().count(),
                total("otherwise")
            )
        }
        ("e2e/results", _) => {
            let all = || result["promises"].as_object().into_iter().flatten();
            let kept = all().filter(|(_, of)| *of == "kept").count();
            let failed = all().filter(|(_, of)| of.is_string()).count() - kept;
            format!("{kept} promises kept, {failed} not")
        }
        ("benches/bursts", _) => {
            let pairs: Vec<&Value> = items(&result["pairs"]).collect();
            let machines = number(&result["machines"]);
            let ratio = |pair: &Value| {
                number(&pair["seconds"][2]) / number(&pair["floorSeconds"])
            };
            let requests =
                |pair: &Value| sum(&pair["untilCreated"]["requests"]) / machines;
            format!(
                "{:.2} times the floor, {:.2} requests for each machine",
                median(&pairs, ratio),
                median(&pairs, requests)
            )
        }
        ("benches/results" | "benches/crowd", _) => {
            let (all, floor) = (
                number(&result["latenessSeconds"][2]),
                number(&result["floorSeconds"]),
            );
            let mut text = format!("{:.2} times the floor", all / floor);
            if result["openingAlone"] == false {
                let writes = number(&result["opening"]["writes"])
                    + number(&result["closing"]["writes"]);
                text += &format!(
                    ", {:.1} writes for each machine in a whole cycle, {} requests in {} idle minutes",
                    writes / number(&result["machines"]),
                    result["idle"]["beyondIdling"],
                    result["idleMinutes"]
                );
            }
            text
        }
        ("e2e/browser", _) => {
            let over = items(&result["figures"]).filter(|of| {
                number(&of["quiet"]) > of["bound"].as_f64().unwrap_or(f64::MAX)
            });
            format!(
                "{} machines; {} of {} times above their bounds",
                result["machines"],
                over.count(),
                items(&result["figures"]).count()
            )
        }
        _ => String::new(),
    }
}

fn items(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_default()
}

/// The sum of the numbers in an object.
fn sum(of: &Value) -> f64 {
    let all = of.as_object().into_iter().flatten();
    all.map(|(_, count)| number(count)).sum()
}

/// The median of the pairs' values; 0 without pairs.
fn median(pairs: &[&Value], of: impl Fn(&Value) -> f64) -> f64 {
    let mut values: Vec<f64> = pairs.iter().map(|pair| of(pair)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of;

    #[test]
    fn a_burst_shows_the_median_of_the_ratios_and_not_the_ratio_of_medians() {
        let pair = |floor: f64, all: f64| {
            json!({
                "floorSeconds": floor, "seconds": [0.0, 0.0, all],
                "untilCreated": {"requests": {"create machines": 10, "get machines": 20}},
            })
        };
        let run = json!({
            "machines": 10, "pairs": [pair(2.0, 3.0), pair(4.0, 4.8), pair(1.0, 3.0)],
        });
        assert_eq!(
            of("benches/bursts/edge-300.json", &run),
            "1.50 times the floor, 3.00 requests for each machine"
        );
    }

    #[test]
    fn a_scenario_with_another_final_state_is_counted() {
        let result = json!({"scenarios": {
            "closing": {"faultsOfWrites": 44, "faultsOfWatches": 15, "otherwise": 1},
            "opening": {"faultsOfWrites": 50, "faultsOfWatches": 16, "otherwise": 0},
        }});
        assert_eq!(
            of("proof/results/faults/embedded.json", &result),
            "125 faults in 2 scenarios; 1 other final states"
        );
    }
}
