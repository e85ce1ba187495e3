//! `cargo xtask upgrade`: checks that machines are kept during upgrades.
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
mod page;
mod platform;
mod program;
mod sequence;
mod server;

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(crate) use page::{PATH, page};
use platform::UpgradeOrder;
use program::Programs;
use sequence::Results;
use server::Server;

/// The folder of the results, below the root; a file for each server.
const RESULTS: &str = "e2e/upgrades";

/// Builds the programs, runs the sequence of the arguments, and prints the result for each machine.
/// With `--record`, the result is kept for the page.
///
/// # Errors
/// An argument is invalid, something cannot be built, or a machine was not kept.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let (words, is_recorded) = match words {
        [words @ .., "--record"] => (words, true),
        words => (words, false),
    };
    let place = match words {
        [] => Target::Embedded,
        ["--cluster", name] => Target::Cluster(name),
        ["--platform", first] => {
            Target::Platform(UpgradeOrder::parse(first).ok_or(USAGE)?)
        }
        _ => return Err(USAGE.into()),
    };
    let programs = Programs::build(root)?;
    let folder = crate::cluster::target(root).join("upgrade/run");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (results, kept, label) = match place {
        Target::Embedded => {
            versions(&programs, &Server::embedded(&programs, &folder)?, &folder)?
        }
        Target::Cluster(name) => {
            versions(&programs, &Server::real(root, name)?, &folder)?
        }
        Target::Platform(first) => platform::run(root, &programs, (first, &folder))?,
    };
    let faults = results.faults();
    print!("{}", page::table(&results.result()));
    if is_recorded {
        let folder = root.join(RESULTS);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{label}.json"));
        fs::write(path, serde_json::to_string_pretty(&kept)? + "\n")?;
        println!("`cargo xtask gen` writes this to {PATH}");
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("not kept:\n{}", faults.join("\n")).into())
}

/// The component that is upgraded, and the server.
enum Target<'w> {
    /// 5-Spot, on the embedded server.
    Embedded,
    /// 5-Spot, on the running cluster with this name.
    Cluster(&'w str),
    /// Kubernetes and Cluster API.
    Platform(UpgradeOrder),
}

const USAGE: &str =
    "usage: upgrade [--cluster NAME | --platform kubernetes|cluster-api] [--record]";

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
