//! The measurement, step by step.

use std::time::Duration;

use benches::Log;
use jiff::{SignedDuration, Timestamp, Unit};

use crate::Args;
use crate::operator::{Description, Edge, Operator};
use crate::report::{Report, Restart};
use crate::span::{Span, latenesses};
use crate::world::{Failure, Window, World, now};

/// How long creating a machine and looking at it for the first time may take.
const A_MACHINE: SignedDuration = SignedDuration::from_millis(60);

/// How long anything may take beside that.
const AT_LEAST: SignedDuration = SignedDuration::from_secs(30);

/// How long the log has to be silent for the operator to have settled.
const SILENCE: Duration = Duration::from_secs(5);

/// How often that may be awaited.
const SILENCES: usize = 120;

/// Plays everything and counts.
pub(crate) async fn play(args: &Args) -> Result<Report, Failure> {
    let description = Description::read(args.controller.as_deref())?;
    let log = Log::at(&args.audit_log);
    let world = World::make(args.machines).await?;
    let seconds = seconds_for(args.machines);
    eprintln!("the floor: {} bare machines", args.machines);
    let floor = crate::floor::measure(&world, args.in_flight).await?;
    eprintln!("  {:.1} s", floor.as_secs_f64());

    let edge = description.edge;
    let mut operator = Operator::new(description, world.stage.namespace(), log.folder());
    operator.start()?;
    let window = window(args)?;
    eprintln!(
        "{} machines whose windows open at {}",
        args.machines, window.opens
    );
    world.populate(edge, window).await?;
    let asleep = if edge == Edge::Cron {
        "Inactive"
    } else {
        "Disabled"
    };
    world.settle(asleep, seconds).await?;
    if edge == Edge::Cron && now() >= window.opens {
        return Err("the machines had not settled when the window opened".into());
    }
    quiet(&log).await?;
    let mut report = Report::new(args, floor);
    report.settled = Some(operator.taken()?);

    let from = log.length()?;
    let opened = world.turn(edge, window.opens, true).await?;
    eprintln!("open");
    world.settle("Active", seconds).await?;
    let all = now().duration_since(opened);
    eprintln!("  all serve after {:.1} s", all.as_secs_f64());
    quiet(&log).await?;
    let opening = log.since(from)?;
    report.latenesses(&latenesses(&opening, opened));
    report.opening = Span::of(&opening);
    report.open = Some(operator.taken()?);

    let from = log.length()?;
    world.turn(edge, window.closes, false).await?;
    eprintln!("closed");
    world.settle(asleep, seconds).await?;
    quiet(&log).await?;
    report.closing = Span::of(&log.since(from)?);
    report.closed = Some(operator.taken()?);

    eprintln!("idle");
    let from = log.length()?;
    tokio::time::sleep(Duration::from_mins(1) * args.idle_minutes).await;
    report.idle = Span::of(&log.since(from)?);

    eprintln!("restart");
    operator.kill().await?;
    let from = log.length()?;
    let begun = now();
    operator.start()?;
    quiet(&log).await?;
    report.restart = Some(restart(&log, from, begun)?);

    eprintln!("deletion");
    let from = log.length()?;
    let took = world
        .delete_all(&world.stage.machines_path(), seconds)
        .await?;
    report.deletion_seconds = took.as_secs_f64();
    report.deletion = Span::of(&log.since(from)?);
    operator.kill().await?;
    Ok(report)
}

fn restart(log: &Log, from: u64, begun: Timestamp) -> Result<Restart, Failure> {
    let entries = log.since(from)?;
    let last = entries
        .iter()
        .filter(|entry| entry.user == crate::operator::USER && entry.verb != "watch")
        .filter_map(|entry| entry.ended)
        .max();
    Ok(Restart {
        seconds: last.map_or(0.0, |last| last.duration_since(begun).as_secs_f64()),
        requests: Span::of(&entries),
    })
}

/// How many seconds a step may take with so many machines.
fn seconds_for(machines: usize) -> u64 {
    120 + u64::try_from(machines).unwrap_or(u64::MAX / 2) / 2
}

/// A window that opens when all machines have been made, on a full minute.
fn window(args: &Args) -> Result<Window, Failure> {
    let machines = i32::try_from(args.machines)?;
    let soon = now() + A_MACHINE * machines + AT_LEAST;
    let opens = soon.round(Unit::Minute)? + SignedDuration::from_mins(1);
    let closes = opens + SignedDuration::from_mins(i64::from(args.open_minutes));
    Ok(Window { opens, closes })
}

/// Waits until the operator has asked nothing for a while, renewals and watches aside.
async fn quiet(log: &Log) -> Result<(), Failure> {
    for _ in 0..SILENCES {
        let from = log.length()?;
        tokio::time::sleep(SILENCE).await;
        if Span::of(&log.since(from)?).beyond_idling() == 0 {
            return Ok(());
        }
    }
    Err("the operator does not come to rest".into())
}
