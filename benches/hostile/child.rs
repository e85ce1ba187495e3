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

use crate::BoxError;

/// The interval of health probes.
const PROBE: Duration = Duration::from_millis(200);
/// The timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of the start.
const START: Duration = Duration::from_mins(1);

/// A running program. Dropping it kills it.
pub(crate) struct Child {
    process: Process,
    health: SocketAddr,
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
    /// Starts the program with these arguments and those of its ports. Returns when it is healthy.
    /// Its log goes to a file.
    pub(crate) async fn start(
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, BoxError> {
        let health = free_address()?;
        let log = File::create(log)?;
        let process = Command::new(program)
            .args(arguments)
            .args(["--bind-address", "127.0.0.1", "--metrics-port", "0"])
            .args(["--health-port", &health.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
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
            health,
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

    /// The peak of its memory in bytes. `None` if it has ended.
    pub(crate) fn peak(&mut self) -> Option<u64> {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return None;
        }
        let status = format!("/proc/{}/status", self.process.id()?);
        let status = std::fs::read_to_string(status).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1_024)
    }
}

fn note(worst: &Mutex<Duration>, took: Duration) {
    let mut worst = worst.lock().unwrap_or_else(PoisonError::into_inner);
    *worst = took.max(*worst);
}

/// Probes health once, with a new connection. Returns the duration.
async fn probe(address: SocketAddr) -> Result<Duration, BoxError> {
    let begun = Instant::now();
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut response = [0; 12];
        stream.read_exact(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(TIMEOUT, exchange).await??;
    if &response == b"HTTP/1.1 200" {
        Ok(begun.elapsed())
    } else {
        Err("/healthz did not respond with 200".into())
    }
}
