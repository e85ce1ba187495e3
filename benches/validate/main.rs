//! How long `5spot validate` takes for a fleet: the wall-clock time of the whole process.
//!
//! ```console
//! $ cargo build --release --bin 5spot --features fivespot-cli/allocator
//! $ cargo run --release --bin validate -- --manifests 1000
//! ```
//!
//! Writes the given number of manifests of ScheduledMachines, one per file, into a folder of its
//! own. Runs the program on it repeatedly, and prints the quickest, the median and the slowest run.
//! Exits with 1 if a manifest was refused, because the measurement is then invalid.
//!
//! With `--tree`, it validates ten thousand manifests in which much is wrong, and prints as JSON what
//! was said about each sort of them, and what it took. Exits with 1 if a document does not have its
//! verdict, or if more than 300 MiB were used. With `--beside`, another program validates them too:
//!
//! ```console
//! $ GOBIN=$PWD/target/tools go install sigs.k8s.io/kubectl-validate@v0.0.4
//! $ cargo run --release --bin validate -- --tree --beside target/tools/kubectl-validate \
//!     --record proof/results/validate.json
//! ```

mod tree;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use clap::Parser;
use tree::Programs;

/// Measures `5spot validate` as a whole.
#[derive(Debug, Parser)]
struct Args {
    /// The number of manifests
    #[arg(long, default_value_t = 1_000)]
    manifests: usize,
    /// The number of runs
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// The program to run
    #[arg(long, default_value = "target/release/5spot")]
    program: PathBuf,
    /// Validate a tree of manifests of every sort
    #[arg(long)]
    tree: bool,
    /// With --tree: the number of files of each sort
    #[arg(long, default_value_t = 500)]
    each: usize,
    /// With --tree: kubectl-validate, to validate the same manifests
    #[arg(long, value_name = "PROGRAM", requires = "tree")]
    beside: Option<PathBuf>,
    /// With --tree: store the result in this file
    #[arg(long, value_name = "FILE", requires = "tree")]
    record: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    if args.tree {
        return tree(&args);
    }
    let folder = env::temp_dir().join(format!("5spot-validate-{}", process::id()));
    fs::create_dir(&folder)?;
    let times = measure(&args, &folder);
    fs::remove_dir_all(&folder)?;
    let Some(mut times) = times? else {
        eprintln!("a manifest was rejected; run `5spot validate` on one to see why");
        return Ok(ExitCode::FAILURE);
    };
    times.sort_unstable();
    let millis =
        |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1_000.0);
    println!(
        "{} manifests, {} runs: fastest {:.0} ms, median {:.0} ms, slowest {:.0} ms",
        args.manifests,
        times.len(),
        millis(times.first()),
        millis(times.get(times.len() / 2)),
        millis(times.last()),
    );
    Ok(ExitCode::SUCCESS)
}

/// Prints what was said about a tree of manifests.
fn tree(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let programs = Programs {
        five_spot: &args.program,
        kubectl_validate: args.beside.as_deref(),
        each: args.each,
    };
    let results = programs.measure()?;
    let text = serde_json::to_string_pretty(&results)?;
    println!("{text}");
    if let Some(file) = &args.record {
        fs::write(file, format!("{text}\n"))?;
    }
    let faults = tree::faults(&results);
    for fault in &faults {
        eprintln!("{fault}");
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}

/// The duration of each run. `None` if one refused a manifest. The first run, for which the caches
/// of the system are cold, is not counted.
fn measure(args: &Args, folder: &Path) -> Result<Option<Vec<Duration>>, Box<dyn Error>> {
    for number in 0..args.manifests {
        fs::write(folder.join(format!("{number}.yaml")), manifest(number)?)?;
    }
    let mut times = Vec::new();
    for _ in 0..=args.runs {
        let begun = Instant::now();
        let ended = Command::new(&args.program)
            .arg("validate")
            .arg("--file")
            .arg(folder)
            .stdout(Stdio::null())
            .status()?;
        times.push(begun.elapsed());
        if !ended.success() {
            return Ok(None);
        }
    }
    times.remove(0);
    Ok(Some(times))
}

/// A typical manifest. There are a dozen different schedules.
fn manifest(number: usize) -> Result<String, std::fmt::Error> {
    let (hour, group) = (number % 12, number / 100);
    let mut text = String::new();
    write!(
        text,
        "apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata:
  name: worker-{number}
  namespace: machines
  labels:
    team: team-{group}
spec:
  clusterName: cluster-{group}
  schedule:
    daysOfWeek: [mon-fri, sat]
    hoursOfDay: [\"{hour}-20\"]
    timezone: Europe/Amsterdam
  bootstrapSpec:
    apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
    kind: K0sWorkerConfig
    spec:
      version: v1.30.0+k0s.0
  infrastructureSpec:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: RemoteMachine
    spec:
      address: worker-{number}.example.com
      port: 22
      user: root
  machineTemplate:
    labels:
      example.com/role: worker
  priority: 50
  gracefulShutdownTimeout: 5m
  nodeDrainTimeout: 10m
  nodeTaints:
  - key: example.com/spot
    effect: NoSchedule
"
    )?;
    Ok(text)
}
