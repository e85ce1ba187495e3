//! The machines, and which operators wrote for them.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benches::Log;
use fivespot_testkit::scheduled_machine;
use jiff::Timestamp;
use serde_json::json;

/// A write for a machine.
struct Write {
    operator: String,
    begun: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// The writes for each machine, by its name.
type Writes = BTreeMap<String, Vec<Write>>;

/// The interval of checks, and their maximum number.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const MAX_POLLS: usize = 600;

/// A namespace with machines that are never wanted. Only the reports about them are measured.
pub(crate) struct Fixture {
    test_namespace: benches::TestNamespace,
    machines: usize,
    log: Log,
}

impl Fixture {
    /// Creates the machines in the cluster that $KUBECONFIG names.
    pub(crate) async fn create(
        machines: usize,
        audit_log: &Path,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let fixture = Self {
            test_namespace: benches::TestNamespace::create_new("hand-over").await?,
            machines,
            log: Log::at(audit_log),
        };
        for number in 0..machines {
            let mut machine = scheduled_machine(&name(number));
            // A day that occurs once in four years.
            machine["spec"]["schedule"] = json!({"cron": "0 0 29 2 *"});
            fixture.test_namespace.create(machine).await?;
        }
        Ok(fixture)
    }

    /// The folder for files.
    pub(crate) fn folder(&self) -> PathBuf {
        self.log.folder()
    }

    /// The namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.test_namespace.namespace()
    }

    /// Enables (`true`) or disables (`false`) every schedule.
    pub(crate) async fn switch(
        &self,
        enabled: &str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let patch = json!({"spec": {"schedule": {"enabled": enabled == "true"}}});
        for number in 0..self.machines {
            let path =
                format!("{}/{}", self.test_namespace.machines_path(), name(number));
            self.test_namespace.merge(&path, &patch).await?;
        }
        Ok(())
    }

    /// Waits until every machine is reported in this phase.
    pub(crate) async fn wait_for_phase(
        &self,
        phase: &str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        for _ in 0..MAX_POLLS {
            if self.test_namespace.in_phase(phase).await? == self.machines {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Err(format!("the machines have not become {phase}").into())
    }

    /// The current length of the audit log.
    pub(crate) fn log_length(&self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        Ok(self.log.length()?)
    }

    /// The operators' writes for each machine from this offset of the log on, in order. Writes of
    /// Events are not included.
    fn writes(&self, from: u64) -> Result<Writes, Box<dyn Error + Send + Sync>> {
        let mut writes = Writes::new();
        for entry in self.log.since(from)? {
            let is_operator = ["leader-", "shard-"]
                .iter()
                .any(|role| entry.user.starts_with(role));
            let is_ours = entry.namespace == self.namespace()
                && entry.resource == "scheduledmachines"
                && entry.verb == "patch";
            if is_ours && is_operator {
                let write = Write {
                    operator: entry.user,
                    begun: entry.begun,
                    ended: entry.ended,
                };
                writes.entry(entry.name).or_default().push(write);
            }
        }
        for of_machine in writes.values_mut() {
            of_machine.sort_by_key(|write| write.begun);
        }
        Ok(writes)
    }

    /// For how many machines each operator has written, from this offset of the log on.
    pub(crate) fn shares(
        &self,
        from: u64,
    ) -> Result<BTreeMap<String, usize>, Box<dyn Error + Send + Sync>> {
        let mut shares = BTreeMap::new();
        for of_machine in self.writes(from)?.values() {
            let operator: BTreeSet<&String> =
                of_machine.iter().map(|write| &write.operator).collect();
            for one in operator {
                *shares.entry(one.clone()).or_default() += 1;
            }
        }
        Ok(shares)
    }

    /// The machines for which an operator wrote again after another one, or had not ended a write
    /// when another one began.
    pub(crate) fn alternated(
        &self,
        from: u64,
    ) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
        let writes = self.writes(from)?;
        let alternated = writes.iter().filter(|(_, of_machine)| {
            let mut past: Vec<&String> = Vec::new();
            let returns = of_machine.iter().any(|Write { operator, .. }| {
                let is_return = past.contains(&operator) && past.last() != Some(&operator);
                if past.last() != Some(&operator) {
                    past.push(operator);
                }
                is_return
            });
            let overlaps = of_machine
                .windows(2)
                .any(|pair| matches!(pair, [one, next] if one.operator != next.operator && one.ended > next.begun));
            returns || overlaps
        });
        Ok(alternated.map(|(machine, _)| machine.clone()).collect())
    }
}

fn name(number: usize) -> String {
    format!("worker-{number}")
}
