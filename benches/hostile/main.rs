//! What strangers can cost the operator and the webhook: each against tenants with large objects,
//! a hostile workload cluster and hostile clients.
//!
//! ```console
//! $ cargo build --release --bin 5spot
//! $ cargo run --release -p benches --bin hostile
//! ```
//!
//! Runs an API server of its own. Each row starts the program anew as a child process, and prints
//! how much memory it took at most, the longest wait for `/healthz`, and what everybody else
//! waited: for the operator, how late a machine of somebody else was created at its edge; for the
//! webhook, how long an honest question took. Exits with 1 where a bound is broken.

mod child;
mod clients;
mod management;
mod row;
mod workload;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// What goes wrong ends the program.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The memory limit that the manifests set, in bytes.
const MOST_MEMORY: u64 = 256 << 20;
/// How long a probe may wait.
const MOST_HEALTH: Duration = Duration::from_secs(1);
/// How late an edge may be met, and how long an honest question may take.
const MOST_WAIT: Duration = Duration::from_secs(2);

/// Measures what strangers can cost the operator and the webhook.
#[derive(Debug, Parser)]
struct Args {
    /// The program
    #[arg(long, default_value = "target/release/5spot")]
    program: PathBuf,
    /// Only the rows whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// Where kubeconfigs, certificates and logs are put
    #[arg(long, default_value = "target/hostile")]
    folder: PathBuf,
}

/// The result of one row.
#[derive(Debug)]
struct Measured {
    name: String,
    /// In bytes; none where the program has ended.
    memory: Option<u64>,
    health: Duration,
    /// None where nothing came.
    wait: Option<Duration>,
}

impl Measured {
    fn is_within_bounds(&self) -> bool {
        self.memory.is_some_and(|memory| memory <= MOST_MEMORY)
            && self.health <= MOST_HEALTH
            && self.wait.is_some_and(|wait| wait <= MOST_WAIT)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.map_or("ended".to_owned(), |memory| {
            format!("{} MiB", memory.div_ceil(1 << 20))
        });
        let millis = |time: Duration| format!("{} ms", time.as_millis());
        let wait = self.wait.map_or("never".to_owned(), millis);
        let verdict = if self.is_within_bounds() {
            ""
        } else {
            "BROKEN"
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let measured = match runtime {
        Ok(runtime) => runtime.block_on(measure(&args)),
        Err(error) => Err(error.into()),
    };
    match measured {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Measures every row. Says whether all bounds held.
async fn measure(args: &Args) -> Result<bool, Failure> {
    std::fs::create_dir_all(&args.folder)?;
    println!(
        "{:<46} {:>9} {:>10} {:>10}",
        "against", "memory", "/healthz", "others"
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
    Ok(is_fine)
}
