//! `cargo judge forks`: what a test costs with a fork of a server in its process, and with a server of its
//! own.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::program::serve;
use crate::target;

/// Where the results are kept, below the engine.
pub(crate) const RESULT: &str = "judge/forks.json";

/// How often `kubemu serve` is started.
const STARTS: usize = 5;

/// Runs `crates/apiserver/benches/fork.rs`, starts `kubemu serve` and a real control plane, and keeps the
/// times and the memory.
///
/// # Errors
/// A program cannot be built or started, or a bound of the benchmark is exceeded.
pub(crate) fn measure(root: &Path) -> Result<(), Box<dyn Error>> {
    let folder = target().join("forks");
    fs::create_dir_all(&folder)?;
    let file = folder.join("forks.json");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |directory: &Path, words: &[&str]| -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(&cargo);
        let command = command.args(words).current_dir(directory);
        if command.env("FORK_RESULTS", &file).status()?.success() {
            Ok(())
        } else {
            Err(format!("`cargo {}` failed", words.join(" ")).into())
        }
    };
    run(root, &["bench", "--bench", "fork"])?;
    let mut results: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let server = serve(&folder, &folder.join("kubeconfig"))?;
        let seconds = begun.elapsed().as_secs_f64();
        let bytes = resident(server.child.id())?;
        starts.push(json!({"seconds": seconds, "bytes": bytes}));
    }
    results["serve"] = starts.into();
    let above = root.parent().unwrap_or(root);
    let cluster = ["xtask", "cluster"];
    let name = ["--name", "forks"];
    // Builds what is not built yet.
    run(above, &[&cluster[..], &["up", "--alone"], &name].concat())?;
    run(above, &[&cluster[..], &["down"], &name].concat())?;
    let begun = Instant::now();
    run(above, &[&cluster[..], &["up", "--alone"], &name].concat())?;
    results["kubernetes"] = json!({
        "seconds": begun.elapsed().as_secs_f64(),
        "bytes": memory_of(&above.join("target/cluster/run-forks"))?,
    });
    run(above, &[&cluster[..], &["down"], &name].concat())?;
    let text = serde_json::to_string_pretty(&results)?;
    fs::write(root.join(RESULT), format!("{text}\n"))?;
    println!("`cargo judge gen` writes the times to the documentation");
    Ok(())
}

/// The memory of a process that is resident, in bytes.
fn resident(process: u32) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|it| it.trim().split(' ').next());
    let kibibytes: u64 = kibibytes.ok_or("no VmRSS")?.parse()?;
    Ok(kibibytes << 10)
}

/// The memory of the processes whose arguments name a folder: kube-apiserver and etcd.
fn memory_of(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let folder = fs::canonicalize(folder)?.display().to_string();
    let mut sum = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Ok(process) = name.parse() else { continue };
        let arguments = fs::read(format!("/proc/{process}/cmdline"));
        let arguments =
            String::from_utf8_lossy(&arguments.unwrap_or_default()).into_owned();
        if arguments.contains(&folder) && !arguments.contains("controller-manager") {
            sum += resident(process)?;
        }
    }
    Ok(sum)
}
