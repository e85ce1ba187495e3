//! The reasons of the condition of a schedule that objects share.

use super::{Actor, ReasonRow, Remedy, Section};

/// Every reason.
pub const TABLE: &[ReasonRow] = &[
    ReasonRow::well("WindowOpen", "A TimeBasedSpotSchedule is open."),
    ReasonRow::well("WindowClosed", "A TimeBasedSpotSchedule is closed."),
    ReasonRow::well("SessionOpen", "A CapitalMarketsSchedule is open."),
    ReasonRow::well("SessionClosed", "A CapitalMarketsSchedule is closed."),
    ReasonRow {
        name: "InvalidSchedule",
        meaning: "The schedule cannot be evaluated: what it published last stays, and what follows \
                  it stays as it is.",
        actor: Actor::Owner,
        remedy: Some(Remedy {
            text: "Correct the field that the message names. `5spot validate` reports everything \
                   that a server would reject.",
            section: Some(Section {
                title: "Schedules that many machines share",
                path: "concepts/schedules.md#schedules-that-many-machines-share",
            }),
        }),
    },
];

/// The row of a reason of a shared schedule by its name.
pub fn row(name: &str) -> Option<&'static ReasonRow> {
    TABLE.iter().find(|row| row.name == name)
}
