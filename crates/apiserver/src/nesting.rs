//! How deep objects may be nested: what is stored has to be readable again.

use serde_json::Value;

/// Most objects and lists inside each other, the outermost included: as many as the reader of
/// bodies and of the data directory takes.
pub(crate) const MOST: usize = 127;

/// How many objects and lists there are inside each other; none in a text or a number.
pub(crate) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    deepest.unwrap_or_default() + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_deep_as_its_deepest_part() {
        assert_eq!(depth(&json!("a")), 0);
        assert_eq!(depth(&json!({})), 1);
        assert_eq!(depth(&json!({"a": 1, "b": [{}, 2], "c": {}})), 3);
    }

    #[test]
    fn what_is_as_deep_as_may_be_is_read_and_nothing_deeper() {
        let read = |levels: usize| {
            let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            serde_json::from_str::<Value>(&text)
        };
        assert_eq!(depth(&read(MOST).unwrap()), MOST);
        assert!(read(MOST + 1).is_err());
    }
}
