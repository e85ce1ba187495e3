//! The steps of the measurement.

use std::time::Duration;

use benches::{Entry, Log};
use jiff::{SignedDuration, Timestamp, Unit};

use crate::Args;
use crate::operator::{Description, Edge, Operator};
use crate::report::{Report, Restart};
use crate::span::{Span, latenesses, quantiles};
use crate::watcher::Watcher;
use crate::world::{Failure, Schedule, Window, World, now};

/// How long the creation of a machine and its first reconcile may take.
const A_MACHINE: SignedDuration = SignedDuration::from_millis(25);

/// The additional time that any step may take.
const AT_LEAST: SignedDuration = SignedDuration::from_secs(30);

/// How long there must be no requests in the log for the operator to be idle.
const SILENCE: Duration = Duration::from_secs(5);

/// The maximum number of such waits.
const SILENCES: usize = 120;

/// Runs all steps and returns the report.
pub(crate) async fn run(args: &Args) -> Result<Report, Failure> {
    let description = Description::read(args)?;
    let edge = description.edge;
    let log = Log::at(&args.audit_log);
    let floor = floor(args).await?;

    let world = World::make(args).await?;
    let watcher = Watcher::follow(&world.stage);
    let operator = Operator::new(description, world.stage.namespace(), log.folder());
    let mut run = Run {
        args,
        edge,
        log,
        world,
        watcher,
        operator,
        report: Report::new(args, floor),
    };
    run.operator.start()?;
    run.quiet().await?;
    run.report.started = Some(run.operator.taken()?);
    let window = window(args, 1)?;
    eprintln!(
        "{} machines whose windows open at {}",
        args.machines, window.opens
    );
    run.world.populate(&Schedule::of(edge, window)).await?;
    run.settled(window).await?;
    run.report.settled = Some(run.operator.taken()?);
    let opening = run.open(window).await?;
    run.report.lateness_seconds = quantiles(&opening.late);
    run.report.created = opening.late.len();
    run.report.opening = opening.requests;
    run.report.opened = Some(run.operator.taken()?);
    run.report.object_bytes = run.world.object_bytes().await?;
    run.keep()?;
    if !args.opening_alone {
        run.rest_of_a_cycle(window).await?;
        run.another_edge().await?;
        run.keep()?;
        run.end().await?;
    }
    run.operator.kill().await?;
    Ok(run.report)
}

/// The result of an edge.
struct Opening {
    /// How late the objects of each machine were created, in seconds.
    late: Vec<f64>,
    requests: Span,
}

/// A measurement in progress.
struct Run<'a> {
    args: &'a Args,
    edge: Edge,
    log: Log,
    world: World,
    watcher: Watcher,
    operator: Operator,
    report: Report,
}

impl Run<'_> {
    fn keep(&self) -> Result<(), Failure> {
        crate::keep(self.args, &self.report)
    }

    /// Waits until all machines are reported as not wanted. Fails if the window has opened before.
    async fn settled(&self, window: Window) -> Result<(), Failure> {
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
    async fn open(&self, window: Window) -> Result<Opening, Failure> {
        let from = self.log.length()?;
        self.watcher.take();
        let opened = self.world.turn(self.edge, window.opens, true).await?;
        eprintln!("open");
        let entries = until_created(&self.log, from, opened, self.args.machines).await?;
        let late = latenesses(&entries, opened);
        let [_, _, all] = quantiles(&late);
        eprintln!("  {} created after {all:.1} s", late.len());
        let requests = Span::of(&entries);
        Ok(Opening { late, requests })
    }

    /// Measures until all machines serve, then until all are removed, and then while idle.
    async fn rest_of_a_cycle(&mut self, window: Window) -> Result<(), Failure> {
        let from = self.log.length()?;
        self.watcher.settle("Active", self.args.machines).await?;
        self.quiet().await?;
        self.report.opening.add(&Span::of(&self.log.since(from)?));
        self.report.open = Some(self.operator.taken()?);
        self.report.changes_opening = self.watcher.take();
        self.keep()?;

        let from = self.log.length()?;
        self.world.turn(self.edge, window.closes, false).await?;
        eprintln!("closed");
        self.watcher
            .settle(self.unwanted_phase(), self.args.machines)
            .await?;
        self.quiet().await?;
        self.report.closing = Span::of(&self.log.since(from)?);
        self.report.closed = Some(self.operator.taken()?);
        self.report.changes_closing = self.watcher.take();
        self.report.count_repeated();
        self.keep()?;

        eprintln!("idle");
        let from = self.log.length()?;
        tokio::time::sleep(Duration::from_mins(1) * self.args.idle_minutes).await;
        self.report.idle = Span::of(&self.log.since(from)?);
        self.keep()
    }

    /// Measures a second edge after the idle span, until all machines serve again. The server
    /// stores more data than at the first edge, so the floor is measured again as well.
    async fn another_edge(&mut self) -> Result<(), Failure> {
        self.report.floor_again_seconds = Some(floor(self.args).await?.as_secs_f64());
        let window = window(self.args, 1)?;
        self.world.reschedule(self.edge, window).await?;
        self.settled(window).await?;
        let opening = self.open(window).await?;
        self.report.again_seconds = Some(quantiles(&opening.late));
        self.keep()?;
        self.watcher.settle("Active", self.args.machines).await?;
        self.quiet().await?;
        self.report.again = Some(self.operator.taken()?);
        Ok(())
    }

    /// Measures a restart while all machines serve, and the deletion of all.
    async fn end(&mut self) -> Result<(), Failure> {
        eprintln!("restart");
        self.operator.kill().await?;
        let from = self.log.length()?;
        let begun = now();
        self.operator.start()?;
        self.quiet().await?;
        self.report.restart = Some(restart(&self.log, from, begun)?);
        self.keep()?;

        eprintln!("deletion");
        let from = self.log.length()?;
        let took = self.world.delete_all(self.seconds()).await?;
        self.report.deletion_seconds = took.as_secs_f64();
        self.report.deletion = Span::of(&self.log.since(from)?);
        Ok(())
    }

    /// Waits until the operator has sent no requests for a while, except renewals and watches.
    async fn quiet(&self) -> Result<(), Failure> {
        quiet(&self.log).await
    }
}

/// Waits until the operator has sent no requests for a while, except renewals and watches.
pub(crate) async fn quiet(log: &Log) -> Result<(), Failure> {
    for _ in 0..SILENCES {
        let from = log.length()?;
        tokio::time::sleep(SILENCE).await;
        if Span::of(&log.since(from)?).beyond_idling() == 0 {
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
) -> Result<Vec<Entry>, Failure> {
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
pub(crate) async fn floor(args: &Args) -> Result<SignedDuration, Failure> {
    eprintln!("the floor: {} machines by a plain client", args.machines);
    let floor = crate::floor::measure(args).await?;
    eprintln!("  {:.1} s", floor.as_secs_f64());
    Ok(floor)
}

fn restart(log: &Log, from: u64, begun: Timestamp) -> Result<Restart, Failure> {
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
pub(crate) fn window(args: &Args, times: i32) -> Result<Window, Failure> {
    let machines = i32::try_from(args.machines)?;
    let lead = args
        .lead_seconds
        .map_or((A_MACHINE * machines + AT_LEAST) * times, |seconds| {
            SignedDuration::from_secs(i64::from(seconds))
        });
    let soon = now() + lead;
    let opens = soon.round(Unit::Minute)? + SignedDuration::from_mins(1);
    let closes = opens + SignedDuration::from_mins(i64::from(args.open_minutes));
    Ok(Window { opens, closes })
}
