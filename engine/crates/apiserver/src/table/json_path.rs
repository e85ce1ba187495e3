//! The subset of Kubernetes' JSONPath that printer columns support.

use serde_json::Value;

/// A parsed path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    Filter(JsonPath, Comparison, Value),
    Present(JsonPath),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Longer operators first, so that `<=` is not parsed as `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// Parses a path; `None` if it is malformed or uses a feature that columns do not support,
    /// such as recursive descent.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let (step, tail) = dotted(after)?;
                steps.extend(step);
                rest = tail;
            } else {
                let inner = rest.strip_prefix('[')?;
                let end = closing(inner)?;
                steps.push(bracketed(inner.get(..end)?)?);
                rest = inner.get(end + 1..)?;
            }
        }
        Some(Self(steps))
    }

    /// The first value at the path.
    pub(super) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut found = vec![value];
        for step in &self.0 {
            found = found.into_iter().flat_map(|it| step.values(it)).collect();
        }
        found.first().copied()
    }
}

/// The step after a dot: a name in which a backslash escapes the next character, or `*`.
fn dotted(text: &str) -> Option<(Option<Step>, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(c),
        }
    }
    let rest = text.get(end..)?;
    match name.as_str() {
        // A lone `.`, and the dot of `.['name']`, are not steps.
        "" if rest.is_empty() || rest.starts_with('[') => Some((None, rest)),
        "" => None,
        "*" => Some((Some(Step::Every), rest)),
        _ => Some((Some(Step::Field(name)), rest)),
    }
}

/// The position of the closing bracket, outside quotes and inner brackets.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn bracketed(text: &str) -> Option<Step> {
    let text = text.trim();
    if let Some(name) = quoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if text == "*" {
        return Some(Step::Every);
    }
    if let Some(condition) = text.strip_prefix("?(").and_then(|it| it.strip_suffix(')')) {
        return filter(condition);
    }
    text.parse().ok().map(Step::Index)
}

fn filter(condition: &str) -> Option<Step> {
    let operator = COMPARISONS
        .iter()
        .filter_map(|&(sign, it)| Some((condition.find(sign)?, sign, it)))
        .min_by_key(|&(at, sign, _)| (at, std::cmp::Reverse(sign.len())));
    let path = |text: &str| JsonPath::parse(text.trim().strip_prefix('@')?);
    let Some((at, sign, comparison)) = operator else {
        return path(condition).map(Step::Present);
    };
    let literal = condition.get(at + sign.len()..)?.trim();
    let literal = match quoted(literal) {
        Some(text) => text.into(),
        None => serde_json::from_str(literal).ok()?,
    };
    Some(Step::Filter(
        path(condition.get(..at)?)?,
        comparison,
        literal,
    ))
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|it| text.strip_prefix(it)?.strip_suffix(it))
}

impl Step {
    fn values<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => at(value, *index).into_iter().collect(),
            Self::Every => children(value),
            Self::Present(path) => {
                let mut all = children(value);
                all.retain(|it| path.first(it).is_some());
                all
            }
            Self::Filter(path, comparison, literal) => {
                let mut all = children(value);
                all.retain(|it| {
                    path.first(it)
                        .is_some_and(|it| comparison.holds(it, literal))
                });
                all
            }
        }
    }
}

fn at(value: &Value, index: i64) -> Option<&Value> {
    let all = value.as_array()?;
    let index = match usize::try_from(index) {
        Ok(index) => index,
        Err(_) => all
            .len()
            .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    all.get(index)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => a
                .as_f64()
                .zip(b.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b)),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            _ => (left == right).then_some(std::cmp::Ordering::Equal),
        };
        match self {
            Self::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Self::NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
            Self::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Self::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn printer_column_paths_return_their_value() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "status": {"conditions": [
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": "True", "n": 3},
            ]},
        });
        let rows = [
            (".status.conditions[0].type", json!("Synced")),
            (".status.conditions[-1].type", json!("Ready")),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                json!("True"),
            ),
            (
                ".status.conditions[?(@.type=='Ready')].status",
                json!("True"),
            ),
            (".status.conditions[?(@.n>2)].type", json!("Ready")),
            (".status.conditions[?(@.n)].type", json!("Ready")),
            (".status.conditions[*].status", json!("False")),
            (".metadata.labels['a.b/c']", json!("x")),
            (r".metadata.labels.a\.b/c", json!("x")),
        ];
        for (path, expected) in rows {
            let parsed = JsonPath::parse(path).unwrap();
            assert_eq!(parsed.first(&object), Some(&expected), "{path}");
        }
    }

    #[test]
    fn a_malformed_or_recursive_path_is_rejected() {
        for path in ["status", ".a[", "..name", ".a[b]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
