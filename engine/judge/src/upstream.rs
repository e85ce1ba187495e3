//! `cargo judge upstream`: Kubernetes' own end-to-end tests against `kubemu serve`, and against a real
//! API server.
//!
//! `e2e.test` of the release is built from its Go module, as are the tools that it needs. Only the specs
//! in `judge/upstream/specs.txt` run: those that need no container. Two kubelets are played, and
//! kube-controller-manager runs the controllers of workloads; the rest of a control plane is what
//! is judged. What the real server passes has to pass, unless `differences.yaml` says why not.
//!
//! - `programs`: builds them;
//! - `report`: what became of each spec;
//! - [`expectation`]: what is expected of each, and what is recorded.

pub(crate) mod expectation;
mod programs;
mod report;

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kubemu_judge::record::BoxError;

use crate::played_kubelet::{Binder, Kubelets};
use crate::program::{PAUSE, Program, connect, flag, serve};
use crate::{Faults, target, wait};
use expectation::{Expectations, Server};
use programs::Programs;
use report::Outcome;

/// The controllers that run beside both servers. None of them is part of `kubemu serve`.
const CONTROLLERS: [&str; 13] = [
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
];

/// The controllers beside the real server that `kubemu serve` contains and `cargo xtask cluster up`
/// does not start.
const BUILT_IN: [&str; 4] = [
    "resourcequota-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
];

/// How long all specs may take.
const LIMIT: Duration = Duration::from_hours(2);

/// What is to be run.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    server: Server,
    is_recorded: bool,
    /// Texts of which a spec's name has one; all specs if there are none.
    only: Vec<String>,
    /// The number of specs that run at a time.
    processes: u32,
}

impl Plan {
    /// Reads `--real`, `--record`, `--only TEXT` and `--processes N`; `None` for anything else.
    fn read(words: &[&str]) -> Option<Self> {
        let mut plan = Self {
            server: Server::Embedded,
            is_recorded: false,
            only: Vec::new(),
            processes: 4,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--real" => plan.server = Server::Real,
                "--record" => plan.is_recorded = true,
                "--only" => plan.only.push((*words.next()?).to_owned()),
                "--processes" => plan.processes = words.next()?.parse().ok()?,
                _ => return None,
            }
        }
        Some(plan)
    }
}

/// Runs the specs, and returns those whose outcome is not the expected one.
///
/// # Errors
/// A program cannot be built or started, or wrote no report.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let plan = Plan::read(words).ok_or(
        "usage: cargo judge upstream [--real] [--record] [--only TEXT]... [--processes N]",
    )?;
    let mut expectations = Expectations::read(root)?;
    let specs = expectations.specs(&plan.only);
    let folder = target().join("upstream");
    let programs = programs::build(&root.join("judge/upstream"), &folder.join("bin"))?;
    let folder = folder.join(plan.server.name());
    fs::create_dir_all(&folder)?;
    let outcomes = run_specs(&plan, &programs, &specs, &folder)?;
    for (spec, outcome) in &outcomes {
        if outcome.is_flaky {
            println!("flaky: {spec}");
        }
    }
    let count = |state: &str| outcomes.values().filter(|it| it.state == state).count();
    println!(
        "{} specs: {} passed, {} skipped themselves",
        specs.len(),
        count("passed"),
        count("skipped")
    );
    let faults = expectations.faults(plan.server, &specs, &outcomes);
    if plan.is_recorded {
        expectations.record(root, plan.server, &outcomes)?;
        println!("`cargo judge gen` writes the results to the documentation");
    }
    Ok(faults)
}

/// Starts what the specs need, and runs them.
fn run_specs(
    plan: &Plan,
    programs: &Programs,
    specs: &[String],
    folder: &Path,
) -> Result<BTreeMap<String, Outcome>, Box<dyn Error>> {
    let mut controllers = CONTROLLERS.to_vec();
    let (kubeconfig, _server) = match plan.server {
        Server::Embedded => {
            let kubeconfig = folder.join("kubeconfig");
            let server = serve(folder, &kubeconfig)?;
            (kubeconfig, Some(server))
        }
        Server::Real => {
            controllers.extend(BUILT_IN);
            let kubeconfig = env::var_os("KUBECONFIG").map(PathBuf::from).ok_or(
                "set KUBECONFIG to a Kubernetes of its own, as `cargo xtask cluster up --alone` \
                 starts one",
            )?;
            (kubeconfig, None)
        }
    };
    let _manager = Program::start(
        &programs.manager,
        &[
            flag("kubeconfig", &kubeconfig),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ],
        &folder.join("kube-controller-manager.log"),
    )?;
    let report = folder.join("report.json");
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let log = File::create(folder.join("e2e.log"))?;
    let mut suite = Command::new(&programs.ginkgo);
    suite
        .arg(format!("--procs={}", plan.processes))
        .arg(format!("--timeout={}s", LIMIT.as_secs()))
        .args(["--flake-attempts=2", "--no-color", "--keep-going"])
        .arg(format!("--focus={}", focus(specs)))
        .arg(flag("output-dir", folder))
        .arg("--json-report=report.json")
        .arg(&programs.suite)
        .arg("--")
        .arg(flag("kubeconfig", &kubeconfig))
        .arg(flag("kubectl-path", &programs.kubectl))
        .args(["--provider=skeleton", "--dump-logs-on-failure=false"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    wait(play(&kubeconfig, suite))?;
    report::read(&report)
}

/// Plays the kubelets until the specs have ended.
async fn play(kubeconfig: &Path, mut suite: Command) -> Result<(), BoxError> {
    let client = connect(kubeconfig).await?;
    let mut kubelets = Kubelets::start(client, Binder::Played).await?;
    let mut suite = Program::of(suite.spawn()?);
    // Specs that fail are in the report.
    while suite.child.try_wait()?.is_none() {
        if let Err(refused) = kubelets.step().await {
            eprintln!("a kubelet: {refused}");
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// The pattern that matches the names of these specs and no other's.
fn focus(specs: &[String]) -> String {
    // Ginkgo puts the name of the suite before that of a spec.
    let quoted: Vec<String> = specs.iter().map(|it| format!(r"\Q{it}\E")).collect();
    format!(" ({})$", quoted.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_its_flags() {
        let plan =
            Plan::read(&["--real", "--record", "--only", "Lease", "--only", "CSR"]);
        let plan = plan.expect("a plan");
        assert_eq!((plan.server, plan.is_recorded), (Server::Real, true));
        assert_eq!(plan.only, ["Lease", "CSR"]);
        assert_eq!(Plan::read(&["--only"]), None);
        assert_eq!(Plan::read(&["--processes", "many"]), None);
    }

    #[test]
    fn a_name_with_signs_of_patterns_is_matched_as_it_is() {
        let specs = ["[sig-a] b", "c (d)"].map(str::to_owned);
        assert_eq!(focus(&specs), r" (\Q[sig-a] b\E|\Qc (d)\E)$");
    }
}
