//! The rules about a TimeBasedSpotSchedule: those about an inline schedule.

use std::sync::LazyLock;

use super::reference::NO_REFERENCE;
use super::{RULES, Rule};

/// Where an inline schedule is.
const INLINE: &str = "spec.schedule";

/// What is added to the number of a rule about an inline schedule: SM004 is SM204 here.
const OFFSET: u16 = 200;

/// The rules about a reference to a shared schedule.
const ABOUT_REFERENCES: std::ops::RangeInclusive<&str> = "SM105"..="SM109";

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let inline = RULES.iter().filter_map(|rule| {
        let rest = rule.path.strip_prefix(INLINE)?;
        (!ABOUT_REFERENCES.contains(&rule.id)).then(|| Rule {
            path: format!("spec{rest}").leak(),
            ..rule.renumbered(OFFSET)
        })
    });
    let only_here = Rule {
        id: "SM300",
        path: "spec",
        requirement: NO_REFERENCE,
        why: "A chain of schedules could be a circle.",
    };
    inline.chain([only_here]).collect()
});

/// Every rule about a TimeBasedSpotSchedule: each rule about an inline `spec.schedule`, about
/// `spec`.
pub fn time_based_rules() -> &'static [Rule] {
    &TABLE
}
