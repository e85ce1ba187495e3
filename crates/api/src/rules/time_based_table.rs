//! The rules about a TimeBasedSpotSchedule: those about an inline schedule.

use std::sync::LazyLock;

use super::{RULES, Rule};

/// Where an inline schedule is.
const INLINE: &str = "spec.schedule";

/// What is added to the number of a rule about an inline schedule: SM004 is SM204 here.
const OFFSET: u16 = 200;

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let inline = RULES.iter().filter_map(|rule| {
        let rest = rule.path.strip_prefix(INLINE)?;
        let number: u16 = rule.id.strip_prefix("SM")?.parse().ok()?;
        Some(Rule {
            id: format!("SM{:03}", number + OFFSET).leak(),
            path: format!("spec{rest}").leak(),
            requirement: rule.requirement,
            examples: rule.examples,
            why: rule.why,
        })
    });
    inline.collect()
});

/// Every rule about a TimeBasedSpotSchedule: each rule about `spec.schedule`, about `spec`.
pub fn time_based_rules() -> &'static [Rule] {
    &TABLE
}
