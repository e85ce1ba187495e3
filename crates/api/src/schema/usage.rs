//! The schema of what the status says of activations and usage.

use serde_json::{Value, json};

use super::status::instant;
use super::{MAX_NAME, MAX_SHORT, choice, list_map, object, string};
use crate::schedule_override::OverrideMode;
use crate::status::{AccountedState, MOST_MONTHS};

pub(super) fn override_in_force() -> Value {
    object(
        "The ScheduleOverride in force; of several, the one that counts.",
        &["name", "mode", "endTime"],
        [
            ("name", string("Name of the ScheduleOverride.", MAX_NAME)),
            (
                "mode",
                choice(
                    "What it does.",
                    &OverrideMode::ALL.map(OverrideMode::as_str),
                ),
            ),
            ("endTime", instant("When it ends.")),
        ],
    )
}

pub(super) fn last_provisioning() -> Value {
    object(
        "The last activation.",
        &["startTime"],
        [
            ("startTime", instant("When the machine was created.")),
            ("readyTime", instant("When its Node was first Ready.")),
        ],
    )
}

pub(super) fn usage() -> Value {
    let seconds = |description: &str| {
        json!({
            "type": "integer",
            "format": "int64",
            "description": description,
            "minimum": 0,
        })
    };
    let month = object(
        "One month, in UTC.",
        &["month"],
        [
            ("month", string("The month, YYYY-MM.", MAX_SHORT)),
            ("activeSeconds", seconds("Seconds with a Ready Node.")),
            (
                "wantedSeconds",
                seconds("Seconds in which the schedule wanted the machine."),
            ),
            (
                "provisioningSeconds",
                seconds("Seconds in which the machine was being provisioned."),
            ),
            (
                "lateSeconds",
                seconds("Seconds in which the machine was wanted without a Ready Node."),
            ),
            ("reclaims", seconds("Number of emergency reclaims.")),
        ],
    );
    object(
        "How the machine was used, by months. Written when the phase or what the schedule says \
         changes; the time since accountedTime is not included.",
        &[],
        [
            (
                "months",
                list_map("The newest months.", MOST_MONTHS, &["month"], month),
            ),
            ("startTime", instant("From when on the account is kept.")),
            (
                "accountedTime",
                instant("Until when the account is complete."),
            ),
            (
                "accountedState",
                choice(
                    "The state since accountedTime.",
                    &AccountedState::ALL.map(AccountedState::as_str),
                ),
            ),
        ],
    )
}
