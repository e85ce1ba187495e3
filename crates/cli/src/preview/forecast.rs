//! The forecast of one machine's windows in a span.

use fivespot_api::Enforcement;
use fivespot_api::condition::{self, ConditionType, Reason};
use fivespot_api::verdict::{Verdict, verdict};
use fivespot_usage::Figures;
use jiff::Timestamp;
use serde::Serialize;

use crate::Failure;
use crate::document::Document;
use crate::preview::PreviewScope;
use crate::preview::planned::{self, PlannedMachine};
use crate::preview::span::{Range, Span};

/// When a machine is wanted within a span. It is serialized as one item of the JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Forecast {
    #[serde(flatten)]
    pub(super) planned: PlannedMachine,
    timezone: String,
    pub(super) wanted_at_from: bool,
    pub(super) transitions: Vec<Transition>,
    /// When a machine is needed for its windows, cut off at the ends of the span.
    pub(super) needed: Vec<Needed>,
    pub(super) wanted_seconds: i64,
    /// The class of the machine, if it is not known what it sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_class: Option<String>,
    /// What the operator has written about it; absent for an object without a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
    /// Whether it is in audit mode, so that it is never created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_audited: bool,
    #[serde(skip)]
    pub(super) span: Span,
}

/// A ScheduledMachine that cannot be evaluated.
#[derive(Debug, Serialize)]
pub(crate) struct Unevaluated {
    pub(super) name: String,
    pub(super) namespace: String,
    /// Why, and what to do.
    pub(super) error: String,
}

impl Unevaluated {
    /// The row of an object. `namespace` is that of an object without one.
    pub(crate) fn of(
        document: &Document,
        namespace: Option<&str>,
        error: &Failure,
    ) -> Self {
        Self {
            name: document.text("/metadata/name").to_owned(),
            namespace: planned::namespace_of(document, namespace).to_owned(),
            error: error.to_string(),
        }
    }

    /// The row in words.
    pub(crate) fn text(&self) -> String {
        format!(
            "{}/{}: cannot be evaluated: {}",
            self.namespace, self.name, self.error
        )
    }
}

/// A change after the beginning of the span and before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Transition {
    pub(super) time: Timestamp,
    pub(super) wanted: bool,
    /// `Window`, `Cron`, `Lists`, `Exception` or `Override`.
    pub(super) cause: &'static str,
    /// The name of the window, exception or override.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
}

/// A time range in which a machine is needed. The end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Needed {
    pub(super) start_time: Timestamp,
    pub(super) end_time: Timestamp,
}

/// A window; `until` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Forecast {
    /// Evaluates the schedule of a ScheduledMachine, with its calendars and overrides.
    ///
    /// # Errors
    /// The object is not a ScheduledMachine, its schedule is invalid, or the range is empty or too
    /// long. The failure names the document and the field.
    pub(super) fn of(
        document: &Document,
        scope: PreviewScope<'_>,
        range: &Range,
    ) -> Result<Self, Failure> {
        let planned = PlannedMachine::of(document, scope.context, scope.namespace)?;
        let PlannedMachine {
            object: machine,
            schedule,
            off,
            ..
        } = &planned;
        let span = range.span(schedule.time_zone())?;
        let judge = scope.judge.filter(|_| machine.status.is_some());
        let mut forecast = Self {
            timezone: schedule.zone_name().to_owned(),
            wanted_at_from: off.is_none() && schedule.at(span.from).is_open(),
            transitions: Vec::new(),
            needed: Vec::new(),
            wanted_seconds: 0,
            unknown_class: planned.unknown_class().map(ToOwned::to_owned),
            verdict: judge.map(|it| verdict(machine, &it.lease, it.now)),
            is_audited: machine.spec.enforcement == Enforcement::Audit,
            span,
            planned,
        };
        forecast.compute();
        forecast.wanted_seconds = forecast.windows().iter().map(Window::seconds).sum();
        Ok(forecast)
    }

    /// The operator's sentence about a machine that is stopped after a reclaim and may return; it has
    /// the time.
    pub(super) fn reclaimed(&self) -> Option<&str> {
        let machine = &self.planned.object;
        machine.spec.returning()?;
        let conditions = &machine.status.as_ref()?.conditions;
        let scheduled = condition::find(conditions, ConditionType::Scheduled)?;
        let is_stopped = scheduled.reason == Reason::OverrideStop.as_str();
        is_stopped.then_some(&scheduled.message)
    }

    /// A sentence for each calendar that does not exist, for a class that is not known, and for one
    /// with jitter.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let jitter = planned::jitter(&self.planned.object);
        self.planned.notes().chain(jitter)
    }

    /// The use that the schedule plans within the span.
    pub(super) fn figures(&self) -> Figures {
        let Span { from, to } = self.span;
        Figures::planned(self.planned.active_schedule(), from, to)
    }

    /// Computes the changes and the needed times within the span. There are none if the schedule does
    /// not apply.
    fn compute(&mut self) {
        let Span { from, to } = self.span;
        let Some(schedule) = self.planned.active_schedule() else {
            return;
        };
        let changes = schedule.transitions(from, to);
        let transition = |(time, wanted)| {
            let cause = schedule.cause(time);
            Transition {
                time,
                wanted,
                cause: cause.as_str(),
                name: cause.name().map(ToOwned::to_owned),
            }
        };
        self.transitions = changes.map(transition).collect();
        let needed = schedule.needed_spans(from, to);
        self.needed = needed
            .map(|span| Needed {
                start_time: span.start,
                end_time: span.end.map_or(to, |end| end.min(to)),
            })
            .collect();
    }

    /// The windows within the span, cut off at its ends.
    pub(super) fn windows(&self) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut since = self.wanted_at_from.then_some(self.span.from);
        for change in &self.transitions {
            if change.wanted {
                since = Some(change.time);
            } else if let Some(since) = since.take() {
                windows.push(Window {
                    since,
                    until: change.time,
                });
            }
        }
        windows.extend(since.map(|since| Window {
            since,
            until: self.span.to,
        }));
        windows
    }
}

impl Window {
    /// The length in seconds.
    pub(super) fn seconds(&self) -> i64 {
        self.until.as_second() - self.since.as_second()
    }
}
