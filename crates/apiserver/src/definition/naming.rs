//! The accepted names of a definition: the requested names that no other definition of its
//! group has.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The names of a group's other definitions.
#[derive(Debug, Default)]
pub(super) struct Taken {
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

impl Taken {
    /// Adds the accepted names of another definition.
    pub(super) fn add(&mut self, definition: &Value) {
        let names = &definition["status"]["acceptedNames"];
        let text = |key: &str| names[key].as_str().unwrap_or_default().to_owned();
        self.resources.extend([text("plural"), text("singular")]);
        self.resources.extend(super::strings(&names["shortNames"]));
        self.kinds.extend([text("kind"), text("listKind")]);
        self.resources.remove("");
        self.kinds.remove("");
    }
}

/// Accepts the requested names that are free; for a name in conflict the previously accepted
/// name is kept.
pub(super) fn of(definition: &Value, taken: &Taken) -> Names {
    let wanted = &definition["spec"]["names"];
    let had = &definition["status"]["acceptedNames"];
    let mut accepted = Map::new();
    let mut conflict = None;
    let rows = [
        ("plural", &taken.resources, "PluralConflict"),
        ("singular", &taken.resources, "SingularConflict"),
        ("shortNames", &taken.resources, "ShortNamesConflict"),
        ("kind", &taken.kinds, "KindConflict"),
        ("listKind", &taken.kinds, "ListKindConflict"),
    ];
    for (key, taken, reason) in rows {
        let (wanted, had) = (&wanted[key], &had[key]);
        let lost: Vec<String> = each_name(wanted)
            .filter(|it| taken.contains(*it) && !each_name(had).any(|own| own == *it))
            .map(|it| format!("{it:?} is already in use"))
            .collect();
        let got = if lost.is_empty() { wanted } else { had };
        if !got.is_null() {
            accepted.insert(key.to_owned(), got.clone());
        }
        match lost.as_slice() {
            [] => {}
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    if !wanted["categories"].is_null() {
        accepted.insert("categories".to_owned(), wanted["categories"].clone());
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
pub(crate) fn fresh(definition: &Value) -> Value {
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
        let mut taken = Taken::default();
        taken.add(&json!({"status": {"acceptedNames": {
            "plural": "parts", "singular": "part", "shortNames": ["pt"],
            "kind": "Part", "listKind": "PartList",
        }}}));
        let mut second = json!({"spec": {"names": {
            "plural": "pins", "singular": "part", "shortNames": ["pt", "pn"],
            "kind": "Pin", "listKind": "PartList",
        }}});
        let names = of(&second, &taken);
        assert_eq!(names.accepted, json!({"plural": "pins", "kind": "Pin"}));
        let message = "\"PartList\" is already in use".to_owned();
        assert_eq!(names.conflict, Some(("ListKindConflict", message)));
        second["status"]["acceptedNames"] = second["spec"]["names"].clone();
        assert_eq!(of(&second, &taken).conflict, None);
    }
}
