//! The fields of a ScheduledMachine that the list and the picture need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_api::verdict::{Lease, State, Verdict, verdict};
use fivespot_api::{
    Enforcement, InlineObject, Phase, ScheduledMachine, ScheduledMachineSpec,
    ScheduledMachineStatus,
};
use fivespot_controller::Key;
use fivespot_drawing::{Kind, Span, planned};
use fivespot_schedule::Schedule;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kube::api::ObjectMeta;
use serde_json::Value;

use crate::schedule_inputs::ScheduleInputs;
use crate::schedule_text;
use crate::undecoded::Undecoded;

/// The largest number of characters of a text that are kept.
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) name: Key,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) cluster: String,
    /// The name of the class that it is made from, and of the host.
    pub(crate) class: Option<String>,
    pub(crate) node: String,
    pub(crate) phase: Option<Phase>,
    /// Why the object cannot be decoded.
    error: Option<String>,
    /// The object without its specs, from which the verdict and the schedule follow, with what its
    /// class and the schedule that it follows set.
    object: Option<Arc<ScheduledMachine>>,
    /// Its spec as it is stored, if it has a class or follows a schedule: those may change.
    unresolved: Option<Arc<ScheduledMachineSpec>>,
    /// A description of the schedule.
    pub(crate) rule: String,
    pub(crate) is_enabled: bool,
    /// Includes the overrides and calendars of its namespace. `None` if it is invalid, or follows an
    /// object that does not exist.
    pub(crate) schedule: Option<Schedule>,
    pub(crate) next: Option<Timestamp>,
    created: Option<Timestamp>,
    /// The fields of the status from which the usage is computed.
    usage_status: Arc<ScheduledMachineStatus>,
    /// When the current Machine was created.
    started: Option<Timestamp>,
    /// When a condition last changed: approximately when the phase changed.
    changed: Option<Timestamp>,
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
    /// Reads an object. An object that cannot be decoded has the error as its message.
    /// [`Machine::with_inputs`] sets its cluster and its schedule.
    pub(crate) fn of(undecoded: Undecoded<ScheduledMachine>) -> Self {
        let Undecoded {
            metadata,
            spec,
            status,
            ..
        } = undecoded;
        let named = Self {
            name: key(&metadata),
            labels: metadata.labels.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|at| at.0),
            ..Self::default()
        };
        let read = || Ok((serde_json::from_value(spec)?, status_of(status)?));
        match read() {
            Ok((spec, status)) => named.read(metadata, spec, status),
            Err::<_, serde_json::Error>(error) => Self {
                error: Some(error.to_string()),
                ..named
            },
        }
    }

    fn read(
        self,
        metadata: ObjectMeta,
        spec: ScheduledMachineSpec,
        status: ScheduledMachineStatus,
    ) -> Self {
        let object = judged_object(metadata, &spec, &status);
        let rule = truncated(&rule(&spec));
        let changed = status.conditions.iter();
        let changed = changed
            .map(|condition| condition.last_transition_time.0)
            .max();
        let is_enabled = spec.is_enabled() && !spec.kill_switch;
        Self {
            class: spec.class_ref.map(|class| match status.host {
                Some(host) => format!("{}, host {host}", class.name),
                None => class.name,
            }),
            node: status.node_ref.map(|node| node.name).unwrap_or_default(),
            phase: status.phase,
            unresolved: refers(&object.spec).then(|| Arc::new(object.spec.clone())),
            object: Some(Arc::new(object)),
            rule,
            is_enabled,
            next: status.next_transition,
            usage_status: Arc::new(ScheduledMachineStatus {
                in_schedule: status.in_schedule,
                in_force: status.in_force,
                usage: status.usage,
                ..ScheduledMachineStatus::default()
            }),
            started: status.machine_ref.and(status.last_scheduled_time),
            changed,
            ..self
        }
    }

    /// The same machine with its cluster and the schedule that follow from its spec, from its class, and
    /// from the overrides, calendars and shared schedules of its namespace.
    pub(crate) fn with_inputs(mut self, inputs: &ScheduleInputs) -> Self {
        let Some(object) = &mut self.object else {
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
        let cluster = object
            .status
            .as_ref()
            .and_then(|of| of.cluster_name.as_ref());
        self.cluster
            .clone_from(cluster.unwrap_or(&object.spec.cluster_name));
        let schedule = resolved.and_then(|()| inputs.schedule_of(object, namespace));
        self.schedule = schedule.ok().map(Schedule::looking_back);
        self
    }

    /// Whether it is made from the class of that name.
    pub(crate) fn is_of_class(&self, name: &str) -> bool {
        let spec = self.unresolved.as_ref();
        let class = spec.and_then(|spec| spec.class_ref.as_ref());
        class.is_some_and(|class| class.name == name)
    }

    /// Whether an exception of the schedule refers to that calendar of its namespace.
    pub(crate) fn refers_to(&self, calendar: &str) -> bool {
        let object = self.object.as_ref();
        object.is_some_and(|object| {
            object.spec.schedule.calendars().any(|it| it == calendar)
        })
    }

    /// Whether its schedule is the object of that kind and name of its namespace.
    pub(crate) fn follows(&self, kind: &str, name: &str) -> bool {
        let object = self.object.as_ref();
        let reference = object.and_then(|object| object.spec.schedule.reference());
        reference.is_some_and(|it| it.kind == kind && it.name == name)
    }

    /// The verdict that every command shows too.
    pub(crate) fn verdict(&self, lease: &Lease, now: Timestamp) -> Verdict {
        match (&self.object, &self.error) {
            (Some(object), _) => verdict(object, lease, now),
            (None, Some(error)) => Verdict::undecoded(error),
            (None, None) => Verdict::undecoded("it is empty"),
        }
    }

    /// The time zone of its schedule. UTC if that is invalid.
    pub(crate) fn zone(&self) -> TimeZone {
        let schedule = self.schedule.as_ref();
        schedule.map_or(TimeZone::UTC, |it| it.time_zone().clone())
    }

    /// The schedule, if it is enabled and valid and the kill switch is not set.
    pub(crate) fn active_schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref().filter(|_| self.is_enabled)
    }

    /// The kind of its infrastructure object. Empty if its class is not known.
    fn infrastructure_kind(&self) -> &str {
        let object = self.object.as_ref();
        object.map_or("", |object| &object.spec.infrastructure_spec.kind)
    }

    /// The usage up to `now`.
    pub(crate) fn usage(&self, now: Timestamp) -> fivespot_usage::Machine {
        fivespot_usage::Machine {
            namespace: self.name.namespace.clone(),
            name: self.name.name.clone(),
            labels: self.labels.clone(),
            infrastructure_kind: self.infrastructure_kind().to_owned(),
            created: self.created,
            usage: fivespot_usage::Machine::account(
                &self.usage_status,
                self.active_schedule(),
                now,
            ),
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
        if let Some(phase) = self.phase.filter(|phase| last != Some(*phase)) {
            let begun = if changes.is_empty() && phase == Phase::Active {
                self.started.or(self.changed)
            } else {
                self.changed
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

/// The object without the specs of its bootstrap and infrastructure objects, which may be large and
/// are not judged.
fn judged_object(
    metadata: ObjectMeta,
    spec: &ScheduledMachineSpec,
    status: &ScheduledMachineStatus,
) -> ScheduledMachine {
    let without_spec = |of: &InlineObject| InlineObject {
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        namespace: None,
        metadata: None,
        spec: serde_json::Map::new(),
    };
    ScheduledMachine {
        metadata,
        spec: ScheduledMachineSpec {
            bootstrap_spec: without_spec(&spec.bootstrap_spec),
            infrastructure_spec: without_spec(&spec.infrastructure_spec),
            ..spec.clone()
        },
        status: Some(ScheduledMachineStatus {
            usage: None,
            ..status.clone()
        }),
    }
}

/// Reads the status. An object without a status has not been reconciled yet.
fn status_of(status: Value) -> Result<ScheduledMachineStatus, serde_json::Error> {
    let status: Option<ScheduledMachineStatus> = serde_json::from_value(status)?;
    Ok(status.unwrap_or_default())
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
    format!("{note}{}", schedule_text::schedule(&spec.schedule))
}

fn truncated(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}
