//! Which of the names that a definition asks for it gets: those that no other definition of
//! its group has.

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

/// What became of the names that a definition asks for.
#[derive(Debug)]
pub(super) struct Names {
    /// Those that it got, now or before.
    pub(super) accepted: Value,
    /// Reason and message of the last conflict, if there is one.
    pub(super) conflict: Option<(&'static str, String)>,
}

impl Taken {
    /// Adds the names that another definition has got.
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

/// Gives a definition the names that are free; of a name that is not, it keeps what it had.
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
        let lost: Vec<String> = said(wanted)
            .filter(|it| taken.contains(*it) && !said(had).any(|own| own == *it))
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

/// A name, or each of several.
fn said(names: &Value) -> impl Iterator<Item = &str> {
    let several = names.as_array().into_iter().flatten();
    let texts = several.chain(std::iter::once(names));
    texts.filter_map(Value::as_str)
}

/// The status of a definition that nobody has looked at yet.
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
    fn a_definition_gets_the_names_that_are_free_and_reports_the_last_that_is_not() {
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
