//! The maximum nesting depth of objects: stored objects must be readable again.

use serde_json::Value;

/// The maximum number of nested objects and lists, including the outermost one. It is the
/// limit of the parser of bodies and of the data directory.
pub(crate) const MAX_DEPTH: usize = 127;

/// The number of nested objects and lists; 0 for a scalar.
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
    fn a_value_of_the_maximum_depth_is_parsed_and_a_deeper_one_rejected() {
        let read = |levels: usize| {
            let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            serde_json::from_str::<Value>(&text)
        };
        assert_eq!(depth(&read(MAX_DEPTH).unwrap()), MAX_DEPTH);
        assert!(read(MAX_DEPTH + 1).is_err());
    }
}
