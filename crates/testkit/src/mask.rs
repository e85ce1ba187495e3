//! What differs from play to play, made alike.

use jiff::Timestamp;
use serde_json::Value;

/// Puts `<time>` in the place of every instant in `value`, also of those within sentences, and in
/// the place of every text of `names` what it is to be called.
pub fn mask(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (meant, name) in names {
                *text = text.replace(meant, name);
            }
            let words = text.split(' ').map(|word| {
                let is_time = word.parse::<Timestamp>().is_ok();
                if is_time { "<time>" } else { word }
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, names)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| mask(member, names));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
