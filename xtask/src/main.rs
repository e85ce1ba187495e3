//! The project's one task runner: `cargo xtask <task>`.

mod builtin_kind;
mod builtin_schema;
mod cluster;
mod conformance;
mod creation;
mod dependency;
mod diagram;
mod differential;
mod document;
mod generate;
mod go;
mod how_we_test;
mod kept;
mod pod_security;
mod process;
mod promises;
mod protobuf;
mod provider_suite;
mod public;
mod record;
mod release;
mod scale;
mod shape;
mod size;
mod source;
mod tool;
mod upgrade;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  gen [--check]  write every generated file; with --check, say what would change and fail
  deps           compare who depends on whom with the house's table
  size           compare files and functions with the house's limits, and print how much there
                 is to read of controller and runtime
  conformance --data DIR
                 run the conformance cases in DIR, and keep and print the results
  differential [--cases N] [--from I] [--seed S] [--jobs J] [--show K] [--case I] [--record]
                 put generated cases to Kubernetes' own libraries and to our engine, and
                 compare (needs Go), printing K of those that differ; with --from, those from
                 number I on; with --case, print that one
  differential --among FILE
                 the same with the cases alone that a run has printed on standard error; with
                 --record, only what explains them is kept
  differential --question FILE
                 the same with one question (JSON, as --case prints it)
  differential --questions FILE
                 put the questions of a file to both, one a line: {\"id\": .., \"question\": ..},
                 print each difference and count them; needs no Go where each line holds the
                 answer of Kubernetes' libraries under \"kubernetes\"
  differential --server [--kubeconfig FILE] [--cases N] [--from I] [--seed S] [--case I]
               [--show K] [--kind KIND] [--record]
                 put generated requests about every built-in kind to a real API server and to
                 the embedded one, and compare (needs Go unless FILE leads to a server),
                 printing K of the causes that differ
  documents DIR  compare the examples of Kubernetes' documents about admission, in the folder
                 DIR, with those that tests use
  gostd [--seed S]
                 put 20,000 generated texts for each function to Go's standard library and to
                 crates/gostd, and compare (needs Go)
  mutations      have Kubernetes' own libraries carry out generated mutations, and keep them as test
                 data of ours (needs Go)
  pod-security   take the fixtures of Kubernetes' Pod Security Standards over as test data of
                 ours (needs Go)
  cluster up [--name NAME] [--kubernetes 1.30] [--cluster-api 1.8] [--providers real]
                 run a real Kubernetes and a real Cluster API in the background (needs Go);
                 one with a name runs beside the others; with real providers, those of kubeadm
                 and the in-memory one instead of stand-ins
  cluster down [--name NAME]
                 stop them
  cluster restart-providers [--name NAME]
                 restart the processes of their providers, and wait until they are ready
  cluster kubeconfig [--name NAME]
                 print the path of their kubeconfig
  providers [--name NAME]
                 run `5spot conformance` against the providers of the running cluster, and keep
                 the results
  promises [--check]
                 keep the results of the last whole runs of the end-to-end suite, and of its
                 last runs with every fault; with --check, say which of the first differ
                 from those that are kept and fail
  creation       measure the creation of a Pod on the embedded server and on a real one, and keep the
                 times (needs Go)
  kubectl        build kubectl where there is none, and print the PATH to it (needs Go)
  release --dry-run [--registry PREFIX] [--binaries DIR]
                 make everything that a release consists of in target/release-files: archives,
                 images (needs buildah), chart, manifests, krew manifest, bills of materials
                 (needs cargo-cyclonedx), sums; fail if an image is too large
  release --check-reproducible [--program 5spot|5spot-reclaim-agent]
                 build the last commit on two paths, with images, and compare the bytes
  release --record
                 keep the sizes of what --dry-run has made for docs/releases.md
  upgrade [--cluster NAME] [--record]
                 run the first version's operator and this one under the manifests of either, with
                 machines in every phase, on the embedded server or on a running cluster (needs
                 kubectl)
  upgrade --platform kubernetes|cluster-api [--record]
                 upgrade Kubernetes and Cluster API under a running operator, in this order, in a
                 cluster of its own (needs Go and kubectl)
  krew DIR       write the krew manifest of the archives in DIR
  tools          build helm, clusterctl, kstatus and actionlint, and print the PATH to them (needs Go)
  record [--kubernetes 1.30]
                 keep a real API server's answers to the corpus (needs Go), and measure
  record --agreement
                 only measure how far the embedded server agrees with what is kept
";

const NO_DATA: &str =
    "no conformance data; give its folder: cargo xtask conformance --data DIR";

/// The faults that a task found, one per line; empty if there are none.
type Faults = Vec<String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["gen"] => generate::write(&root()),
        ["gen", "--check"] => generate::check(&root()),
        ["deps"] => dependency::check(&root()),
        ["size"] => size::check(&root()),
        ["conformance", "--data", data] => {
            conformance::engine::measure(&root(), Path::new(data)).map(none)
        }
        ["conformance", ..] => Err(NO_DATA.into()),
        ["differential", words @ ..] => differential::task(&root(), words),
        ["documents", folder] => document::check(&root(), Path::new(folder)),
        ["gostd"] => differential::gostd::run(&root(), 20_000, 1),
        ["gostd", "--seed", seed] => match seed.parse() {
            Ok(seed) => differential::gostd::run(&root(), 20_000, seed),
            Err(_) => return usage(),
        },
        ["cluster", words @ ..] => match cluster::task(&root(), words) {
            Some(done) => done.map(none),
            None => return usage(),
        },
        ["providers", words @ ..] => provider_suite::task(&root(), words).map(none),
        ["record"] => record::record(&root(), record::MINOR).map(none),
        ["record", "--kubernetes", minor] => record::record(&root(), minor).map(none),
        ["record", "--agreement"] => record::measure(&root()).map(none),
        ["mutations"] => differential::mutation::write(&root(), 600).map(none),
        ["creation"] => creation::measure(&root()).map(none),
        ["pod-security"] => pod_security::write(&root()).map(none),
        ["promises"] => promises::keep(&root()).map(none),
        ["promises", "--check"] => promises::check(&root()),
        ["kubectl"] => cluster::kubectl(&root()).map(none),
        ["release", words @ ..] => release::task(&root(), words),
        ["krew", folder] => release::krew(Path::new(folder)).map(none),
        ["upgrade", words @ ..] => upgrade::run(&root(), words).map(none),
        ["tools"] => tool::build(&root()).map(none),
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

/// The root of the source tree: the folder above this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
