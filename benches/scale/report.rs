//! The results of the measurement.

use std::fmt;

use jiff::SignedDuration;
use serde::Serialize;

use crate::Args;
use crate::operator::ResourceUsage;
use crate::span::Span;
use crate::watcher::{self, Changes};

/// The results of the measurement. Only requests of the operator are counted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The API server.
    server: String,
    /// How the operator was built.
    profile: String,
    /// How long the windows were open. Not set if only the opening was measured.
    open_minutes: u32,
    opening_alone: bool,
    /// How many minutes a machine was allowed to take for its removal.
    grace_minutes: u32,
    machines: usize,
    /// The number of Clusters of the machines.
    clusters: usize,
    /// How long a plain client takes to create the objects of all machines.
    floor_seconds: f64,
    /// When the objects of half, of 99 in 100 and of all machines existed, after the edge.
    pub(crate) lateness_seconds: [f64; 3],
    /// The same at a second edge, after an idle span.
    pub(crate) again_seconds: Option<[f64; 3]>,
    /// The floor right before that edge.
    pub(crate) floor_again_seconds: Option<f64>,
    /// The number of machines in `lateness_seconds`.
    pub(crate) created: usize,
    /// From the edge until all machines serve and the operator is idle.
    pub(crate) opening: Span,
    /// From the closing edge until all machines are removed.
    pub(crate) closing: Span,
    /// What the status writes of the opening changed.
    pub(crate) changes_opening: Changes,
    /// The same for the closing.
    pub(crate) changes_closing: Changes,
    /// How many of these status writes only repeat what Cluster API and the workload cluster
    /// report.
    repeated: usize,
    /// While idle.
    pub(crate) idle: Span,
    idle_minutes: u32,
    /// A restart of the operator.
    pub(crate) restart: Option<Restart>,
    /// During the deletion of all machines.
    pub(crate) deletion: Span,
    pub(crate) deletion_seconds: f64,
    /// The bytes of JSON that the API server stores for a machine: the ScheduledMachine and its
    /// three objects, when all objects had been created.
    pub(crate) object_bytes: usize,
    /// The resource usage of the process before any machine existed.
    pub(crate) started: Option<ResourceUsage>,
    /// The same when all machines were in the cache.
    pub(crate) settled: Option<ResourceUsage>,
    /// The same when all objects had been created.
    pub(crate) opened: Option<ResourceUsage>,
    /// The same when all served.
    pub(crate) open: Option<ResourceUsage>,
    /// The same when all were removed.
    pub(crate) closed: Option<ResourceUsage>,
    /// The same after the second edge, when all served again.
    pub(crate) again: Option<ResourceUsage>,
}

/// A restart while all machines exist.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Restart {
    /// Until the last request.
    pub(crate) seconds: f64,
    pub(crate) requests: Span,
}

impl Report {
    /// A report for these machines with only the floor measured.
    pub(crate) fn new(args: &Args, floor: SignedDuration) -> Self {
        Self {
            server: args.server.clone(),
            profile: args.profile.clone(),
            open_minutes: args.open_minutes,
            opening_alone: args.opening_alone,
            grace_minutes: args.grace_minutes,
            machines: args.machines,
            clusters: args.clusters.get(),
            floor_seconds: floor.as_secs_f64(),
            lateness_seconds: [0.0; 3],
            again_seconds: None,
            floor_again_seconds: None,
            created: 0,
            changes_opening: Changes::new(),
            changes_closing: Changes::new(),
            repeated: 0,
            opening: Span::default(),
            closing: Span::default(),
            idle: Span::default(),
            idle_minutes: args.idle_minutes,
            restart: None,
            deletion: Span::default(),
            deletion_seconds: 0.0,
            object_bytes: 0,
            started: None,
            settled: None,
            opened: None,
            open: None,
            closed: None,
            again: None,
        }
    }

    /// Counts the status writes that only repeat what other controllers report.
    pub(crate) fn count_repeated(&mut self) {
        let changes = [&self.changes_opening, &self.changes_closing];
        self.repeated = changes.into_iter().map(watcher::repeating).sum();
    }

    fn each(&self, count: usize) -> f64 {
        ratio(count, self.machines)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests, for people")]
pub(crate) fn ratio(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, all] = self.lateness_seconds;
        writeln!(f, "machines                        {}", self.machines)?;
        writeln!(
            f,
            "floor                           {:.2} s",
            self.floor_seconds
        )?;
        writeln!(
            f,
            "edge to all objects             {all:.2} s for {}, {:.2} times the floor (p50 {half:.2} s, p99 {most:.2} s)",
            self.created,
            all / self.floor_seconds,
        )?;
        if !self.opening_alone {
            self.fmt_cycle(f)?;
        }
        writeln!(
            f,
            "stored for each machine         {} bytes",
            self.object_bytes
        )?;
        for (when, taken) in [
            ("no machines", self.started),
            ("all cached", self.settled),
            ("all created", self.opened),
            ("all in service", self.open),
            ("all removed", self.closed),
            ("all in service again", self.again),
        ] {
            if let Some(taken) = taken {
                writeln!(
                    f,
                    "process, {when:<22} {:.1} s of a core, {} KiB resident, peak {}",
                    taken.cpu_seconds, taken.resident_kib, taken.peak_kib,
                )?;
            }
        }
        for (what, span, changes) in [
            ("open", &self.opening, &self.changes_opening),
            ("close", &self.closing, &self.changes_closing),
        ] {
            writeln!(f, "\nto {what}, per machine")?;
            for (kind, count) in span.kinds() {
                writeln!(f, "  {kind:<44} {:>8.2}", self.each(count))?;
            }
            writeln!(f, "  changed by the status writes")?;
            for (what, count) in changes {
                writeln!(f, "    {:>6.2} {what}", self.each(*count))?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// Formats a whole cycle, an idle span, a restart and a deletion.
    fn fmt_cycle(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes = self.opening.writes() + self.closing.writes();
        writeln!(
            f,
            "writes per machine and cycle    {:.2} ({:.2} to open, {:.2} to close), without Events and Leases;\n\
             {:32}of those {:.2} only repeat MachineReady or NodeAccess",
            self.each(writes),
            self.each(self.opening.writes()),
            self.each(self.closing.writes()),
            "",
            self.each(self.repeated),
        )?;
        if let (Some([half, most, all]), Some(floor)) =
            (self.again_seconds, self.floor_again_seconds)
        {
            writeln!(
                f,
                "edge to all objects, again      {all:.2} s, {:.2} times its floor of {floor:.2} s (p50 {half:.2} s, p99 {most:.2} s)",
                all / floor,
            )?;
        }
        let idle = self.idle.active_requests();
        writeln!(
            f,
            "requests in {} idle min          {idle} without watches and Leases ({} with them)",
            self.idle_minutes,
            self.idle.total(),
        )?;
        if let Some(restart) = &self.restart {
            writeln!(
                f,
                "restart                         {:.2} s, {:.2} requests per machine, {} rejected with 429",
                restart.seconds,
                self.each(restart.requests.total()),
                restart.requests.refused(),
            )?;
        }
        writeln!(
            f,
            "deletion of all                 {:.1} s, {:.2} writes per machine",
            self.deletion_seconds,
            self.each(self.deletion.writes()),
        )
    }
}
