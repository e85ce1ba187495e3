//! Replaces values that differ between runs.

use jiff::Timestamp;
use serde_json::Value;

/// The counts of `status.usage`, and their month.
const USAGE: [&str; 5] = [
    "month",
    "activeSeconds",
    "wantedSeconds",
    "provisioningSeconds",
    "lateSeconds",
];

/// Replaces every time in `value` by `<time>`, also within sentences; the months and counts of
/// `status.usage` by `<usage>`; and every text in `names` by its replacement.
pub fn mask(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (meant, name) in names {
                *text = text.replace(meant, name);
            }
            let words = text.split(' ').map(|word| {
                let bare = word.trim_matches(['(', ')', ';', ',']);
                if bare.parse::<Timestamp>().is_ok() {
                    word.replace(bare, "<time>")
                } else {
                    word.to_owned()
                }
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, names)),
        Value::Object(members) => {
            for (name, member) in members {
                if USAGE.contains(&name.as_str()) {
                    *member = "<usage>".into();
                }
                mask(member, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_names_are_masked_in_any_place() {
        let mut value = json!({
            "at": "2026-03-06T22:50:04Z",
            "seen": ["reclaimed (2026-03-06T22:50:04Z steam); on node-7"],
            "months": [{"month": "2026-03", "activeSeconds": 589, "reclaims": 1}],
        });
        mask(&mut value, &[("node-7".to_owned(), "worker".to_owned())]);
        let alike = json!({
            "at": "<time>", "seen": ["reclaimed (<time> steam); on worker"],
            "months": [{"month": "<usage>", "activeSeconds": "<usage>", "reclaims": 1}],
        });
        assert_eq!(value, alike);
    }
}
