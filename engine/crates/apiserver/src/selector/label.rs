//! Label selectors: the string of a query and the object of a spec.

mod text;

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
    Greater,
    Less,
}

impl Labels {
    /// Parses a `labelSelector` parameter.
    ///
    /// # Errors
    /// `BadRequest` with the parse error.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        text::parse(text).map(Self).map_err(Status::bad_request)
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
    /// Whether both are numbers and `holds` for them.
    fn compares(&self, value: Option<&str>, holds: fn(&i64, &i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let requested = self.values.first().and_then(|it| number(it));
        let found = value.and_then(number);
        found.zip(requested).is_some_and(|(a, b)| holds(&a, &b))
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|it| self.values.iter().any(|own| own == it));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Greater => self.compares(value, i64::gt),
            Operator::Less => self.compares(value, i64::lt),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
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
    let pairs_match = pairs.into_iter().flatten().all(|(key, requested)| {
        requested.as_str().is_some_and(|it| value(key) == Some(it))
    });
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
    fn every_form_of_requirement_is_parsed() {
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
    fn an_invalid_selector_is_a_bad_request() {
        for text in ["a b", "app in web", "in (x)", "=x", "app near (x)"] {
            assert_eq!(Labels::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
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
