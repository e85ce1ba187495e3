//! What a seed means: where, when, which machines, and everything that goes wrong.

use fivespot_testkit::{instant, scheduled_machine};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::deed::Deed;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::wanted::{Inputs, Wanted};

/// Zones with all kinds of changes of the clocks: an hour, half an hour, none, at midnight, by
/// the moon, and in the other hemisphere.
const ZONES: [&str; 12] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Pacific/Apia",
    "America/St_Johns",
    "Asia/Tehran",
];

/// Days from which a story begins: the clocks change on them or soon after, the year ends, there
/// is a leap day, or nothing happens.
const DAYS: [&str; 9] = [
    "2026-03-06T03:00:00Z",
    "2026-03-27T03:00:00Z",
    "2026-04-03T03:00:00Z",
    "2026-04-23T03:00:00Z",
    "2026-10-03T03:00:00Z",
    "2026-10-23T03:00:00Z",
    "2026-10-30T03:00:00Z",
    "2026-12-29T03:00:00Z",
    "2028-02-26T03:00:00Z",
];

/// By how many seconds a clock is set back at most.
const FURTHEST: usize = 540;

/// By how many seconds a clock is set forward: so many that it is believed when it is put right, and
/// so few that what was put off meanwhile is over by the end.
const AHEAD: std::ops::Range<usize> = 601..1_800;

/// One machine of a story.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// Something that goes wrong, or is done by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// What the network, the server and the operator's own host do.
    Fault(Fault),
    /// What people, Cluster API and pods do at an instant, to the machine of that number.
    Deed(Timestamp, usize, Deed),
    /// The clock of the operators' host is set at an instant so many seconds ahead (behind, if
    /// negative), and some minutes later right.
    Clock(Timestamp, i64, u8),
    /// The operators' host is suspended at an instant for so many minutes.
    Suspend(Timestamp, u8),
    /// From an instant on the operator of that number reaches nothing for so many minutes.
    CutOff(Timestamp, usize, u8),
}

impl Trouble {
    fn is_deed(&self) -> bool {
        matches!(self, Self::Deed(..))
    }
}

/// What a seed means.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    pub(crate) begins: Timestamp,
    /// When no more goes wrong.
    pub(crate) calm: Timestamp,
    pub(crate) machines: Vec<Machine>,
    /// How many operators there are; more than one agree by a Lease which of them acts.
    pub(crate) operators: usize,
    /// In no order; each can be left out.
    pub(crate) troubles: Vec<Trouble>,
}

impl Story {
    /// The story of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let begins = instant(dice.pick(&DAYS).unwrap_or(DAYS[0]));
        let days = 1 + dice.below(4);
        let calm = begins + SignedDuration::from_hours(24 * hours(days));
        let count = 1 + dice.below(3);
        let machines: Vec<Machine> =
            (0..count).map(|at| machine(&mut dice, at)).collect();
        let mut story = Self {
            seed,
            begins,
            calm,
            machines,
            operators: if dice.chance(25) { 2 } else { 1 },
            troubles: Vec::new(),
        };
        // Some days are just days.
        if !dice.chance(4) {
            story.trouble(&mut dice, days);
        }
        // On some nothing is between the operator and the server: only people act.
        if dice.chance(15) {
            story.troubles.retain(Trouble::is_deed);
        }
        story
    }

    /// Whether nothing is between the operators and the server, and their clock is right.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.troubles.iter().all(Trouble::is_deed)
    }

    /// The same story with only the troubles of these numbers.
    pub(crate) fn only(&self, kept: &[usize]) -> Self {
        let troubles = kept.iter().filter_map(|at| self.troubles.get(*at).copied());
        Self {
            troubles: troubles.collect(),
            ..self.clone()
        }
    }

    fn trouble(&mut self, dice: &mut Dice, days: usize) {
        let work = days * self.machines.len();
        for _ in 0..dice.below(6 * work + 6) {
            self.troubles
                .push(Trouble::Fault(Fault::draw(dice, 30 * work)));
        }
        let edges: Vec<Vec<Timestamp>> = self
            .machines
            .iter()
            .map(|machine| self.edges(&machine.object))
            .collect();
        for _ in 0..dice.below(3 * work + 3) {
            let at = dice.below(self.machines.len());
            let when = self.when(dice, edges.get(at).map_or(&[], Vec::as_slice));
            self.troubles
                .push(Trouble::Deed(when, at, Deed::draw(dice)));
        }
        for _ in 0..dice.below(2 * days + 1) {
            let at = dice.below(self.machines.len());
            let when = self.when(dice, edges.get(at).map_or(&[], Vec::as_slice));
            let minutes = u8::try_from(1 + dice.below(60)).unwrap_or(1);
            let trouble = match dice.below(3) {
                0 => {
                    let ahead = AHEAD.start + dice.below(AHEAD.len());
                    Trouble::Clock(when, hours(ahead), minutes)
                }
                1 => {
                    let behind = 1 + dice.below(FURTHEST);
                    Trouble::Clock(when, -hours(behind), minutes)
                }
                _ => Trouble::Suspend(when, minutes),
            };
            self.troubles.push(trouble);
        }
        if self.operators == 1 {
            return;
        }
        for _ in 0..dice.below(3 * days + 1) {
            let at = dice.below(self.machines.len());
            let when = self.when(dice, edges.get(at).map_or(&[], Vec::as_slice));
            let minutes = u8::try_from(1 + dice.below(40)).unwrap_or(1);
            let whom = dice.below(self.operators);
            self.troubles.push(Trouble::CutOff(when, whom, minutes));
        }
    }

    /// Soon after a window has opened or closed, or at any time.
    fn when(&self, dice: &mut Dice, edges: &[Timestamp]) -> Timestamp {
        let edge = dice.pick(edges).filter(|_| dice.chance(75));
        let after = |from: Timestamp, seconds: usize| {
            from + SignedDuration::from_secs(hours(seconds))
        };
        match edge {
            Some(edge) if dice.chance(50) => after(edge, dice.below(30)),
            Some(edge) => after(edge, dice.below(900)),
            None => {
                let all = self.calm.duration_since(self.begins).as_secs();
                after(self.begins, dice.below(usize::try_from(all).unwrap_or(0)))
            }
        }
        .min(self.calm)
    }

    /// When the window of a machine opens and closes within the story.
    fn edges(&self, object: &Value) -> Vec<Timestamp> {
        let mut edges = Vec::new();
        let mut now = self.begins;
        let inputs = Inputs {
            overrides: Vec::new(),
            calendars: vec![calendar(self.begins)],
        };
        let schedule = Wanted::of(object, &inputs);
        let next = |now| schedule.as_ref().and_then(|of| of.next_edge(now));
        while let Some(next) = next(now).filter(|next| *next < self.calm) {
            edges.push(next);
            now = next;
        }
        edges
    }
}

fn hours(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(0)
}

/// The calendar of a story: the second day, and by its day of the year the fourth.
pub(crate) fn calendar(begins: Timestamp) -> Value {
    let day = |hours: i64| {
        let at = begins + SignedDuration::from_hours(hours);
        at.to_zoned(TimeZone::UTC).date().to_string()
    };
    let every_year = day(72).split_off("YYYY-".len());
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendar",
        "metadata": {"name": CALENDAR, "namespace": "default"},
        "spec": {"dates": [
            {"name": "second", "date": day(24)},
            {"name": "fourth", "date": every_year},
        ]},
    })
}

/// The name of the calendar.
pub(crate) const CALENDAR: &str = "holidays";

fn machine(dice: &mut Dice, at: usize) -> Machine {
    let name = format!("worker-{at}");
    let mut object = scheduled_machine(&name);
    let team = dice.pick(&["a", "b"]);
    object["metadata"]["labels"] = json!({"example.com/team": team});
    let spec = &mut object["spec"];
    let zone = dice.pick(&ZONES).unwrap_or("UTC");
    spec["schedule"] = match dice.below(6) {
        0 => json!({"cron": "30 6 * * *", "duration": "7h", "timezone": zone}),
        1 => json!({"cron": "0 2 * * *", "duration": "3h", "timezone": zone}),
        2 => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["1-3"], "timezone": zone})
        }
        3 => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["20-5"], "timezone": zone})
        }
        4 => json!({"windows": [
            {"name": "early", "start": "05:45", "duration": "2h"},
            {"name": "late", "start": "21:30", "end": "01:15"},
        ], "timezone": zone}),
        _ => {
            json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["9-17"], "timezone": zone})
        }
    };
    if dice.chance(40) {
        let action = dice.pick(&["Run", "Stop"]);
        spec["schedule"]["exceptions"] = json!([
            {"name": "holidays", "action": action, "calendarRef": {"name": CALENDAR}},
        ]);
    }
    if dice.chance(40) {
        let lead = dice.pick(&["5m", "20m", "2h"]);
        let minimum = dice.pick(&["0s", "10m", "90m"]);
        spec["provisioning"] = json!({"leadTime": lead, "minimumRun": minimum});
    }
    if dice.chance(40) {
        spec["shutdown"] = json!({"endPolicy": "CompleteByWindowEnd"});
    }
    let spans = ["0s", "30s", "2m", "5m"];
    spec["gracefulShutdownTimeout"] = json!(dice.pick(&spans));
    spec["nodeDrainTimeout"] = json!(dice.pick(&spans));
    if dice.chance(50) {
        spec["nodeTaints"] = json!([
            {"key": "example.com/shift", "value": "night", "effect": "NoSchedule"},
        ]);
    }
    Machine { name, object }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_tells_one_story_and_another_seed_another() {
        let told = |seed| format!("{:?}", Story::of(seed));
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn a_story_can_be_told_without_some_of_its_troubles() {
        let story = (0..100)
            .map(Story::of)
            .find(|story| story.troubles.len() > 3);
        let story = story.unwrap();
        let less = story.only(&[0, 2]);
        assert_eq!(less.troubles, [story.troubles[0], story.troubles[2]]);
        assert_eq!(less.machines.len(), story.machines.len());
    }
}
