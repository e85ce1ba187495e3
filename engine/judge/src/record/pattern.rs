//! Patterns of places in a JSON value.
//!
//! A pattern is a JSON pointer in which `*` matches any one key or index, `**` any number of them,
//! and `key=text` the items of a list that have that text at that key.

use serde_json::Value;

/// A pattern as a list of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

impl Pattern {
    /// Parses a pattern. Every text is valid.
    pub fn new(text: &str) -> Self {
        let parts = text.split('/').skip(1);
        Self(
            parts
                .map(|part| part.replace("~1", "/").replace("~0", "~"))
                .collect(),
        )
    }

    /// Whether the pattern matches this place or one above it.
    pub fn covers(&self, place: &[String]) -> bool {
        matches(&self.0, place)
    }
}

fn matches(pattern: &[String], place: &[String]) -> bool {
    match (pattern, place) {
        ([], _) => true,
        ([any, rest @ ..], _) if any == "**" => {
            (0..=place.len()).any(|skipped| matches(rest, &place[skipped..]))
        }
        ([part, rest @ ..], [key, below @ ..]) => {
            (part == "*" || part == key) && matches(rest, below)
        }
        (_, []) => false,
    }
}

/// Removes the places that the patterns match.
pub fn remove(value: &mut Value, patterns: &[String]) {
    for pattern in patterns {
        cut(value, &Pattern::new(pattern).0);
    }
}

fn cut(value: &mut Value, pattern: &[String]) {
    let Some((part, rest)) = pattern.split_first() else {
        return;
    };
    if part == "**" {
        cut(value, rest);
        for (_, below) in children(value) {
            cut(below, pattern);
        }
        return;
    }
    if rest.is_empty() {
        match value {
            Value::Object(fields) => fields.retain(|key, _| part != "*" && part != key),
            Value::Array(items) => items.retain(|item| !is_item(item, part)),
            _ => {}
        }
        return;
    }
    for (key, below) in children(value) {
        if part == "*" || *part == key || is_item(below, part) {
            cut(below, rest);
        }
    }
}

/// The value with only the places that the patterns match.
pub fn select(value: &Value, patterns: &[String]) -> Value {
    let patterns: Vec<_> = patterns.iter().map(|it| Pattern::new(it).0).collect();
    let patterns: Vec<&[String]> = patterns.iter().map(Vec::as_slice).collect();
    pick(value, &patterns).unwrap_or_default()
}

fn pick(value: &Value, patterns: &[&[String]]) -> Option<Value> {
    if patterns.iter().any(|it| it.is_empty()) {
        return Some(value.clone());
    }
    let below = |key: &str, child: &Value| {
        let mut rest: Vec<&[String]> = Vec::new();
        for pattern in patterns {
            let Some((part, after)) = pattern.split_first() else {
                continue;
            };
            if part == "**" {
                rest.push(pattern);
                rest.extend(after.split_first().filter(|it| it.0 == key).map(|it| it.1));
            } else if part == "*" || part == key || is_item(child, part) {
                rest.push(after);
            }
        }
        pick(child, &rest)
    };
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter_map(|(key, it)| Some((key.clone(), below(key, it)?)));
            let kept: serde_json::Map<_, _> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept = items.iter().enumerate();
            let kept = kept.filter_map(|(index, it)| below(&index.to_string(), it));
            let kept: Vec<_> = kept.collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        _ => None,
    }
}

fn children(value: &mut Value) -> Vec<(String, &mut Value)> {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .map(|(key, it)| (key.clone(), it))
            .collect(),
        Value::Array(items) => {
            let items = items.iter_mut().enumerate();
            items.map(|(index, it)| (index.to_string(), it)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an item has the text and the key of `key=text`.
fn is_item(item: &Value, part: &str) -> bool {
    part.split_once('=')
        .is_some_and(|(key, text)| item.get(key).and_then(Value::as_str) == Some(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn stars_match_keys_and_a_pattern_covers_what_is_below_it() {
        let place = words(&["items", "0", "metadata", "name"]);
        for (pattern, expected) in [
            ("/items/*/metadata", true),
            ("/**/name", true),
            ("/**/metadata/uid", false),
            ("/items", true),
            ("/items/0/metadata/name/x", false),
        ] {
            assert_eq!(Pattern::new(pattern).covers(&place), expected, "{pattern}");
        }
    }

    #[test]
    fn items_are_selected_and_removed_by_their_contents() {
        let all =
            json!({"groups": [{"name": "a", "n": 1}, {"name": "b", "n": 2}], "x": 1});
        assert_eq!(
            select(&all, &words(&["/groups/name=b"])),
            json!({"groups": [{"name": "b", "n": 2}]})
        );
        let mut rest = all.clone();
        remove(&mut rest, &words(&["/groups/name=b", "/x", "/**/n"]));
        assert_eq!(rest, json!({"groups": [{"name": "a"}]}));
    }
}
