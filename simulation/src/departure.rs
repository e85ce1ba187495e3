//! Whether a machine is gone by the end of its window, by the clock of the simulation: the Warnings
//! `LeftLate` must say the same.
//!
//! Only an end that time reaches is judged. If an edit or an override closes a window at once, there
//! was no end by which the machine could have left.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::snapshot::MachineSnapshot;

/// When a machine counts as there at the end of its window: the Warning counts whole seconds.
const PAST_END: SignedDuration = SignedDuration::from_millis(500);

/// What is known about an end of a window when the machine is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was there at that end, by which it should have been gone.
    Late(Timestamp),
    InTime,
    NotJudged,
}

/// The departures of one machine.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    uid: Value,
    /// The end of the window that is open.
    end: Option<Timestamp>,
    /// The first end that has come since the machine was last in service, if it was there then.
    missed: Option<Timestamp>,
    is_not_judged: bool,
    /// The reason of the shutdown record, and whether the end policy applied to it.
    record: Option<(String, bool)>,
    verdicts: Vec<Verdict>,
    notes: Vec<String>,
}

impl Departures {
    /// When the machine must be counted, if nothing happens before.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.end.map(|end| end + PAST_END)
    }

    /// Counts the machine with these objects. Also due at the instant of [`due`](Self::due).
    pub(crate) fn count(&mut self, snapshot: &MachineSnapshot, now: Timestamp) {
        if self.uid != snapshot.owner["metadata"]["uid"] {
            *self = Self {
                uid: snapshot.owner["metadata"]["uid"].clone(),
                verdicts: std::mem::take(&mut self.verdicts),
                notes: std::mem::take(&mut self.notes),
                ..Self::default()
            };
        }
        let is_there = !snapshot.ours().is_empty();
        let has_come = self.due().is_some_and(|due| due <= now);
        if has_come && is_there {
            self.missed = self.missed.or(self.end);
        }
        let schedule = snapshot.schedule();
        let open = schedule.filter(|of| snapshot.is_enabled() && of.is_wanted(now));
        let end = open.as_ref().and_then(|of| of.next_change(now));
        let is_pending =
            open.is_none() && !has_come && self.end.is_some_and(|end| end <= now);
        let is_as_before = open.is_some() && (self.record.is_none() || self.end == end);
        let is_foreseen = has_come || is_pending || is_as_before;
        self.is_not_judged |=
            self.end.is_some() && !is_foreseen || snapshot.is_deleting();
        if !is_pending {
            self.end = end;
        }
        let record = snapshot.owner["status"]["shutdown"]["reason"].as_str();
        match (record, &mut self.record) {
            (Some(reason), Some((last, _))) => reason.clone_into(last),
            (Some(reason), none) => {
                let policy = &snapshot.owner["spec"]["shutdown"]["endPolicy"];
                *none = Some((reason.to_owned(), policy == "CompleteByWindowEnd"));
            }
            (None, Some(_)) => self.conclude(is_there),
            (None, None) => {}
        }
        // In service, or gone.
        if self.record.is_none() && (open.is_some() || !is_there) {
            self.missed = None;
            self.is_not_judged = false;
        }
    }

    /// The shutdown record is gone: so is the machine, or it was cancelled.
    fn conclude(&mut self, is_there: bool) {
        let record = self.record.take();
        if is_there {
            return;
        }
        let is_by_end = record
            .is_some_and(|(reason, is_by_end)| is_by_end && reason == "ScheduleEnded");
        self.verdicts.push(match self.missed.take() {
            _ if self.is_not_judged => Verdict::NotJudged,
            Some(end) if is_by_end => Verdict::Late(end),
            _ => Verdict::InTime,
        });
        self.is_not_judged = false;
    }

    /// The operator has published a Warning `LeftLate` with this note.
    pub(crate) fn report(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    /// How the Warnings differ from what was counted, if they do.
    pub(crate) fn difference(&self) -> Option<String> {
        let mut late: Vec<String> = Vec::new();
        for verdict in &self.verdicts {
            if let Verdict::Late(end) = verdict {
                late.push(end.to_string());
            }
        }
        let not_judged = self.verdicts.iter().filter(|of| **of == Verdict::NotJudged);
        let mut not_judged = not_judged.count();
        for note in &self.notes {
            if let Some(found) = late.iter().position(|end| note.contains(end.as_str())) {
                late.remove(found);
            } else if not_judged == 0 {
                return Some(format!("the machine was gone in time, but: {note}"));
            } else {
                not_judged -= 1;
            }
        }
        let missing = late.first()?;
        Some(format!(
            "the machine was there at {missing}, and no Warning says so"
        ))
    }
}

#[cfg(test)]
mod tests {
    use fivespot_api::name;
    use serde_json::json;

    use super::*;

    const END: &str = "2026-03-06T18:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A machine that should be gone at 18:00.
    fn served() -> MachineSnapshot {
        let mut owner = fivespot_testkit::scheduled_machine("worker");
        owner["metadata"]["uid"] = json!("sm-1");
        owner["spec"]["schedule"]["timezone"] = json!("UTC");
        owner["spec"]["shutdown"] = json!({"endPolicy": "CompleteByWindowEnd"});
        let machine = json!({
            "kind": "Machine", "metadata": {"labels": {
                name::SCHEDULED_MACHINE_LABEL: "worker",
                name::SCHEDULED_MACHINE_UID_LABEL: "sm-1",
            }},
        });
        MachineSnapshot {
            owner,
            machine,
            ..MachineSnapshot::default()
        }
    }

    fn shut_down() -> Value {
        json!({"shutdown": {
            "machineUID": "m-1", "reason": "ScheduleEnded",
            "startedAt": "2026-03-06T17:55:00Z", "deadline": END,
        }})
    }

    /// The departures of a machine that is shut down from 17:55 on and gone at this instant.
    fn gone(when: &str) -> Departures {
        let (mut departures, mut snapshot) = (Departures::default(), served());
        departures.count(&snapshot, at("2026-03-06T17:00:00Z"));
        snapshot.owner["status"] = shut_down();
        departures.count(&snapshot, at("2026-03-06T17:55:00Z"));
        if let Some(due) = departures.due().filter(|due| *due < at(when)) {
            departures.count(&snapshot, due);
        }
        snapshot.machine = Value::Null;
        snapshot.owner["status"] = json!({});
        departures.count(&snapshot, at(when));
        departures
    }

    #[test]
    fn a_machine_that_is_there_after_the_end_of_its_window_must_be_reported_once() {
        let mut departures = gone("2026-03-06T18:02:00Z");
        let missing = departures.difference().unwrap();
        assert_eq!(
            missing,
            format!("the machine was there at {END}, and no Warning says so")
        );
        let note = format!("2m after the end of its window at {END}");
        departures.report(&note);
        assert_eq!(departures.difference(), None);
        departures.report(&note);
        assert!(departures.difference().is_some());
    }

    #[test]
    fn a_warning_about_a_machine_that_was_gone_in_time_is_found() {
        let mut departures = gone("2026-03-06T17:59:00Z");
        assert_eq!(departures.difference(), None);
        departures.report(&format!("1s after the end of its window at {END}"));
        assert!(departures.difference().is_some());
    }

    #[test]
    fn a_window_that_an_edit_closes_during_the_shutdown_is_not_judged() {
        let (mut departures, mut snapshot) = (Departures::default(), served());
        departures.count(&snapshot, at("2026-03-06T17:00:00Z"));
        snapshot.owner["status"] = shut_down();
        departures.count(&snapshot, at("2026-03-06T17:55:00Z"));
        snapshot.owner["spec"]["schedule"]["hoursOfDay"] = json!(["9-16"]);
        assert!(snapshot.schedule().is_some());
        departures.count(&snapshot, at("2026-03-06T17:56:00Z"));
        snapshot.machine = Value::Null;
        snapshot.owner["status"] = json!({});
        departures.count(&snapshot, at("2026-03-06T18:02:00Z"));
        assert_eq!(departures.difference(), None);
        departures.report(&format!("2m after the end of its window at {END}"));
        assert_eq!(departures.difference(), None);
    }
}
