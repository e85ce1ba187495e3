//! The rules in Rust agree with the rules in CEL.

use fivespot_api::resource::{RESOURCES, Resource};
use fivespot_api::rules::{Examples, Rule};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::evaluator::Evaluator;

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
            "0123456789-,/*. :_+abzmonfriJANTZ"
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

fn texts(resource: &'static Resource) -> Vec<(usize, &'static str)> {
    let mut texts = Vec::new();
    for (index, rule) in resource.rules().iter().enumerate() {
        if let Examples::Text { accepts, rejects } = rule.requirement.examples {
            let all = accepts.iter().chain(rejects);
            texts.extend(all.map(|text| (index, *text)));
        }
    }
    texts
}

/// Whether policy and predicate agree on a text at the node of a rule.
fn agree(
    evaluator: &Evaluator,
    (index, rule): (usize, &Rule),
    text: &str,
) -> TestCaseResult {
    let object = rule.example(text);
    let holds = rule.requirement.predicate.unwrap();
    let in_rust = rule
        .nodes(&object)
        .iter()
        .all(|(_, node)| holds(node, &object));
    let denials = evaluator.decide(&object, None).denials;
    let in_cel = !denials
        .iter()
        .any(|denial| denial.validation == Some(index));
    prop_assert_eq!(in_rust, in_cel, "{} {:?}", rule.id, text);
    Ok(())
}

#[test]
fn predicates_and_expressions_agree_on_texts_near_the_examples() {
    for resource in &RESOURCES {
        let evaluator = Evaluator::policy_alone_of(resource);
        let config = ProptestConfig {
            cases: 300,
            failure_persistence: None,
            ..Default::default()
        };
        let strategy = (prop::sample::select(texts(resource)), edits());
        proptest::test_runner::TestRunner::new(config)
            .run(&strategy, |((index, text), edits)| {
                let rule = &resource.rules()[index];
                agree(&evaluator, (index, rule), &edited(text, &edits))
            })
            .unwrap();
    }
}
