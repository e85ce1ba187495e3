//! Runs one promise on a cluster.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::clusters::{Clusters, Subject};
use super::promise::{Change, Fact, Part, Promise, Step};
use super::report::{PromiseResult, Verdict};
use crate::{cluster, plain};

/// The interval between two observations.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The interval between two progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// The settings that all promises of a run share.
pub(super) struct Runner<'r> {
    pub(super) clusters: &'r Clusters,
    /// How long each step may take.
    pub(super) timeout: Duration,
    /// The command that restarts the provider.
    pub(super) restart: Option<&'r str>,
}

impl Runner<'_> {
    /// Runs a promise with a machine, and removes it.
    pub(super) async fn run(
        &self,
        promise: &Promise,
        mut subject: Subject,
    ) -> PromiseResult {
        let begun = Instant::now();
        let mut verdict = Verdict::Kept;
        for step in promise.steps.iter().copied().flatten() {
            if let Err(ended) = self.run_step(*step, &mut subject).await {
                verdict = ended;
                break;
            }
        }
        let leftover = self.remove(&mut subject).await.err();
        if let (Verdict::Kept, Some(leftover)) = (&verdict, &leftover) {
            verdict = Verdict::Broken(leftover.clone());
        }
        PromiseResult {
            name: promise.name,
            meaning: promise.meaning,
            verdict,
            seconds: begun.elapsed().as_secs(),
            leftover,
        }
    }

    /// Runs a step.
    ///
    /// # Errors
    /// The promise ends with it, with that verdict.
    async fn run_step(&self, step: Step, subject: &mut Subject) -> Result<(), Verdict> {
        match step {
            Step::Create(limits) => {
                let created = self.clusters.create(subject, limits).await;
                let what = "the ScheduledMachine is refused";
                created.map_err(|why| Verdict::NotRun(format!("{what}: {why}")))
            }
            Step::AddPod { has_budget } => {
                let added = self.add_pod(subject, has_budget).await;
                let what = "no pod can be put on the Node";
                added.map_err(|why| Verdict::NotRun(format!("{what}: {why}")))
            }
            Step::Apply(change) => {
                let done = self.change(change, subject).await;
                done.map_err(Verdict::NotRun)
            }
            Step::Await(fact) => {
                let result = self.wait(fact, subject).await;
                result.map_err(Verdict::Broken)
            }
            Step::Require(fact) => {
                let result = self.wait(fact, subject).await;
                result.map_err(Verdict::NotRun)
            }
        }
    }

    /// Creates a pod on the Node. Retries, because its namespace may not be complete yet.
    async fn add_pod(&self, subject: &Subject, has_budget: bool) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self.clusters.add_pod(subject, has_budget).await {
                Err(_) if begun.elapsed() < self.timeout => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                done => return done,
            }
        }
    }

    async fn change(&self, change: Change, subject: &Subject) -> Result<(), String> {
        match change {
            Change::Stop => {
                let now = cluster::now(&self.clusters.management).await;
                self.clusters.stop(subject, now).await
            }
            Change::Resume => self.clusters.resume(subject).await,
            Change::Kill => {
                let spec = serde_json::json!({"killSwitch": true});
                self.clusters.change(subject, spec).await
            }
            Change::Disable => {
                let spec = serde_json::json!({"schedule": {"enabled": false}});
                self.clusters.change(subject, spec).await
            }
            Change::Delete => self.clusters.delete(subject).await,
            Change::Restart => run(self.restart.unwrap_or_default()).await,
        }
    }

    /// Waits until a fact is observed.
    async fn wait(&self, fact: Fact, subject: &mut Subject) -> Result<(), String> {
        report_progress(subject, &format!("waiting until {fact}"));
        let begun = Instant::now();
        let mut last_progress = begun;
        loop {
            let missing = match self.clusters.observe(subject).await {
                Ok(()) => {
                    let observation = &subject.observation;
                    if let Some(violation) =
                        subject.forbidden.and_then(|it| it.find_in(observation))
                    {
                        return Err(violation);
                    }
                    match fact.check(observation) {
                        Ok(()) => return Ok(()),
                        Err(missing) => missing,
                    }
                }
                Err(why) => format!("the cluster cannot be read: {why}"),
            };
            if begun.elapsed() >= self.timeout {
                let seconds = self.timeout.as_secs();
                let reported = match subject.observation.message() {
                    "" => String::new(),
                    message => format!("; 5-Spot reports: {message}"),
                };
                return Err(format!("after {seconds} s, {missing}{reported}"));
            }
            if last_progress.elapsed() >= PROGRESS_INTERVAL {
                last_progress = Instant::now();
                let seconds = begun.elapsed().as_secs();
                let message = subject.observation.message();
                report_progress(subject, &format!("{missing} ({seconds} s): {message}"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Removes the machine of a promise and waits until it is gone.
    ///
    /// # Errors
    /// A description of what is left of it.
    async fn remove(&self, subject: &mut Subject) -> Result<(), String> {
        subject.forbidden = None;
        // Deletes the pod directly, which its budget does not block.
        let _ = self.clusters.delete_pod(subject).await;
        self.clusters.delete(subject).await?;
        for part in [
            Part::Infrastructure,
            Part::Bootstrap,
            Part::Machine,
            Part::ScheduledMachine,
        ] {
            self.wait(Fact::Gone(part), subject).await?;
        }
        Ok(())
    }
}

/// Runs a shell command of the user and waits until it ends.
///
/// # Errors
/// It cannot be run, or fails.
async fn run(command: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    // Standard output is reserved for the report.
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let ended = tokio::task::spawn_blocking(move || shell.status()).await;
    let ended = ended.map_err(|error| error.to_string())?;
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command that restarts the provider: {status}")),
        Err(error) => Err(format!("the command that restarts the provider: {error}")),
    }
}

/// Prints progress on standard error.
fn report_progress(subject: &Subject, text: &str) {
    let text = plain::line(text);
    let _ = writeln!(std::io::stderr(), "{}: {text}", subject.promise);
}
