//! The project's one task runner: `cargo xtask <task>`.

mod cache;
mod circle;
mod cluster;
mod conformance;
mod dependency;
mod desk;
mod diagram;
mod figure;
mod generate;
mod how_we_test;
mod import;
mod marked_page;
mod promises;
mod release;
mod scale;
mod size;
mod stored_results;
mod tool;
mod upgrades;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  gen [--check]  write every generated file; with --check, print what would change and fail
  deps           compare the dependencies between crates with the allowed ones, and the circles
                 of files within each with the limit
  size           compare the files with the limits of their size and names
  figures        print which recorded results are about the sources as they are, and the command
                 that shows what has changed under the others
  figures --check FILE
                 fail if the sources of this result have changed since it was recorded
  figures --recorded FILE...
                 record that these results are about the sources as they are, also if their
                 content is as before
  cluster up [--name NAME] [--kubernetes 1.30] [--cluster-api 1.8] [--providers real]
                 run a real Kubernetes and a real Cluster API in the background (needs Go);
                 a named one can run at the same time as others; with real providers, those of
                 kubeadm and the in-memory one instead of stand-ins
  cluster up --alone [--name NAME] [--kubernetes 1.30] [--plugins A,B]
                 run only Kubernetes, with these admission plugins in addition to the default ones
  cluster build [--kubernetes 1.30] [--cluster-api 1.8] [--providers real]
                 only build the programs that `up` would start
  cluster down [--name NAME]
                 stop them
  cluster restart-providers [--name NAME]
                 restart the processes of their providers, and wait until they are ready
  cluster kubeconfig [--name NAME]
                 print the path of their kubeconfig
  promises [--check]
                 record the results of the last complete runs of the end-to-end suite, and of
                 its last runs with every fault; with --check, print which of the former differ
                 from the recorded ones and fail
  kubectl        build kubectl if it is missing, and print the PATH to it (needs Go)
  release --dry-run [--registry PREFIX] [--binaries DIR]
                 build all files of a release in target/release-files: archives,
                 images (needs buildah), chart, manifests, krew manifest, bills of materials
                 (needs cargo-cyclonedx), sums; fail if an image is too large
  release --check-reproducible [--program NAME]
                 build the last commit on two paths, with images, and compare the bytes
  release --licences TRIPLE DIR
                 write the licences of the packages that are linked for a target
                 into DIR/notices
  release --record
                 record the sizes of the files of --dry-run for docs/releases.md
  krew DIR       write the krew manifest of the archives in DIR
  tools          build helm, clusterctl, kstatus and actionlint, and print the PATH to them (needs Go)
  tools kueue    build Kueue's controller, and print the variable with which a promise runs it
                 (needs Go)
";

/// The faults that a task found, one per line; empty if there are none.
type Faults = Vec<String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["gen"] => generate::write(&root()),
        ["gen", "--check"] => generate::check(&root()),
        ["deps"] => dependency::check(&root()),
        ["size"] => size::check(&root()).map_err(Into::into),
        ["figures", words @ ..] => match figure::task(&root(), words) {
            Some(done) => done,
            None => return usage(),
        },
        ["cluster", words @ ..] => match cluster::task(&root(), words) {
            Some(done) => done.map(none),
            None => return usage(),
        },
        ["promises"] => promises::store(&root()).map(none),
        ["promises", "--check"] => promises::check(&root()),
        ["kubectl"] => cluster::kubectl(&root()).map(none),
        ["release", words @ ..] => release::task(&root(), words),
        ["krew", folder] => release::krew(Path::new(folder)).map(none),
        ["tools"] => tool::build(&root()).map(none),
        ["tools", "kueue"] => tool::build_kueue(&root()).map(none),
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
