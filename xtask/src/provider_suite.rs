//! `cargo xtask providers`: runs `5spot conformance` against the providers of the running cluster,
//! and writes their section of `internals/conformance.md`.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kubemu_golang::process;
use serde_json::{Value, json};

use crate::cluster::{self, Choice};

use crate::stored_results;

/// Where the results are kept, a file per run.
const RESULTS: &str = "e2e/providers";

/// The arguments of a run of the suite.
struct Case {
    /// The name of the file for the result.
    name: &'static str,
    /// The heading on the page.
    title: &'static str,
    /// Flags of the command line, each with an example manifest.
    files: &'static [(&'static str, &'static str)],
    /// Other arguments.
    words: &'static [&'static str],
}

const EXAMPLES: &str = "examples/conformance";

const OF_STAND_INS: &[Case] = &[Case {
    name: "stand-ins",
    title: "k0smotron's kinds, by the stand-ins of `cargo xtask cluster`",
    files: &[
        ("--infrastructure", "host.yaml"),
        ("--bootstrap", "worker.yaml"),
        ("--setup", "cluster.yaml"),
        ("--unreachable", "host-without-key.yaml"),
    ],
    words: &[],
}];

const OF_REAL: &[Case] = &[
    Case {
        name: "in-memory-with-a-workload-api-server",
        title: "Cluster API's kubeadm bootstrap provider and in-memory infrastructure provider; the \
                workload cluster is a real API server",
        files: &[
            ("--infrastructure", "in-memory/host.yaml"),
            ("--bootstrap", "in-memory/worker.yaml"),
            ("--setup", "cluster.yaml"),
            ("--unreachable", "in-memory/host-that-never-starts.yaml"),
        ],
        words: &["--machine-version=v1.34.0"],
    },
    Case {
        name: "in-memory-alone",
        title: "Cluster API's kubeadm bootstrap and control plane providers and in-memory \
                infrastructure provider; the workload cluster is in that provider's memory",
        files: &[
            ("--infrastructure", "in-memory/host.yaml"),
            ("--bootstrap", "in-memory/worker.yaml"),
            ("--setup", "in-memory/cluster.yaml"),
            ("--unreachable", "in-memory/host-that-never-starts.yaml"),
        ],
        words: &["--machine-version=v1.34.0"],
    },
];

/// A running operator. Dropping it stops it.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        // Fails if the operator has ended; its log has the reason.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the suite against the providers of the cluster of the arguments, and keeps the results.
///
/// # Errors
/// An argument is not `--name`, or as for [`run`].
pub(crate) fn task(root: &Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let choice = Choice::by_name(words).ok_or("the only flag is --name NAME")?;
    run(root, &choice)
}

/// Runs the suite against the providers of the running cluster, and keeps the results.
///
/// # Errors
/// No cluster runs, something cannot be built or started, or the suite cannot be run.
fn run(root: &Path, choice: &Choice) -> Result<(), Box<dyn Error>> {
    let running = cluster::running(root, choice)?;
    let program = build(root)?;
    define(root, &program, &running.kubeconfig)?;
    let _operator = start(root, &running.kubeconfig)?;
    let cases = match running.versions["providers"].as_str() {
        Some("real") => OF_REAL,
        _ => OF_STAND_INS,
    };
    let restart = cluster::restart_command(choice)?;
    fs::create_dir_all(root.join(RESULTS))?;
    for case in cases {
        eprintln!("{}", case.title);
        let mut result = run_case(root, case, (&program, &running.kubeconfig), &restart)?;
        result["title"] = json!(case.title);
        result["clusterAPI"] = running.versions["clusterAPI"].clone();
        let text = format!("{result:#}\n");
        fs::write(root.join(RESULTS).join(format!("{}.json", case.name)), text)?;
    }
    Ok(())
}

/// Builds `5spot` and the operator, and returns the path of the former.
fn build(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["build", "--quiet", "--bin=5spot", "--bin=5spot-controller"];
    process::run(Command::new(cargo).args(words).current_dir(root))?;
    Ok(cluster::target(root).join("debug/5spot"))
}

/// Creates 5-Spot's CustomResourceDefinitions in the cluster, and waits until they are served.
fn define(root: &Path, program: &Path, kubeconfig: &Path) -> Result<(), Box<dyn Error>> {
    let definitions = process::output(Command::new(program).args(["generate", "crd"]))?;
    let kubectl = cluster::kubectl_of(root)?;
    let apply = ["apply", "--server-side", "--force-conflicts"].as_slice();
    let wait = ["wait", "--for=condition=Established", "--timeout=1m"].as_slice();
    for words in [apply, wait] {
        let mut running = Command::new(&kubectl)
            .args(words)
            .args(["-f", "-"])
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = running.stdin.take() {
            input.write_all(definitions.as_bytes())?;
        }
        if !running.wait()?.success() {
            return Err(format!("the definitions: kubectl {} failed", words[0]).into());
        }
    }
    Ok(())
}

/// Starts an operator for all namespaces. Its log is next to the kubeconfig.
fn start(root: &Path, kubeconfig: &Path) -> Result<Operator, Box<dyn Error>> {
    let log = fs::File::create(kubeconfig.with_file_name("5spot.log"))?;
    let words = [
        "--lease-namespace=default",
        "--allow-loopback-workload-server",
        "--metrics-port=0",
        "--health-port=0",
    ];
    let child = Command::new(cluster::target(root).join("debug/5spot-controller"))
        .args(words)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Ok(Operator(child))
}

/// Runs a case. A broken promise is a result, not an error.
fn run_case(
    root: &Path,
    case: &Case,
    (program, kubeconfig): (&Path, &Path),
    restart: &str,
) -> Result<Value, Box<dyn Error>> {
    let files = case
        .files
        .iter()
        .map(|(flag, file)| format!("{flag}={EXAMPLES}/{file}"));
    let done = Command::new(program)
        .arg("conformance")
        .args(files)
        .args(case.words)
        .args(["--restart-command", restart])
        .args(["--timeout=2m", "-o", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    match done.status.code() {
        Some(0 | 1) => Ok(serde_json::from_slice(&done.stdout)?),
        _ => Err(format!("{}: the suite could not be run", case.name).into()),
    }
}

/// The section of the page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut sections = Vec::new();
    for result in stored_results::results(&root.join(RESULTS))? {
        let named = |field: &str| result[field].as_str().unwrap_or_default();
        let [kept, broken, not_run] =
            ["kept", "broken", "notRun"].map(|field| result[field].as_u64().unwrap_or(0));
        let mut text = format!(
            "### {}\n\n{} and {} with Cluster API {} on Kubernetes {}: {kept} kept, {broken} broken, \
             {not_run} not run.\n\n| promise | result | why |\n|---|---|---|\n",
            named("title"),
            named("bootstrap"),
            named("infrastructure"),
            named("clusterAPI"),
            named("kubernetes"),
        );
        for item in result["items"].as_array().into_iter().flatten() {
            let said = |field: &str| item[field].as_str().unwrap_or_default();
            let verdict = match said("result") {
                "Kept" => "kept",
                "Broken" => "broken",
                _ => "not run",
            };
            let why = said("message").replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| `{}` | {verdict} | {why} |", said("name"));
        }
        sections.push(text);
    }
    Ok(sections.join("\n"))
}
