//! When the values of a ScheduledCapacity change within a span.

use std::io::{self, Write};

use fivespot_api::scheduled_capacity::CapacityTarget;
use fivespot_api::verdict::{self, Verdict};
use fivespot_dashboard::schedule_text;
use fivespot_schedule::NeededSpan;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::document::Document;
use crate::preview::PreviewScope;
use crate::preview::forecast::Window;
use crate::preview::list::{self, Line};
use crate::preview::planned::PlannedCapacity;
use crate::preview::span::{Range, Span};
use crate::{Failure, plain};

/// When the values of a ScheduledCapacity change within a span. It is serialized as one item of the
/// JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CapacityForecast {
    #[serde(flatten)]
    pub(super) planned: PlannedCapacity,
    timezone: String,
    target: CapacityTarget,
    pub(super) active_at_from: bool,
    values_at_from: Map<String, Value>,
    changes: Vec<Change>,
    /// What the operator has written about it; absent for an object without a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
    #[serde(skip)]
    pub(super) span: Span,
}

/// A change after the beginning of the span and before its end.
#[derive(Debug, Serialize)]
struct Change {
    time: Timestamp,
    active: bool,
    values: Map<String, Value>,
}

impl CapacityForecast {
    /// Evaluates the schedule of a ScheduledCapacity, with its calendars, overrides and lead time.
    ///
    /// # Errors
    /// As [`PlannedCapacity::of`]; or the range is empty or too long.
    pub(super) fn of(
        document: &Document,
        scope: PreviewScope<'_>,
        range: &Range,
    ) -> Result<Self, Failure> {
        let planned = PlannedCapacity::of(document, scope.context, scope.namespace)?;
        let span = range.span(planned.schedule.time_zone())?;
        let judge = scope.judge.filter(|_| planned.object.status.is_some());
        let active_at_from = planned.is_active_at(span.from);
        let change = |(time, active)| Change {
            time,
            active,
            values: planned.object.values(active.into()),
        };
        Ok(Self {
            timezone: planned.schedule.zone_name().to_owned(),
            target: planned.object.spec.target.clone(),
            active_at_from,
            values_at_from: planned.object.values(active_at_from.into()),
            changes: planned.changes(span.from, span.to).map(change).collect(),
            verdict: judge.map(|it| {
                verdict::capacity::verdict(&planned.object, &it.capacity_lease, it.now)
            }),
            planned,
            span,
        })
    }

    /// The times of the active values within the span, cut off at its ends.
    pub(super) fn windows(&self) -> Vec<Window> {
        let Span { from, to } = self.span;
        let schedule = self.planned.active_schedule();
        let spans = schedule.map(|schedule| schedule.needed_spans(from, to));
        let spans = spans.into_iter().flatten();
        let window = |span: NeededSpan| Window {
            since: span.start,
            until: span.end.map_or(to, |end| end.min(to)),
        };
        spans.map(window).collect()
    }

    /// The values while the schedule is active, or inactive.
    pub(super) fn values(&self, is_active: bool) -> String {
        self.planned.object.values_text(is_active.into())
    }

    /// The value that follows the schedule, in one line.
    pub(super) fn rule(&self) -> String {
        let object = &self.planned.object;
        format!(
            "{}: {} while {}",
            object.target_text(),
            self.values(true),
            schedule_text::schedule(&object.spec.schedule)
        )
    }

    /// Prints the changes of the values.
    pub(super) fn print(&self, out: &mut dyn Write, is_complete: bool) -> io::Result<()> {
        let object = &self.planned.object;
        let head = format!(
            "{}/{}: {}, {}",
            self.planned.namespace,
            self.planned.name,
            object.target_text(),
            schedule_text::schedule(&object.spec.schedule)
        );
        writeln!(out, "{}", plain::line(&head))?;
        if let Some(off) = self.planned.off {
            let always = format!("Always {}: {}.", self.values(false), off.cause());
            return writeln!(out, "{}", plain::line(&always));
        }
        let Span { from, to } = self.span;
        let first = self.values(self.active_at_from);
        writeln!(out, "From {from} ({}) to {to}:", plain::line(&first))?;
        let changes = self.changes.iter().map(|change| Line {
            at: change.time,
            text: self.values(change.active),
        });
        let zone = self.planned.schedule.time_zone();
        list::print_lines(out, changes, zone, self.span, is_complete)?;
        if self.changes.is_empty() {
            writeln!(out, "  {} all the time", plain::line(&first))?;
        }
        self.planned
            .calendar_notes()
            .try_for_each(|note| writeln!(out, "{}", plain::line(&note)))
    }
}
