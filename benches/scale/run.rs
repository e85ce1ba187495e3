//! The steps of the measurement.

use std::time::Duration;

use benches::{Entry, Log};
use jiff::{SignedDuration, Timestamp, Unit};

use crate::Args;
use crate::fleet::{BoxError, Fleet, Schedule, Window, now};
use crate::operator::{Description, Edge, Operator};
use crate::report::{Report, Restart};
use crate::span::{Span, latenesses, quantiles};
use crate::watcher::Watcher;

/// How long the creation of a machine and its first reconcile may take.
const TIME_PER_MACHINE: SignedDuration = SignedDuration::from_millis(25);

/// The additional time that any step may take.
const BASE_TIME: SignedDuration = SignedDuration::from_secs(30);

/// How long there must be no requests in the log for the operator to be idle.
const SILENCE: Duration = Duration::from_secs(5);

/// The maximum number of such waits.
const MAX_SILENCES: usize = 120;

/// Runs all steps and returns the report.
pub(crate) async fn run(args: &Args) -> Result<Report, BoxError> {
    let description = Description::read(args)?;
    let edge = description.edge;
    let log = Log::at(&args.audit_log);
    let floor = floor(args).await?;

    let fleet = Fleet::create(args).await?;
    let watcher = Watcher::start(&fleet.test_namespace);
    let operator =
        Operator::new(description, fleet.test_namespace.namespace(), log.folder());
    let mut run = Run {
        args,
        edge,
        log,
        fleet,
        watcher,
        operator,
        report: Report::new(args, floor),
    };
    run.operator.start()?;
    run.wait_until_idle().await?;
    run.report.started = Some(run.operator.resource_usage()?);
    let window = window(args, 1)?;
    eprintln!(
        "{} machines whose windows open at {}",
        args.machines, window.opens
    );
    run.fleet.populate(&Schedule::of(edge, window)).await?;
    run.settled(window).await?;
    run.report.settled = Some(run.operator.resource_usage()?);
    let opening = run.open(window).await?;
    run.report.lateness_seconds = quantiles(&opening.late);
    run.report.created = opening.late.len();
    run.report.opening = opening.requests;
    run.report.opened = Some(run.operator.resource_usage()?);
    run.report.object_bytes = run.fleet.object_bytes().await?;
    run.write_report()?;
    if !args.opening_alone {
        run.measure_closing(window).await?;
        run.measure_second_edge().await?;
        run.write_report()?;
        run.measure_restart_and_deletion().await?;
    }
    run.operator.kill().await?;
    Ok(run.report)
}

/// The result of an edge.
struct EdgeResult {
    /// How late the objects of each machine were created, in seconds.
    late: Vec<f64>,
    requests: Span,
}

/// A measurement in progress.
struct Run<'a> {
    args: &'a Args,
    edge: Edge,
    log: Log,
    fleet: Fleet,
    watcher: Watcher,
    operator: Operator,
    report: Report,
}

impl Run<'_> {
    fn write_report(&self) -> Result<(), BoxError> {
        crate::write_report(self.args, &self.report)
    }

    /// Waits until all machines are reported as not wanted. Fails if the window has opened before.
    async fn settled(&self, window: Window) -> Result<(), BoxError> {
        self.watcher
            .settle(self.unwanted_phase(), self.args.machines)
            .await?;
        if self.edge == Edge::Cron && now() >= window.opens {
            return Err("the machines had not settled when the window opened".into());
        }
        Ok(())
    }

    /// The phase of machines that are not wanted.
    fn unwanted_phase(&self) -> &'static str {
        match self.edge {
            Edge::Cron => "Inactive",
            Edge::Switch => "Disabled",
        }
    }

    fn seconds(&self) -> u64 {
        seconds_for(self.args.machines)
    }

    /// Waits for the edge, and until all objects exist.
    async fn open(&self, window: Window) -> Result<EdgeResult, BoxError> {
        let from = self.log.length()?;
        self.watcher.take();
        let opened = self.fleet.cross_edge(self.edge, window.opens, true).await?;
        eprintln!("open");
        let entries = until_created(&self.log, from, opened, self.args.machines).await?;
        let late = latenesses(&entries, opened);
        let [_, _, all] = quantiles(&late);
        eprintln!("  {} created after {all:.1} s", late.len());
        let requests = Span::of(&entries);
        Ok(EdgeResult { late, requests })
    }

    /// Measures until all machines serve, then until all are removed, and then while idle.
    async fn measure_closing(&mut self, window: Window) -> Result<(), BoxError> {
        let from = self.log.length()?;
        self.watcher.settle("Active", self.args.machines).await?;
        self.wait_until_idle().await?;
        self.report.opening.add(&Span::of(&self.log.since(from)?));
        self.report.open = Some(self.operator.resource_usage()?);
        self.report.changes_opening = self.watcher.take();
        self.write_report()?;

        let from = self.log.length()?;
        self.fleet
            .cross_edge(self.edge, window.closes, false)
            .await?;
        eprintln!("closed");
        self.watcher
            .settle(self.unwanted_phase(), self.args.machines)
            .await?;
        self.wait_until_idle().await?;
        self.report.closing = Span::of(&self.log.since(from)?);
        self.report.closed = Some(self.operator.resource_usage()?);
        self.report.changes_closing = self.watcher.take();
        self.report.count_repeated();
        self.write_report()?;

        eprintln!("idle");
        let from = self.log.length()?;
        tokio::time::sleep(Duration::from_mins(1) * self.args.idle_minutes).await;
        self.report.idle = Span::of(&self.log.since(from)?);
        self.write_report()
    }

    /// Measures a second edge after the idle span, until all machines serve again. The server
    /// stores more data than at the first edge, so the floor is measured again as well.
    async fn measure_second_edge(&mut self) -> Result<(), BoxError> {
        self.report.floor_again_seconds = Some(floor(self.args).await?.as_secs_f64());
        let window = window(self.args, 1)?;
        self.fleet.reschedule(self.edge, window).await?;
        self.settled(window).await?;
        let opening = self.open(window).await?;
        self.report.again_seconds = Some(quantiles(&opening.late));
        self.write_report()?;
        self.watcher.settle("Active", self.args.machines).await?;
        self.wait_until_idle().await?;
        self.report.again = Some(self.operator.resource_usage()?);
        Ok(())
    }

    /// Measures a restart while all machines serve, and the deletion of all.
    async fn measure_restart_and_deletion(&mut self) -> Result<(), BoxError> {
        eprintln!("restart");
        self.operator.kill().await?;
        let from = self.log.length()?;
        let begun = now();
        self.operator.start()?;
        self.wait_until_idle().await?;
        self.report.restart = Some(restart(&self.log, from, begun)?);
        self.write_report()?;

        eprintln!("deletion");
        let from = self.log.length()?;
        let took = self.fleet.delete_all(self.seconds()).await?;
        self.report.deletion_seconds = took.as_secs_f64();
        self.report.deletion = Span::of(&self.log.since(from)?);
        Ok(())
    }

    /// Waits until the operator has sent no requests for a while, except renewals and watches.
    async fn wait_until_idle(&self) -> Result<(), BoxError> {
        wait_until_idle(&self.log).await
    }
}

/// Waits until the operator has sent no requests for a while, except renewals and watches.
pub(crate) async fn wait_until_idle(log: &Log) -> Result<(), BoxError> {
    for _ in 0..MAX_SILENCES {
        let from = log.length()?;
        tokio::time::sleep(SILENCE).await;
        if Span::of(&log.since(from)?).active_requests() == 0 {
            return Ok(());
        }
    }
    Err("the operator does not become idle".into())
}

/// The requests from this offset of the log on until the objects of all machines exist.
///
/// # Errors
/// They do not all exist within the time limit for this number of machines.
pub(crate) async fn until_created(
    log: &Log,
    mut from: u64,
    begun: Timestamp,
    machines: usize,
) -> Result<Vec<Entry>, BoxError> {
    let mut entries = Vec::new();
    for _ in 0..seconds_for(machines) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        entries.extend(log.follow(&mut from)?);
        if latenesses(&entries, begun).len() >= machines {
            return Ok(entries);
        }
    }
    let made = latenesses(&entries, begun).len();
    Err(format!("{made} of {machines} machines created; see scale-operator.log").into())
}

/// Measures how long a plain client takes.
pub(crate) async fn floor(args: &Args) -> Result<SignedDuration, BoxError> {
    eprintln!("the floor: {} machines by a plain client", args.machines);
    let floor = crate::floor::measure(args).await?;
    eprintln!("  {:.1} s", floor.as_secs_f64());
    Ok(floor)
}

fn restart(log: &Log, from: u64, begun: Timestamp) -> Result<Restart, BoxError> {
    let entries = log.since(from)?;
    let last = entries
        .iter()
        .filter(|entry| crate::operator::is_operator(entry) && entry.verb != "watch")
        .filter_map(|entry| entry.ended)
        .max();
    Ok(Restart {
        seconds: last.map_or(0.0, |last| last.duration_since(begun).as_secs_f64()),
        requests: Span::of(&entries),
    })
}

/// The time limit of a step with this many machines, in seconds.
fn seconds_for(machines: usize) -> u64 {
    120 + u64::try_from(machines).unwrap_or(u64::MAX / 2) / 2
}

/// A window that opens on a full minute, after the time to create all machines `times` times.
pub(crate) fn window(args: &Args, times: i32) -> Result<Window, BoxError> {
    let machines = i32::try_from(args.machines)?;
    let lead = args.lead_seconds.map_or(
        (TIME_PER_MACHINE * machines + BASE_TIME) * times,
        |seconds| SignedDuration::from_secs(i64::from(seconds)),
    );
    let soon = now() + lead;
    let opens = soon.round(Unit::Minute)? + SignedDuration::from_mins(1);
    let closes = opens + SignedDuration::from_mins(i64::from(args.open_minutes));
    Ok(Window { opens, closes })
}
