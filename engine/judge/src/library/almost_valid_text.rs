//! Texts that are almost of a form: an address with a stray percent sign, a number with two signs.
//! Most disagreements between two parsers are about such texts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::form::{BORDERS, FORMS, PIECES};
use kubemu_judge::random::Random;

/// The names of all forms.
#[cfg(test)]
pub(super) fn forms() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|(name, _)| *name)
}

/// A text that is of a form, or almost. An unknown form gives any text.
pub(super) fn near(random: &mut Random, form: &str) -> String {
    let known = FORMS.iter().find(|(name, _)| *name == form);
    let seeds = known.map_or(&["a"][..], |(_, seeds)| *seeds);
    let mut text = random.pick(seeds).to_owned();
    for _ in 0..random.below(4) {
        let other = random.pick(seeds);
        text = edited(random, &text, other);
    }
    text
}

/// A text that is of any form, or almost.
pub(super) fn any(random: &mut Random) -> String {
    let (form, _) = random.pick(FORMS);
    near(random, form)
}

/// The text after one edit; some edits insert a part of another text.
pub(super) fn edited(random: &mut Random, text: &str, other: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = random.below(letters.len() + 1);
    let to = (at + random.between(1, 3)).min(letters.len());
    match random.below(7) {
        0 => {
            letters.splice(at..at, random.pick(PIECES).chars());
        }
        1 => {
            letters.splice(at..to, random.pick(PIECES).chars());
        }
        2 => {
            letters.drain(at..to);
        }
        3 => {
            let part: Vec<char> = letters[at..to].to_vec();
            letters.splice(at..at, part);
        }
        4 if to > at + 1 => letters.swap(at, at + 1),
        5 => {
            letters.truncate(at);
            let others: Vec<char> = other.chars().collect();
            letters.extend(others.iter().skip(random.below(others.len() + 1)));
        }
        _ => {
            for letter in &mut letters[at..to] {
                *letter = if letter.is_ascii_digit() {
                    random.pick(&['0', '1', '5', '6', '9'])
                } else if letter.is_ascii_lowercase() {
                    letter.to_ascii_uppercase()
                } else {
                    letter.to_ascii_lowercase()
                };
            }
        }
    }
    letters.into_iter().collect()
}

/// The text as a string literal of CEL.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Changes one string, number or boolean in a document, except `apiVersion` and `kind`.
pub(super) fn edit_leaf(random: &mut Random, document: &mut Value) {
    let mut leaves = Vec::new();
    collect(document, String::new(), &mut leaves);
    leaves.retain(|it| it != "/apiVersion" && it != "/kind");
    if leaves.is_empty() {
        return;
    }
    let Some(leaf) = document.pointer_mut(&random.pick(&leaves)) else {
        return;
    };
    *leaf = match &*leaf {
        Value::String(text) => {
            let other = any(random);
            json!(edited(random, text, &other))
        }
        Value::Number(_) => json!(random.pick(BORDERS)),
        Value::Bool(is) => json!(!is),
        other => other.clone(),
    };
}

/// A number at the limit of some type or rule.
pub(super) fn border(random: &mut Random) -> i64 {
    random.pick(BORDERS)
}

fn collect(value: &Value, pointer: String, leaves: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(field, format!("{pointer}/{name}"), leaves);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{pointer}/{at}"), leaves);
            }
        }
        Value::Null => {}
        _ => leaves.push(pointer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_the_same_texts_and_another_gives_others() {
        let texts = |seed| {
            let mut random = Random::of(seed, 0);
            (0..50).map(|_| any(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn most_texts_of_a_form_are_not_its_seeds() {
        let mut random = Random::of(1, 0);
        for (form, seeds) in FORMS {
            let made: Vec<_> = (0..200).map(|_| near(&mut random, form)).collect();
            let new = made.iter().filter(|it| !seeds.contains(&it.as_str()));
            assert!(new.count() > 100, "{form}");
        }
    }

    #[test]
    fn a_literal_escapes_its_text() {
        let text = "a\"b\\c\nd\u{1}é'";
        assert_eq!(quoted(text), r#""a\"b\\c\nd\u0001é'""#);
    }

    #[test]
    fn one_leaf_of_a_document_changes_and_never_its_kind() {
        let document =
            json!({"apiVersion": "v1", "kind": "A", "a": ["x", 7, true], "b": null});
        let mut random = Random::of(1, 0);
        for _ in 0..100 {
            let mut edited = document.clone();
            edit_leaf(&mut random, &mut edited);
            assert_eq!(
                (&edited["apiVersion"], &edited["kind"]),
                (&json!("v1"), &json!("A"))
            );
            let (old, new) = (document["a"].as_array(), edited["a"].as_array());
            let pairs = old.into_iter().flatten().zip(new.into_iter().flatten());
            assert!(pairs.filter(|(old, new)| old != new).count() <= 1);
        }
    }
}
