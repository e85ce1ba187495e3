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
.only_in_policy();

const OWN: [Rule; 2] = [NAME, CLUSTER];

const CLUSTER: Rule = Rule {
    id: "SM932",
    path: "spec.template.spec.clusterName",
    requirement: not_empty("must not be empty"),
    examples: Examples::Text {
        accepts: &["prod"],
        rejects: &[""],
    },
    why: "Without a name the first Cluster of the class is joined, if the field is left out.",
};

const NAME: Rule = Rule {
    id: "SM931",
    path: "metadata.name",
    requirement: NAME_OF_A_SET,
    examples: Examples::Text {
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
    },
    why: "A machine has the name of its set, '-' and a number of at most four digits.",
};

/// The rules about a machine that apply to the template, each with its number here.
const SHARED: [(&str, &str); 47] = [
    ("SM933", "SM004"),
    ("SM934", "SM005"),
    ("SM935", "SM006"),
    ("SM936", "SM007"),
    ("SM937", "SM016"),
    ("SM938", "SM018"),
    ("SM939", "SM019"),
    ("SM940", "SM020"),
    ("SM941", "SM021"),
    ("SM942", "SM022"),
    ("SM943", "SM023"),
    ("SM944", "SM024"),
    ("SM945", "SM025"),
    ("SM946", "SM026"),
    ("SM947", "SM027"),
    ("SM948", "SM028"),
    ("SM949", "SM037"),
    ("SM950", "SM038"),
    ("SM951", "SM039"),
    ("SM952", "SM040"),
    ("SM953", "SM041"),
    ("SM954", "SM045"),
    ("SM955", "SM047"),
    ("SM956", "SM050"),
    ("SM957", "SM052"),
    ("SM958", "SM053"),
    ("SM959", "SM054"),
    ("SM960", "SM055"),
    ("SM961", "SM056"),
    ("SM962", "SM057"),
    ("SM963", "SM058"),
    ("SM964", "SM059"),
    ("SM965", "SM060"),
    ("SM966", "SM061"),
    ("SM967", "SM062"),
    ("SM968", "SM063"),
    ("SM969", "SM064"),
    ("SM970", "SM105"),
    ("SM971", "SM106"),
    ("SM972", "SM107"),
    ("SM973", "SM108"),
    ("SM974", "SM109"),
    ("SM975", "SM120"),
    ("SM976", "SM121"),
    ("SM977", "SM122"),
    ("SM978", "SM123"),
    ("SM979", "SM129"),
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
    let shared = SHARED.iter().filter_map(|(id, of_machine)| {
        let rule = RULES.iter().find(|rule| rule.id == *of_machine)?;
        Some(Rule {
            id,
            path: in_template(rule.path).leak(),
            ..*rule
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
            let is_shared = SHARED.iter().any(|(_, id)| *id == rule.id);
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
