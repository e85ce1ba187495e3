//! The rules about a ScheduledMachineSet: those about what its template has in common with a
//! ScheduledMachine, and its own.

use std::sync::LazyLock;

use super::node::text;
use super::pattern::{is_match, matching};
use super::requirement::{Requirement, not_empty};
use super::{Examples, RULES, Rule};

const NAME_OF_A_SET: Requirement = matching!(
    "^[a-z0-9]([-a-z0-9]{0,56}[a-z0-9])?$",
    "must be a DNS label of at most 58 characters: lower-case letters, digits \
    and '-', a letter or digit at both ends"
)
.only_in_policy()
.examples(Examples::Text {
    accepts: &[
        "desks",
        "5spot-1",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdef",
    ],
    rejects: &[
        "Desks",
        "a.b",
        "-a",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg",
    ],
});

const OWN: [Rule; 2] = [NAME, CLUSTER];

const CLUSTER: Rule = Rule {
    id: "SM932",
    path: "spec.template.spec.clusterName",
    requirement: not_empty("must not be empty"),
    why: "Without a name the first Cluster of the class is joined, if the field is left out.",
};

const NAME: Rule = Rule {
    id: "SM931",
    path: "metadata.name",
    requirement: NAME_OF_A_SET,
    why: "A machine has the name of its set, '-' and a number of at most four digits.",
};

/// The number of the first of [`SHARED`].
const FIRST_SHARED: u16 = 933;

/// The rules about a machine that apply to the template, each with the next number: a further one
/// comes last.
const SHARED: [&str; 47] = [
    "SM004", "SM005", "SM006", "SM007", "SM016", "SM018", "SM019", "SM020", "SM021",
    "SM022", "SM023", "SM024", "SM025", "SM026", "SM027", "SM028", "SM037", "SM038",
    "SM039", "SM040", "SM041", "SM045", "SM047", "SM050", "SM052", "SM053", "SM054",
    "SM055", "SM056", "SM057", "SM058", "SM059", "SM060", "SM061", "SM062", "SM063",
    "SM064", "SM105", "SM106", "SM107", "SM108", "SM109", "SM120", "SM121", "SM122",
    "SM123", "SM129",
];

/// The path in the template of a path in a ScheduledMachine.
fn in_template(path: &str) -> String {
    path.replacen("spec", "spec.template.spec", 1).replacen(
        "spec.machineTemplate",
        "metadata",
        1,
    )
}

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let shared = (FIRST_SHARED..).zip(SHARED).filter_map(|(number, id)| {
        let rule = RULES.iter().find(|rule| rule.id == id)?;
        Some(Rule {
            path: in_template(rule.path).leak(),
            ..rule.numbered(number)
        })
    });
    OWN.into_iter().chain(shared).collect()
});

/// Every rule about a ScheduledMachineSet.
pub fn set_rules() -> &'static [Rule] {
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_about_a_field_of_a_template_applies_to_it() {
        let of_class = [
            "Spec",
            "machineTemplate.version",
            "machineTemplate.failureDomain",
            "Timeout",
            "nodeTaints",
            "provisioning",
            "shutdown",
            "kata",
            // Each machine has another one.
            "classRef.host",
        ];
        let left_out = RULES.iter().filter(|rule| {
            let is_shared = SHARED.contains(&rule.id);
            let is_of_class = of_class.iter().any(|field| rule.path.contains(field));
            !is_shared && !is_of_class
        });
        let left_out: Vec<_> = left_out.map(|rule| rule.id).collect();
        // The Cluster of a machine that exists, both names, two kinds, kata, audit mode, and a class
        // or its fields: what a template cannot have, or what is about a machine that exists.
        assert_eq!(
            left_out,
            [
                "SM001", "SM017", "SM046", "SM051", "SM103", "SM104", "SM124", "SM127",
                "SM128"
            ]
        );
        assert_eq!(TABLE.len(), SHARED.len() + OWN.len());
    }
}
