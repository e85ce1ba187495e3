//! `cargo judge creation`: how long it takes to create a Pod on the embedded server, compared with
//! a real one.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::{client, target, wait};

/// Where the times are kept, below the engine.
pub(crate) const RESULT: &str = "judge/creation.json";

/// The functions of the benchmark, each with the path of its request.
pub(crate) const WAYS: [(&str, &str); 4] = [
    ("value", "in process, a value"),
    ("json", "in process, JSON"),
    ("embedded", "the embedded server, through TLS"),
    ("kubernetes", "kube-apiserver, through TLS"),
];

/// Runs `engine/crates/apiserver/benches/create.rs` with the API server of `$KUBECONFIG`, and keeps the
/// medians, in nanoseconds.
///
/// # Errors
/// The server cannot be reached, or the benchmark fails.
pub(crate) fn measure(root: &Path) -> Result<(), Box<dyn Error>> {
    let version = wait(async { Ok(client().await?.apiserver_version().await?) })?;
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(program)
        .args(["bench", "--bench", "create"])
        .current_dir(root)
        .status()?;
    if !done.success() {
        return Err("the benchmark failed".into());
    }
    let mut medians = Map::new();
    for (way, _) in WAYS {
        let file = format!("criterion/create-pod/{way}/new/estimates.json");
        let text = fs::read_to_string(target().join(file))?;
        let estimates: Value = serde_json::from_str(&text)?;
        let median = &estimates["median"];
        let interval = &median["confidence_interval"];
        let kept = json!({
            "median": median["point_estimate"],
            "least": interval["lower_bound"],
            "most": interval["upper_bound"],
        });
        medians.insert(way.to_owned(), kept);
    }
    let text = serde_json::to_string_pretty(&json!({
        "kubernetes": format!("{}.{}", version.major, version.minor), "nanoseconds": medians,
    }))?;
    fs::write(root.join(RESULT), format!("{text}\n"))?;
    println!("`cargo judge gen` writes the times to the documentation");
    Ok(())
}
