//! One version of a kind, as both sides have it, and where to look for a difference.

use serde_json::{Value, json};

use super::change::{self, Change};
use super::expression::Mentions;
use super::minimal::minimal;
use super::place::{Place, Step, places};
use super::value::values;

/// How many places are looked at, and how many of them because an expression mentions them.
const MAX_FOCUS: usize = 400;
const MAX_MENTIONED: usize = 200;
/// How many values are tried at one place.
const MAX_VALUES: usize = 240;

/// One version of a kind.
pub(super) struct Compared {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The schemas of the old and of the new side. `None` where the version is not served.
    pub(super) schemas: [Option<Value>; 2],
    /// In what the sides differ, in words.
    pub(super) changed: Vec<String>,
    /// The places that matter for the difference.
    pub(super) focus: Vec<Place>,
    /// The rules of both sides, and what they mention.
    rules: Vec<(Place, Mentions)>,
    /// What the changed rules mention.
    changed_rules: Vec<(Place, Mentions)>,
    /// What the policies mention: those that differ, and all.
    policies: [Mentions; 2],
    /// Whether the result of the admission is compared, too.
    pub(super) compares_stored: bool,
    /// Whether updates are tried.
    pub(super) has_transitions: bool,
    pub(super) not_covered: Vec<String>,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) place: Place,
    /// The value to set. Without one, the value is removed.
    pub(super) value: Option<Value>,
}

impl Compared {
    pub(super) fn new(
        (api_version, kind): (&str, &str),
        schemas: [Option<Value>; 2],
        policies: [Mentions; 2],
    ) -> Self {
        let changes = match &schemas {
            [Some(old), Some(new)] => change::compare(old, new),
            _ => Vec::new(),
        };
        let schemas = schemas.map(|it| it.map(|it| declare_embedded(it, 0)));
        let mut compared = Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            schemas,
            changed: Vec::new(),
            focus: Vec::new(),
            rules: Vec::new(),
            changed_rules: Vec::new(),
            policies,
            compares_stored: false,
            has_transitions: false,
            not_covered: Vec::new(),
        };
        compared.read_rules();
        compared.read_changes(&changes);
        compared.read_policies();
        compared
    }

    /// Adds a difference that is not in the schema.
    pub(super) fn differs_in(&mut self, words: String) {
        self.changed.push(words);
        self.compares_stored = true;
    }

    /// Leaves out the status, which a create does not have.
    pub(super) fn leave_out_status(&mut self) {
        let status = Place::default().field("status");
        let places = self.focus.len();
        self.focus.retain(|it| !status.contains(it));
        if self.focus.len() < places {
            let words = "status, which is only written through its subresource";
            self.not_covered.push(words.to_owned());
        }
    }

    fn read_rules(&mut self) {
        let [old, new] = &self.schemas;
        let mut changed_rules = Vec::new();
        for (schema, other) in [(old, new), (new, old)] {
            let Some(schema) = schema else { continue };
            for (place, node) in places(schema) {
                if node["x-kubernetes-validations"].is_null() {
                    continue;
                }
                let all = change::mentions(node, None);
                let other = other.as_ref().and_then(|it| place.schema_in(it));
                let changed = change::mentions(node, Some(other.unwrap_or(&Value::Null)));
                self.has_transitions |= changed.old;
                changed_rules.push((place.clone(), changed));
                self.rules.push((place, all));
            }
        }
        self.changed_rules = changed_rules;
    }

    fn read_changes(&mut self, changes: &[Change]) {
        let [Some(_), Some(_)] = &self.schemas else {
            let which = match self.schemas {
                [Some(_), _] => "only OLD serves this version",
                _ => "only NEW serves this version",
            };
            self.changed.push(which.to_owned());
            return;
        };
        let mut focus = Vec::new();
        for change in changes {
            self.changed.push(words(change));
            let has = |name: &str| change.keywords.iter().any(|it| it == name);
            self.compares_stored |= has("default") || has("nullable");
            if has("default") || has("added") || has("removed") {
                focus.extend(change.place.parent());
            }
            focus.push(change.place.clone());
            if has("x-kubernetes-validations") {
                focus.extend(self.mentioned_below(&change.place));
            }
            if has("x-kubernetes-map-type") {
                self.not_covered.push(format!(
                    "{}: x-kubernetes-map-type, which only decides how applied configurations \
                     are merged",
                    change.place
                ));
            }
        }
        for place in focus {
            self.focus_on(place);
        }
    }

    fn focus_on(&mut self, place: Place) {
        if self.focus.len() < MAX_FOCUS && !self.focus.contains(&place) {
            self.focus.push(place);
        }
    }

    /// The places below `place` that its changed rules mention.
    fn mentioned_below(&self, place: &Place) -> Vec<Place> {
        let mut mentions = Mentions::default();
        for (_, found) in self.changed_rules.iter().filter(|it| it.0 == *place) {
            mentions.extend(found);
        }
        self.mentioned(place, &mentions)
    }

    /// The places in `around` whose names are mentioned, and the items and entries of these.
    fn mentioned(&self, around: &Place, mentions: &Mentions) -> Vec<Place> {
        let mut found: Vec<Place> = Vec::new();
        for schema in self.schemas.iter().flatten() {
            for (place, _) in places(schema) {
                let is_named = place.name().is_some_and(|it| mentions.names.contains(it));
                let is_below = around.contains(&place) && place != *around;
                let is_each = place.0.len() == around.0.len() + 1
                    && !matches!(place.0.last(), Some(Step::Field(_)));
                if is_below && (is_named || is_each) && !found.contains(&place) {
                    found.push(place);
                }
            }
        }
        found.sort_by_key(|it| it.0.len());
        found.truncate(MAX_MENTIONED);
        found
    }

    fn read_policies(&mut self) {
        let [changed, _] = &self.policies;
        self.has_transitions |= changed.old;
        let found = self.mentioned(&Place::default(), changed);
        for place in found {
            self.focus_on(place);
        }
    }

    /// The object from which the search starts on one side.
    pub(super) fn start(&self, schema: &Value) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": "a"},
        });
        if let (Value::Object(fields), Value::Object(minimal)) =
            (&mut object, minimal(schema, 0))
        {
            for (name, value) in minimal {
                fields.entry(name).or_insert(value);
            }
        }
        object
    }

    /// The schema that has this place: that of the preferred side if it has it.
    pub(super) fn schema_with(&self, place: &Place, preferred: usize) -> Option<&Value> {
        let sides = [self.schemas.get(preferred), self.schemas.get(1 - preferred)];
        let mut sides = sides.into_iter().flatten().flatten();
        sides.find(|it| place.schema_in(it).is_some())
    }

    /// The edits to try at a place: of what has changed first.
    pub(super) fn edits(&self, place: &Place) -> Vec<Edit> {
        let schemas = self.schemas.iter().flatten();
        let nodes: Vec<&Value> = schemas.filter_map(|it| place.schema_in(it)).collect();
        if nodes.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<Value> = self.lists_of(place, &nodes);
        let mut mentions = Mentions::default();
        for (rules, of_policies, is_first) in [
            (&self.changed_rules, &self.policies[0], true),
            (&self.rules, &self.policies[1], false),
        ] {
            for (at, found) in rules {
                if at.contains(place) && is_about(found, at, place) {
                    mentions.extend(found);
                }
            }
            if is_about(of_policies, &Place::default(), place) {
                mentions.extend(of_policies);
            }
            // Where no rule has changed, what the others mention comes first.
            if mentions.is_empty() && is_first {
                continue;
            }
            for value in values(&nodes, &mentions) {
                if all.len() < MAX_VALUES && !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        let set = all.into_iter().map(Some);
        // The root and the fields that every object has are not removed.
        let can_be_absent =
            !place.0.is_empty() && *place != Place::default().field("metadata");
        let removed = can_be_absent.then_some(None);
        let edit = |value| Edit {
            place: place.clone(),
            value,
        };
        set.chain(removed).map(edit).collect()
    }

    /// Lists of one text, if there are rules about the items.
    fn lists_of(&self, place: &Place, nodes: &[&Value]) -> Vec<Value> {
        let item = place.then(Step::Item);
        let has_texts = nodes.iter().any(|it| it["items"]["type"] == "string");
        let has_rules = self.rules.iter().any(|it| it.0 == item);
        if !(has_texts && has_rules) {
            return Vec::new();
        }
        let items = self.edits(&item).into_iter().filter_map(|it| it.value);
        items.skip(1).take(12).map(|it| json!([it])).collect()
    }

    /// The places whose values may resolve an error.
    pub(super) fn places_of_error(&self, field: &str, side: usize) -> Vec<Place> {
        let Some(Some(schema)) = self.schemas.get(side) else {
            return Vec::new();
        };
        if field.is_empty() {
            return self.mentioned(&Place::default(), &self.policies[1]);
        }
        let place = Place::of_error(field, schema);
        let mut mentions = Mentions::default();
        for (_, found) in self.rules.iter().filter(|it| it.0 == place) {
            mentions.extend(found);
        }
        let mentioned = self.mentioned(&place, &mentions);
        std::iter::once(place).chain(mentioned).collect()
    }
}

/// The schema with the fields that embedded resources have without a declaration.
fn declare_embedded(mut schema: Value, depth: usize) -> Value {
    // The depth of a definition's schema is bounded.
    if depth > 64 {
        return schema;
    }
    let Value::Object(node) = &mut schema else {
        return schema;
    };
    if node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let fields = node.entry("properties").or_insert_with(|| json!({}));
        for name in ["apiVersion", "kind"] {
            if fields[name].is_null() {
                fields[name] = json!({"type": "string"});
            }
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(each) = node.get_mut(name) {
            *each = declare_embedded(each.take(), depth + 1);
        }
    }
    if let Some(Value::Object(fields)) = node.get_mut("properties") {
        for field in fields.values_mut() {
            *field = declare_embedded(field.take(), depth + 1);
        }
    }
    schema
}

/// Whether expressions at a place are about a place in it.
fn is_about(mentions: &Mentions, at: &Place, place: &Place) -> bool {
    at == place
        || place.parent().as_ref() == Some(at)
            && !matches!(place.0.last(), Some(Step::Field(_)))
        || place.name().is_some_and(|it| mentions.names.contains(it))
}

fn words(change: &Change) -> String {
    let keywords = change.keywords.iter().map(|it| match it.as_str() {
        "x-kubernetes-validations" => "rules",
        other => other,
    });
    let keywords: Vec<&str> = keywords.collect();
    format!("{} ({})", change.place, keywords.join(", "))
}
