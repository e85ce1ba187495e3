//! A person starts a listed program, and the machine is removed from the cluster: the whole
//! sequence, with the real agent, from the process to the disabled schedule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fivespot_agent::detect::DetectionMode;
use fivespot_agent::node::{Identity, OwnNode};
use fivespot_agent::policy_check::PolicyRequirement;
use fivespot_agent::proc::Proc;
use fivespot_agent::run::{Agent, run};
use fivespot_install::agent::Settings;
use fivespot_testkit::{
    Cluster, condition, instant, machine_path, node_path, scheduled_machine,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[promise!(
    a_listed_program_takes_the_machine_out_each_time_it_is_put_back
)];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const LIMIT: &str = "2026-03-06T15:15:00Z";
const ACCOUNT: (&str, &str) = ("5spot-reclaim-agent", "5spot-reclaim-agent");

/// A real program with a unique name that waits for its input. Dropping it ends and removes it.
struct Program {
    directory: PathBuf,
    name: String,
    running: Option<Child>,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.kill();
            let _ = running.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Program {
    fn install() -> Self {
        let name = format!("owners-game-{}", std::process::id());
        let directory = std::env::temp_dir().join(format!("5spot-{name}"));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(&name);
        let cat = ["/bin/cat", "/usr/bin/cat"].into_iter().map(Path::new);
        let cat = cat.into_iter().find(|path| path.exists()).expect("cat");
        fs::copy(cat, &path).expect("a copy");
        Self {
            directory,
            name,
            running: None,
        }
    }

    fn start(&mut self) {
        let mut command = Command::new(self.directory.join(&self.name));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        self.running = Some(command.spawn().expect("started"));
    }
}

/// The agent in its pod on a Node. Dropping it ends the agent.
struct Pod {
    task: JoinHandle<()>,
    machine_id: PathBuf,
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.machine_id);
    }
}

impl Pod {
    /// Acts as the DaemonSet for the Node with the name `worker` in the test.
    async fn start(cluster: &Cluster, program: &Program) -> Self {
        let node = cluster.get(&node_path("worker")).await.expect("the Node");
        let name = cluster.node_name("worker");
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "5spot-reclaim-agent-", "namespace": ACCOUNT.0},
            "spec": {
                "nodeName": "worker",
                "serviceAccountName": ACCOUNT.1,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "agent", "image": "5spot-reclaim-agent"}],
            },
        });
        let pod = cluster.create(&pod).await.expect("the pod");
        let machine_id = program.directory.join("machine-id");
        let own = node["status"]["nodeInfo"]["machineID"].as_str();
        fs::write(&machine_id, own.expect("a machine id")).expect("written");
        let agent = Agent {
            node: OwnNode {
                client: cluster.client_of(ACCOUNT, Some(&pod)).await,
                name,
                identity: Identity::File(machine_id.clone()),
            },
            proc: Proc::open(Path::new("/proc")).expect("/proc"),
            mode: DetectionMode::Auto,
            signals: Vec::new(),
            run_directory: None,
            machine: None,
            hold: None,
            requirement: PolicyRequirement::Required,
            now: || instant(IN_WINDOW),
        };
        let work = async move {
            // Errors of the agent become visible because its writes are missing.
            let _ = run(agent, std::future::pending()).await;
        };
        Self {
            task: tokio::spawn(work),
            machine_id,
        }
    }
}

async fn a_listed_program_takes_the_machine_out_each_time_it_is_put_back() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    for document in Settings::default().documents() {
        // The test runs the pods of the DaemonSet.
        if document["kind"] != "DaemonSet" {
            cluster.apply_to_workload(&document).await;
        }
    }
    let mut program = Program::install();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["killIfCommands"] = json!([program.name]);
    cluster.bring_up(&worker).await;

    let pod = Pod::start(&cluster, &program).await;
    let is_running = async || {
        let status = cluster.status("worker").await;
        condition(&status, "AgentReady")["reason"] == "Running"
    };
    cluster.eventually(is_running).await;

    program.start();
    let object = is_out(&cluster).await;
    let scheduled = condition(&object["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "EmergencyReclaimDisabledSchedule");
    let message = scheduled["message"].as_str().unwrap_or_default();
    assert!(message.contains("enabled"), "{message}");
    drop(pod);

    // Enabled again while the program runs: the Node joins with the agent, and the machine is
    // removed again.
    let enable = json!({"spec": {"schedule": {"enabled": true}}});
    cluster.patch(&machine_path("worker"), &enable).await;
    let limit = instant(LIMIT);
    cluster.wait_for_phase("worker", "Active", limit).await;
    let _pod = Pod::start(&cluster, &program).await;
    is_out(&cluster).await;
}

/// Waits until the machine is removed. Returns the ScheduledMachine.
async fn is_out(cluster: &Cluster) -> Value {
    // The process is real, and so is the time until it is detected.
    let is_leaving = async || {
        let object = cluster.get(&machine_path("worker")).await;
        object.unwrap_or_default()["spec"]["schedule"]["enabled"] == false
    };
    cluster.eventually(is_leaving).await;
    let object = cluster
        .wait_for_phase("worker", "Disabled", instant(LIMIT))
        .await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
    object
}
