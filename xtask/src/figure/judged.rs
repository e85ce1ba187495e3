//! The sources that each recorded result judges.

use crate::dependency;

/// Results and the sources that they judge.
pub(super) struct Judged {
    /// A file, or a folder (with a slash at the end) of files.
    pub(super) results: &'static str,
    /// Crates, by their folders; their tests are no part.
    crates: &'static [&'static [&'static str]],
    /// What asks, beside the crates.
    judges: &'static [&'static str],
}

const PLANNER: &[&str] = &["api", "capi", "plan", "schedule"];
const OPERATOR: &[&str] = &["clock", "controller", "https", "runtime"];
const ENGINE: &[&str] = &["admission", "cel", "gostd"];
const SERVER: &[&str] = &["apiserver", "sim"];
const PROGRAM: &[&str] = &[
    "agent",
    "cli",
    "dashboard",
    "drawing",
    "forecast",
    "install",
    "usage",
    "webhook",
];
const SIMULATED: &[&[&str]] =
    &[PLANNER, OPERATOR, ENGINE, SERVER, &["install", "testkit"]];
const SIMULATED_WITH_AGENT: &[&[&str]] = &[
    PLANNER,
    OPERATOR,
    ENGINE,
    SERVER,
    &["agent", "install", "testkit"],
];
const ALL: &[&[&str]] = &[PLANNER, OPERATOR, ENGINE, SERVER, PROGRAM, &["testkit"]];

/// Every recorded result.
pub(super) const JUDGED: &[Judged] = &[
    Judged {
        results: "proof/results/model.json",
        crates: &[PLANNER],
        judges: &["proof/src"],
    },
    Judged {
        results: "proof/results/deep.json",
        crates: &[PLANNER],
        judges: &["proof/src"],
    },
    Judged {
        results: "proof/results/mutants.json",
        crates: &[PLANNER],
        judges: &["proof/src"],
    },
    Judged {
        results: "proof/results/mutation.json",
        crates: &[&["capi", "usage", "schedule", "plan", "runtime", "controller"]],
        judges: &[
            "crates/capi/tests",
            "crates/schedule/tests",
            "crates/plan/tests",
            "crates/runtime/tests",
            "crates/controller/tests",
        ],
    },
    Judged {
        results: "proof/results/coverage.json",
        crates: ALL,
        judges: &["e2e/tests", "engine/crates/apiserver/tests"],
    },
    Judged {
        results: "proof/results/simulation.json",
        crates: SIMULATED,
        judges: &["simulation/src"],
    },
    Judged {
        results: "proof/results/fleets.json",
        crates: &[
            PLANNER,
            OPERATOR,
            ENGINE,
            SERVER,
            &["forecast", "install", "testkit"],
        ],
        judges: &["crates/cli/tests/commands/forecast"],
    },
    Judged {
        results: "proof/results/haul.json",
        crates: SIMULATED,
        judges: &["simulation/src"],
    },
    Judged {
        results: "proof/results/day.json",
        crates: &[PLANNER, OPERATOR],
        judges: &["benches/day"],
    },
    Judged {
        results: "proof/results/reclaim.json",
        crates: &[&["agent"]],
        judges: &["crates/agent/benches"],
    },
    Judged {
        results: "proof/results/desk.json",
        crates: &[&["agent"]],
        judges: &["crates/agent/tests"],
    },
    Judged {
        results: "proof/results/desk-rounds.json",
        crates: SIMULATED_WITH_AGENT,
        judges: &["e2e/tests/returns_to_service.rs"],
    },
    Judged {
        results: "proof/results/fuzz.json",
        crates: &[ENGINE, &["api", "webhook"]],
        judges: &["engine/fuzz/src", "fuzz/src"],
    },
    Judged {
        results: "proof/results/validate.json",
        crates: &[ENGINE, &["apiserver", "kubemu", "cli"]],
        judges: &["benches/validate", "crates/testkit/src/manifest_tree.rs"],
    },
    Judged {
        results: "proof/results/faults/",
        crates: SIMULATED,
        judges: &["e2e/tests"],
    },
    Judged {
        results: "e2e/results/",
        crates: ALL,
        judges: &["e2e/tests"],
    },
    Judged {
        results: "e2e/providers/",
        crates: &[PLANNER, OPERATOR, &["cli"]],
        judges: &["e2e/cluster", "e2e/provider_suite"],
    },
    Judged {
        results: "e2e/upgrades/",
        crates: &[PLANNER, OPERATOR, &["install"]],
        judges: &["e2e/upgrade"],
    },
    Judged {
        results: "engine/judge/record/agreement.json",
        crates: &[ENGINE, SERVER],
        judges: &["engine/judge/record/corpus"],
    },
    Judged {
        results: "engine/judge/server/agreement.json",
        crates: &[ENGINE, SERVER],
        judges: &["engine/judge/src"],
    },
    Judged {
        results: "engine/judge/upstream/results.json",
        crates: &[ENGINE, &["apiserver", "kubemu"]],
        judges: &[
            "engine/judge/src/upstream",
            "engine/judge/upstream/specs.txt",
        ],
    },
    Judged {
        results: "engine/judge/policies/results.json",
        crates: &[ENGINE, &["apiserver", "kubemu"]],
        judges: &[
            "engine/judge/src/policies",
            "engine/judge/policies/cases",
            "engine/judge/policies/sources.yaml",
        ],
    },
    Judged {
        results: "engine/judge/oracle/agreement.json",
        crates: &[ENGINE],
        judges: &["engine/judge/src/library"],
    },
    Judged {
        results: "e2e/browser/figures.json",
        crates: &[
            PLANNER,
            OPERATOR,
            SERVER,
            &["cli", "dashboard", "drawing", "usage"],
        ],
        judges: &["e2e/browser/figures.mjs"],
    },
    Judged {
        results: "benches/results/",
        crates: &[PLANNER, OPERATOR],
        judges: &["benches/scale"],
    },
    Judged {
        results: "benches/bursts/",
        crates: &[PLANNER, OPERATOR],
        judges: &["benches/scale"],
    },
    Judged {
        results: "benches/crowd/",
        crates: &[PLANNER, OPERATOR],
        judges: &["benches/scale"],
    },
    Judged {
        results: "benches/costs/",
        crates: &[PLANNER, OPERATOR],
        judges: &["benches/hostile"],
    },
    Judged {
        results: "engine/judge/forks.json",
        crates: &[ENGINE, SERVER],
        judges: &["engine/crates/apiserver/benches/fork.rs"],
    },
    Judged {
        results: "engine/judge/speed.json",
        crates: &[ENGINE, &["apiserver", "kubemu"]],
        judges: &[
            "deploy/admission/validatingadmissionpolicy.yaml",
            "deploy/crds/scheduledmachines.5spot.finos.org.yaml",
            "engine/crates/admission/benches/speed.rs",
            "engine/judge/oracle/speed.go",
            "engine/judge/src/speed.rs",
        ],
    },
    Judged {
        results: "benches/edges/",
        crates: &[PLANNER, OPERATOR, ENGINE, SERVER],
        judges: &["benches/capacities"],
    },
    Judged {
        results: "engine/judge/creation.json",
        crates: &[ENGINE, SERVER],
        judges: &["engine/crates/apiserver/benches"],
    },
    Judged {
        results: "xtask/results/release.json",
        crates: ALL,
        judges: &["Cargo.lock"],
    },
];

impl Judged {
    /// The paths of the sources, below the root.
    pub(super) fn sources(&self) -> Vec<String> {
        let crates = self.crates.iter().copied().flatten();
        let mut paths: Vec<_> = crates
            .map(|name| format!("{}/src", dependency::folder(name)))
            .collect();
        paths.extend(self.judges.iter().map(|path| (*path).to_owned()));
        paths
    }
}

/// The sources that a file of results judges; `None` if it is not one.
pub(super) fn sources(file: &str) -> Option<Vec<String>> {
    let row = JUDGED.iter().find(|row| {
        row.results == file || row.results.ends_with('/') && file.starts_with(row.results)
    })?;
    Some(row.sources())
}
