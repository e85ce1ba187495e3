//! The fields of a ScheduledMachine that the list and the picture need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_api::verdict::{Lease, State, Verdict, verdict};
use fivespot_api::{
    Enforcement, Phase, ScheduledMachine, ScheduledMachineSpec, ScheduledMachineStatus,
};
use fivespot_controller::Key;
use fivespot_drawing::{Kind, Span, planned};
use fivespot_schedule::Schedule;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, ObjectMeta};

use crate::decoded::{Decoded, decoded};
use crate::schedule_inputs::ScheduleInputs;
use crate::schedule_text;

/// The largest number of characters of a description.
const MAX_TEXT_CHARS: usize = 300;

/// The largest number of phase changes that are kept.
const MAX_PHASES: usize = 64;

/// Namespace and name of an object.
pub(crate) fn key(metadata: &ObjectMeta) -> Key {
    Key::new(
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// The page of a machine, from the pages that have links to machines.
pub(crate) fn link(machine: &Key) -> String {
    format!("machines/{machine}")
}

/// The last observed state of a ScheduledMachine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) name: Key,
    pub(crate) labels: BTreeMap<String, String>,
    /// The object without the specs of its bootstrap and infrastructure objects, which may be large
    /// and are not judged; with what its class and the schedule that it follows set.
    object: Decoded<Arc<ScheduledMachine>>,
    /// Its spec as it is stored, if it has a class or follows a schedule: those may change.
    unresolved: Option<Arc<ScheduledMachineSpec>>,
    /// Includes the overrides and calendars of its namespace. `None` if it is invalid, or follows an
    /// object that does not exist.
    pub(crate) schedule: Option<Schedule>,
    columns: CachedColumns,
}

/// The cached result of the last call of [`Machine::count`]. A clone of the machine, which may get
/// another schedule, has an empty cache.
#[derive(Debug, Default)]
struct CachedColumns(Mutex<Option<WantedColumns>>);

impl Clone for CachedColumns {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A time range that is divided into columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRange {
    pub(crate) from: Timestamp,
    pub(crate) length: SignedDuration,
    pub(crate) columns: usize,
}

#[derive(Debug)]
struct WantedColumns {
    range: ColumnRange,
    wanted: Box<[bool]>,
}

/// The phase changes of a machine, ordered by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseHistory(Vec<(Timestamp, Phase)>);

impl PhaseHistory {
    /// Adds a reported change. Changes may be reported in any order.
    pub(crate) fn add(&mut self, at: Timestamp, phase: Phase) {
        let index = self.0.partition_point(|(other, _)| *other <= at);
        let is_known = index
            .checked_sub(1)
            .and_then(|before| self.0.get(before))
            .is_some_and(|before| *before == (at, phase));
        if !is_known {
            self.0.insert(index, (at, phase));
        }
        if self.0.len() > MAX_PHASES {
            self.0.remove(0);
        }
    }
}

impl Machine {
    /// Reads an object. [`Machine::with_inputs`] sets its schedule.
    pub(crate) fn of(object: DynamicObject) -> Self {
        let name = key(&object.metadata);
        let labels = object.metadata.labels.clone().unwrap_or_default();
        let object = decoded(object).map(|mut object: ScheduledMachine| {
            object.spec.bootstrap_spec.spec.clear();
            object.spec.infrastructure_spec.spec.clear();
            Arc::new(object)
        });
        let stored = object.as_ref().ok().filter(|it| refers(&it.spec));
        Self {
            name,
            labels,
            unresolved: stored.map(|it| Arc::new(it.spec.clone())),
            object,
            schedule: None,
            columns: CachedColumns::default(),
        }
    }

    fn spec(&self) -> Option<&ScheduledMachineSpec> {
        self.object.as_ref().ok().map(|object| &object.spec)
    }

    fn status(&self) -> Option<&ScheduledMachineStatus> {
        self.object.as_ref().ok()?.status.as_ref()
    }

    pub(crate) fn phase(&self) -> Option<Phase> {
        self.status()?.phase
    }

    /// When the status says that it changes next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.status()?.next_transition
    }

    /// The name of its Node. Empty without one.
    pub(crate) fn node(&self) -> &str {
        let node = self.status().and_then(|status| status.node_ref.as_ref());
        node.map_or("", |node| &node.name)
    }

    /// The name of its Cluster: that of the status, else that of the spec.
    pub(crate) fn cluster(&self) -> &str {
        let cluster = self
            .status()
            .and_then(|status| status.cluster_name.as_ref());
        cluster
            .or(self.spec().map(|spec| &spec.cluster_name))
            .map_or("", String::as_str)
    }

    /// The name of the class that it is made from.
    pub(crate) fn class(&self) -> Option<&str> {
        // What a class sets takes the place of the reference to it.
        let class = self.unresolved.as_ref()?.class_ref.as_ref()?;
        Some(&class.name)
    }

    /// The name of the host that its class gave it.
    pub(crate) fn host(&self) -> Option<&str> {
        self.status()?.host.as_deref()
    }

    /// A description of the schedule, with a note if it is not in force.
    pub(crate) fn rule(&self) -> String {
        self.spec().map(rule).unwrap_or_default()
    }

    /// The same machine with what its class sets and the schedule that follow from its spec, and from
    /// the overrides, calendars and shared schedules of its namespace.
    pub(crate) fn with_inputs(mut self, inputs: &ScheduleInputs) -> Self {
        let Ok(object) = &mut self.object else {
            return self;
        };
        let namespace = &self.name.namespace;
        let resolved = match &self.unresolved {
            None => Ok(()),
            Some(spec) => {
                let object = Arc::make_mut(object);
                object.spec.clone_from(spec);
                inputs.resolve_machine(object, namespace)
            }
        };
        let schedule = resolved.and_then(|()| inputs.schedule_of(object, namespace));
        self.schedule = schedule.ok().map(Schedule::looking_back);
        self
    }

    /// Whether an exception of the schedule refers to that calendar.
    pub(crate) fn refers_to(&self, calendar: &Key) -> bool {
        let spec = self
            .spec()
            .filter(|_| self.name.namespace == calendar.namespace);
        spec.is_some_and(|spec| spec.schedule.calendars().any(|it| it == calendar.name))
    }

    /// Whether its schedule is the object of that kind and name.
    pub(crate) fn follows(&self, kind: &str, schedule: &Key) -> bool {
        let spec = self
            .spec()
            .filter(|_| self.name.namespace == schedule.namespace);
        let reference = spec.and_then(|spec| spec.schedule.reference());
        reference.is_some_and(|it| it.kind == kind && it.name == schedule.name)
    }

    /// The verdict that every command shows too.
    pub(crate) fn verdict(&self, lease: &Lease, now: Timestamp) -> Verdict {
        match &self.object {
            Ok(object) => verdict(object, lease, now),
            Err(error) => Verdict::undecoded(error),
        }
    }

    /// The time zone of its schedule. UTC if that is invalid.
    pub(crate) fn zone(&self) -> TimeZone {
        let schedule = self.schedule.as_ref();
        schedule.map_or(TimeZone::UTC, |it| it.time_zone().clone())
    }

    /// The schedule, if it is enabled and valid and the kill switch is not set.
    pub(crate) fn active_schedule(&self) -> Option<&Schedule> {
        let spec = self.spec()?;
        let is_enabled = spec.is_enabled() && !spec.kill_switch;
        self.schedule.as_ref().filter(|_| is_enabled)
    }

    /// The usage up to `now`.
    pub(crate) fn usage(&self, now: Timestamp) -> fivespot_usage::Machine {
        let object = self.object.as_ref().ok();
        let created = object.and_then(|it| it.metadata.creation_timestamp.as_ref());
        let kind = self.spec().map(|spec| &spec.infrastructure_spec.kind);
        let usage = self.status().map(|status| {
            fivespot_usage::Machine::account(status, self.active_schedule(), now)
        });
        fivespot_usage::Machine {
            namespace: self.name.namespace.clone(),
            name: self.name.name.clone(),
            labels: self.labels.clone(),
            infrastructure_kind: kind.cloned().unwrap_or_default(),
            created: created.map(|at| at.0),
            usage: usage.unwrap_or_default(),
            verdict: None,
        }
    }

    /// The planned spans within a time range.
    pub(crate) fn planned(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let schedule = self.active_schedule();
        schedule.map_or_else(Vec::new, |schedule| planned::spans(schedule, from, to))
    }

    /// Adds one to each column in which the machine is wanted.
    pub(crate) fn count(&self, range: ColumnRange, counts: &mut [u32]) {
        let Some(schedule) = self.active_schedule() else {
            return;
        };
        let mut cached = self
            .columns
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let columns = match cached.take() {
            Some(columns) if columns.range == range => columns,
            _ => WantedColumns {
                range,
                wanted: planned::wanted_columns(
                    schedule,
                    range.from,
                    range.length,
                    range.columns,
                )
                .into_boxed_slice(),
            },
        };
        for (count, wanted) in counts.iter_mut().zip(&columns.wanted) {
            *count += u32::from(*wanted);
        }
        *cached = Some(columns);
    }

    /// The observed spans until `now`, from the reported phase changes. The status supplies the
    /// current phase if it was not reported.
    ///
    /// A blocked machine has failed since then.
    pub(crate) fn observed(
        &self,
        phases: Option<&PhaseHistory>,
        verdict: &Verdict,
        now: Timestamp,
    ) -> Vec<Span> {
        let mut changes = phases.cloned().unwrap_or_default().0;
        let last = changes.last().map(|(_, phase)| *phase);
        if let Some(phase) = self.phase().filter(|phase| last != Some(*phase)) {
            let begun = if changes.is_empty() && phase == Phase::Active {
                self.started().or(self.changed())
            } else {
                self.changed()
            };
            let after = changes.last().map(|(at, _)| *at);
            let at = begun.max(after).unwrap_or(now).min(now);
            changes.push((at, phase));
        }
        let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([now]);
        let mut spans: Vec<Span> = Vec::new();
        for ((since, phase), until) in changes.iter().zip(ends) {
            let Some(kind) = kind(*phase).filter(|_| *since < until) else {
                continue;
            };
            match spans.last_mut() {
                Some(last) if last.kind == kind && last.until == *since => {
                    last.until = until;
                }
                _ => spans.push(Span {
                    since: *since,
                    until,
                    kind,
                    name: String::new(),
                }),
            }
        }
        if verdict.state == State::Blocked {
            failed_since(&mut spans, verdict.since.unwrap_or(now), now);
        }
        spans
    }

    /// When the current Machine was created.
    fn started(&self) -> Option<Timestamp> {
        let status = self.status().filter(|status| status.machine_ref.is_some());
        status?.last_scheduled_time
    }

    /// When a condition last changed: approximately when the phase changed.
    fn changed(&self) -> Option<Timestamp> {
        let conditions = self.status()?.conditions.iter();
        conditions.map(|it| it.last_transition_time.0).max()
    }
}

/// Whether what the spec means depends on a class or on a schedule of its own kind.
fn refers(spec: &ScheduledMachineSpec) -> bool {
    spec.class_ref.is_some() || spec.schedule.reference().is_some()
}

/// Replaces what was observed from `since` on.
fn failed_since(spans: &mut Vec<Span>, since: Timestamp, now: Timestamp) {
    spans.retain(|span| span.since < since);
    if let Some(last) = spans.last_mut() {
        last.until = last.until.min(since);
    }
    if since < now {
        spans.push(Span {
            since,
            until: now,
            kind: Kind::Failed,
            name: String::new(),
        });
    }
}

/// The kind of the spans of a phase. `None` if there is no machine in this phase.
fn kind(phase: Phase) -> Option<Kind> {
    match phase {
        Phase::Pending => Some(Kind::Starting),
        Phase::Active => Some(Kind::Running),
        Phase::ShuttingDown | Phase::EmergencyRemove => Some(Kind::ShuttingDown),
        Phase::Error => Some(Kind::Failed),
        Phase::Inactive | Phase::Disabled | Phase::Terminated => None,
    }
}

/// A description of the schedule, with a note if it is not in force.
fn rule(spec: &ScheduledMachineSpec) -> String {
    let note = match spec {
        ScheduledMachineSpec {
            kill_switch: true, ..
        } => "killed; ",
        _ if !spec.is_enabled() => "disabled; ",
        ScheduledMachineSpec {
            enforcement: Enforcement::Audit,
            ..
        } => "audit; ",
        ScheduledMachineSpec { .. } => "",
    };
    let text = format!("{note}{}", schedule_text::schedule(&spec.schedule));
    text.chars().take(MAX_TEXT_CHARS).collect()
}
