//! Label selectors, as text in a query and as an object in a spec.

use serde_json::Value;

use crate::meta;
use crate::status::Status;

/// A selector of the form `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Labels {
    /// Reads the text of a `labelSelector` parameter.
    ///
    /// # Errors
    /// `BadRequest` with what could not be read.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let parts = split(text).into_iter().filter(|part| !part.is_empty());
        parts
            .map(Requirement::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = meta::labels(object);
        self.0.iter().all(|it| {
            let value = labels
                .and_then(|all| all.get(&it.key))
                .and_then(Value::as_str);
            it.matches(value)
        })
    }
}

impl Requirement {
    fn parse(part: &str) -> Result<Self, Status> {
        let refuse = || {
            let message =
                format!("unable to parse requirement: {part:?} is not understood");
            Status::bad_request(message)
        };
        let of = |key: &str, operator, values: Vec<String>| {
            let key = key.trim();
            if is_key(key) {
                Ok(Self {
                    key: key.to_owned(),
                    operator,
                    values,
                })
            } else {
                Err(refuse())
            }
        };
        if let Some((head, values)) =
            part.strip_suffix(')').and_then(|it| it.split_once('('))
        {
            let values = values.split(',').map(|it| it.trim().to_owned()).collect();
            let (key, word) = head
                .trim()
                .rsplit_once(char::is_whitespace)
                .ok_or_else(refuse)?;
            return match word {
                "in" => of(key, Operator::In, values),
                "notin" => of(key, Operator::NotIn, values),
                _ => Err(refuse()),
            };
        }
        if let Some(key) = part.strip_prefix('!') {
            return of(key, Operator::DoesNotExist, Vec::new());
        }
        let one = |value: &str| vec![value.trim().to_owned()];
        if let Some((key, value)) = part.split_once("!=") {
            of(key, Operator::NotIn, one(value))
        } else if let Some((key, value)) = part.split_once("==") {
            of(key, Operator::In, one(value))
        } else if let Some((key, value)) = part.split_once('=') {
            of(key, Operator::In, one(value))
        } else {
            of(part, Operator::Exists, Vec::new())
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|it| self.values.iter().any(|own| own == it));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts
}

fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    !key.is_empty() && key.len() <= 317 && key.chars().all(allowed)
}

/// Whether a `LabelSelector` object (`matchLabels`, `matchExpressions`) selects `object`.
/// An absent selector selects nothing, an empty one everything.
pub(crate) fn matches_label_selector(selector: &Value, object: &Value) -> bool {
    let Some(selector) = selector.as_object() else {
        return false;
    };
    let labels = meta::labels(object);
    let value = |key: &str| labels.and_then(|all| all.get(key)).and_then(Value::as_str);
    let pairs = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let pairs_match = pairs
        .into_iter()
        .flatten()
        .all(|(key, wanted)| wanted.as_str().is_some_and(|it| value(key) == Some(it)));
    pairs_match
        && expressions.into_iter().flatten().all(|expression| {
            requirement_of(expression).is_some_and(|it| it.matches(value(&it.key)))
        })
}

fn requirement_of(expression: &Value) -> Option<Requirement> {
    let operator = match expression["operator"].as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let values = expression["values"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    Some(Requirement {
        key: expression["key"].as_str()?.to_owned(),
        operator,
        values: values
            .iter()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_requirement_is_understood() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let rows = [
            ("", true),
            ("app", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, db),tier notin (back)", true),
            ("!gone", true),
            ("gone", false),
            ("gone!=x", true),
            ("gone notin (x)", true),
            ("app=db", false),
            ("app in (db)", false),
            ("app=web,!tier", false),
        ];
        for (text, expected) in rows {
            let selector = Labels::parse(text).unwrap();
            assert_eq!(selector.matches(&object), expected, "{text}");
        }
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_a_bad_request() {
        for text in ["a b", "app in web", "in (x)", "=x", "app near (x)"] {
            assert_eq!(Labels::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn a_selector_object_selects_nothing_when_absent_and_all_when_empty() {
        let object = json!({"metadata": {"labels": {"app": "web"}}});
        assert!(!matches_label_selector(&Value::Null, &object));
        assert!(matches_label_selector(&json!({}), &object));
        let both = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}],
        });
        assert!(matches_label_selector(&both, &object));
        assert!(!matches_label_selector(
            &json!({"matchLabels": {"app": "db"}}),
            &object
        ));
    }
}
