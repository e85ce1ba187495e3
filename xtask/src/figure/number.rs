//! What each recorded result shows, in a line.

use serde_json::Value;

use crate::stored_results::{items, number};

/// The number, or the few numbers, of a result; empty for one that has a page of its own. `file` is its
/// path.
pub(super) fn of(file: &str, result: &Value) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or_default();
    match (folder, name) {
        ("proof/results", "model.json" | "deep.json") => model(result),
        ("proof/results", "mutants.json") => mutants(result),
        ("proof/results", "mutation.json") => mutation(result),
        ("proof/results", "coverage.json") => coverage(result),
        ("proof/results", "simulation.json") => simulation(result),
        ("proof/results", "fleets.json") => fleets(result),
        ("proof/results", "haul.json") => haul(result),
        ("proof/results", "day.json") => day(result),
        ("proof/results", "reclaim.json") => reclaim(result),
        ("proof/results", "fuzz.json") => fuzz(result),
        ("proof/results/faults", _) => faults(result),
        ("e2e/results", _) => promises(result),
        ("e2e/browser", _) => browser(result),
        ("benches/bursts", _) => burst(result),
        ("benches/edges", _) => edge(result),
        ("benches/results" | "benches/crowd", _) => opening(result),
        ("engine/judge/upstream", _) => upstream(result),
        ("engine/judge/policies", _) => policies(result),
        ("engine/judge", "speed.json") => speed(result),
        _ => String::new(),
    }
}

fn upstream(result: &Value) -> String {
    let specs = || result.as_object().into_iter().flat_map(|it| it.values());
    let is_asked = |it: &&Value| it["real"] == "passed";
    let asked = specs().filter(is_asked);
    format!(
        "{} of {} specs that kube-apiserver passes",
        asked.filter(|it| it["ours"] == "passed").count(),
        specs().filter(is_asked).count()
    )
}

fn speed(result: &Value) -> String {
    let of = |side: &str, what: &str| number(&result["measured"][side][what]) / 1e3;
    let cases = &result["cases"];
    format!(
        "{:.1} us for an object through {} rules, {:.0} us in Kubernetes' libraries; these rules \
         compiled in {:.0} us; {:.0} test cases in a second",
        of("kubemu", "ordinary few"),
        result["rules"]["few"],
        of("kubernetes", "ordinary few"),
        of("kubemu", "compile few"),
        number(&cases["count"]) / number(&cases["seconds"])
    )
}

fn policies(result: &Value) -> String {
    let all = || result.as_object().into_iter().flat_map(|it| it.values());
    let total = |field: &str| all().map(|of| number(&of[field])).sum::<f64>();
    format!(
        "{} policies, {} of {} answers equal to kube-apiserver's",
        all().count(),
        total("equal"),
        total("replayed")
    )
}

fn model(result: &Value) -> String {
    format!(
        "{} unique states, each checked against {} invariants; {} violations",
        result["unique"], result["laws"], result["violations"]
    )
}

fn mutants(result: &Value) -> String {
    let all = || result.as_object().into_iter().flatten();
    let is_detected = |(_, of): &(&String, &Value)| of["caughtBy"].is_string();
    format!(
        "{} of {} deliberate faults detected",
        all().filter(is_detected).count(),
        all().count()
    )
}

fn mutation(result: &Value) -> String {
    let crates = || result.as_object().into_iter().flat_map(|it| it.values());
    let total = |field: &str| crates().map(|of| number(&of[field])).sum::<f64>();
    let missed = crates().flat_map(|of| items(&of["missed"])).count();
    format!(
        "{} of {} mutants tried: {} detected, {missed} missed with a reason, {} do not compile",
        total("tried"),
        total("mutants"),
        total("caught") + total("timeouts"),
        total("unviable")
    )
}

fn coverage(result: &Value) -> String {
    let crates = || result.as_object().into_iter().flat_map(|it| it.values());
    let total = |field: &str| crates().map(|of| number(&of[field])).sum::<f64>();
    let (all, run) = (total("regions"), total("run"));
    format!("{run} of {all} regions run, {:.1} %", 100.0 * run / all)
}

fn fleets(result: &Value) -> String {
    format!(
        "{} fleets: {} openings kept, {} not, each as `5spot plan` forecast it",
        result["fleets"], result["kept"], result["notKept"]
    )
}

fn simulation(result: &Value) -> String {
    format!(
        "{} seeds, {} virtual years, {} checks, {} injected faults; {} violations",
        result["seeds"],
        result["virtualYears"],
        result["checks"],
        sum(&result["faults"]),
        result["violations"]
    )
}

fn haul(result: &Value) -> String {
    format!(
        "{} virtual years of {} machines, {} edges; {} deviations; {} MiB resident in the first \
         months, {} MiB in the last",
        result["virtualYears"],
        result["machines"],
        number(&result["openings"]) + number(&result["closings"]),
        result["broken"],
        result["residentMiB"]["first"],
        result["residentMiB"]["last"]
    )
}

fn day(result: &Value) -> String {
    let (requests, resident) = (&result["requestsPerMinute"], &result["residentKiB"]);
    format!(
        "{} machines for {} minutes with {} faults; {} objects left behind; {} and {} requests a \
         minute, {} and {} KiB resident in the first and the last third",
        result["machines"],
        result["minutes"],
        result["faults"],
        result["leftBehind"],
        requests["first"],
        requests["last"],
        resident["first"],
        resident["last"]
    )
}

fn reclaim(result: &Value) -> String {
    format!(
        "99 in 100 starts are annotated within {} ms of a process event, {} ms of a scan",
        result["events"]["p99"], result["scan"]["p99"]
    )
}

fn fuzz(result: &Value) -> String {
    let targets = || items(&result["targets"]);
    format!(
        "{} inputs; {} targets failed",
        targets().map(|of| number(&of["texts"])).sum::<f64>(),
        targets().filter(|of| of["clean"] != true).count()
    )
}

/// Scenarios with every fault.
fn faults(result: &Value) -> String {
    let all = || result["scenarios"].as_object().into_iter().flatten();
    let total = |field: &str| all().map(|(_, of)| number(&of[field])).sum::<f64>();
    format!(
        "{} faults in {} scenarios; {} other final states",
        total("faultsOfWrites") + total("faultsOfWatches"),
        all().count(),
        total("otherwise")
    )
}

/// A promise that was not run on a backend has the reason in place of a text.
fn promises(result: &Value) -> String {
    let all = || result["promises"].as_object().into_iter().flatten();
    let kept = all().filter(|(_, of)| *of == "kept").count();
    let run = all().filter(|(_, of)| of.is_string()).count();
    format!("{kept} promises kept, {} not", run - kept)
}

fn browser(result: &Value) -> String {
    let all = || items(&result["figures"]);
    let is_above = |of: &&Value| {
        of["bound"]
            .as_f64()
            .is_some_and(|it| number(&of["quiet"]) > it)
    };
    format!(
        "{} machines; {} of {} times above their bounds",
        result["machines"],
        all().filter(is_above).count(),
        all().count()
    )
}

fn burst(result: &Value) -> String {
    let pairs: Vec<&Value> = items(&result["pairs"]).collect();
    let ratio = |pair: &Value| {
        let all = &pair["seconds"][2];
        number(all) / number(&pair["floorSeconds"])
    };
    let requests = |pair: &Value| sum(&pair["untilCreated"]["requests"]);
    format!(
        "{:.2} times the floor, {:.2} requests for each machine",
        median(&pairs, ratio),
        median(&pairs, requests) / number(&result["machines"])
    )
}

/// ScheduledCapacities with one edge.
fn edge(result: &Value) -> String {
    format!(
        "{} capacities written within {:.1} s; {} requests in {} s afterwards",
        result["capacities"],
        number(&result["edgeSeconds"]),
        result["idleRequests"],
        result["idleSeconds"]
    )
}

/// Windows of all machines that open at the same instant.
fn opening(result: &Value) -> String {
    let all = number(&result["latenessSeconds"][2]);
    let text = format!(
        "{:.2} times the floor",
        all / number(&result["floorSeconds"])
    );
    if result["openingAlone"] != false {
        return text;
    }
    let writes =
        number(&result["opening"]["writes"]) + number(&result["closing"]["writes"]);
    format!(
        "{text}, {:.1} writes for each machine in a whole cycle, {} requests in {} idle minutes",
        writes / number(&result["machines"]),
        result["idle"]["beyondIdling"],
        result["idleMinutes"]
    )
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
