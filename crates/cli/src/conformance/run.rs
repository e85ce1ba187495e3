//! Runs one promise on a cluster.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::promise::{Change, Fact, Part, Promise, Step};
use super::report::{PromiseResult, Verdict};
use super::site::{Site, Subject};
use crate::{cluster, plain};

/// The interval between two observations.
const INTERVAL: Duration = Duration::from_millis(250);
/// The interval between two progress messages.
const REMINDER: Duration = Duration::from_secs(30);

/// The settings that all promises of a run share.
pub(super) struct Runner<'r> {
    pub(super) site: &'r Site,
    /// How long each step may take.
    pub(super) timeout: Duration,
    /// The command that restarts the provider.
    pub(super) restart: Option<&'r str>,
}

/// Why a promise ended before its last step.
enum End {
    Broken(String),
    CannotRun(String),
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
            let done = self.take(*step, &mut subject).await;
            match done {
                Ok(()) => {}
                Err(End::Broken(why)) => verdict = Verdict::Broken(why),
                Err(End::CannotRun(why)) => verdict = Verdict::NotRun(why),
            }
            if verdict != Verdict::Kept {
                break;
            }
        }
        let left = self.remove(&mut subject).await.err();
        if let (Verdict::Kept, Some(left)) = (&verdict, &left) {
            verdict = Verdict::Broken(left.clone());
        }
        PromiseResult {
            name: promise.name,
            meaning: promise.meaning,
            verdict,
            seconds: begun.elapsed().as_secs(),
            left,
        }
    }

    async fn take(&self, step: Step, subject: &mut Subject) -> Result<(), End> {
        match step {
            Step::Create(limits) => {
                let created = self.site.create(subject, limits).await;
                let what = "the ScheduledMachine is refused";
                created.map_err(|why| End::CannotRun(format!("{what}: {why}")))
            }
            Step::AddPod { is_held } => {
                let added = self.add_pod(subject, is_held).await;
                let what = "no pod can be put on the Node";
                added.map_err(|why| End::CannotRun(format!("{what}: {why}")))
            }
            Step::Do(change) => {
                let done = self.change(change, subject).await;
                done.map_err(End::CannotRun)
            }
            Step::Await(fact) => {
                let seen = self.wait(fact, subject).await;
                seen.map_err(End::Broken)
            }
            Step::Require(fact) => {
                let seen = self.wait(fact, subject).await;
                seen.map_err(End::CannotRun)
            }
        }
    }

    /// Creates a pod on the Node. Retries, because its namespace may not be complete yet.
    async fn add_pod(&self, subject: &Subject, is_held: bool) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self.site.add_pod(subject, is_held).await {
                Err(_) if begun.elapsed() < self.timeout => {
                    tokio::time::sleep(INTERVAL).await;
                }
                done => return done,
            }
        }
    }

    async fn change(&self, change: Change, subject: &Subject) -> Result<(), String> {
        match change {
            Change::Stop => {
                let now = cluster::now(&self.site.management).await;
                self.site.stop(subject, now).await
            }
            Change::Resume => self.site.resume(subject).await,
            Change::Kill => {
                let spec = serde_json::json!({"killSwitch": true});
                self.site.change(subject, spec).await
            }
            Change::Disable => {
                let spec = serde_json::json!({"schedule": {"enabled": false}});
                self.site.change(subject, spec).await
            }
            Change::Delete => self.site.delete(subject).await,
            Change::Restart => run(self.restart.unwrap_or_default()).await,
        }
    }

    /// Waits until a fact is observed.
    async fn wait(&self, fact: Fact, subject: &mut Subject) -> Result<(), String> {
        report_progress(subject, &format!("waiting until {fact}"));
        let begun = Instant::now();
        let mut reminded = begun;
        loop {
            let missing = match self.site.look(subject).await {
                Ok(()) => {
                    let seen = &subject.seen;
                    if let Some(breach) = subject.never.and_then(|it| it.found_in(seen)) {
                        return Err(breach);
                    }
                    match fact.is_seen_in(seen) {
                        Ok(()) => return Ok(()),
                        Err(missing) => missing,
                    }
                }
                Err(why) => format!("the cluster cannot be read: {why}"),
            };
            if begun.elapsed() >= self.timeout {
                let seconds = self.timeout.as_secs();
                let reported = match subject.seen.message() {
                    "" => String::new(),
                    message => format!("; 5-Spot reports: {message}"),
                };
                return Err(format!("after {seconds} s, {missing}{reported}"));
            }
            if reminded.elapsed() >= REMINDER {
                reminded = Instant::now();
                let seconds = begun.elapsed().as_secs();
                let message = subject.seen.message();
                report_progress(subject, &format!("{missing} ({seconds} s): {message}"));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Removes the machine of a promise and waits until it is gone.
    ///
    /// # Errors
    /// A description of what is left of it.
    async fn remove(&self, subject: &mut Subject) -> Result<(), String> {
        subject.never = None;
        // Deletes the pod directly, which its budget does not block.
        let _ = self.site.delete_pod(subject).await;
        self.site.delete(subject).await?;
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
