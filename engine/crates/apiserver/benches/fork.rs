//! Measures forks of a server: the time and the memory of one at a growing number of objects, and
//! a thousand tests at once, each with a fork of its own. Fails if a bound is exceeded. `cargo judge forks`
//! names a file for the results in `FORK_RESULTS`.

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kubemu_apiserver::{Delete, Options, Selector, Server};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many forks are made, to measure one.
const FORKS: usize = 1_000;
/// The bounds at 10,000 objects.
const MAX_TIME: Duration = Duration::from_millis(1);
const MAX_MEMORY: usize = 256 << 10;
/// The bounds of a thousand tests.
const MAX_TESTS: Duration = Duration::from_secs(10);
const MAX_MEMORY_OF_TESTS: usize = 1 << 30;

type Failure = Box<dyn Error + Send + Sync>;

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"color": "blue"}})
}

/// A server with that many ConfigMaps.
async fn server(objects: usize) -> Result<Server, Failure> {
    let server = Server::new(Options::new(Clock::system()))?;
    let client = server.client();
    for number in 0..objects {
        client.create(MAPS, map(&format!("map-{number}"))).await?;
    }
    Ok(server)
}

/// The memory of this process that is resident, in bytes.
fn resident() -> Result<usize, Failure> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text
        .split_whitespace()
        .nth(1)
        .ok_or("statm has no second field")?;
    Ok(pages.parse::<usize>()? * 4_096)
}

/// The median time of a fork, and its memory.
fn one_fork(server: &Server) -> Result<(Duration, usize), Failure> {
    let before = resident()?;
    let mut times = Vec::with_capacity(FORKS);
    let mut forks = Vec::with_capacity(FORKS);
    for _ in 0..FORKS {
        let begun = Instant::now();
        forks.push(server.fork());
        times.push(begun.elapsed());
    }
    let memory = resident()?.saturating_sub(before) / FORKS;
    black_box(&forks);
    times.sort_unstable();
    let median = times.get(FORKS / 2).copied().unwrap_or_default();
    Ok((median, memory))
}

/// What a test of a controller does: it creates, lists, patches and deletes objects, and waits for
/// an event.
async fn test(server: Server) -> Result<(), Failure> {
    let client = server.client();
    let mut watch = client.watch(
        MAPS,
        &Selector::labels("app=web"),
        &server.version().to_string(),
    )?;
    for number in 0..20 {
        client.create(MAPS, map(&format!("own-{number}"))).await?;
    }
    watch.next().await.ok_or("the watch has ended")??;
    let found = client.list(MAPS, &Selector::default()).await?;
    black_box(found.items.len());
    client
        .delete(&format!("{MAPS}/own-7"), &Delete::default())
        .await?;
    Ok(())
}

/// Runs that many tests at once on one thread. Returns the most memory of the process.
fn tests_of_thread(server: &Server, count: usize) -> Result<usize, Failure> {
    runtime()?.block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..count {
            all.spawn(test(server.fork()));
        }
        let mut most = 0;
        while let Some(ended) = all.join_next().await {
            ended??;
            most = most.max(resident()?);
        }
        Ok(most)
    })
}

/// The time and the memory of a thousand tests at once, on two threads.
fn tests(server: &Server) -> Result<(Duration, usize), Failure> {
    let before = resident()?;
    let begun = Instant::now();
    let most = thread::scope(|scope| {
        let spawned =
            [(); 2].map(|()| scope.spawn(|| tests_of_thread(server, FORKS / 2)));
        let mut most = 0;
        for thread in spawned {
            most = most.max(thread.join().map_err(|_| "a test has panicked")??);
        }
        Ok::<_, Failure>(most)
    })?;
    Ok((begun.elapsed(), most.saturating_sub(before)))
}

fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn measure() -> Result<bool, Failure> {
    let runtime = runtime()?;
    println!("objects  time of a fork  memory of a fork");
    let mut is_within = true;
    let mut forks = Vec::new();
    let mut results = json!({});
    for objects in [0, 1_000, 10_000] {
        let server = runtime.block_on(server(objects))?;
        let (time, memory) = one_fork(&server)?;
        println!("{objects:>7}  {time:>14.1?}  {:>12} KiB", memory >> 10);
        is_within &= time <= MAX_TIME && memory <= MAX_MEMORY;
        forks.push(json!({"objects": objects, "nanoseconds": nanoseconds(time),
            "bytes": memory}));
        if objects == 1_000 {
            let (time, memory) = tests(&server)?;
            println!("{FORKS} tests at once: {time:.1?}, {} MiB", memory >> 20);
            is_within &= time <= MAX_TESTS && memory <= MAX_MEMORY_OF_TESTS;
            results["tests"] = json!({"count": FORKS, "objects": objects,
                "nanoseconds": nanoseconds(time), "bytes": memory});
        }
    }
    results["forks"] = forks.into();
    if let Some(file) = env::var_os("FORK_RESULTS") {
        fs::write(file, results.to_string())?;
    }
    Ok(is_within)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn main() -> ExitCode {
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("a bound is exceeded");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
