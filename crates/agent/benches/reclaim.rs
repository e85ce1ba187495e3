//! Measures the time from the start of a listed program, and from another signal, to the annotation on
//! its Node; with an API server that does not answer, from a signal to frozen pods; and what the agent
//! costs while nothing happens: `cargo bench --bench reclaim`. With `-- --record FILE` the numbers are
//! written to that file, relative to the workspace directory.
//!
//! The agent is the real binary, in its own process, over TLS; the API server is the embedded one;
//! the programs are copies of `sleep`; the control group of the pods is a directory.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a measurement that cannot go on has failed"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fivespot_agent::connector::Connector;
use futures::{Stream, StreamExt as _};
use kubemu_apiserver::{
    Client, Credentials, Options, Patch, Selector, Server, WatchEvent,
};
use kubemu_clock::Clock;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const NODE: &str = "/api/v1/nodes/worker-1";
const REQUESTED: &str = "5spot.finos.org/reclaim-requested";

/// The number of program starts.
const STARTS: u32 = 200;
/// The number of other processes.
const CROWD: u32 = 1000;
/// The number of signals while the server refuses connections, and while it hangs.
const SIGNALS: [(&str, u32, Duration); 2] = [
    ("refused", 100, Duration::from_millis(50)),
    // Longer than the agent waits for an answer: each signal leads to a request of its own.
    ("hung", 20, Duration::from_secs(6)),
];
/// The bounds of 99 in 100: to the annotation, and to frozen pods.
const BOUNDS_MS: [f64; 2] = [10.0, 100.0];
/// What takes longer has failed.
const NEVER: Duration = Duration::from_secs(30);
/// How long the idle agent is measured.
const IDLE: Duration = Duration::from_secs(30);

/// A child process, killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Benchmark {
    client: Client,
    line: Line,
    directory: PathBuf,
    program: PathBuf,
}

impl Drop for Benchmark {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let words: Vec<String> = std::env::args().collect();
    // `cargo test` builds and runs this too, and must not measure.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    let costs = runtime.unwrap().block_on(measure());
    let file = words.iter().skip_while(|word| *word != "--record").nth(1);
    if let Some(file) = file {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let text = serde_json::to_string_pretty(&costs).unwrap();
        fs::write(format!("{root}/{file}"), text + "\n").unwrap();
    }
}

async fn measure() -> Value {
    let bench = Benchmark::prepare().await;
    let crowd = fs::canonicalize("/bin/sleep").unwrap();
    let crowd: Vec<Running> = (0..CROWD)
        .map(|_| run(Command::new(&crowd).arg("100000")))
        .collect();
    println!("{CROWD} processes beside; {STARTS} starts each; idle for {IDLE:?}");
    println!(
        "means    p50 ms   p99 ms   most ms  idle CPU %  resident KiB  anonymous KiB"
    );
    let mut costs = json!({"processes": CROWD, "starts": STARTS});
    for means in ["events", "scan"] {
        if means == "events" && Connector::subscribe().await.is_err() {
            println!("events   not measured: this host has no process events");
            continue;
        }
        let cost = bench.cost(means).await;
        println!(
            "{means:<7} {:>7.1} {:>8.1} {:>9.1} {:>11.2} {:>13} {:>14}",
            cost.p50, cost.p99, cost.most, cost.idle, cost.resident, cost.anonymous,
        );
        costs[means] = serde_json::to_value(cost).unwrap();
    }
    drop(crowd);
    println!("from a signal    p50 ms   p99 ms   most ms   bound of p99");
    let mut bench = bench;
    let [to_annotation, to_frozen] = BOUNDS_MS;
    let times = bench.signals().await;
    times.print("annotation", to_annotation);
    costs["signal"] = serde_json::to_value(times).unwrap();
    for (means, number, pause) in SIGNALS {
        let times = bench.frozen(means, number, pause).await;
        times.print(means, to_frozen);
        costs[means] = serde_json::to_value(times).unwrap();
    }
    costs
}

/// Milliseconds.
#[derive(Serialize)]
struct Times {
    p50: f64,
    p99: f64,
    most: f64,
}

impl Times {
    fn of(mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        let at = |percent: usize| {
            let last = took.len() - 1;
            tenths(took[(last * percent).div_ceil(100)].as_secs_f64() * 1e3)
        };
        Self {
            p50: at(50),
            p99: at(99),
            most: at(100),
        }
    }

    fn print(&self, what: &str, bound: f64) {
        let verdict = if self.p99 <= bound { "kept" } else { "BROKEN" };
        println!(
            "{what:<14} {:>8.1} {:>8.1} {:>9.1}   {bound:.0} ms {verdict}",
            self.p50, self.p99, self.most
        );
    }
}

/// The costs of an agent: milliseconds, a share of one core in percent, KiB.
#[derive(Serialize)]
struct Cost {
    p50: f64,
    p99: f64,
    most: f64,
    idle: f64,
    resident: u64,
    anonymous: u64,
}

fn run(command: &mut Command) -> Running {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// The CPU time of a process so far, in seconds.
fn cpu(process: &Running) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.0.id())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks: u32 = [11, 12]
        .map(|at: usize| fields[at].parse::<u32>().unwrap())
        .iter()
        .sum();
    f64::from(ticks) / 100.0
}

/// A memory line of `/proc/<pid>/status`, in KiB.
fn memory(process: &Running, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

impl Benchmark {
    async fn prepare() -> Self {
        let server = Server::new(Options::new(Clock::system())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let credentials = Credentials::generate().unwrap();
        let line = Line::to(listener.local_addr().unwrap()).await;
        let kubeconfig = credentials.kubeconfig(line.address, "bench");
        let client = server.client();
        tokio::spawn(async move {
            let _ = server
                .serve(listener, &credentials, std::future::pending())
                .await;
        });
        let name = format!("fivespotbench{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("kubeconfig"), kubeconfig).unwrap();
        let program = directory.join("game");
        fs::copy("/bin/sleep", &program).unwrap();
        let machine_id = fs::read_to_string("/etc/machine-id").unwrap();
        let namespace = json!({"metadata": {"name": "5spot-system"}});
        client
            .create("/api/v1/namespaces", namespace)
            .await
            .unwrap();
        let node = json!({"metadata": {"name": "worker-1"}});
        client.create("/api/v1/nodes", node).await.unwrap();
        let status = json!({"status": {"nodeInfo": {"machineID": machine_id.trim()}}});
        let path = format!("{NODE}/status");
        client.patch(&path, Patch::Merge(status)).await.unwrap();
        let text = fivespot_api::reclaim::agent_config(&[format!("{name}/game")]);
        let config_map = json!({
            "metadata": {"name": "reclaim-agent-worker-1"},
            "data": {"reclaim.toml": text},
        });
        let path = "/api/v1/namespaces/5spot-system/configmaps";
        client.create(path, config_map).await.unwrap();
        fs::create_dir_all(directory.join("kubepods")).unwrap();
        for file in ["cgroup.freeze", "cgroup.kill"] {
            fs::write(directory.join("kubepods").join(file), "0").unwrap();
        }
        Self {
            client,
            line,
            directory,
            program,
        }
    }

    /// Starts an agent and waits until it has loaded its configuration.
    async fn agent(&self, means: &str) -> Running {
        self.annotate(json!({"5spot.finos.org/reclaim-agent": null}))
            .await;
        let mut events = self.events().await;
        let agent = run(Command::new(env!("CARGO_BIN_EXE_5spot-reclaim-agent"))
            .args([
                "--node-name",
                "worker-1",
                "--detection",
                means,
                "--kubeconfig",
            ])
            .arg(self.directory.join("kubeconfig"))
            .arg("--skip-policy-check")
            .arg("--signal-file")
            .arg(self.signal())
            .arg("--cgroup-root")
            .arg(&self.directory)
            .env("RUST_LOG", "off"));
        until(&mut events, |found| {
            found["5spot.finos.org/reclaim-agent"].is_string()
        })
        .await;
        agent
    }

    /// The file that is a signal.
    fn signal(&self) -> PathBuf {
        self.directory.join("signal")
    }

    /// Measures from a signal to the annotation.
    async fn signals(&self) -> Times {
        let _agent = self.agent("auto").await;
        let mut took = Vec::new();
        for round in 0..STARTS {
            sleep(Duration::from_millis(u64::from(50 + round * 37 % 100))).await;
            let mut events = self.events().await;
            let began = Instant::now();
            fs::write(self.signal(), "").unwrap();
            until(&mut events, |found| found[REQUESTED] == "true").await;
            took.push(began.elapsed());
            fs::remove_file(self.signal()).unwrap();
            self.annotate(json!({REQUESTED: null})).await;
        }
        Times::of(took)
    }

    /// Measures from a signal to frozen pods while no server answers.
    async fn frozen(&mut self, means: &str, number: u32, pause: Duration) -> Times {
        let agent = self.agent("auto").await;
        self.line.cut(means == "hung").await;
        let freeze = self.directory.join("kubepods/cgroup.freeze");
        let mut took = Vec::new();
        for round in 0..number {
            let step = Duration::from_millis(u64::from(round * 37 % 100));
            sleep(pause + step).await;
            let began = Instant::now();
            fs::write(self.signal(), "").unwrap();
            is_written(&freeze, "1").await;
            took.push(began.elapsed());
            fs::remove_file(self.signal()).unwrap();
            is_written(&freeze, "0").await;
        }
        drop(agent);
        self.line.mend().await;
        Times::of(took)
    }

    /// Measures an agent with this detection mode.
    async fn cost(&self, means: &str) -> Cost {
        let agent = self.agent(means).await;
        let mut took = Vec::new();
        for round in 0..STARTS {
            took.push(self.start(round).await);
        }
        let times = Times::of(took);
        let before = cpu(&agent);
        sleep(IDLE).await;
        let share = (cpu(&agent) - before) / IDLE.as_secs_f64() * 100.0;
        Cost {
            p50: times.p50,
            p99: times.p99,
            most: times.most,
            idle: (share * 100.0).round() / 100.0,
            resident: memory(&agent, "VmRSS"),
            anonymous: memory(&agent, "RssAnon"),
        }
    }

    async fn events(&self) -> impl Stream<Item = WatchEvent> + Unpin + use<> {
        let selector = Selector::fields("metadata.name=worker-1");
        let list = self.client.list("/api/v1/nodes", &selector).await.unwrap();
        let events = self
            .client
            .watch("/api/v1/nodes", &selector, &list.version)
            .unwrap();
        Box::pin(events.map(Result::unwrap))
    }

    async fn annotate(&self, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.client.patch(NODE, Patch::Merge(patch)).await.unwrap();
    }

    /// Starts a program and returns how long it took until its Node had the reclaim request.
    async fn start(&self, round: u32) -> Duration {
        // Out of step with the agent's scans.
        sleep(Duration::from_millis(u64::from(100 + round * 37 % 250))).await;
        let mut events = self.events().await;
        let began = Instant::now();
        let program = run(Command::new(&self.program).arg("100000"));
        until(&mut events, |found| found[REQUESTED] == "true").await;
        let took = began.elapsed();
        drop(program);
        self.annotate(json!({REQUESTED: null})).await;
        took
    }
}

/// Rounds to one decimal.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Waits until the Node's annotations satisfy `holds`.
async fn until(
    events: &mut (impl Stream<Item = WatchEvent> + Unpin),
    holds: impl Fn(&Value) -> bool,
) {
    loop {
        let event = timeout(NEVER, events.next()).await;
        let event =
            event.expect("the agent has not written its Node; is it still running?");
        let event = event.expect("the watch of the Node has ended");
        if holds(&event.object["metadata"]["annotations"]) {
            return;
        }
    }
}

/// Waits until a file has this text.
async fn is_written(path: &Path, text: &str) {
    let began = Instant::now();
    while fs::read_to_string(path).unwrap() != text {
        assert!(began.elapsed() < NEVER, "the agent has not written {text}");
        sleep(Duration::from_millis(1)).await;
    }
}

/// The line between the agent and its server.
struct Line {
    address: SocketAddr,
    server: SocketAddr,
    /// Ends every connection when it is dropped.
    task: JoinSet<()>,
}

impl Line {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut line = Self {
            address: listener.local_addr().unwrap(),
            server,
            task: JoinSet::new(),
        };
        line.task.spawn(forward(listener, server));
        line
    }

    /// From now on, connections are refused, or accepted and not answered.
    async fn cut(&mut self, is_hung: bool) {
        self.task.shutdown().await;
        if is_hung {
            let listener = TcpListener::bind(self.address).await.unwrap();
            self.task.spawn(async move {
                let mut held = Vec::new();
                while let Ok((connection, _)) = listener.accept().await {
                    held.push(connection);
                }
            });
        }
    }

    async fn mend(&mut self) {
        self.task.shutdown().await;
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.task.spawn(forward(listener, self.server));
    }
}

async fn forward(listener: TcpListener, server: SocketAddr) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        client.set_nodelay(true).unwrap();
        connections.spawn(async move {
            let mut server = TcpStream::connect(server).await.unwrap();
            server.set_nodelay(true).unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}
