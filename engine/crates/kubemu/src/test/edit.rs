//! Small changes of the objects of a case.

use serde_json::{Map, Value, json};

use super::rule::Rule;
use super::sheet::Case;
use crate::diff::Mentions;

/// How many places of an object are changed, and how many values are tried at each.
const MAX_PLACES: usize = 120;
const MAX_VALUES: usize = 24;
/// The deepest place.
const MAX_DEPTH: usize = 16;

/// A place in an object: the names of fields, and the indexes of items.
pub(super) type Path = Vec<String>;

/// A change of one place.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    target: Target,
    path: Path,
    /// The value to set. Without one, it is removed.
    value: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Object,
    Old,
    /// The parameter of that index.
    Parameter(usize),
}

impl Edit {
    /// The case with the change.
    pub(super) fn of(&self, case: &Case) -> Case {
        let mut case = case.clone();
        let object = match self.target {
            Target::Object => Some(&mut case.question.object),
            Target::Old => case.question.old.as_mut(),
            Target::Parameter(index) => case.around.parameters.get_mut(index),
        };
        match (object, &self.value) {
            (Some(object), Some(value)) => set(object, &self.path, value.clone()),
            (Some(object), None) => remove(object, &self.path),
            (None, _) => {}
        }
        case
    }

    pub(super) fn is_at_the_place_of(&self, other: &Self) -> bool {
        self.target == other.target && self.path == other.path
    }
}

/// The changes to try: of what the rule mentions first.
pub(super) fn edits(
    case: &Case,
    cases: &[Case],
    (rule, mentions): (&Rule, &Mentions),
) -> Vec<Edit> {
    let mut all = Vec::new();
    let object = &case.question.object;
    let others = cases.iter().filter(|it| rule.concerns(it));
    let others = others.map(|it| &it.question.object);
    let others: Vec<&Value> = others.filter(|it| it["kind"] == object["kind"]).collect();
    of_object(
        &mut all,
        (Target::Object, object),
        (&others, rule, mentions),
    );
    if let Some(old) = &case.question.old {
        of_object(&mut all, (Target::Old, old), (&others, rule, mentions));
    }
    if rule.source.contains("params") {
        for (index, parameter) in case.around.parameters.iter().enumerate() {
            let target = (Target::Parameter(index), parameter);
            of_object(&mut all, target, (&[], rule, mentions));
        }
    }
    let is_mentioned = |it: &Edit| {
        let mut names = it.path.iter();
        names.any(|name| mentions.names.contains(name))
    };
    all.sort_by_key(|it| !is_mentioned(it));
    all
}

fn of_object(
    all: &mut Vec<Edit>,
    (target, object): (Target, &Value),
    (others, rule, mentions): (&[&Value], &Rule, &Mentions),
) {
    let mut places = leaves(object);
    for place in others.iter().flat_map(|it| leaves(it)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in mentioned(object, (rule, mentions)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let is_about = |it: &Path| it.iter().any(|name| mentions.names.contains(name));
    places.sort_by_key(|it| !is_about(it));
    places.truncate(MAX_PLACES);
    let compared: Vec<&Value> = places
        .iter()
        .filter(|it| is_about(it))
        .filter_map(|it| value_at(object, it))
        .collect();
    for path in places {
        let now = value_at(object, &path);
        let mut values: Vec<Option<Value>> = vec![None];
        let seen = others.iter().filter_map(|it| value_at(it, &path));
        values.extend(seen.cloned().map(Some));
        values.extend(near(now, mentions).into_iter().map(Some));
        for value in &compared {
            values.push(Some((*value).clone()));
            values.extend(around(value).into_iter().map(Some));
        }
        let mut tried: Vec<Option<Value>> = Vec::new();
        for value in values {
            if tried.len() < MAX_VALUES
                && value.as_ref() != now
                && !tried.contains(&value)
            {
                tried.push(value);
            }
        }
        all.extend(tried.into_iter().map(|value| Edit {
            target,
            path: path.clone(),
            value,
        }));
    }
}

/// The values near that of a place, and those that the rule mentions.
fn near(now: Option<&Value>, mentions: &Mentions) -> Vec<Value> {
    let mut values = now.map(around).unwrap_or_default();
    let numbers = mentions.whole.iter().flat_map(|it| {
        [*it, it.saturating_add(1), it.saturating_sub(1)].map(Value::from)
    });
    let texts = mentions.texts.iter().cloned().map(Value::from);
    match now {
        Some(Value::Number(_)) => values.extend(numbers.take(12)),
        Some(Value::String(_)) => values.extend(texts.take(12)),
        Some(_) => {}
        None => {
            values.extend(texts.take(6));
            values.extend(numbers.take(9));
            let simple = [
                json!(true),
                json!(false),
                json!(1),
                json!("a"),
                json!([]),
                json!({}),
            ];
            values.extend(simple);
        }
    }
    values
}

/// The values next to a value.
fn around(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(is_set) => vec![json!(!is_set)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => [number.checked_add(1), number.checked_sub(1)]
                .into_iter()
                .flatten()
                .map(Value::from)
                .collect(),
            None => Vec::new(),
        },
        Value::String(text) => vec![json!(format!("{text}x")), json!("")],
        Value::Array(items) => {
            let fewer: Vec<Value> = items.iter().skip(1).cloned().collect();
            let more: Vec<Value> = items.iter().chain(items.first()).cloned().collect();
            vec![fewer.into(), more.into()]
        }
        Value::Object(_) => vec![json!({})],
        Value::Null => Vec::new(),
    }
}

/// The fields that the rule mentions, at its place in the object: that of a policy is every object in
/// it that has one of them.
fn mentioned(object: &Value, (rule, mentions): (&Rule, &Mentions)) -> Vec<Path> {
    let places = rule.place().map_or_else(
        || {
            let is_parent = |it: &Path| {
                let fields = value_at(object, it).and_then(Value::as_object);
                let mut names = fields.into_iter().flat_map(Map::keys);
                names.any(|name| mentions.names.contains(name))
            };
            let all = std::iter::once(Path::new()).chain(leaves(object));
            all.filter(is_parent).collect()
        },
        |place| vec![place],
    );
    let mut found = Vec::new();
    for place in places {
        if !place.is_empty() {
            found.push(place.clone());
        }
        for name in mentions.names.iter().take(MAX_VALUES) {
            let mut path = place.clone();
            path.push(name.clone());
            found.push(path);
        }
    }
    found
}

/// Every place in an object, except what identifies it.
pub(super) fn leaves(object: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    walk(object, &mut Vec::new(), &mut found);
    let identity = [
        &["apiVersion"][..],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
    ];
    found.retain(|it| !identity.iter().any(|identity| it == identity));
    found
}

fn walk(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    if path.len() > MAX_DEPTH || found.len() > 4 * MAX_PLACES {
        return;
    }
    if !path.is_empty() {
        found.push(path.clone());
    }
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, it)| (name.clone(), it)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, it)| (index.to_string(), it)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in inner {
        path.push(name);
        walk(value, path, found);
        path.pop();
    }
}

fn value_at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })
}

fn value_at_mut<'v>(object: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(object, |value, name| match value {
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        value => value.get_mut(name),
    })
}

/// Sets a value, with the objects around it.
fn set(object: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    match object {
        Value::Array(items) => {
            let item = first.parse::<usize>().ok();
            if let Some(item) = item.and_then(|it| items.get_mut(it)) {
                set(item, rest, value);
            }
        }
        Value::Object(fields) => {
            let absent = Value::Object(Map::new());
            set(fields.entry(first.clone()).or_insert(absent), rest, value);
        }
        _ => {}
    }
}

/// Removes the value at a place, if there is one.
pub(super) fn remove(object: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    match value_at_mut(object, parents) {
        Some(Value::Object(fields)) => {
            fields.shift_remove(last);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = last.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn what_is_set_and_removed_is_at_its_place() {
        let mut object = json!({"a": [{"b": 1}], "c": 2});
        set(&mut object, &path("a.0.b"), json!(3));
        set(&mut object, &path("d.e"), json!(4));
        set(&mut object, &path("a.7.b"), json!(5));
        set(&mut object, &path("c.x"), json!(6));
        assert_eq!(object, json!({"a": [{"b": 3}], "c": 2, "d": {"e": 4}}));
        remove(&mut object, &path("a.0"));
        remove(&mut object, &path("d"));
        remove(&mut object, &path("x.y"));
        assert_eq!(object, json!({"a": [], "c": 2}));
    }

    #[test]
    fn the_identity_of_an_object_is_not_changed() {
        let object = json!({
            "apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {}}, "b": [1],
        });
        let expected = ["metadata.labels", "b", "b.0"].map(path);
        assert_eq!(leaves(&object), expected);
    }
}
