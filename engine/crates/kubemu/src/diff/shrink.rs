//! Makes a question about which two sides differ smaller.

use kubemu_terminal::Failure;
use serde_json::{Value, json};

use super::search::{Difference, Search};
use crate::validate::judge::Question;

/// How many smaller questions are tried.
const MAX_TRIES: usize = 1_500;

/// The smallest question found about which the sides differ in the same way.
///
/// # Errors
/// An object cannot be judged.
pub(super) fn shrink(
    search: &mut Search<'_, '_>,
    question: Question,
    difference: Difference,
) -> Result<Question, Failure> {
    let mut smallest = question;
    let mut tries = 0;
    loop {
        let mut is_smaller = false;
        for smaller in smaller(&smallest) {
            tries += 1;
            if tries > MAX_TRIES {
                return Ok(smallest);
            }
            if smaller.bytes() >= smallest.bytes() {
                continue;
            }
            if search.difference(&smaller)?.0 == Some(difference) {
                smallest = smaller;
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return Ok(smallest);
        }
    }
}

/// Smaller questions, those without most first.
fn smaller(question: &Question) -> Vec<Question> {
    let mut all = Vec::new();
    for object in smaller_objects(&question.object) {
        let old = question.old.as_ref();
        all.push(Question {
            object,
            old: old.cloned(),
        });
    }
    for old in question.old.iter().flat_map(smaller_objects) {
        all.push(Question {
            object: question.object.clone(),
            old: Some(old),
        });
    }
    all
}

fn smaller_objects(object: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let Value::Object(fields) = object else {
        return all;
    };
    for (name, value) in fields {
        if ["apiVersion", "kind"].contains(&name.as_str()) {
            continue;
        }
        let mut without = object.clone();
        if name != "metadata"
            && let Value::Object(fields) = &mut without
        {
            fields.shift_remove(name);
            all.push(without);
        }
        for value in smaller_values(value) {
            let mut with = object.clone();
            with[name.as_str()] = value;
            all.push(with);
        }
    }
    all
}

fn smaller_values(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(fields) => {
            for name in fields.keys() {
                let mut without = fields.clone();
                without.shift_remove(name);
                all.push(Value::Object(without));
            }
            for (name, value) in fields {
                for value in smaller_values(value) {
                    let mut with = fields.clone();
                    with.insert(name.clone(), value);
                    all.push(Value::Object(with));
                }
            }
        }
        Value::Array(items) => {
            let half = items.len() / 2;
            if half > 1 {
                all.push(items.iter().take(half).cloned().collect());
            }
            for at in 0..items.len().min(16) {
                let mut without = items.clone();
                without.remove(at);
                all.push(Value::Array(without));
            }
            for (at, item) in items.iter().enumerate().take(16) {
                for item in smaller_values(item) {
                    let mut with = items.clone();
                    if let Some(place) = with.get_mut(at) {
                        *place = item;
                    }
                    all.push(Value::Array(with));
                }
            }
        }
        Value::String(text) => {
            let characters = text.chars().count();
            for length in [0, 1, characters / 2, characters.saturating_sub(1)] {
                let shorter: String = text.chars().take(length).collect();
                all.push(shorter.into());
            }
        }
        Value::Number(number) if number.to_string().len() > 1 => {
            all.push(json!(0));
            all.push(json!(1));
        }
        _ => {}
    }
    all
}
