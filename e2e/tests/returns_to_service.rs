//! A host that its owner has needed for a while serves again without anybody's help: the whole
//! sequence, with the real agent as a service of the host, and a played `/proc` and logind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fivespot_agent::detect::DetectionMode;
use fivespot_agent::node::{Identity, OwnNode};
use fivespot_agent::policy_check::PolicyRequirement;
use fivespot_agent::proc::Proc;
use fivespot_agent::reporting::OwnMachine;
use fivespot_agent::run::{Agent, run};
use fivespot_agent::signal::{Counted, Sessions};
use fivespot_api::name::{HOST_FREE_ANNOTATION, RECLAIM_REQUESTED_ANNOTATION};
use fivespot_api::reclaim::FreeHost;
use fivespot_install::agent::Settings;
use fivespot_install::agent::host::{Host, Part, policy};
use fivespot_testkit::{
    Cluster, ConnectionSwitch, condition, instant, machine_path, node_path,
    scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_host_that_is_free_again_serves_again_so_often_a_day_and_no_more),
    promise!(a_desk_is_taken_and_lent_again_also_while_the_server_is_stopped)
        .on_embedded_alone("stops the server"),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
/// The session of a person at a desktop, as logind records it.
const SESSION: &str = "UID=1000\nACTIVE=1\nSTATE=active\nREMOTE=0\nTYPE=wayland\nCLASS=user\n\
                       SEAT=seat0\n";

/// The clock of the host of each promise, which is that of its operator.
static CLOCKS: [Mutex<Option<Clock>>; 2] = [Mutex::new(None), Mutex::new(None)];

fn now<const DESK: usize>() -> Timestamp {
    let clock = CLOCKS[DESK].lock().expect("the clock");
    clock.as_ref().expect("a clock").now()
}

/// A host with processes and login sessions. Dropping it ends its agent.
struct Desk {
    root: PathBuf,
    agent: Option<JoinHandle<()>>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(agent) = &self.agent {
            agent.abort();
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Desk {
    fn new(number: usize) -> Self {
        let name = format!("5spot-desk-{number}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&root);
        for directory in ["proc", "sessions"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        Self { root, agent: None }
    }

    fn starts_program(&self, name: &str) {
        let growing = self.root.join("growing");
        fs::create_dir_all(&growing).expect("a directory");
        for (file, text) in [
            ("comm", format!("{name}\n")),
            ("cmdline", format!("/usr/bin/{name}\0")),
            (
                "stat",
                format!(
                    "7 ({name}) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"
                ),
            ),
        ] {
            fs::write(growing.join(file), text).expect("written");
        }
        fs::rename(growing, self.root.join("proc/7")).expect("started");
    }

    fn ends_program(&self) {
        fs::remove_dir_all(self.root.join("proc/7")).expect("ended");
    }

    fn logs_in(&self) {
        fs::write(self.root.join("sessions/c2"), SESSION).expect("written");
    }

    fn logs_out(&self) {
        fs::remove_file(self.root.join("sessions/c2")).expect("removed");
    }

    /// Starts the agent with the identity of the host.
    async fn starts_agent<const DESK: usize>(
        &mut self,
        cluster: &Cluster,
        line: &ConnectionSwitch,
    ) {
        let mut host = Host {
            namespace: cluster.namespace("default"),
            machine: "worker".to_owned(),
            node: cluster.node_name("worker"),
            part: Part::Management,
        };
        for document in policy().into_iter().chain(host.documents()) {
            cluster.apply(&document).await;
        }
        host.part = Part::Workload;
        for document in host.documents() {
            cluster.apply_to_workload(&document).await;
        }
        let account = (host.namespace.as_str(), &*host.account());
        let agent = Agent {
            node: OwnNode {
                client: line.client(cluster.client_of(account, None).await),
                name: host.node.clone(),
                identity: Identity::Unchecked,
            },
            proc: Proc::open(&self.root.join("proc")).expect("/proc"),
            mode: DetectionMode::Scan,
            signals: vec![Box::new(Sessions::new(
                Path::new(&self.root),
                Counted::Local,
            ))],
            run_directory: None,
            machine: Some(OwnMachine {
                client: line.client(cluster.management_client_of(account).await),
                namespace: host.namespace.clone(),
                name: host.machine.clone(),
            }),
            hold: None,
            requirement: PolicyRequirement::Required,
            now: now::<DESK>,
        };
        self.agent = Some(tokio::spawn(async move {
            // Errors of the agent become visible because its writes are missing.
            let _ = run(agent, std::future::pending()).await;
        }));
    }
}

/// What the host reports.
async fn reported(cluster: &Cluster) -> Option<FreeHost> {
    let object = cluster.get(&machine_path("worker")).await?;
    let text = object["metadata"]["annotations"][HOST_FREE_ANNOTATION].as_str()?;
    Some(text.parse().expect("a report"))
}

/// Waits until the machine is gone. The host is real, and so is the time until it notices; an operator
/// that has lost its server waits on the clock of the cluster.
async fn is_out(cluster: &Cluster) -> Value {
    let is_noticed = async || {
        let node = cluster.get(&node_path("worker")).await;
        let is_asked = |node: Value| {
            let annotations = &node["metadata"]["annotations"];
            annotations[RECLAIM_REQUESTED_ANNOTATION] == "true"
        };
        node.is_none_or(is_asked) || cluster.status("worker").await["phase"] != "Active"
    };
    cluster.eventually(is_noticed).await;
    let limit = cluster.clock().now() + SignedDuration::from_mins(5);
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
    object
}

/// Waits until the host reports that it is free. Returns since when.
async fn is_free(cluster: &Cluster) -> Timestamp {
    cluster
        .eventually(async || reported(cluster).await.is_some())
        .await;
    reported(cluster).await.expect("a report").since
}

/// Lets minutes pass; in each, the agent confirms its report while there is one.
async fn pass(cluster: &Cluster, minutes: u32) {
    for _ in 0..minutes {
        let next = cluster.clock().now() + SignedDuration::from_mins(1);
        cluster.advance_until(next).await;
        let is_confirmed = async || {
            // As the agent decides: it may have confirmed on the way.
            let minute = SignedDuration::from_mins(1);
            let is_old = |free: FreeHost| free.confirmed + minute <= next;
            !reported(cluster).await.is_some_and(is_old)
        };
        cluster.eventually(is_confirmed).await;
    }
}

/// A cluster in which the host serves, with an agent, until its owner comes.
async fn lent<const DESK: usize>(
    cluster: &Cluster,
    returning: Value,
    line: &ConnectionSwitch,
) -> Desk {
    CLOCKS[DESK]
        .lock()
        .expect("the clock")
        .replace(cluster.clock().clone());
    for document in Settings::default().documents() {
        if document["kind"] != "DaemonSet" {
            cluster.apply_to_workload(&document).await;
        }
    }
    let mut worker = scheduled_machine("worker");
    worker["spec"]["reclaim"] = json!({
        "commands": ["owners-game"], "return": returning,
    });
    cluster.bring_up(&worker).await;
    let mut desk = Desk::new(DESK);
    desk.starts_agent::<DESK>(cluster, line).await;
    let is_running = async || {
        let status = cluster.status("worker").await;
        condition(&status, "AgentReady")["reason"] == "Running"
    };
    cluster.eventually(is_running).await;
    assert_eq!(reported(cluster).await, None, "it serves");
    desk
}

async fn a_host_that_is_free_again_serves_again_so_often_a_day_and_no_more() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let returning = json!({"after": "3m", "maxPerDay": 1});
    let desk = lent::<0>(&cluster, returning, &ConnectionSwitch::default()).await;

    desk.starts_program("owners-game");
    is_out(&cluster).await;
    pass(&cluster, 5).await;
    assert_eq!(reported(&cluster).await, None, "its owner plays");
    desk.ends_program();
    let since = is_free(&cluster).await;
    pass(&cluster, 2).await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    pass(&cluster, 1).await;
    let limit = since + SignedDuration::from_mins(10);
    let object = cluster.wait_for_phase("worker", "Active", limit).await;
    let returns = object["status"]["returns"].as_array();
    assert_eq!(returns.map(Vec::len), Some(1));
    // The report ends with the wait of the machine.
    cluster
        .eventually(async || reported(&cluster).await.is_none())
        .await;

    desk.logs_in();
    is_out(&cluster).await;
    desk.logs_out();
    is_free(&cluster).await;
    pass(&cluster, 5).await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Inactive");
    let message = condition(&status, "Scheduled")["message"].clone();
    let message = message.as_str().unwrap_or_default();
    let words = "as often as spec.reclaim.return.maxPerDay allows";
    assert!(message.contains(words), "{message}");
}

/// What a step took at most: on the clock of the cluster, which stands still while everybody has
/// something to do, and of the machine that runs the test.
struct Step {
    name: &'static str,
    rounds: u32,
    cluster: SignedDuration,
    real: Duration,
}

impl Step {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            rounds: 0,
            cluster: SignedDuration::ZERO,
            real: Duration::ZERO,
        }
    }

    /// It began at these instants and ends now.
    fn ends(&mut self, cluster: &Cluster, (at, began): (Timestamp, Instant)) {
        let took = cluster.clock().now().duration_since(at);
        self.rounds += 1;
        self.cluster = self.cluster.max(took);
        self.real = self.real.max(began.elapsed());
    }

    fn row(&self) -> Value {
        let real = (self.real.as_secs_f64() * 1e4).round() / 10.0;
        let cluster = self.cluster.as_secs_f64();
        println!("{:<72} {cluster:>7.1} s {real:>8.1} ms", self.name);
        json!({"step": self.name, "rounds": self.rounds, "cluster": cluster, "real": real})
    }
}

const AFTER: u32 = 3;

/// With `RECORD_DESK=FILE` it runs more often, and keeps the times in that file.
async fn a_desk_is_taken_and_lent_again_also_while_the_server_is_stopped() {
    let file = std::env::var_os("RECORD_DESK");
    // The token of the host is valid for an hour of the cluster's clock, and a round needs seven minutes.
    let rounds = if file.is_some() { 5 } else { 1 };
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let line = ConnectionSwitch::default();
    let _operator = cluster.operator_behind(Arc::new(line.clone()), |_| {});
    let returning = json!({"after": format!("{AFTER}m"), "maxPerDay": 24});
    let desk = lent::<1>(&cluster, returning, &line).await;
    let mut taken = Step::new("a session opens; the Machine is gone");
    let mut back = Step::new("the session ends; the machine serves again");
    let mut late =
        Step::new("a session has opened, and the server is back; the Machine is gone");
    let mut held =
        Step::new("the session ends, the server stops and is back; it serves again");
    let now = || (cluster.clock().now(), Instant::now());
    let serves = async || {
        while cluster.status("worker").await["phase"] == "Inactive" {
            pass(&cluster, 1).await;
        }
        let limit = cluster.clock().now() + SignedDuration::from_mins(10);
        cluster.wait_for_phase("worker", "Active", limit).await;
    };
    for _ in 0..rounds {
        let began = now();
        desk.logs_in();
        is_out(&cluster).await;
        taken.ends(&cluster, began);
        let began = now();
        desk.logs_out();
        is_free(&cluster).await;
        serves().await;
        back.ends(&cluster, began);

        // The agent has asked, and nobody has answered.
        line.disconnect();
        let before = line.refused();
        desk.logs_in();
        cluster.eventually(async || line.refused() > before).await;
        line.connect();
        let began = now();
        is_out(&cluster).await;
        late.ends(&cluster, began);
        let began = now();
        desk.logs_out();
        is_free(&cluster).await;
        pass(&cluster, 1).await;
        line.disconnect();
        let minute = SignedDuration::from_mins(1);
        cluster.advance_until(cluster.clock().now() + minute).await;
        line.connect();
        serves().await;
        held.ends(&cluster, began);
    }
    let steps = [taken, back, late, held];
    let after = SignedDuration::from_mins(AFTER.into());
    for step in &steps {
        let wait = if step.name.ends_with("again") {
            after
        } else {
            SignedDuration::ZERO
        };
        let most = wait + SignedDuration::from_mins(5);
        assert!(
            (wait..most).contains(&step.cluster),
            "{}: {}",
            step.name,
            step.cluster
        );
    }
    let rows: Vec<Value> = steps.iter().map(Step::row).collect();
    if let Some(file) = file {
        let times = json!({"after": AFTER, "steps": rows});
        let text = serde_json::to_string_pretty(&times).expect("JSON");
        fs::write(file, text + "\n").expect("written");
    }
}
