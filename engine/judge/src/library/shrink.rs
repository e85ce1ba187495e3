//! Reduces a question to the smallest one that shows the same difference.

use std::error::Error;

use serde_json::Value;

/// The smallest question found for which `holds` is true, as it is for `question`: parts are
/// removed one at a time until nothing more can be removed.
///
/// # Errors
/// Those of `holds`.
pub(super) fn shrink(
    question: &Value,
    mut holds: impl FnMut(&Value) -> Result<bool, Box<dyn Error>>,
) -> Result<Value, Box<dyn Error>> {
    let mut smallest = question.clone();
    let mut attempts = 400;
    loop {
        let mut is_smaller = false;
        for pointer in pointers(&smallest) {
            // Without the resourceVersion, every update is rejected.
            if pointer.ends_with("/resourceVersion") {
                continue;
            }
            if attempts == 0 {
                return Ok(smallest);
            }
            let Some(smaller) = without(&smallest, &pointer) else {
                continue;
            };
            attempts -= 1;
            if holds(&smaller)? {
                smallest = smaller;
                is_smaller = true;
            }
        }
        if !is_smaller {
            return Ok(smallest);
        }
    }
}

/// The JSON pointers of all parts, large ones first.
fn pointers(value: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    let mut level = vec![String::new()];
    while !level.is_empty() {
        let mut below = Vec::new();
        for pointer in &level {
            match value.pointer(pointer) {
                Some(Value::Object(fields)) => below.extend(fields.keys().map(|name| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    format!("{pointer}/{name}")
                })),
                // From the end, so that the remaining items keep their positions.
                Some(Value::Array(items)) => {
                    below.extend(
                        (0..items.len()).rev().map(|at| format!("{pointer}/{at}")),
                    );
                }
                _ => {}
            }
        }
        pointers.extend(below.iter().cloned());
        level = below;
    }
    pointers
}

/// The value without a part; `None` if there is no such part.
fn without(value: &Value, pointer: &str) -> Option<Value> {
    let mut value = value.clone();
    let (parent, name) = pointer.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent)? {
        Value::Object(fields) => fields.shift_remove(&name).map(|_| ())?,
        Value::Array(items) => {
            let at: usize = name.parse().ok()?;
            if at >= items.len() {
                return None;
            }
            items.remove(at);
        }
        _ => return None,
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_matters_is_left() {
        let question = json!({"a": [1, 2, {"b": 3, "c": 4}], "d": {"e/f": 5}});
        let small = shrink(&question, |it| Ok(it["a"].to_string().contains("\"c\":4")));
        assert_eq!(small.expect("nothing fails"), json!({"a": [{"c": 4}]}));
    }
}
