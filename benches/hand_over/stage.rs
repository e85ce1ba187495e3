//! The machines, and the audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use benches::send;
use fivespot_testkit::{path_of, scheduled_machine};
use http::{Method, Request};
use kube::{Client, Config};
use serde_json::{Value, json};

/// A write for a machine.
struct Write {
    who: String,
    begun: String,
    ended: String,
}

/// The writes for each machine, by its name.
type Writes = BTreeMap<String, Vec<Write>>;

/// How often is looked, and how often at most.
const LOOK: Duration = Duration::from_millis(200);
const LOOKS: usize = 600;

/// A namespace with machines that are never wanted: what they are told about themselves is
/// what is measured.
pub(crate) struct Stage {
    client: Client,
    namespace: String,
    machines: usize,
    audit_log: PathBuf,
}

impl Stage {
    /// Makes them, in the cluster that $KUBECONFIG names.
    pub(crate) async fn set(
        machines: usize,
        audit_log: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let client = Client::try_from(Config::infer().await?)?;
        for object in fivespot_api::manifest::installed(36) {
            let path = format!("{}?fieldManager=bench&force=true", path_of(&object));
            let content = "application/apply-patch+yaml";
            send(&client, (Method::PATCH, content), &path, &object).await?;
        }
        let named = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"generateName": "hand-over-"},
        });
        let json = "application/json";
        let named =
            send(&client, (Method::POST, json), "/api/v1/namespaces", &named).await?;
        let namespace = named["metadata"]["name"].as_str().unwrap_or_default();
        let stage = Self {
            client,
            namespace: namespace.to_owned(),
            machines,
            audit_log: audit_log.to_owned(),
        };
        for number in 0..machines {
            let mut machine = scheduled_machine(&name(number));
            machine["metadata"]["namespace"] = json!(namespace);
            // Once in four years.
            machine["spec"]["schedule"] = json!({"cron": "0 0 29 2 *"});
            let path = stage.machines_path();
            send(&stage.client, (Method::POST, json), &path, &machine).await?;
        }
        Ok(stage)
    }

    fn machines_path(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/5spot.finos.org/v1alpha1/namespaces/{namespace}/scheduledmachines")
    }

    /// Where files go.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.audit_log.parent();
        folder.unwrap_or(Path::new(".")).to_owned()
    }

    /// The namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Switches every schedule on (`true`) or off (`false`).
    pub(crate) async fn switch(&self, enabled: &str) -> Result<(), Box<dyn Error>> {
        let patch = json!({"spec": {"schedule": {"enabled": enabled == "true"}}});
        for number in 0..self.machines {
            let path = format!("{}/{}", self.machines_path(), name(number));
            let content = "application/merge-patch+json";
            send(&self.client, (Method::PATCH, content), &path, &patch).await?;
        }
        Ok(())
    }

    /// Waits until every machine is told to be in that phase.
    pub(crate) async fn wait_for_phase(&self, phase: &str) -> Result<(), Box<dyn Error>> {
        for _ in 0..LOOKS {
            let request = Request::builder()
                .uri(self.machines_path())
                .body(Vec::new())?;
            let list: Value = self.client.request(request).await?;
            let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
            let there = items.iter().filter(|item| item["status"]["phase"] == phase);
            if there.count() == self.machines {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(format!("the machines have not become {phase}").into())
    }

    /// How long the audit log is by now.
    pub(crate) fn log_length(&self) -> Result<u64, Box<dyn Error>> {
        Ok(std::fs::metadata(&self.audit_log)?.len())
    }

    /// The writes for each machine since that place in the log, in order. Events are told, not
    /// relied on.
    fn writes(&self, from: u64) -> Result<Writes, Box<dyn Error>> {
        let mut file = File::open(&self.audit_log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut writes = Writes::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |pointer: &str| {
                let found = event.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            let is_ours = text("/objectRef/namespace") == self.namespace
                && text("/objectRef/resource") == "scheduledmachines"
                && text("/stage") == "ResponseComplete"
                && text("/verb") == "patch";
            let who = text("/impersonatedUser/username");
            if is_ours && !who.is_empty() {
                let write = Write {
                    who,
                    begun: text("/requestReceivedTimestamp"),
                    ended: text("/stageTimestamp"),
                };
                let of_machine = writes.entry(text("/objectRef/name")).or_default();
                of_machine.push(write);
            }
        }
        for of_machine in writes.values_mut() {
            of_machine.sort_by(|one, other| one.begun.cmp(&other.begun));
        }
        Ok(writes)
    }

    /// How many machines each has written for since that place in the log.
    pub(crate) fn shares(
        &self,
        from: u64,
    ) -> Result<BTreeMap<String, usize>, Box<dyn Error>> {
        let mut shares = BTreeMap::new();
        for of_machine in self.writes(from)?.values() {
            let who: BTreeSet<&String> =
                of_machine.iter().map(|write| &write.who).collect();
            for one in who {
                *shares.entry(one.clone()).or_default() += 1;
            }
        }
        Ok(shares)
    }

    /// The machines for which somebody wrote again, or had not ended to write, when another had
    /// begun.
    pub(crate) fn alternated(&self, from: u64) -> Result<Vec<String>, Box<dyn Error>> {
        let writes = self.writes(from)?;
        let alternated = writes.iter().filter(|(_, of_machine)| {
            let mut past: Vec<&String> = Vec::new();
            let returns = of_machine.iter().any(|Write { who, .. }| {
                let is_return = past.contains(&who) && past.last() != Some(&who);
                if past.last() != Some(&who) {
                    past.push(who);
                }
                is_return
            });
            let overlaps = of_machine
                .windows(2)
                .any(|pair| matches!(pair, [one, next] if one.who != next.who && one.ended > next.begun));
            returns || overlaps
        });
        Ok(alternated.map(|(machine, _)| machine.clone()).collect())
    }
}

fn name(number: usize) -> String {
    format!("worker-{number}")
}
