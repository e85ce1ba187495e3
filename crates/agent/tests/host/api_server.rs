//! Tests the agent with an API server: configuration in, annotations out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fivespot_agent::detect::DetectionMode;
use fivespot_agent::hold::HoldSettings;
use fivespot_agent::node::{Identity, OwnNode};
use fivespot_agent::policy_check::PolicyRequirement;
use fivespot_agent::reporting::OwnMachine;
use fivespot_agent::run::{Agent, Error, run};
use fivespot_agent::run_directory::RunDirectory;
use fivespot_agent::signal::{Sessions, Settings, Source};
use fivespot_api::name;
use fivespot_api::reclaim::{agent_config, config_hash};
use fivespot_install::agent::policy;
use futures::StreamExt as _;
use jiff::Timestamp;
use kubemu_apiserver::{
    Audit, AuditEvent, Client, Delete, Options, Patch, Selector, Server, User,
};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::fake_proc::FakeProc;
use crate::line::Line;
use crate::program::unique;

pub(crate) const NODE: &str = "/api/v1/nodes/worker-1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/5spot-system/configmaps";
const CONFIG_MAP: &str =
    "/api/v1/namespaces/5spot-system/configmaps/reclaim-agent-worker-1";
pub(crate) const POLICIES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub(crate) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const AGENT: &str = "system:serviceaccount:5spot-reclaim-agent:5spot-reclaim-agent";

/// Long enough for any machine; an event that takes longer counts as missing.
pub(crate) const NEVER: Duration = Duration::from_mins(2);

/// A server with one Node, and an agent for it that scans a fake `/proc`.
pub(crate) struct Fixture {
    server: Server,
    /// Between the agent and the server.
    pub(crate) line: Line,
    log: Arc<Mutex<Vec<AuditEvent>>>,
    pub(crate) fake: FakeProc,
    machine_id: PathBuf,
    /// The signal file of the agent, if it has one.
    pub(crate) signal_file: Option<PathBuf>,
    /// The login sessions that the agent counts, if any.
    pub(crate) sessions: Option<Sessions>,
    pub(crate) run_directory: Option<PathBuf>,
    /// The ScheduledMachine of the agent's host, if it reports to one.
    pub(crate) machine: Option<&'static str>,
    /// What the agent does with pods while no API server answers.
    pub(crate) hold: Option<HoldSettings>,
    pub(crate) now: fn() -> Timestamp,
    /// Who the agent is.
    pub(crate) user: User,
    agent: Option<JoinHandle<Result<(), Error>>>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.abort();
        }
        let _ = fs::remove_file(&self.machine_id);
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let log: Arc<Mutex<Vec<AuditEvent>>> = Arc::default();
        let received = log.clone();
        let mut options = Options::new(Clock::system());
        options.audit = Some(Audit::new(move |event| {
            received.lock().unwrap().push(event.clone());
        }));
        let server = Server::new(options).unwrap();
        let machine_id = std::env::temp_dir().join(unique("5spot-agent-machine-id-"));
        fs::write(&machine_id, "c0ffee\n").unwrap();
        let mut user = User::new(AGENT, &["system:masters"]);
        let node = "authentication.kubernetes.io/node-name".to_owned();
        user.extra.insert(node, vec!["worker-1".to_owned()]);
        let fixture = Self {
            user,
            server,
            line: Line::default(),
            log,
            fake: FakeProc::new(),
            machine_id,
            signal_file: None,
            sessions: None,
            run_directory: None,
            machine: None,
            hold: None,
            now: || "2026-03-06T22:50:00Z".parse().unwrap(),
            agent: None,
        };
        let namespace = json!({"metadata": {"name": "5spot-system"}});
        fixture
            .client()
            .create("/api/v1/namespaces", namespace)
            .await
            .unwrap();
        let node = json!({"metadata": {"name": "worker-1"}});
        fixture
            .client()
            .create("/api/v1/nodes", node)
            .await
            .unwrap();
        fixture.set_machine_id("c0ffee").await;
        for document in policy::own_node() {
            let plural = match document["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => POLICIES,
                _ => BINDINGS,
            };
            fixture.client().create(plural, document).await.unwrap();
        }
        fixture
    }

    /// Deletes the binding of the policy that limits the agent to its Node.
    async fn unbind(&self) {
        let path = format!("{BINDINGS}/{}", name::AGENT_POLICY);
        self.client()
            .delete(&path, &Delete::default())
            .await
            .unwrap();
    }

    /// Creates the binding again.
    async fn bind(&self) {
        let [_, binding] = policy::own_node();
        self.client().create(BINDINGS, binding).await.unwrap();
    }

    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    async fn set_machine_id(&self, id: &str) {
        let status = json!({"status": {"nodeInfo": {"machineID": id}}});
        let path = format!("{NODE}/status");
        self.client()
            .patch(&path, Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Applies the agent's ConfigMap with `text`, as the operator does.
    pub(crate) async fn configure(&self, text: &str) {
        let config_map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "reclaim-agent-worker-1", "namespace": "5spot-system"},
            "data": {"reclaim.toml": text},
        });
        let patch = Patch::Apply {
            body: config_map,
            manager: "test".to_owned(),
            force: true,
        };
        self.client().patch(CONFIG_MAP, patch).await.unwrap();
    }

    pub(crate) fn start_agent(&mut self) {
        let server = self.server.in_process_as(self.user.clone());
        let client = kube::Client::new(self.line.to(server), "default");
        let settings = Settings {
            files: self.signal_file.iter().cloned().collect(),
            ..Settings::default()
        };
        let mut signals = settings.sources(Path::new("/nowhere"));
        let sessions = self.sessions.take();
        signals.extend(sessions.map(|it| Box::new(it) as Box<dyn Source>));
        let agent = Agent {
            node: OwnNode {
                client: client.clone(),
                name: "worker-1".to_owned(),
                identity: Identity::File(self.machine_id.clone()),
            },
            proc: self.fake.proc(),
            mode: DetectionMode::Scan,
            signals,
            run_directory: self.run_directory.clone().map(RunDirectory::new),
            machine: self.machine.map(|name| OwnMachine {
                client: client.clone(),
                namespace: "team-a".to_owned(),
                name: name.to_owned(),
            }),
            hold: self.hold.clone(),
            requirement: PolicyRequirement::Required,
            now: self.now,
        };
        self.agent = Some(tokio::spawn(run(agent, std::future::pending())));
    }

    /// Waits until the agent has ended by itself, with an error.
    pub(crate) async fn wait_for_end(&mut self) {
        let agent = self.agent.take().unwrap();
        let ended = tokio::time::timeout(NEVER, agent).await;
        assert!(ended.unwrap().unwrap().is_err());
    }

    /// Waits until the annotations of the Node satisfy `holds`, and returns them without the
    /// prefix.
    pub(crate) async fn wait_for(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let selector = Selector::fields("metadata.name=worker-1");
        let list = self
            .client()
            .list("/api/v1/nodes", &selector)
            .await
            .unwrap();
        let mut found = annotations(&list.items[0]);
        let events = self
            .client()
            .watch("/api/v1/nodes", &selector, &list.version);
        let mut events = events.unwrap();
        while !holds(&found) {
            let event = tokio::time::timeout(NEVER, events.next()).await;
            let event = event.unwrap_or_else(|_| panic!("still {found}")).unwrap();
            found = annotations(&event.unwrap().object);
        }
        found
    }

    pub(crate) async fn wait_for_report(&self, report: &str) {
        self.wait_for(|found| found["reclaim-agent"] == report)
            .await;
    }

    pub(crate) async fn wait_for_request(&self) -> Value {
        self.wait_for(|found| found["reclaim-requested"] == "true")
            .await
    }

    pub(crate) async fn wait_for_no_request(&self) {
        self.wait_for(|found| found["reclaim-requested"].is_null())
            .await;
    }

    /// Removes the request as the operator does.
    pub(crate) async fn clear(&self) {
        self.annotate(&json!({
            "5spot.finos.org/reclaim-requested": null,
            "5spot.finos.org/reclaim-reason": null,
            "5spot.finos.org/reclaim-requested-at": null,
        }))
        .await;
    }

    async fn annotate(&self, annotations: &Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.client()
            .patch(NODE, Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// The number of successful writes of the agent.
    pub(crate) fn writes(&self) -> usize {
        let log = self.log.lock().unwrap();
        let own = log
            .iter()
            .filter(|event| event.user == AGENT && event.is_write() && event.code == 200);
        own.count()
    }

    /// How often the agent has read its Node.
    fn reads(&self) -> usize {
        let log = self.log.lock().unwrap();
        let is_read = |event: &&AuditEvent| event.user == AGENT && event.verb == "get";
        log.iter().filter(is_read).count()
    }

    /// Waits until the agent has read its Node `times` in total.
    async fn wait_for_reads(&self, times: usize) {
        while self.reads() < times {
            tokio::task::yield_now().await;
        }
    }
}

/// Waits until what an agent tells the users of its host satisfies `holds`.
async fn wait_for_state(directory: &Path, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let text = fs::read_to_string(directory.join("agent/state.json"));
        let state = text.map(|text| serde_json::from_str::<Value>(&text).unwrap());
        match state {
            Ok(state) if holds(&state) => break state,
            _ => tokio::task::yield_now().await,
        }
    }
}

fn annotations(node: &Value) -> Value {
    let found = node["metadata"]["annotations"].as_object();
    let found = found.into_iter().flatten().map(|(key, value)| {
        (
            key.trim_start_matches("5spot.finos.org/").to_owned(),
            value.clone(),
        )
    });
    found.collect::<serde_json::Map<_, _>>().into()
}

pub(crate) fn config_text(commands: &[&str]) -> String {
    let commands: Vec<String> = commands.iter().map(|name| (*name).to_owned()).collect();
    agent_config(&commands).replace("poll_interval_ms = 250", "poll_interval_ms = 5")
}

pub(crate) fn accepted(text: &str) -> String {
    format!("{} ok", config_hash(text))
}

#[tokio::test]
async fn a_listed_program_leads_to_three_annotations_and_the_report() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.fake.start(7, "steam");
    assert_eq!(
        fixture.wait_for_request().await,
        json!({
            "reclaim-agent": accepted(&text),
            "reclaim-requested": "true",
            "reclaim-reason": "process-match: steam",
            "reclaim-requested-at": "2026-03-06T22:50:00.000Z",
        })
    );
    assert_eq!(fixture.writes(), 2);
}

#[tokio::test]
async fn a_running_program_and_the_report_are_written_together_at_start() {
    let mut fixture = Fixture::new().await;
    fixture.configure(&config_text(&["steam"])).await;
    fixture.fake.start(7, "steam");
    fixture.start_agent();
    fixture.wait_for_request().await;
    assert!(fixture.writes() <= 2, "{}", fixture.writes());
}

#[tokio::test]
async fn a_restarted_agent_does_not_repeat_existing_annotations() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.fake.start(7, "steam");
    fixture
        .annotate(&json!({
            "5spot.finos.org/reclaim-agent": accepted(&text),
            "5spot.finos.org/reclaim-requested": "true",
            "5spot.finos.org/reclaim-reason": "process-match: other",
        }))
        .await;
    fixture.start_agent();
    // Then the program ends, the request is removed, and another program starts. The request for
    // that program is the first write.
    fixture.fake.end(7);
    fixture.clear().await;
    fixture.fake.start(8, "steam");
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: steam");
    assert_eq!(fixture.writes(), 1);
}

#[tokio::test]
async fn a_request_removed_while_the_program_runs_is_repeated() {
    let mut fixture = Fixture::new().await;
    fixture.configure(&config_text(&["steam"])).await;
    fixture.start_agent();
    fixture.fake.start(7, "steam");
    for _ in 0..3 {
        fixture.wait_for_request().await;
        fixture.clear().await;
    }
    fixture.wait_for_request().await;
}

#[tokio::test]
async fn a_signal_is_requested_without_a_configuration_as_long_as_it_stands() {
    let mut fixture = Fixture::new().await;
    let path = std::env::temp_dir().join(unique("5spot-agent-signal-"));
    fs::write(&path, "").unwrap();
    fixture.signal_file = Some(path.clone());
    fixture.start_agent();
    let wanted = json!({
        "reclaim-requested": "true",
        "reclaim-reason": format!("signal-file: {}", path.display()),
        "reclaim-requested-at": "2026-03-06T22:50:00.000Z",
    });
    assert_eq!(fixture.wait_for_request().await, wanted);
    fixture.clear().await;
    assert_eq!(fixture.wait_for_request().await, wanted);
    // The end of the signal does not take the request back: the operator has acted on it.
    fs::remove_file(&path).unwrap();
    fixture.clear().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.fake.start(7, "steam");
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: steam");
}

#[tokio::test(start_paused = true)]
async fn a_signal_is_not_requested_while_the_policy_is_not_in_force() {
    let mut fixture = Fixture::new().await;
    fixture.unbind().await;
    let path = std::env::temp_dir().join(unique("5spot-agent-signal-"));
    fs::write(&path, "").unwrap();
    fixture.signal_file = Some(path.clone());
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&not_in_force(&text)).await;
    // The signal is read a few times before the policy is checked again.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let node = fixture.client().get(NODE).await.unwrap();
    assert_eq!(
        annotations(&node),
        json!({"reclaim-agent": not_in_force(&text)})
    );
    fixture.bind().await;
    fixture.wait_for_request().await;
    fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn a_user_of_the_host_asks_for_it_and_sees_what_the_agent_does() {
    let mut fixture = Fixture::new().await;
    let directory = std::env::temp_dir().join(unique("5spot-agent-run-"));
    fixture.run_directory = Some(directory.clone());
    fixture.fake.start(30, "agent");
    fixture.fake.is_agent(30);
    fixture.start_agent();
    let state =
        async |holds: &dyn Fn(&Value) -> bool| wait_for_state(&directory, holds).await;
    let found = state(&|_| true).await;
    assert_eq!(found["node"], "worker-1");
    assert_eq!((&found["pid"], &found["started"]), (&json!(30), &json!(77)));
    let switch = RunDirectory::new(directory.clone()).switch();
    switch
        .reclaim(Some("2026-03-06T23:50:00Z".parse().unwrap()))
        .unwrap();
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "owner: until 2026-03-06T23:50:00Z");
    let found = state(&|found| found["requested"].is_object()).await;
    assert_eq!(
        found["requested"],
        json!({
            "reason": "owner: until 2026-03-06T23:50:00Z",
            "at": "2026-03-06T22:50:00.000Z",
        })
    );
    assert_eq!(found["signals"][0]["reading"], "stands");
    assert_eq!(switch.take_back().unwrap(), 1);
    state(&|found| found["signals"][0]["reading"] == "absent").await;
    fixture.clear().await;
    state(&|found| found["requested"].is_null()).await;
    let mode = |path: &str| {
        let found = fs::metadata(directory.join(path)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777
    };
    assert_eq!((mode("owner"), mode("agent/state.json")), (0o1777, 0o644));
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_signal_that_ended_while_the_node_was_away_does_not_take_it_out_again() {
    let mut fixture = Fixture::new().await;
    let directory = std::env::temp_dir().join(unique("5spot-agent-run-"));
    fixture.run_directory = Some(directory.clone());
    fixture.fake.start(30, "agent");
    fixture.fake.is_agent(30);
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    // The request cannot be written, and the Node goes.
    fixture.set_machine_id("decaf").await;
    let switch = RunDirectory::new(directory.clone()).switch();
    let reads = fixture.reads();
    switch.reclaim(None).unwrap();
    fixture.wait_for_reads(reads + 1).await;
    let client = fixture.client();
    client.delete(NODE, &Delete::default()).await.unwrap();
    switch.take_back().unwrap();
    wait_for_state(&directory, |found| {
        found["signals"][0]["reading"] == "absent"
    })
    .await;
    let node = json!({"metadata": {"name": "worker-1"}});
    fixture
        .client()
        .create("/api/v1/nodes", node)
        .await
        .unwrap();
    fixture.set_machine_id("c0ffee").await;
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.fake.start(7, "steam");
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: steam");
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_changed_configuration_is_loaded_at_run_time() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.fake.start(7, "idea");
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    let text = config_text(&["steam", "idea"]);
    fixture.configure(&text).await;
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: idea");
    fixture.wait_for_report(&accepted(&text)).await;
}

#[tokio::test]
async fn an_invalid_edit_is_reported_and_the_last_configuration_is_kept() {
    let mut fixture = Fixture::new().await;
    let good = config_text(&["steam"]);
    fixture.configure(&good).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&good)).await;
    let bad = "match_commands = [\"idea\"]\npoll_interval_ms = 0";
    fixture.configure(bad).await;
    fixture
        .wait_for_report(&format!(
            "{} rejected: poll_interval_ms: must be between 1 and 60000, not 0",
            config_hash(bad)
        ))
        .await;
    fixture.fake.start(6, "idea");
    fixture.fake.start(7, "steam");
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: steam");
}

#[tokio::test]
async fn a_configmap_without_its_key_is_rejected() {
    let mut fixture = Fixture::new().await;
    let config_map = json!({"metadata": {"name": "reclaim-agent-worker-1"}});
    fixture
        .client()
        .create(CONFIG_MAPS, config_map)
        .await
        .unwrap();
    fixture.start_agent();
    let found = fixture
        .wait_for(|found| found["reclaim-agent"].is_string())
        .await;
    let report = found["reclaim-agent"].as_str().unwrap();
    assert!(
        report.ends_with(" rejected: the ConfigMap has no key reclaim.toml"),
        "{report}"
    );
}

#[tokio::test]
async fn without_a_configuration_detection_stops_and_the_report_is_removed() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    fixture
        .client()
        .delete(CONFIG_MAP, &Delete::default())
        .await
        .unwrap();
    fixture
        .wait_for(|found| found["reclaim-agent"].is_null())
        .await;
    fixture.fake.start(7, "steam");
    let text = config_text(&["idea"]);
    fixture.configure(&text).await;
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.fake.start(8, "idea");
    let found = fixture.wait_for_request().await;
    assert_eq!(found["reclaim-reason"], "process-match: idea");
}

#[tokio::test]
async fn a_node_of_another_machine_is_not_written() {
    let mut fixture = Fixture::new().await;
    fixture.set_machine_id("decaf").await;
    fixture.configure(&config_text(&["steam"])).await;
    fixture.fake.start(7, "steam");
    fixture.start_agent();
    fixture.wait_for_reads(1).await;
    assert_eq!(fixture.writes(), 0);
    fixture.set_machine_id("").await;
    fixture.wait_for_reads(2).await;
    assert_eq!(fixture.writes(), 0);
    fixture.set_machine_id("c0ffee").await;
    fixture.wait_for_request().await;
}

#[tokio::test]
async fn the_agent_waits_for_a_node_that_is_created_later() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture
        .client()
        .delete(NODE, &Delete::default())
        .await
        .unwrap();
    fixture.fake.start(7, "steam");
    fixture.start_agent();
    let node = json!({
        "metadata": {"name": "worker-1"},
        "status": {"nodeInfo": {"machineID": "c0ffee"}},
    });
    fixture
        .client()
        .create("/api/v1/nodes", node)
        .await
        .unwrap();
    fixture.set_machine_id("c0ffee").await;
    fixture.wait_for_request().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_is_requested_as_soon_as_the_node_appears() {
    let mut fixture = Fixture::new().await;
    let client = fixture.client();
    client.delete(NODE, &Delete::default()).await.unwrap();
    let path = std::env::temp_dir().join(unique("5spot-agent-signal-"));
    fs::write(&path, "").unwrap();
    fixture.signal_file = Some(path.clone());
    fixture.start_agent();
    // Between two checks of the policy, of which there is one every ten seconds.
    tokio::time::sleep(Duration::from_secs(62)).await;
    let node = json!({"metadata": {"name": "worker-1"}});
    client.create("/api/v1/nodes", node).await.unwrap();
    fixture.set_machine_id("c0ffee").await;
    let began = Instant::now();
    fixture.wait_for_request().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    fs::remove_file(&path).unwrap();
}

fn not_in_force(text: &str) -> String {
    format!(
        "{} rejected: the policy 5spot-reclaim-agent-own-node is not in force",
        config_hash(text)
    )
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_could_write_to_other_nodes_says_so_and_asks_for_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.unbind().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.fake.start(7, "steam");
    fixture.start_agent();
    let report = not_in_force(&text);
    let found = fixture
        .wait_for(|found| found["reclaim-agent"].is_string())
        .await;
    assert_eq!(found, json!({"reclaim-agent": report}));
    // The policy is bound again, and the program still runs.
    fixture.bind().await;
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.wait_for_request().await;
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_checked_on_another_node_if_there_is_one() {
    let mut fixture = Fixture::new().await;
    let node = json!({"metadata": {"name": "another"}});
    fixture
        .client()
        .create("/api/v1/nodes", node)
        .await
        .unwrap();
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    let tried: Vec<(String, u16)> = {
        let log = fixture.log.lock().unwrap();
        let own = log
            .iter()
            .filter(|event| event.user == AGENT && event.is_write());
        own.map(|event| (event.path.clone(), event.code)).collect()
    };
    assert_eq!(
        tried,
        [
            ("/api/v1/nodes/another".to_owned(), 403),
            (NODE.to_owned(), 200)
        ]
    );
    let another = fixture.client().get("/api/v1/nodes/another").await.unwrap();
    assert_eq!(annotations(&another), json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_goes_out_of_force_is_noticed_within_a_day() {
    let mut fixture = Fixture::new().await;
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.start_agent();
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.unbind().await;
    tokio::time::advance(Duration::from_hours(24)).await;
    fixture.wait_for_report(&not_in_force(&text)).await;
    fixture.fake.start(7, "steam");
    fixture.bind().await;
    fixture.wait_for_report(&accepted(&text)).await;
    fixture.wait_for_request().await;
}
