//! What judges the engine: `cargo judge <task>`, in the folder of the workspace.

mod bootstrap;
mod builtin_kind;
mod builtin_schema;
mod controllers;
mod creation;
mod document;
mod envtest;
mod forks;
mod generate;
mod library;
mod package;
mod page;
mod played_kubelet;
mod pod_security;
mod policies;
mod program;
mod protobuf;
mod recorder;
mod speed;
mod upstream;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubemu_judge::record::BoxError;
use kubemu_judge::server;

const USAGE: &str = "\
usage: cargo judge <task>

With the API server of $KUBECONFIG, a Kubernetes of its own and nothing else
(`cargo xtask cluster up --alone`, in the folder above, starts one and prints KUBECONFIG):
  record [AREA/CASE...]
                 record its responses to the corpus, or to some cases
  server [--cases N] [--from I] [--seed S] [--case I] [--show K] [--kind KIND] [--record]
                 send generated requests about every built-in kind to it and to the embedded
                 server, and compare the responses, printing K of the causes that differ; start
                 it with --plugins NodeRestriction
  upstream --real
                 run Kubernetes' own end-to-end tests on it, as below
  policies --real
                 also send it the cases of public policies, as below
  bootstrap      write the roles and bindings that it has from its start as data of the embedded server
  creation       measure the creation of a Pod on the embedded server and on it, and keep the times

Without one:
  gen [--check]  write every generated file; with --check, print what would change and fail
  packages       package the crates, and build and run examples/operator with the packages only
  controllers [--seconds N]
                 run the kube-controller-manager of $KUBE_CONTROLLER_MANAGER, and the
                 kube-scheduler of $KUBE_SCHEDULER if there is one, against `kubemu serve`, which
                 `cargo build --workspace --bins` builds, and fail if they lack a kind
  forks          measure forks of a server, and the start of `kubemu serve` and of a Kubernetes (needs
                 Go), and keep the times
  envtest        run the tests of engine/go, and controller-runtime's own suites with its package
                 in place of envtest, against the `kubemu` that `cargo build --workspace --bins`
                 builds (needs Go)
  policies [--record] [--only NAME] [--repositories DIR]
                 test public policies with the cases of judge/policies/cases, those of repositories from
                 checkouts below DIR, with the `kubemu` that `cargo build --workspace --bins` builds
  agreement      measure the agreement of the embedded server with the recorded responses
  conformance --data DIR
                 run the conformance cases in DIR, and record and print the results
  documents DIR [TEST.rs...]
                 compare the examples of Kubernetes' documents about admission, in the folder
                 DIR, with those that tests use: tests of the engine, and these

With Kubernetes' own libraries (these need Go):
  speed          measure how long definitions, policies and objects take with them, with cel-go
                 alone and with the engine in profile `dist`, and `kubemu test`, and keep the times
  library [--cases N] [--from I] [--seed S] [--jobs J] [--show K] [--case I] [--record]
                 evaluate generated cases with them and with our engine, and compare the
                 results, printing K of those that differ; with --from, start at number I;
                 with --case, print that case
  library --among FILE
                 the same with only the cases that a run has printed on standard error; with
                 --record, only their explanations are recorded
  library --question FILE
                 the same with one question (JSON, as --case prints it)
  library --questions FILE
                 evaluate the questions of a file with both, one per line:
                 {\"id\": .., \"question\": ..}, print each difference and count them; needs no
                 Go if each line has the answer of Kubernetes' libraries under \"kubernetes\"
  upstream [--record] [--only TEXT]... [--processes N]
                 run the specs of Kubernetes' own end-to-end tests that need no container on `kubemu
                 serve`, and fail if one does not pass that a real server passes, unless
                 judge/upstream/differences.yaml says why; with --only, the specs with these texts
  gostd [--seed S]
                 call Go's standard library and crates/gostd with 20,000 generated texts for
                 each function, and compare the results
  mutations      apply generated mutations, and write them as test data
  pod-security   write the fixtures of Kubernetes' Pod Security Standards as test data
";

/// The faults that a task found, one per line; empty if there are none.
type Faults = Vec<String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match texts.as_slice() {
        ["record", ..] => wait(recorder::record(&words[1..])).map(none),
        ["packages"] => package::check(&root()),
        ["controllers", words @ ..] => controllers::run(words),
        ["envtest"] => envtest::run(&root()),
        ["policies", words @ ..] => policies::run(&root(), words),
        ["upstream", words @ ..] => upstream::run(&root(), words),
        ["agreement"] => wait(recorder::agree()).map(none),
        ["bootstrap"] => bootstrap::write(&root()).map(none),
        ["speed"] => speed::measure(&root()).map(none),
        ["forks"] => forks::measure(&root()).map(none),
        ["creation"] => creation::measure(&root()).map(none),
        ["server", ..] => wait(compare_servers(&words[1..])),
        ["gen"] => generate::write(&root()).map(none),
        ["gen", "--check"] => generate::check(&root()),
        ["conformance", "--data", data] => {
            page::engine::measure(&root(), Path::new(data)).map(none)
        }
        ["documents", folder, tests @ ..] => {
            document::check(&root(), Path::new(folder), tests)
        }
        ["library", words @ ..] => library::task(&root(), words),
        ["gostd"] => library::gostd::run(&root(), 20_000, 1),
        ["gostd", "--seed", seed] => match seed.parse() {
            Ok(seed) => library::gostd::run(&root(), 20_000, seed),
            Err(_) => return usage(),
        },
        ["mutations"] => library::mutation::write(&root(), 600).map(none),
        ["pod-security"] => pod_security::write(&root()).map(none),
        _ => return usage(),
    };
    match done {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

/// The result of a task that checks nothing.
fn none((): ()) -> Faults {
    Faults::new()
}

/// Runs what talks to a server.
fn wait<T>(task: impl Future<Output = Result<T, BoxError>>) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(task)
        .map_err(|error| error as Box<dyn Error>)
}

/// A client of the real API server.
async fn client() -> Result<Client, BoxError> {
    let kubeconfig = Kubeconfig::read()?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // A response with `Retry-After` is one like any other.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Runs the cases. Verdicts that differ are faults.
async fn compare_servers(words: &[String]) -> Result<Faults, BoxError> {
    let plan = server::Plan::read(words)?;
    let verdicts = server::run(client().await?, &plan).await?;
    Ok(if verdicts == 0 {
        Faults::new()
    } else {
        vec![format!("{verdicts} verdicts differ")]
    })
}

/// The folder of the engine.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The target directory, which both workspaces share.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || root().join("../target"),
        |directory| root().join(directory),
    )
}
