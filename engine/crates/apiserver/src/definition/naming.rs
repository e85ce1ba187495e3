//! The accepted names of a definition: the requested names that no other definition of its
//! group has.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The names of a group's other definitions.
#[derive(Debug, Default)]
pub(super) struct UsedNames {
    /// Plural, singular and short names.
    resources: BTreeSet<String>,
    /// Kinds, of single objects and of lists.
    kinds: BTreeSet<String>,
}

/// The result of the name check of a definition.
#[derive(Debug)]
pub(super) struct Names {
    /// The accepted names, including those accepted before.
    pub(super) accepted: Value,
    /// Reason and message of the last conflict, if there is one.
    pub(super) conflict: Option<(&'static str, String)>,
}

impl UsedNames {
    /// Adds the accepted names of another definition.
    pub(super) fn add(&mut self, definition: &Value) {
        let names = &definition["status"]["acceptedNames"];
        let text = |key: &str| names[key].as_str().unwrap_or_default().to_owned();
        self.resources.extend([text("plural"), text("singular")]);
        self.resources.extend(strings(&names["shortNames"]));
        self.kinds.extend([text("kind"), text("listKind")]);
        self.resources.remove("");
        self.kinds.remove("");
    }
}

pub(super) fn strings(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

/// Accepts the requested names that are free; for a name in conflict the previously accepted
/// name is kept.
pub(super) fn of(definition: &Value, used: &UsedNames) -> Names {
    let requested = &definition["spec"]["names"];
    let previous = &definition["status"]["acceptedNames"];
    let mut accepted = Map::new();
    let mut conflict = None;
    let rows = [
        ("plural", &used.resources, "PluralConflict"),
        ("singular", &used.resources, "SingularConflict"),
        ("shortNames", &used.resources, "ShortNamesConflict"),
        ("kind", &used.kinds, "KindConflict"),
        ("listKind", &used.kinds, "ListKindConflict"),
    ];
    for (key, used, reason) in rows {
        let (requested, previous) = (&requested[key], &previous[key]);
        let conflicts: Vec<String> = each_name(requested)
            .filter(|it| used.contains(*it) && !each_name(previous).any(|own| own == *it))
            .map(|it| format!("{it:?} is already in use"))
            .collect();
        let accepted_name = if conflicts.is_empty() {
            requested
        } else {
            previous
        };
        if !accepted_name.is_null() {
            accepted.insert(key.to_owned(), accepted_name.clone());
        }
        match conflicts.as_slice() {
            [] => {}
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    if !requested["categories"].is_null() {
        accepted.insert("categories".to_owned(), requested["categories"].clone());
    }
    for always in ["plural", "kind"] {
        accepted.entry(always).or_insert_with(|| "".into());
    }
    Names {
        accepted: accepted.into(),
        conflict,
    }
}

/// The name, or the names of a list.
fn each_name(names: &Value) -> impl Iterator<Item = &str> {
    let several = names.as_array().into_iter().flatten();
    let texts = several.chain(std::iter::once(names));
    texts.filter_map(Value::as_str)
}

/// The status of a definition that has not been reconciled yet.
pub(crate) fn initial_status(definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions
        .into_iter()
        .flatten()
        .filter(|it| it["storage"] == true);
    let stored: Vec<&Value> = stored.map(|it| &it["name"]).collect();
    json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_names_are_accepted_and_the_last_conflict_is_reported() {
        let mut used = UsedNames::default();
        used.add(&json!({"status": {"acceptedNames": {
            "plural": "parts", "singular": "part", "shortNames": ["pt"],
            "kind": "Part", "listKind": "PartList",
        }}}));
        let mut second = json!({"spec": {"names": {
            "plural": "pins", "singular": "part", "shortNames": ["pt", "pn"],
            "kind": "Pin", "listKind": "PartList",
        }}});
        let names = of(&second, &used);
        assert_eq!(names.accepted, json!({"plural": "pins", "kind": "Pin"}));
        let message = "\"PartList\" is already in use".to_owned();
        assert_eq!(names.conflict, Some(("ListKindConflict", message)));
        second["status"]["acceptedNames"] = second["spec"]["names"].clone();
        assert_eq!(of(&second, &used).conflict, None);
    }
}
