//! How long it takes until a desk is its owner's, and until it can be lent again, with a played logind.
//!
//! With `RECORD_TIMES=FILE` (absolute, or below `crates/agent`) the test runs more often, and keeps the
//! times in that file.

use std::fs;
use std::time::Duration;

use fivespot_agent::signal::Away;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api_server::{Fixture, accepted, config_text};
use crate::away;
use crate::line::Fate;
use crate::outage::Pods;
use crate::reporting;

/// What a time may be at most, on a machine that has other work. The usual ones are far shorter.
const BOUND: Duration = Duration::from_secs(20);
/// Between two rounds, so that they do not keep step with the agent.
const PAUSE: Duration = Duration::from_millis(50);

/// The times of one step.
struct Step {
    name: &'static str,
    took: Vec<Duration>,
}

impl Step {
    fn new(name: &'static str) -> Self {
        let took = Vec::new();
        Self { name, took }
    }

    /// Milliseconds within which this share of the rounds ended.
    fn within(&self, percent: usize) -> f64 {
        let mut took = self.took.clone();
        took.sort_unstable();
        let place = ((took.len() - 1) * percent).div_ceil(100);
        (took[place].as_secs_f64() * 1e4).round() / 10.0
    }

    fn row(&self) -> Value {
        let times = [50, 99, 100].map(|percent| self.within(percent));
        let [p50, p99, most] = times;
        println!("{:<60} {p50:>8.1} {p99:>8.1} {most:>8.1} ms", self.name);
        assert!(self.took.iter().all(|took| *took < BOUND), "{}", self.name);
        let rounds = self.took.len();
        json!({"step": self.name, "rounds": rounds, "p50": p50, "p99": p99, "most": most})
    }
}

/// Starts the agent on a desk at which nobody is, and waits for its report.
async fn start_agent(fixture: &mut Fixture, desk: &away::Desk) {
    desk.end("2");
    fixture.sessions = Some(desk.sessions(Away::Locked));
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
}

/// From a session to the annotation on the Node.
async fn requested(rounds: usize) -> Step {
    let mut step = Step::new("a session opens; the reclaim is requested");
    let desk = away::Desk::with_logind();
    let mut fixture = Fixture::new().await;
    start_agent(&mut fixture, &desk).await;
    for _ in 0..rounds {
        sleep(PAUSE).await;
        let began = Instant::now();
        desk.begin("3");
        fixture.wait_for_request().await;
        step.took.push(began.elapsed());
        desk.end("3");
        fixture.clear().await;
        fixture.wait_for_no_request().await;
    }
    step
}

/// From a session to frozen pods, and from the return of the server to the annotation.
async fn without_a_server(
    fate: Fate,
    rounds: usize,
    names: [&'static str; 2],
) -> [Step; 2] {
    let [mut frozen, mut reported] = names.map(Step::new);
    let desk = away::Desk::with_logind();
    let mut fixture = Fixture::new().await;
    let pods = Pods::of(&mut fixture);
    start_agent(&mut fixture, &desk).await;
    for _ in 0..rounds {
        sleep(PAUSE).await;
        fixture.line.set(fate);
        let began = Instant::now();
        desk.begin("3");
        pods.wait(true).await;
        frozen.took.push(began.elapsed());
        assert!(!pods.are_ended());
        fixture.line.set(Fate::Answered);
        let back = Instant::now();
        let found = fixture.wait_for_request().await;
        reported.took.push(back.elapsed());
        let reason = found["reclaim-reason"].as_str().unwrap();
        assert!(reason.starts_with("login-session: 1 "), "{reason}");
        // A server that hangs for a moment has only been slow.
        let is_told = reason.contains("pods frozen at");
        assert_eq!(is_told, fate == Fate::Refused, "{reason}");
        pods.wait(false).await;
        desk.end("3");
        fixture.clear().await;
        fixture.wait_for_no_request().await;
    }
    [frozen, reported]
}

/// From a locked screen to the report of a free host, and from an unlocked one to the end of the report.
async fn free(rounds: usize) -> [Step; 2] {
    let mut free = Step::new("the screen is locked; the host is reported as free");
    let mut in_use = Step::new("it is unlocked; the report is taken back");
    let sessions = away::Desk::with_logind();
    let mut desk = reporting::Desk::new().await;
    desk.fixture.sessions = Some(sessions.sessions(Away::Locked));
    desk.is_stopped("OverrideStop").await;
    desk.fixture.start_agent();
    desk.is_in_use().await;
    for _ in 0..rounds {
        sleep(PAUSE).await;
        let began = Instant::now();
        sessions.set("2", true, false);
        desk.is_free().await;
        free.took.push(began.elapsed());
        sleep(PAUSE).await;
        let began = Instant::now();
        sessions.set("2", false, false);
        desk.is_in_use().await;
        in_use.took.push(began.elapsed());
    }
    [free, in_use]
}

#[tokio::test]
async fn a_session_takes_the_desk_and_its_end_frees_it_also_while_no_server_answers() {
    let file = std::env::var_os("RECORD_TIMES");
    let rounds = if file.is_some() { 200 } else { 3 };
    println!("{:<60} {:>8} {:>8} {:>8}", "", "p50", "p99", "most");
    let mut rows = vec![requested(rounds).await.row()];
    for (fate, names) in [
        (
            Fate::Refused,
            [
                "no server listens: a session opens; pods are frozen",
                "the server is back; the reclaim is requested",
            ],
        ),
        (
            Fate::Lost,
            [
                "the server hangs: a session opens; pods are frozen",
                "it answers again; the reclaim is requested",
            ],
        ),
    ] {
        let rounds = if fate == Fate::Lost {
            rounds.min(20)
        } else {
            rounds
        };
        let steps = without_a_server(fate, rounds, names).await;
        rows.extend(steps.iter().map(Step::row));
    }
    rows.extend(free(rounds.min(20)).await.iter().map(Step::row));
    if let Some(file) = file {
        let profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        let times = json!({"profile": profile, "steps": rows});
        let text = serde_json::to_string_pretty(&times).unwrap();
        fs::write(file, text + "\n").unwrap();
    }
}
