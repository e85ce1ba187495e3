//! `cargo xtask upgrade`: an operator of the first version and this one, under the definitions,
//! policies and roles of either, with machines in every phase.
//!
//! One sequence of upgrades and downgrades changes one of the two at a time, in both directions, with
//! the same machines: after each step no machine may have changed, and a new one has to be opened and removed. Time is that of
//! this machine, because the operators are programs.

mod machine;
mod operator;
mod page;
mod program;
mod sequence;
mod server;

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(crate) use page::{PATH, page};
use program::Programs;
use server::Server;

/// Where results are kept, below the root; a file for each server.
const KEPT: &str = "e2e/upgrades";

/// Builds both versions, runs the sequence on the embedded server or on the real cluster of a name, and prints
/// what happened to each machine. With `--record`, that is kept for the page.
///
/// # Errors
/// The words are not understood, something cannot be built, or a machine was not kept.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let (cluster, is_recorded) = match words {
        [] => (None, false),
        ["--record"] => (None, true),
        ["--cluster", name] => (Some(*name), false),
        ["--cluster", name, "--record"] => (Some(*name), true),
        _ => return Err("say: upgrade [--cluster NAME] [--record]".into()),
    };
    let programs = Programs::build(root)?;
    let folder = crate::cluster::target(root).join("upgrade/run");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let server = match cluster {
        None => Server::embedded(&programs, &folder)?,
        Some(name) => Server::real(root, name)?,
    };
    let results = sequence::run(&programs, &server, &folder)?;
    let faults = results.faults();
    print!("{}", page::table(&results.result()));
    if is_recorded {
        let folder = root.join(KEPT);
        fs::create_dir_all(&folder)?;
        let kept = json!({
            "server": server.title(),
            "older": program::first(),
            "results": results.result(),
        });
        let path = folder.join(format!("{}.json", server.label()));
        fs::write(path, serde_json::to_string_pretty(&kept)? + "\n")?;
        println!("`cargo xtask gen` puts this into {PATH}");
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("not kept:\n{}", faults.join("\n")).into())
}

/// What a JSON pointer finds as text; empty where there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
