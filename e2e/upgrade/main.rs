//! `cargo run --bin upgrade`: checks that machines are kept during upgrades.
//!
//! For 5-Spot, it runs an operator of the first version and one of this version under the
//! definitions, policies and roles of either, with machines in every phase.
//!
//! A sequence of upgrades and downgrades changes one of the two at a time, in both directions, with
//! the same machines. After each step all machines must be unchanged, and a new one must open and
//! be removed. The clock is that of this machine, because the operators are separate processes.
//!
//! For Kubernetes and Cluster API, it runs one operator, also with machines in every phase.
//!
//! The first version is a commit in a file, because a tag is not in every clone. An operator crate
//! of that version in the workspace would bring all its dependencies in two versions.

mod machine;
mod operator;
mod platform;
mod program;
mod sequence;
mod server;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fivespot_testkit::target_directory;
use serde_json::{Value, json};

use platform::UpgradeOrder;
use program::Programs;
use sequence::Results;
use server::Server;

/// The folder of the results, below the root; a file for each server.
const RESULTS: &str = "e2e/upgrades";

/// Which upgrades to run. Both programs are built first.
#[derive(Debug, Parser)]
struct Args {
    /// The running cluster on which 5-Spot is upgraded, in place of the embedded server (needs kubectl)
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Upgrade Kubernetes and Cluster API under a running operator, this one first, in a cluster of
    /// its own (needs Go and kubectl)
    #[arg(long, conflicts_with = "cluster")]
    platform: Option<UpgradeOrder>,
    /// Keep the result for docs/upgrades.md
    #[arg(long)]
    record: bool,
}

fn main() -> ExitCode {
    match run(&root(), &Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the source tree: the folder above this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Runs the sequence of the arguments, and prints what was not kept.
///
/// # Errors
/// Something cannot be built, or a machine was not kept.
fn run(root: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let programs = Programs::build(root)?;
    let folder = target_directory().join("upgrade/run");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (results, kept, label) = match (args.platform, &args.cluster) {
        (Some(first), _) => platform::run(root, &programs, (first, &folder))?,
        (None, Some(name)) => versions(&programs, &Server::real(name)?, &folder)?,
        (None, None) => {
            versions(&programs, &Server::embedded(&programs, &folder)?, &folder)?
        }
    };
    let faults = results.faults();
    println!("{:#}", results.result());
    if args.record {
        let folder = root.join(RESULTS);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{label}.json"));
        fs::write(path, serde_json::to_string_pretty(&kept)? + "\n")?;
        println!("`cargo xtask gen` writes this to docs/upgrades.md");
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("not kept:\n{}", faults.join("\n")).into())
}

/// Runs the sequence of upgrades and downgrades of 5-Spot. Returns its results, the JSON to keep,
/// and the name of the file for it.
fn versions(
    programs: &Programs,
    server: &Server,
    folder: &Path,
) -> Result<(Results, Value, String), Box<dyn Error>> {
    let results = sequence::run(programs, server, folder)?;
    let kept = json!({
        "server": server.title(),
        "older": program::first(),
        "results": results.result(),
    });
    Ok((results, kept, server.label().to_owned()))
}

/// The text at a JSON pointer; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
