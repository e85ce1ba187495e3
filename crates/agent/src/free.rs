//! Since when this host has been free, and what its ScheduledMachine is told about that. No I/O.

use fivespot_api::reclaim::FreeHost;
use fivespot_api::time::whole_seconds;
use jiff::{SignedDuration, Timestamp};

/// How often a report is confirmed. The operator believes one that is at most five minutes old.
const CONFIRM: SignedDuration = SignedDuration::from_mins(1);
/// The longest time between two looks at a host that counts as without interruption. A suspended
/// host, or one whose clock is set, exceeds it.
const GAP: SignedDuration = SignedDuration::from_mins(2);

/// What a look at the whole host shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Every signal and every process could be read, and nothing asks for the host.
    Free,
    /// Something asks for the host, or it is not known whether anything does.
    InUse,
}

/// Since when the host has been free, as far as this agent has seen. `None`: it is in use, or has
/// not been looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen(Option<FreeHost>);

/// What to do with the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It says what it should.
    Nothing,
    /// Write this one.
    Write(FreeHost),
    /// Remove it.
    Remove,
}

impl Seen {
    /// After a look at the host.
    pub(crate) fn after(self, look: Look, now: Timestamp) -> Self {
        let now = whole_seconds(now);
        let is_unbroken = |earlier: &FreeHost| {
            let passed = now.duration_since(earlier.confirmed);
            !passed.is_negative() && passed <= GAP
        };
        Self(match look {
            Look::InUse => None,
            Look::Free => Some(FreeHost {
                since: self.0.filter(is_unbroken).map_or(now, |of| of.since),
                confirmed: now,
            }),
        })
    }

    /// Whether the host has to be looked at: it is not free, or that has to be confirmed. The time of
    /// day decides, which goes on while a host is suspended.
    pub(crate) fn is_due(self, now: Timestamp) -> bool {
        self.0.is_none_or(|free| {
            let passed = whole_seconds(now).duration_since(free.confirmed);
            passed.is_negative() || passed >= CONFIRM
        })
    }

    /// Whether it is free.
    pub(crate) fn is_free(self) -> bool {
        self.0.is_some()
    }

    /// How to change the annotation, whose value is `reported`.
    pub(crate) fn change(self, reported: Option<&str>) -> Change {
        let Some(free) = self.0 else {
            return match reported {
                Some(_) => Change::Remove,
                None => Change::Nothing,
            };
        };
        let is_enough = |earlier: FreeHost| {
            let passed = free.confirmed.duration_since(earlier.confirmed);
            earlier.since == free.since && !passed.is_negative() && passed < CONFIRM
        };
        let earlier = reported.and_then(|text| text.parse().ok());
        if earlier.is_some_and(is_enough) {
            Change::Nothing
        } else {
            Change::Write(free)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Look, Seen};
    use jiff::Timestamp;

    fn at(time: &str) -> Timestamp {
        format!("2026-03-06T{time}Z").parse().unwrap()
    }

    /// What a host that was looked at so is seen as.
    fn seen(looks: &[(Look, &str)]) -> Seen {
        let first = Seen::default();
        looks
            .iter()
            .fold(first, |seen, (look, time)| seen.after(*look, at(time)))
    }

    fn written(seen: Seen, reported: Option<&str>) -> String {
        match seen.change(reported) {
            Change::Nothing => "nothing".to_owned(),
            Change::Remove => "remove".to_owned(),
            Change::Write(free) => free.to_string().replace("2026-03-06T", ""),
        }
    }

    #[test]
    fn a_host_that_is_free_is_reported_with_its_beginning_and_confirmed_every_minute() {
        use Look::Free;
        let looks = [
            (Free, "13:00:00.7"),
            (Free, "13:00:59"),
            (Free, "13:01:00.2"),
        ];
        assert_eq!(written(seen(&looks[..1]), None), "13:00:00Z 13:00:00Z");
        let reported = Some("2026-03-06T13:00:00Z 2026-03-06T13:00:00Z");
        assert_eq!(written(seen(&looks[..1]), reported), "nothing");
        assert_eq!(written(seen(&looks[..2]), reported), "nothing");
        assert_eq!(written(seen(&looks), reported), "13:00:00Z 13:01:00Z");
    }

    #[test]
    fn a_signal_removes_the_report_and_the_host_is_free_from_its_end_on() {
        use Look::{Free, InUse};
        let reported = Some("2026-03-06T13:00:00Z 2026-03-06T13:00:00Z");
        let looks = [(Free, "13:00:00"), (InUse, "13:00:05"), (Free, "13:00:06")];
        assert_eq!(written(seen(&looks[..2]), reported), "remove");
        assert_eq!(written(seen(&looks[..2]), None), "nothing");
        assert_eq!(written(seen(&looks), None), "13:00:06Z 13:00:06Z");
        assert_eq!(written(seen(&looks), reported), "13:00:06Z 13:00:06Z");
    }

    #[test]
    fn an_agent_that_has_not_looked_removes_what_an_earlier_one_reported() {
        let reported = Some("2026-03-06T12:00:00Z 2026-03-06T12:59:00Z");
        assert_eq!(written(Seen::default(), reported), "remove");
        let looked = seen(&[(Look::Free, "13:00:00")]);
        assert_eq!(written(looked, reported), "13:00:00Z 13:00:00Z");
    }

    #[test]
    fn a_host_that_nobody_looked_at_for_a_while_or_whose_clock_was_set_is_free_from_now_on()
     {
        use Look::Free;
        for (next, since) in [
            ("13:02:00", "13:00:00Z"),
            ("13:02:01", "13:02:01Z"),
            ("21:00:00", "21:00:00Z"),
            ("12:59:59", "12:59:59Z"),
        ] {
            let looked = seen(&[(Free, "13:00:00"), (Free, next)]);
            assert_eq!(written(looked, None), format!("{since} {next}Z"), "{next}");
        }
    }

    #[test]
    fn a_host_is_looked_at_while_it_is_in_use_and_every_minute_while_it_is_free() {
        assert!(Seen::default().is_due(at("13:00:00")));
        let looked = seen(&[(Look::Free, "13:00:00")]);
        for (time, is_due) in [
            ("13:00:00", false),
            ("13:00:59.9", false),
            ("13:01:00", true),
            ("12:59:59", true),
        ] {
            assert_eq!(looked.is_due(at(time)), is_due, "{time}");
        }
    }

    #[test]
    fn a_report_that_somebody_has_changed_is_written_again() {
        let looked = seen(&[(Look::Free, "13:00:00")]);
        for reported in [
            "",
            "free",
            "2026-03-06T01:00:00Z 2026-03-06T13:00:00Z",
            "2026-03-06T13:00:00Z 2026-03-06T13:00:01Z",
        ] {
            assert_eq!(written(looked, Some(reported)), "13:00:00Z 13:00:00Z");
        }
    }
}
