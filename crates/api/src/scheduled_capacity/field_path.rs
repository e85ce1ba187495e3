//! The path of a field below the spec of an object.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use thiserror::Error;

/// The maximum number of steps of a path.
pub const MAX_STEPS: usize = 10;

/// A path: names joined by dots, `["any key"]`, `[name=value]` and `[n]`.
///
/// # Example
/// ```
/// use fivespot_api::scheduled_capacity::FieldPath;
/// use serde_json::json;
///
/// let path: FieldPath = r#"hard["requests.cpu"]"#.parse()?;
/// let spec = json!({"hard": {"requests.cpu": "4"}});
/// assert_eq!(path.get(&spec), Some(&json!("4")));
/// let operation = path.operation(&spec, &json!("0"))?;
/// assert_eq!(
///     operation,
///     json!({"op": "replace", "path": "/spec/hard/requests.cpu", "value": "0"})
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member of an object.
    Member(String),
    /// The item of a list whose member has that value.
    Item { member: String, value: String },
    /// The item of a list at that place.
    Place(usize),
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` is not a path at its step {step}: {why}")]
pub struct InvalidPath {
    path: String,
    step: usize,
    why: &'static str,
}

/// A step of a path does not exist in an object and is not created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the target has no `spec.{found}`, and only the last step of a path is created")]
pub struct MissingField {
    found: String,
}

const A_NAME: &str =
    "a name begins with a letter or '_', and has letters, digits, '_' and '-'";
const A_BRACKET: &str =
    "a bracket must be [\"any key\"], [name=value] or [n] with n up to 9999";
const TOO_MANY: &str = "a path has at most ten steps";
const AN_ITEM: &str = "a path must not end in [name=value], which is a whole item";

impl FromStr for FieldPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let mut steps = Vec::new();
        let invalid = |step: usize, why| InvalidPath {
            path: text.to_owned(),
            step,
            why,
        };
        let (first, mut rest) = name_of(text);
        steps.push(member(first).ok_or_else(|| invalid(1, A_NAME))?);
        while !rest.is_empty() {
            let at = steps.len() + 1;
            if at > MAX_STEPS {
                return Err(invalid(at, TOO_MANY));
            }
            let (step, after) = if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = name_of(after);
                (member(name).ok_or_else(|| invalid(at, A_NAME))?, after)
            } else {
                bracket(rest).ok_or_else(|| invalid(at, A_BRACKET))?
            };
            steps.push(step);
            rest = after;
        }
        if matches!(steps.last(), Some(Step::Item { .. })) {
            return Err(invalid(steps.len(), AN_ITEM));
        }
        let text = text.to_owned();
        Ok(Self { text, steps })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// What comes before the next dot or bracket, and the rest.
fn name_of(text: &str) -> (&str, &str) {
    text.split_at(text.find(['.', '[']).unwrap_or(text.len()))
}

fn member(name: &str) -> Option<Step> {
    let is_first = |it: char| it.is_ascii_alphabetic() || it == '_';
    let is_next = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    (name.starts_with(is_first) && name.chars().all(is_next))
        .then(|| Step::Member(name.to_owned()))
}

fn bracket(text: &str) -> Option<(Step, &str)> {
    let is_key = |it: char| (' '..='~').contains(&it) && it != '"';
    let inner = text.strip_prefix('[')?;
    if let Some(quoted) = inner.strip_prefix('"') {
        let (key, after) = quoted.split_once('"')?;
        let is_plain = !key.is_empty() && key.chars().all(is_key);
        let step = is_plain.then(|| Step::Member(key.to_owned()))?;
        return Some((step, after.strip_prefix(']')?));
    }
    let (inner, after) = inner.split_once(']')?;
    if let Some((member, value)) = inner.split_once('=') {
        let is_member = member.starts_with(|it: char| it.is_ascii_alphabetic())
            && member.chars().all(|it| it.is_ascii_alphanumeric());
        let is_value = |it: char| is_key(it) && !"[\\]".contains(it);
        let is_item = is_member && !value.is_empty() && value.chars().all(is_value);
        let step = is_item.then(|| Step::Item {
            member: member.to_owned(),
            value: value.to_owned(),
        })?;
        return Some((step, after));
    }
    let is_place = (1..=4).contains(&inner.len())
        && inner.chars().all(|it| it.is_ascii_digit())
        && (inner == "0" || !inner.starts_with('0'));
    let place = is_place.then(|| inner.parse().ok()).flatten()?;
    Some((Step::Place(place), after))
}

impl Step {
    /// The key or place in `within`, as in a JSON pointer; `None` if it does not exist.
    fn token(&self, within: &Value) -> Option<String> {
        match self {
            Self::Member(name) => within.get(name).map(|_| name.clone()),
            Self::Place(place) => within.get(*place).map(|_| place.to_string()),
            Self::Item { member, value } => {
                let mut items = within.as_array()?.iter();
                let is_it = |item: &Value| match &item[member] {
                    Value::String(text) => text == value,
                    Value::Null | Value::Array(_) | Value::Object(_) => false,
                    Value::Bool(_) | Value::Number(_) => {
                        let text = item[member].to_string();
                        text == *value
                    }
                };
                items.position(is_it).map(|place| place.to_string())
            }
        }
    }
}

impl FieldPath {
    /// The value at the path. `None` if a step does not exist.
    pub fn get<'s>(&self, spec: &'s Value) -> Option<&'s Value> {
        self.steps.iter().try_fold(spec, |within, step| {
            let token = step.token(within)?;
            within.pointer(&pointer(&token))
        })
    }

    /// The operation of a JSON patch of the whole object that writes `value`: `replace`, or `add`
    /// where the last step names a member that does not exist.
    ///
    /// # Errors
    /// A step before the last one does not exist, or an item of a list.
    pub fn operation(&self, spec: &Value, value: &Value) -> Result<Value, MissingField> {
        let (path, exists) = self.locate(spec)?;
        let operation = if exists { "replace" } else { "add" };
        Ok(json!({"op": operation, "path": format!("/spec{path}"), "value": value}))
    }

    /// Writes `value` into a spec.
    ///
    /// # Errors
    /// As [`operation`](Self::operation).
    pub fn put(&self, spec: &mut Value, value: Value) -> Result<(), MissingField> {
        let (path, exists) = self.locate(spec)?;
        if exists {
            if let Some(found) = spec.pointer_mut(&path) {
                *found = value;
            }
            return Ok(());
        }
        let parent = path.rfind('/').and_then(|end| path.get(..end));
        let within = spec.pointer_mut(parent.unwrap_or_default());
        if let (Some(Value::Object(members)), Some(Step::Member(name))) =
            (within, self.steps.last())
        {
            members.insert(name.clone(), value);
        }
        Ok(())
    }

    /// The JSON pointer, and whether it exists.
    fn locate(&self, spec: &Value) -> Result<(String, bool), MissingField> {
        let mut path = String::new();
        let mut within = spec;
        for (place, step) in self.steps.iter().enumerate() {
            let missing = || MissingField {
                found: self.shown(place),
            };
            if let Some(token) = step.token(within) {
                let next = pointer(&token);
                within = within.pointer(&next).ok_or_else(missing)?;
                path.push_str(&next);
                continue;
            }
            let is_last = place + 1 == self.steps.len();
            return match step {
                Step::Member(name) if is_last && within.is_object() => {
                    path.push_str(&pointer(name));
                    Ok((path, false))
                }
                _ => Err(missing()),
            };
        }
        Ok((path, true))
    }

    /// The steps up to this place, as they are written.
    fn shown(&self, last: usize) -> String {
        let steps = self.steps.iter().take(last + 1).enumerate();
        let steps = steps.map(|(place, step)| match step {
            Step::Member(name) if member(name).is_none() => format!("[\"{name}\"]"),
            Step::Member(name) if place == 0 => name.clone(),
            Step::Member(name) => format!(".{name}"),
            Step::Item { member, value } => format!("[{member}={value}]"),
            Step::Place(place) => format!("[{place}]"),
        });
        steps.collect()
    }

    /// The path as `managedFields` write it: `f:` before members, a key in JSON before items.
    pub fn managed(&self) -> Vec<String> {
        let parts = self.steps.iter().map(|step| match step {
            Step::Member(name) => format!("f:{name}"),
            Step::Item { member, value } => format!("k:{}", json!({member: value})),
            Step::Place(place) => format!("i:{place}"),
        });
        parts.collect()
    }
}

fn pointer(token: &str) -> String {
    format!("/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// The longest text of a value, in characters.
pub const MAX_VALUE: usize = 253;

/// Whether a value may be written: an integer, a boolean or a short string.
pub fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Number(number) => number.is_i64(),
        Value::String(text) => text.chars().count() <= MAX_VALUE,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    fn spec() -> Value {
        json!({
            "replicas": 3,
            "hard": {"requests.cpu": "4", "a/b~c": 1},
            "topology": {"workers": {"machineDeployments": [
                {"name": "other", "replicas": 1},
                {"name": "md-0", "replicas": 2, "priority": 7},
            ]}},
        })
    }

    #[test]
    fn a_path_finds_members_keys_and_items() {
        let spec = spec();
        for (text, found) in [
            ("replicas", json!(3)),
            (r#"hard["requests.cpu"]"#, json!("4")),
            (r#"hard["a/b~c"]"#, json!(1)),
            (
                "topology.workers.machineDeployments[name=md-0].replicas",
                json!(2),
            ),
            (
                "topology.workers.machineDeployments[priority=7].replicas",
                json!(2),
            ),
            ("topology.workers.machineDeployments[0].replicas", json!(1)),
        ] {
            assert_eq!(path(text).get(&spec), Some(&found), "{text}");
            assert_eq!(path(text).to_string(), text);
        }
        for text in [
            "absent",
            "replicas.below",
            "hard[0]",
            "topology.workers[name=x].y",
        ] {
            assert_eq!(path(text).get(&spec), None, "{text}");
        }
    }

    #[test]
    fn an_operation_and_put_change_the_same_field() {
        for (text, pointer) in [
            ("replicas", "/spec/replicas"),
            ("paused", "/spec/paused"),
            (r#"hard["a/b~c"]"#, "/spec/hard/a~1b~0c"),
            (
                "topology.workers.machineDeployments[name=md-0].replicas",
                "/spec/topology/workers/machineDeployments/1/replicas",
            ),
            (
                "topology.workers.machineDeployments[1].new",
                "/spec/topology/workers/machineDeployments/1/new",
            ),
        ] {
            let operation = path(text).operation(&spec(), &json!(9)).unwrap();
            assert_eq!(operation["path"], pointer, "{text}");
            let exists = json!({"spec": spec()}).pointer(pointer).is_some();
            assert_eq!(operation["op"] == "replace", exists, "{text}");
            let mut changed = spec();
            path(text).put(&mut changed, json!(9)).unwrap();
            let object = json!({"spec": changed});
            assert_eq!(object.pointer(pointer), Some(&json!(9)), "{text}");
            assert_eq!(path(text).get(&changed), Some(&json!(9)), "{text}");
        }
    }

    #[test]
    fn only_the_last_step_is_created_and_an_error_names_what_is_missing() {
        for (text, missing) in [
            (r#"limits["cpu"]"#, "spec.limits`"),
            ("replicas.below", "spec.replicas.below`"),
            (
                "topology.workers.machineDeployments[name=md-1].replicas",
                "spec.topology.workers.machineDeployments[name=md-1]`",
            ),
            (
                "topology.workers.machineDeployments[2]",
                "machineDeployments[2]`",
            ),
        ] {
            let error = path(text).operation(&spec(), &json!(1)).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
            assert_eq!(path(text).put(&mut spec(), json!(1)), Err(error));
        }
    }

    #[test]
    fn a_text_that_is_not_a_path_is_refused_at_its_step() {
        let eleven = "a.b.c.d.e.f.g.h.i.j.k";
        for (text, step) in [
            ("", 1),
            ("[0]", 1),
            (".a", 1),
            ("a.", 2),
            ("a..b", 2),
            ("a b", 1),
            ("a[", 2),
            ("a[]", 2),
            ("a[01]", 2),
            ("a[12345]", 2),
            ("a[x]", 2),
            ("a[\"\"].b", 2),
            ("a[\"x\"b]", 2),
            ("a[name=].b", 2),
            ("a[name=md]", 2),
            ("a[\"x\"]b", 3),
            (eleven, 11),
        ] {
            let error = text.parse::<FieldPath>().unwrap_err();
            assert_eq!(error.step, step, "{error}");
        }
        assert!("a.b.c.d.e.f.g.h.i.j".parse::<FieldPath>().is_ok());
    }
}
