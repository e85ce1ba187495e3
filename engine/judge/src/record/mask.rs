//! Masks values in responses that differ each time: uids, versions, times, generated names, tokens.
//!
//! Equal values get equal names (`uid-1`, `rv-2`), so that a response still shows whether two
//! objects are the same and whether a write changed the object.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The largest distance from now of a time that is taken to be from the server's clock.
const NEAR: SignedDuration = SignedDuration::from_hours(1);

/// The names given so far to the values in the responses of one case.
#[derive(Debug)]
pub struct Mask {
    now: Timestamp,
    uids: HashMap<String, String>,
    versions: HashMap<String, String>,
}

impl Mask {
    /// An empty mask. Times near `now` are the server's.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            uids: HashMap::new(),
            versions: HashMap::new(),
        }
    }

    /// Masks a response, and sorts its keys.
    pub fn apply(&mut self, value: &mut Value) {
        if value["kind"] == "Table" {
            mask_ages(value);
        }
        self.walk(value, false);
    }

    fn walk(&mut self, value: &mut Value, in_list: bool) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.walk(it, false)),
            Value::Object(_) => self.object(value, in_list),
            _ => {}
        }
    }

    fn object(&mut self, value: &mut Value, is_list_metadata: bool) {
        let is_bookmark = value["type"] == "BOOKMARK";
        let is_list = value.get("items").is_some() || value.get("rows").is_some();
        let Value::Object(fields) = value else {
            return;
        };
        mask_generated_name(fields);
        let named = std::mem::take(fields).into_iter();
        *fields = named.map(|(key, it)| (self.uids_in(&key), it)).collect();
        fields.sort_keys();
        for (key, below) in fields.iter_mut() {
            match (key.as_str(), &*below) {
                ("resourceVersion", Value::String(text)) if !text.is_empty() => {
                    *below = if is_list_metadata {
                        "rv".into()
                    } else {
                        self.version(text).into()
                    };
                }
                ("continue", Value::String(text)) if !text.is_empty() => {
                    *below = "token".into();
                }
                ("metadata", _) => self.walk(below, is_list),
                ("object", _) if is_bookmark => {
                    below["metadata"]["resourceVersion"] = "".into();
                    self.walk(below, false);
                }
                _ => self.walk(below, false),
            }
        }
    }

    fn version(&mut self, text: &str) -> String {
        let next = format!("rv-{}", self.versions.len() + 1);
        self.versions.entry(text.to_owned()).or_insert(next).clone()
    }

    fn text(&mut self, text: &str) -> String {
        if let Ok(at) = text.parse::<Timestamp>()
            && at.duration_since(self.now).abs() < NEAR
        {
            // The precision of a time is part of the response.
            let digits = text.chars().filter(char::is_ascii_digit).count();
            return if digits > 14 { "micro-time" } else { "time" }.to_owned();
        }
        let text = self.uids_in(text);
        let text = self.times_in(&text);
        let speaks_of_versions = ["resource version", "esourceVersion"];
        if speaks_of_versions.iter().any(|it| text.contains(it)) {
            return without_numbers(&text);
        }
        text
    }

    /// Masks every time of the server's clock in a text, for example in a quoted object.
    fn times_in(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first.is_ascii_digit()
                && let Some(Ok(at)) = rest.get(..20).map(str::parse::<Timestamp>)
                && at.duration_since(self.now).abs() < NEAR
            {
                masked.push_str("time");
                rest = &rest[20..];
            } else {
                masked.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        masked
    }

    /// Masks every uid in a text.
    fn uids_in(&mut self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(uid) = rest.get(..36).filter(|it| is_uid(it)) {
                let next = format!("uid-{}", self.uids.len() + 1);
                masked.push_str(self.uids.entry(uid.to_owned()).or_insert(next));
                rest = &rest[36..];
            } else {
                masked.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        masked
    }
}

fn is_uid(text: &str) -> bool {
    text.char_indices().all(|(index, it)| match index {
        8 | 13 | 18 | 23 => it == '-',
        _ => it.is_ascii_hexdigit() && !it.is_ascii_uppercase(),
    })
}

/// Replaces each number that is a word of its own by `N`.
fn without_numbers(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut before = ' ';
    for it in text.chars() {
        let goes_on = before.is_ascii_alphanumeric() || before == '-';
        if it.is_ascii_digit() && !goes_on {
            masked.push('N');
        } else if !(it.is_ascii_digit() && masked.ends_with('N')) {
            masked.push(it);
        }
        before = it;
    }
    masked
}

/// Masks the random suffix of a generated name.
fn mask_generated_name(metadata: &mut serde_json::Map<String, Value>) {
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    let Some(prefix) = prefix.map(str::to_owned) else {
        return;
    };
    if let Some(Value::String(name)) = metadata.get_mut("name")
        && let Some(end) = name.strip_prefix(&prefix)
    {
        *name = format!("{prefix}{}", "?".repeat(end.len()));
    }
}

/// Masks the cells of a table that contain an age: in seconds, for new objects, or in days, for
/// fixed times.
fn mask_ages(table: &mut Value) {
    let columns: Vec<usize> = table["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, column)| {
            matches!(
                column["name"].as_str(),
                Some("Age" | "Last Seen" | "First Seen" | "Last Schedule")
            )
        })
        .map(|(index, _)| index)
        .collect();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for column in &columns {
            if let Some(Value::String(cell)) = row["cells"].get_mut(column)
                && cell.ends_with(['s', 'd'])
            {
                "age".clone_into(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_differ_each_time_are_masked_and_the_rest_is_kept() {
        let mut mask = Mask::new("2026-01-01T00:00:00Z".parse().unwrap());
        let mut answer = json!({
            "metadata": {
                "uid": "0f3c1f9e-6f5a-4a6e-9f7e-1d2c3b4a5968",
                "resourceVersion": "17",
                "generateName": "x-",
                "name": "x-abcde",
                "creationTimestamp": "2026-01-01T00:00:01Z",
            },
            "spec": {"at": "2020-01-01T00:00:00Z", "renewTime": "2026-01-01T00:00:01.000001Z"},
            "message": "uid 0f3c1f9e-6f5a-4a6e-9f7e-1d2c3b4a5968, resource version: 17 of v1",
            "quote": "{\"time\":\"2026-01-01T00:00:09Z\",\"since\":\"2020-01-01T00:00:00Z\"}",
        });
        mask.apply(&mut answer);
        assert_eq!(
            answer,
            json!({
                "metadata": {
                    "uid": "uid-1",
                    "resourceVersion": "rv-1",
                    "generateName": "x-",
                    "name": "x-?????",
                    "creationTimestamp": "time",
                },
                "spec": {"at": "2020-01-01T00:00:00Z", "renewTime": "micro-time"},
                "message": "uid uid-1, resource version: N of v1",
                "quote": "{\"time\":\"time\",\"since\":\"2020-01-01T00:00:00Z\"}",
            })
        );
        let mut next = json!({"metadata": {"resourceVersion": "17"}, "kind": "Thing"});
        mask.apply(&mut next);
        assert_eq!(next["metadata"]["resourceVersion"], "rv-1");
        let mut list = json!({"items": [], "metadata": {"resourceVersion": "30"}});
        mask.apply(&mut list);
        assert_eq!(list["metadata"]["resourceVersion"], "rv");
    }
}
