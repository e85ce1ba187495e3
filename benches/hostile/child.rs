//! The measured program as a child process, with its health and memory.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child as Process, Command};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::limit::CpuLimit;
use crate::{Args, BoxError};

/// The interval of health probes.
const PROBE: Duration = Duration::from_millis(200);
/// The timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of the start.
const START: Duration = Duration::from_mins(1);

/// What a program has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Reconciles of ScheduledMachines.
    pub(crate) plans: u64,
}

impl Usage {
    /// What was used since then.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            plans: self.plans.saturating_sub(before.plans),
        }
    }
}

/// A running program. Dropping it kills it.
pub(crate) struct Child {
    process: Process,
    _limit: CpuLimit,
    health: SocketAddr,
    metrics: SocketAddr,
    worst: Arc<Mutex<Duration>>,
    probe: AbortHandle,
}

impl Drop for Child {
    fn drop(&mut self) {
        self.probe.abort();
    }
}

/// A loopback address that was free at the time of the call.
pub(crate) fn free_address() -> Result<SocketAddr, BoxError> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

impl Child {
    /// Starts a program with these arguments and those of its ports, under the CPU limit of
    /// `args`. Returns when it is healthy. Its log goes to a file.
    pub(crate) async fn start(
        args: &Args,
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, BoxError> {
        let (health, metrics) = (free_address()?, free_address()?);
        let log = File::create(log)?;
        let process = Command::new(program)
            .args(arguments)
            .args(["--bind-address", "127.0.0.1"])
            .args(["--metrics-port", &metrics.port().to_string()])
            .args(["--health-port", &health.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                format!(
                    "{}: {error}; `hostile/main.rs` says how to build it",
                    program.display()
                )
            })?;
        let limit = CpuLimit::apply(args.cpu_millis, process.id().unwrap_or_default())?;
        let begun = Instant::now();
        while probe(health).await.is_err() {
            if begun.elapsed() > START {
                return Err("the program is not healthy after a minute".into());
            }
            sleep(PROBE).await;
        }
        let worst = Arc::new(Mutex::new(Duration::ZERO));
        let shared = worst.clone();
        let task = tokio::spawn(async move {
            loop {
                let took = probe(health).await.unwrap_or(TIMEOUT);
                note(&shared, took);
                sleep(PROBE).await;
            }
        });
        Ok(Self {
            process,
            _limit: limit,
            health,
            metrics,
            worst,
            probe: task.abort_handle(),
        })
    }

    /// The address of its health port.
    pub(crate) fn health(&self) -> SocketAddr {
        self.health
    }

    /// The longest duration of a health probe so far.
    pub(crate) fn worst_health(&self) -> Duration {
        *self.worst.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The CPU time that it has used, to a hundredth of a second. Zero if it has ended.
    pub(crate) fn cpu(&self) -> Duration {
        benches::cpu_time(self.process.id().unwrap_or_default())
    }

    /// What it has used since its start.
    ///
    /// # Errors
    /// Its metrics cannot be read.
    pub(crate) async fn usage(&self) -> Result<Usage, BoxError> {
        let text = timeout(TIMEOUT, get(self.metrics, "/metrics")).await??;
        let plans = text
            .lines()
            .filter(|line| line.starts_with("fivespot_reconciliations_total"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        Ok(Usage {
            cpu: self.cpu(),
            plans,
        })
    }

    /// The peak of its memory in bytes. `None` if it has ended.
    pub(crate) fn peak(&mut self) -> Option<u64> {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return None;
        }
        benches::peak_memory(self.process.id()?)
    }
}

fn note(worst: &Mutex<Duration>, took: Duration) {
    let mut worst = worst.lock().unwrap_or_else(PoisonError::into_inner);
    *worst = took.max(*worst);
}

/// Probes health once, with a new connection. Returns the duration.
async fn probe(address: SocketAddr) -> Result<Duration, BoxError> {
    let begun = Instant::now();
    let response = timeout(TIMEOUT, get(address, "/healthz")).await??;
    if response.starts_with("HTTP/1.1 200") {
        Ok(begun.elapsed())
    } else {
        Err("/healthz did not respond with 200".into())
    }
}

/// The response to a request, with its head.
async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
