//! The cost of hostile input for the operator and the webhook: tenants with large objects or many,
//! a hostile workload cluster and hostile clients.
//!
//! ```console
//! $ cargo build --profile dist --bin 5spot-controller --bin 5spot-webhook \
//!     --features fivespot-controller/allocator,fivespot-webhook/allocator
//! $ cargo run --release --bin hostile
//! ```
//!
//! Runs an API server of its own. Each row starts the operator or the webhook as a new child process within the
//! CPU limit of the manifests, and prints its peak memory, the longest wait for `/healthz`, and the
//! wait of an honest client: for the operator, how late an unrelated machine was created at its
//! edge; for the webhook, the duration of an honest review. The second table has what one event of
//! a tenant costs. Exits with 1 if a bound is exceeded.

#![allow(
    clippy::too_many_lines,
    reason = "what is searched and what must hold is read from its top"
)]

mod child;
mod clients;
mod cost;
mod limit;
mod management;
mod row;
mod workload;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use benches::BoxError;
use clap::Parser;

/// The memory limit that the manifests set, in bytes.
const MAX_MEMORY: u64 = 256 << 20;
/// The longest allowed duration of a probe.
const MAX_HEALTH_DURATION: Duration = Duration::from_secs(1);
/// How late an edge may be met, and the longest allowed duration of an honest review.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Measures the cost of hostile input for the operator and the webhook.
#[derive(Debug, Parser)]
struct Args {
    /// The operator, as it is shipped
    #[arg(long, default_value = "target/dist/5spot-controller")]
    controller: PathBuf,
    /// The webhook, as it is shipped
    #[arg(long, default_value = "target/dist/5spot-webhook")]
    webhook: PathBuf,
    /// The CPU limit in thousandths of a core: that of the manifests; 0 sets none
    #[arg(long, default_value_t = 500)]
    cpu_millis: u32,
    /// Store the second table in this file
    #[arg(long)]
    record: Option<PathBuf>,
    /// Only the rows whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// The folder for kubeconfigs, certificates and logs
    #[arg(long, default_value = "target/hostile")]
    folder: PathBuf,
}

/// The result of one row.
#[derive(Debug)]
struct RowResult {
    name: String,
    /// In bytes. `None` if the program has ended.
    memory: Option<u64>,
    health: Duration,
    /// `None` if there was no response.
    wait: Option<Duration>,
}

impl RowResult {
    fn is_within_bounds(&self) -> bool {
        excess(self.memory, self.health, self.wait).is_empty()
    }
}

/// Which of the bounds of every row are exceeded.
fn excess(
    memory: Option<u64>,
    health: Duration,
    wait: Option<Duration>,
) -> Vec<&'static str> {
    let within = [
        ("memory", memory.is_some_and(|memory| memory <= MAX_MEMORY)),
        ("/healthz", health <= MAX_HEALTH_DURATION),
        ("lateness", wait.is_some_and(|wait| wait <= MAX_WAIT)),
    ];
    within
        .into_iter()
        .filter_map(|(name, is_within)| (!is_within).then_some(name))
        .collect()
}

impl fmt::Display for RowResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.map_or("ended".to_owned(), |memory| {
            format!("{} MiB", memory.div_ceil(1 << 20))
        });
        let millis = |time: Duration| format!("{} ms", time.as_millis());
        let wait = self.wait.map_or("never".to_owned(), millis);
        let verdict = if self.is_within_bounds() {
            ""
        } else {
            "EXCEEDED"
        };
        write!(
            formatter,
            "{:<46} {memory:>9} {:>10} {wait:>10}  {verdict}",
            self.name,
            millis(self.health)
        )
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    benches::run(measure(&args))
}

/// Measures every row. Returns whether all values are within the bounds.
async fn measure(args: &Args) -> Result<bool, BoxError> {
    std::fs::create_dir_all(&args.folder)?;
    println!(
        "{:<46} {:>9} {:>10} {:>10}",
        "threat", "memory", "/healthz", "client"
    );
    let mut is_fine = true;
    for threat in row::Threat::ALL {
        if !threat.name().contains(&args.only) {
            continue;
        }
        let measured = row::measure(args, threat).await?;
        is_fine &= measured.is_within_bounds();
        println!("{measured}");
    }
    Ok(measure_costs(args).await? && is_fine)
}

/// Measures what each event costs. Returns whether all values are within the bounds.
async fn measure_costs(args: &Args) -> Result<bool, BoxError> {
    println!("\n{}", cost::Cost::header());
    let mut is_fine = true;
    let mut costs: Vec<cost::Cost> = Vec::new();
    let mut idle: Vec<cost::Cost> = Vec::new();
    for row in &cost::Row::ALL {
        if !row.is_idle() && !row.name().contains(&args.only) {
            continue;
        }
        let measured = cost::measure(args, row, &idle).await?;
        let excess = measured.excess();
        is_fine &= excess.is_empty();
        let verdict = if excess.is_empty() {
            String::new()
        } else {
            format!("  EXCEEDED: {}", excess.join(", "))
        };
        println!("{measured}{verdict}");
        if row.is_idle() {
            idle.push(measured.clone());
        }
        costs.push(measured);
    }
    if let Some(file) = &args.record {
        let rows: Vec<_> = costs.iter().map(cost::Cost::to_value).collect();
        let text = serde_json::to_string_pretty(&serde_json::json!({
            "cpuMillis": args.cpu_millis,
            "rows": rows,
        }))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, text + "\n")?;
    }
    Ok(is_fine)
}
