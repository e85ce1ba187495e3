//! `cargo run --bin providers`: runs `5spot conformance` against the providers of the running cluster, and
//! keeps the results for `internals/conformance.md`.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::Parser;
use fivespot_testkit::{cluster_directory, target_directory};
use kubemu_golang::process;
use serde_json::{Value, json};

/// Which cluster to use.
#[derive(Debug, Parser)]
struct Args {
    /// The cluster of this name of `cargo xtask cluster up` (needs kubectl)
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
}

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

fn main() -> ExitCode {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match run(package.parent().unwrap_or(package), &Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the suite against the providers of the running cluster, and keeps the results.
///
/// # Errors
/// No cluster runs, something cannot be built or started, or the suite cannot be run.
fn run(root: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let named = args.cluster.as_ref().map(|name| format!("--name {name}"));
    let named = named.unwrap_or_default();
    let state = cluster_directory(args.cluster.as_deref());
    let versions = fs::read_to_string(state.join("versions.json"))
        .map_err(|_| format!("start it with `cargo xtask cluster up {named}`"))?;
    let versions: Value = serde_json::from_str(&versions)?;
    let kubeconfig = state.join("admin.kubeconfig");
    let program = build(root)?;
    define(&program, &kubeconfig)?;
    let _operator = start(&kubeconfig)?;
    let cases = match versions["providers"].as_str() {
        Some("real") => OF_REAL,
        _ => OF_STAND_INS,
    };
    let restart = format!("cargo xtask cluster restart-providers {named}");
    fs::create_dir_all(root.join(RESULTS))?;
    for case in cases {
        eprintln!("{}", case.title);
        let mut result = run_case(root, case, (&program, &kubeconfig), &restart)?;
        result["title"] = json!(case.title);
        result["clusterAPI"] = versions["clusterAPI"].clone();
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
    Ok(target_directory().join("debug/5spot"))
}

/// Creates 5-Spot's CustomResourceDefinitions in the cluster, and waits until they are served.
fn define(program: &Path, kubeconfig: &Path) -> Result<(), Box<dyn Error>> {
    let definitions = process::output(Command::new(program).args(["generate", "crd"]))?;
    let apply = ["apply", "--server-side", "--force-conflicts"].as_slice();
    let wait = ["wait", "--for=condition=Established", "--timeout=1m"].as_slice();
    for words in [apply, wait] {
        let mut running = Command::new("kubectl")
            .args(words)
            .args(["-f", "-"])
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = running.stdin.take() {
            // Fails if kubectl has ended, which says why.
            let _ = input.write_all(definitions.as_bytes());
        }
        if !running.wait()?.success() {
            return Err(format!("the definitions: kubectl {} failed", words[0]).into());
        }
    }
    Ok(())
}

/// Starts an operator for all namespaces. Its log is next to the kubeconfig.
fn start(kubeconfig: &Path) -> Result<Operator, Box<dyn Error>> {
    let log = fs::File::create(kubeconfig.with_file_name("5spot.log"))?;
    let words = [
        "--lease-namespace=default",
        "--allow-loopback-workload-server",
        "--metrics-port=0",
        "--health-port=0",
    ];
    let child = Command::new(target_directory().join("debug/5spot-controller"))
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
