//! What the user reads, and what an answer means.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

use crate::opening::Opening;

/// When the host is lent again after an answer whose window has no known end.
const MORNING: Time = Time::constant(8, 0, 0, 0);
/// How long the shorter answer keeps the host.
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// What the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    NotTonight,
    InAnHour,
}

impl Answer {
    const ALL: [Self; 2] = [Self::NotTonight, Self::InAnHour];

    /// As it is on the bus.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::NotTonight => "not-tonight",
            Self::InAnHour => "in-an-hour",
        }
    }

    /// The answer with this key.
    pub(super) fn of(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.key() == key)
    }

    /// Until when the user keeps the host.
    pub(super) fn until(
        self,
        opening: Opening,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Timestamp {
        match self {
            Self::NotTonight => {
                opening.until.unwrap_or_else(|| morning(opening.at, zone))
            }
            Self::InAnHour => now.saturating_add(HOUR).unwrap_or(Timestamp::MAX),
        }
    }
}

/// The first morning after an instant.
fn morning(after: Timestamp, zone: &TimeZone) -> Timestamp {
    let local = after.to_zoned(zone.clone());
    let days = i32::from(local.time() >= MORNING);
    let date = local.date().saturating_add(days.days());
    let morning = date.to_datetime(MORNING).to_zoned(zone.clone());
    morning.map_or(after, |morning| morning.timestamp())
}

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) summary: String,
    pub(super) body: String,
    pub(super) buttons: Vec<(Answer, &'static str)>,
}

impl Words {
    /// Of an opening, with buttons or with the command that does the same.
    pub(super) fn of(
        opening: Opening,
        has_buttons: bool,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Self {
        let now = now.to_zoned(zone.clone());
        let clock = |instant: Timestamp| clock(&instant.to_zoned(zone.clone()), &now);
        let until = opening
            .until
            .map(|until| format!(" until {}", clock(until)));
        let kept = match opening.until {
            Some(_) => "then".to_owned(),
            None => clock(Answer::NotTonight.until(opening, now.timestamp(), zone)),
        };
        let is_night = !(4..15).contains(&opening.at.to_zoned(zone.clone()).hour());
        let not_now = if is_night { "Not tonight" } else { "Not today" };
        let (keep, buttons) = if has_buttons {
            let buttons = vec![
                (Answer::NotTonight, not_now),
                (Answer::InAnHour, "In an hour"),
            ];
            let keep = format!("\"{not_now}\" keeps it for you until {kept}.");
            (keep, buttons)
        } else {
            let keep = "To keep it: 5spot-reclaim-agent reclaim --for 4h".to_owned();
            (keep, vec![])
        };
        Self {
            summary: format!("This computer is lent at {}", clock(opening.at)),
            body: format!("A cluster uses it{}. {keep}", until.unwrap_or_default()),
            buttons,
        }
    }

    /// That the host could not be asked for.
    pub(super) fn failed(error: &str) -> Self {
        // Servers read markup in it.
        let error = error.replace('&', "&amp;").replace('<', "&lt;");
        Self {
            summary: "This computer could not be kept".to_owned(),
            body: error,
            buttons: vec![],
        }
    }
}

/// A time of day, with the day if that is another one.
fn clock(instant: &Zoned, now: &Zoned) -> String {
    let form = if instant.date() == now.date() {
        "%H:%M"
    } else {
        "%a %H:%M"
    };
    instant.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::{Answer, Words};
    use crate::opening::Opening;

    const NOW: &str = "2026-03-06T17:50:00Z";

    fn opening(at: &str, until: Option<&str>) -> Opening {
        let instant = |text: &str| format!("2026-03-{text}Z").parse().unwrap();
        let until = until.map(instant);
        Opening {
            at: instant(at),
            until,
        }
    }

    fn zurich() -> TimeZone {
        TimeZone::get("Europe/Zurich").unwrap()
    }

    fn words(opening: Opening, has_buttons: bool) -> String {
        let words = Words::of(opening, has_buttons, NOW.parse().unwrap(), &zurich());
        let buttons = words
            .buttons
            .iter()
            .map(|(answer, label)| format!("\n[{label}] {}", answer.key()));
        let buttons: String = buttons.collect();
        format!("{}\n{}{buttons}", words.summary, words.body)
    }

    #[test]
    fn the_user_reads_times_of_their_own_clock_and_what_each_answer_does() {
        let night = opening("06T18:00:00", Some("07T06:00:00"));
        insta::assert_snapshot!(words(night, true), @r#"
        This computer is lent at 19:00
        A cluster uses it until Sat 07:00. "Not tonight" keeps it for you until then.
        [Not tonight] not-tonight
        [In an hour] in-an-hour
        "#);
        insta::assert_snapshot!(words(night, false), @"
        This computer is lent at 19:00
        A cluster uses it until Sat 07:00. To keep it: 5spot-reclaim-agent reclaim --for 4h
        ");
        let endless = opening("06T18:00:00", None);
        insta::assert_snapshot!(words(endless, true), @r#"
        This computer is lent at 19:00
        A cluster uses it. "Not tonight" keeps it for you until Sat 08:00.
        [Not tonight] not-tonight
        [In an hour] in-an-hour
        "#);
        let noon = opening("06T11:00:00", Some("06T12:30:00"));
        insta::assert_snapshot!(words(noon, true), @r#"
        This computer is lent at 12:00
        A cluster uses it until 13:30. "Not today" keeps it for you until then.
        [Not today] not-tonight
        [In an hour] in-an-hour
        "#);
    }

    #[test]
    fn an_answer_keeps_the_host_until_the_end_of_the_window_or_the_next_morning() {
        let until = |answer: Answer, opening| {
            let until = answer.until(opening, NOW.parse().unwrap(), &zurich());
            until.to_string()
        };
        let night = opening("06T18:00:00", Some("07T06:00:00"));
        assert_eq!(until(Answer::NotTonight, night), "2026-03-07T06:00:00Z");
        assert_eq!(until(Answer::InAnHour, night), "2026-03-06T18:50:00Z");
        for (at, morning) in [
            ("06T18:00:00", "2026-03-07T07:00:00Z"),
            ("06T23:30:00", "2026-03-07T07:00:00Z"),
            ("07T06:59:59", "2026-03-07T07:00:00Z"),
            ("07T07:00:00", "2026-03-08T07:00:00Z"),
            // The clocks are set forward in the night before.
            ("28T20:00:00", "2026-03-29T06:00:00Z"),
        ] {
            assert_eq!(until(Answer::NotTonight, opening(at, None)), morning);
        }
    }

    #[test]
    fn only_the_two_keys_are_answers() {
        for answer in Answer::ALL {
            assert_eq!(Answer::of(answer.key()), Some(answer));
        }
        for key in ["", "default", "not-tonight ", "In an hour"] {
            assert_eq!(Answer::of(key), None);
        }
    }
}
