//! The rules in Rust agree with the rules in CEL.

use fivespot_api::rules::{Examples, RULES, Rule};
use proptest::prelude::*;

use super::judge::Judge;

/// One small change to a text.
#[derive(Clone, Debug)]
enum Edit {
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, char),
    Replace(prop::sample::Index, char),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let letter = || {
        prop::sample::select(
            "0123456789-,/*. :_+abzmonfriJAN"
                .chars()
                .collect::<Vec<_>>(),
        )
    };
    let edit = prop_oneof![
        any::<prop::sample::Index>().prop_map(Edit::Remove),
        (any::<prop::sample::Index>(), letter())
            .prop_map(|(at, new)| Edit::Insert(at, new)),
        (any::<prop::sample::Index>(), letter())
            .prop_map(|(at, new)| Edit::Replace(at, new)),
    ];
    prop::collection::vec(edit, 0..4)
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for edit in edits {
        match edit {
            Edit::Insert(at, new) => letters.insert(at.index(letters.len() + 1), *new),
            Edit::Remove(at) if !letters.is_empty() => {
                letters.remove(at.index(letters.len()));
            }
            Edit::Replace(at, new) if !letters.is_empty() => {
                let at = at.index(letters.len());
                letters[at] = *new;
            }
            Edit::Remove(_) | Edit::Replace(..) => {}
        }
    }
    letters.into_iter().collect()
}

fn texts() -> Vec<(usize, &'static Rule, &'static str)> {
    let mut texts = Vec::new();
    for (index, rule) in RULES.iter().enumerate() {
        if let Examples::Text { accepts, rejects } = rule.examples {
            texts.extend(
                accepts
                    .iter()
                    .chain(rejects)
                    .map(|text| (index, rule, *text)),
            );
        }
    }
    texts
}

/// Whether policy and predicate say the same of a text at the node of a rule.
fn agree(judge: &Judge, index: usize, text: &str) -> Result<(), TestCaseError> {
    let rule = &RULES[index];
    let object = rule.example(text);
    let holds = rule.predicate.unwrap();
    let in_rust = rule
        .nodes(&object)
        .iter()
        .all(|(_, node)| holds(node, &object));
    let denials = judge.decide(&object, None).denials;
    let in_cel = !denials
        .iter()
        .any(|denial| denial.validation == Some(index));
    prop_assert_eq!(in_rust, in_cel, "{} {:?}", rule.id, text);
    Ok(())
}

#[test]
fn predicates_and_expressions_agree_on_texts_near_the_examples() {
    let judge = Judge::policy_alone();
    let config = ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    };
    let strategy = (prop::sample::select(texts()), edits());
    proptest::test_runner::TestRunner::new(config)
        .run(&strategy, |((index, _, text), edits)| {
            agree(&judge, index, &edited(text, &edits))
        })
        .unwrap();
}
