//! Reporting a free host to its ScheduledMachine, so that the machine returns after a reclaim.
//!
//! It has a task of its own: a reclaim never waits for a cluster in which the ScheduledMachine is.

use std::fmt;
use std::time::Duration;

use fivespot_api::condition::{self, ConditionType, Reason};
use fivespot_api::name::{AGENT_FIELD_MANAGER, HOST_FREE_ANNOTATION, HOST_POLICY};
use fivespot_api::{ScheduledMachine, reclaim};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::config::Config;
use crate::detect::{Detection, DetectionMode, process, with_causes};
use crate::free::{Change, Look, Seen};
use crate::node::{Attempt, Error, REQUEST, attempt, test_write};
use crate::opening::Opening;
use crate::proc::Proc;
use crate::scan::scan;
use crate::watched::{Observed, Watched, backoff, watch_object};

/// How often it is decided whether the host has to be looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a test write may take: a reclaim waits for it when the agent starts, and once a day.
const TRIED: Duration = Duration::from_secs(2);

/// The ScheduledMachine of this host.
#[derive(Clone)]
pub struct OwnMachine {
    /// The client of its cluster.
    pub client: Client,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Debug for OwnMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut machine = f.debug_struct("OwnMachine");
        machine
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl OwnMachine {
    fn api(&self) -> Api<ScheduledMachine> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Sends a dry-run write of a label, which the policy of hosts must reject.
    ///
    /// # Errors
    /// The API server did not respond soon, or returned an error other than a rejection.
    pub async fn try_label(&self) -> Result<Attempt, Error> {
        let (params, patch) = test_write("labels");
        let api = self.api();
        let patched = api.patch_metadata(&self.name, &params, &patch);
        let patched = timeout(TRIED, patched).await.map_err(|_| Error::Slow)?;
        attempt(patched, HOST_POLICY)
    }

    /// Changes the report on the object with this uid. Returns the report afterwards.
    async fn write(&self, uid: &str, change: Change) -> Result<Option<String>, Error> {
        let value = match change {
            Change::Nothing | Change::Remove => None,
            Change::Write(free) => Some(free.to_string()),
        };
        let annotations = json!({HOST_FREE_ANNOTATION: value});
        let patch = json!({"metadata": {"uid": uid, "annotations": annotations}});
        let params = PatchParams::apply(AGENT_FIELD_MANAGER);
        let api = self.api();
        let patch = Patch::Merge(patch);
        let patched = api.patch_metadata(&self.name, &params, &patch);
        timeout(REQUEST, patched).await.map_err(|_| Error::Slow)??;
        Ok(value)
    }
}

/// A task that reports. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Reporting {
    /// When the machine is created next. The last one that was seen, also while its cluster cannot be
    /// reached.
    pub(crate) opening: watch::Receiver<Option<Opening>>,
    task: JoinHandle<()>,
}

impl Drop for Reporting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reporting {
    /// Begins. `is_quiet` is whether every signal beside processes could be read and none stands.
    pub(crate) fn start(
        machine: OwnMachine,
        host: (Proc, DetectionMode),
        is_quiet: watch::Receiver<bool>,
        now: fn() -> Timestamp,
    ) -> Self {
        let objects = watch_object(machine.api(), machine.name.clone());
        let (proc, mode) = host;
        let (opening, openings) = watch::channel(None);
        let reporter = Reporter {
            machine,
            opening,
            proc,
            mode,
            now,
            wanted: None,
            seen: Seen::default(),
            reported: None,
            is_of_class: false,
            look_due: Instant::now(),
            write_due: Instant::now(),
            failures: 0,
        };
        Self {
            opening: openings,
            task: tokio::spawn(reporter.run(objects, is_quiet)),
        }
    }
}

/// What a ScheduledMachine that waits for its host asks about.
#[derive(Debug)]
struct Wanted {
    uid: String,
    config: Config,
}

/// The work of the task.
struct Reporter {
    machine: OwnMachine,
    proc: Proc,
    mode: DetectionMode,
    now: fn() -> Timestamp,
    opening: watch::Sender<Option<Opening>>,
    /// `None`: the machine does not wait for its host.
    wanted: Option<Wanted>,
    seen: Seen,
    /// The report on the object, and the object's uid.
    reported: Option<(String, Option<String>)>,
    /// The machine waits, and has a class; this has been logged.
    is_of_class: bool,
    look_due: Instant,
    write_due: Instant,
    failures: u32,
}

impl Reporter {
    async fn run(
        mut self,
        mut objects: Watched<ScheduledMachine>,
        mut is_quiet: watch::Receiver<bool>,
    ) {
        let mut detection = None;
        loop {
            // While the host is in use, looks find the end of that.
            if self.wanted.is_none() || !self.seen.is_free() {
                detection = None;
            } else if detection.is_none() {
                let begun = Detection::begin(self.proc.clone(), self.mode).await;
                // Without it, only looks find a process.
                detection = begun.ok();
            }
            let config = self.wanted.as_ref().map(|wanted| &wanted.config);
            tokio::select! {
                biased;
                Ok(()) = objects.observed.changed() => {
                    let observed = objects.observed.borrow_and_update().clone();
                    self.apply(&observed);
                }
                changed = is_quiet.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                Some(found) = process(&mut detection, config) => {
                    if let Err(error) = found {
                        let error = with_causes(&error);
                        tracing::error!(error, "processes cannot be watched");
                    }
                    self.see(Look::InUse);
                }
                () = sleep_until(self.look_due), if self.wanted.is_some() => {
                    self.look(*is_quiet.borrow());
                }
                () = sleep_until(self.write_due), if self.has_work() => {}
            }
            if !*is_quiet.borrow() {
                self.see(Look::InUse);
            }
            if self.has_work() && self.write_due <= Instant::now() {
                self.write().await;
            }
        }
    }

    /// Applies the current ScheduledMachine.
    fn apply(&mut self, observed: &Observed<ScheduledMachine>) {
        let Observed::Is(object) = observed else {
            if *observed == Observed::Absent {
                self.opens(None);
                self.reported = None;
                self.stop();
            }
            return;
        };
        self.opens(Opening::of(object));
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let annotations = object.metadata.annotations.as_ref();
        let reported = annotations.and_then(|all| all.get(HOST_FREE_ANNOTATION));
        self.reported = Some((uid.clone(), reported.cloned()));
        if !waits(object) {
            self.is_of_class = false;
            self.stop();
            return;
        }
        // The class may list other commands, which this agent cannot read.
        if object.spec.class_ref.is_some() {
            if !self.is_of_class {
                tracing::warn!(
                    "the machine has a class: this host is not reported as free"
                );
            }
            self.is_of_class = true;
            self.stop();
            return;
        }
        let text = reclaim::agent_config(object.spec.reclaim_commands().1);
        let hash = reclaim::config_hash(&text);
        let is_known = |wanted: &Wanted| wanted.uid == uid && wanted.config.hash == hash;
        if self.wanted.as_ref().is_some_and(is_known) {
            return;
        }
        match Config::parse(&text) {
            Ok(config) => {
                tracing::info!("the machine waits until this host is free");
                self.wanted = Some(Wanted { uid, config });
                // Nobody has looked for these commands.
                self.seen = Seen::default();
                self.look_due = Instant::now();
            }
            Err(error) => {
                tracing::error!(%error, "the commands cannot be used: not free");
                self.stop();
            }
        }
    }

    fn opens(&self, next: Option<Opening>) {
        self.opening
            .send_if_modified(|before| std::mem::replace(before, next) != next);
    }

    /// The machine does not wait any more.
    fn stop(&mut self) {
        self.wanted = None;
        self.seen = Seen::default();
    }

    /// Looks at the whole host, if that is due.
    fn look(&mut self, is_quiet: bool) {
        self.look_due = Instant::now() + INTERVAL;
        let Some(wanted) = &self.wanted else { return };
        if !self.seen.is_due((self.now)()) {
            return;
        }
        let mut look = Look::InUse;
        if is_quiet {
            let found = scan(&self.proc, &wanted.config.patterns);
            match found.map(|mut found| found.next()) {
                Ok(None) => look = Look::Free,
                Ok(Some(_)) => {}
                Err(error) => {
                    let error = with_causes(&error);
                    tracing::error!(error, "processes cannot be read: not free");
                }
            }
        }
        self.see(look);
    }

    fn see(&mut self, look: Look) {
        let was_free = self.seen.is_free();
        self.seen = self.seen.after(look, (self.now)());
        if was_free && !self.seen.is_free() {
            // A report that is not true any more is not delayed by an earlier failure.
            self.write_due = Instant::now();
        }
    }

    fn change(&self) -> Change {
        match &self.reported {
            Some((_, reported)) => self.seen.change(reported.as_deref()),
            None => Change::Nothing,
        }
    }

    fn has_work(&self) -> bool {
        self.change() != Change::Nothing
    }

    async fn write(&mut self) {
        let change = self.change();
        let Some((uid, reported)) = &mut self.reported else {
            return;
        };
        match self.machine.write(uid, change).await {
            Ok(now) => {
                let was_reported = reported.is_some();
                if now.is_some() != was_reported {
                    let is_free = now.is_some();
                    tracing::info!(is_free, "told the ScheduledMachine");
                }
                *reported = now;
                self.failures = 0;
            }
            Err(error) => {
                self.failures += 1;
                self.write_due = Instant::now() + backoff(self.failures);
                let error = with_causes(&error);
                let attempt = self.failures;
                tracing::error!(error, attempt, "patching the ScheduledMachine failed");
            }
        }
    }
}

/// Whether a machine that was reclaimed is stopped and may return: only then its host is looked at,
/// and the operator gets a report a minute.
fn waits(object: &ScheduledMachine) -> bool {
    let conditions = object.status.as_ref().map(|status| &status.conditions);
    let scheduled =
        conditions.and_then(|all| condition::find(all, ConditionType::Scheduled));
    object.metadata.deletion_timestamp.is_none()
        && object.spec.returning().is_some()
        && scheduled.is_some_and(|of| of.reason == Reason::OverrideStop.as_str())
}
