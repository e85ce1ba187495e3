//! Validates values with a schema: types, bounds, patterns, formats and combinations, with the
//! messages and the order of Kubernetes' validator (kube-openapi).

use std::collections::HashSet;

use kubemu_cel::json_field;
use serde_json::Value;

use super::node::{Additional, Checks, Node};
use super::number;
use super::quick;
use super::ratchets;
use super::validation_error::{Location, Outcome, ValidationError};
use crate::correlate::Old;
use crate::field::Path;
use crate::format;
use crate::{FieldError, KubeVersion};

/// Validates the values of one request.
#[derive(Clone, Copy)]
pub(super) struct Checker {
    version: KubeVersion,
    /// Whether the value is a default: the API server then ignores that
    /// `x-kubernetes-int-or-string` allows only integers and text.
    of_default: bool,
}

impl Checker {
    pub(super) const fn new(version: KubeVersion) -> Self {
        Self {
            version,
            of_default: false,
        }
    }

    pub(super) const fn of_default(version: KubeVersion) -> Self {
        Self {
            version,
            of_default: true,
        }
    }

    /// The declared type as the validator prints it.
    fn declared(self, node: &Node) -> &str {
        if node.int_or_string && !self.of_default {
            "integer,string"
        } else {
            &node.kind
        }
    }

    /// All errors of `value`. Paths start with `prefix`, messages do not.
    pub(super) fn errors(
        self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        prefix: &str,
    ) -> Vec<FieldError> {
        if !self.of_default && quick::is_surely_valid(node, value, self.version) {
            return Vec::new();
        }
        self.errors_without_fast_path(node, value, old, prefix)
    }

    /// [`Checker::errors`], without the fast path for valid values.
    pub(super) fn errors_without_fast_path(
        self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        prefix: &str,
    ) -> Vec<FieldError> {
        let location = Location {
            path: &Path::Root,
            prefix,
            dotted: false,
        };
        let old = old
            .filter(|_| ratchets(self.version))
            .map(|value| Old { node, value });
        let outcome = self.check(node, value, location, old);
        outcome
            .errors
            .into_iter()
            .map(|error| error.field_error)
            .collect()
    }

    /// Validates `value`; errors of an unchanged value are ignored.
    fn check(
        self,
        node: &Node,
        value: &Value,
        location: Location<'_>,
        old: Option<Old<'_>>,
    ) -> Outcome {
        let outcome = self.check_strictly(node, value, location, old);
        match old {
            Some(old) if !outcome.is_valid() && old.is_equal(value) => Outcome {
                errors: Vec::new(),
                ..outcome
            },
            _ => outcome,
        }
    }

    fn check_strictly(
        self,
        node: &Node,
        value: &Value,
        location: Location<'_>,
        old: Option<Old<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            check_null(self.declared(node), node, location, &mut outcome);
            check_enum(node, value, location, &mut outcome);
            return outcome;
        }
        let part = ValueCheck {
            checker: self,
            node,
            value,
            location,
            old,
        };
        part.check(&mut outcome);
        outcome
    }
}

fn check_null(types: &str, node: &Node, location: Location<'_>, outcome: &mut Outcome) {
    if !types.is_empty() && !node.nullable {
        outcome.add(location.wrong_type(types, "null"));
    } else {
        outcome.matches += 1;
    }
}

fn check_enum(node: &Node, value: &Value, location: Location<'_>, outcome: &mut Outcome) {
    let allowed = &node.checks.allowed;
    let is_allowed =
        !value.is_null() && allowed.iter().any(|one| number::same(value, one));
    if !allowed.is_empty() && !is_allowed {
        outcome.add(location.not_supported(value, allowed));
    }
}

/// One value at one node.
struct ValueCheck<'a> {
    checker: Checker,
    node: &'a Node,
    value: &'a Value,
    location: Location<'a>,
    old: Option<Old<'a>>,
}

impl ValueCheck<'_> {
    /// Runs every check that applies. Each check that runs counts as a match; the number of
    /// matches selects the best of several failing branches of `anyOf`.
    fn check(&self, outcome: &mut Outcome) {
        let checks = &self.node.checks;
        if !self.checker.declared(self.node).is_empty() || !checks.format.is_empty() {
            self.check_type(outcome);
            outcome.matches += 1;
        }
        self.check_branches(outcome);
        outcome.matches += 2;
        match self.value {
            Value::String(text) => {
                outcome.extend(self.check_string(text));
                outcome.matches += 1;
                if format::is_known(&checks.format) {
                    if !format::matches(&checks.format, text) {
                        outcome.add(self.location.wrong_type(&checks.format, text));
                    }
                    outcome.matches += 1;
                }
            }
            Value::Number(value) => {
                let version = self.checker.version;
                outcome.merge(number::check(self.node, value, self.location, version));
                outcome.matches += 2;
            }
            Value::Array(items) => {
                self.check_items(items, outcome);
                outcome.matches += 2;
            }
            _ => {}
        }
        check_enum(self.node, self.value, self.location, outcome);
        outcome.matches += 1;
        if let Value::Object(fields) = self.value {
            self.check_fields(fields, outcome);
            outcome.matches += 1;
        }
        outcome.matches += 1;
    }

    fn check_type(&self, outcome: &mut Outcome) {
        let types = self.checker.declared(self.node);
        let has = |name: &str| {
            if self.node.int_or_string {
                types.split(',').any(|one| one == name)
            } else {
                types == name
            }
        };
        let (found, native_format) = number::kind(self.value);
        let is_whole = found == "number" && number::is_whole(self.value);
        let fits = has(found)
            || is_whole && has("integer")
            || found == "integer" && has("number");
        let format = self.node.checks.format.as_str();
        let is_text = matches!(self.value, Value::String(_) | Value::Array(_));
        if !format.is_empty() && !is_text && !fits && format != native_format {
            outcome.add(self.location.wrong_type(format, native_format));
            return;
        }
        let numeric = has("number") || has("integer");
        let left_to_format = !numeric && !format.is_empty() && is_text;
        if left_to_format || fits {
            outcome.matches += 1;
        } else {
            outcome.add(self.location.wrong_type(types, found));
        }
    }

    fn check_string(&self, text: &str) -> Option<ValidationError> {
        let Checks {
            max_length,
            min_length,
            pattern,
            ..
        } = &self.node.checks;
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = *max_length
            && length() > most
        {
            return Some(self.location.too_long(most));
        }
        if let Some(least) = *min_length
            && length() < least
        {
            let detail = format!("should be at least {least} chars long");
            return Some(self.location.invalid(self.value, &detail));
        }
        let pattern = pattern.as_ref()?;
        let detail = match &pattern.regex {
            Ok(regex) if regex.is_match(text) => return None,
            Ok(_) => format!("should match '{}'", pattern.source),
            Err(why) => format!(
                "should match '{}, but pattern is invalid: {why}'",
                pattern.source
            ),
        };
        Some(self.location.invalid(self.value, &detail))
    }

    fn check_items(&self, items: &[Value], outcome: &mut Outcome) {
        if let Some(node) = &self.node.items {
            let old_items = self.old.map(|old| old.items());
            for (at, item) in items.iter().enumerate() {
                let path = self.location.path.index(at);
                let old = old_items.as_ref().and_then(|old| old.item(item));
                let location = self.location.at(&path);
                outcome.merge(self.checker.check(node, item, location, old));
            }
        }
        let found = number::length(items.len());
        if let Some(least) = self.node.checks.min_items
            && found < least
        {
            let detail = format!("should have at least {least} items");
            outcome.add(self.location.invalid(&found.into(), &detail));
        }
        if let Some(most) = self.node.checks.max_items
            && found > most
        {
            outcome.add(self.location.too_many(found, most, "items"));
        }
        let mut seen = HashSet::new();
        if self.node.checks.unique_items && items.iter().any(|it| !seen.insert(it)) {
            outcome.add(
                self.location
                    .invalid(&"".into(), "shouldn't contain duplicates"),
            );
        }
        outcome.matches += 1;
    }

    fn check_fields(
        &self,
        fields: &serde_json::Map<String, Value>,
        outcome: &mut Outcome,
    ) {
        let checks = &self.node.checks;
        let found = number::length(fields.len());
        if let Some(least) = checks.min_properties
            && found < least
        {
            let detail = format!("should have at least {least} properties");
            outcome.add(self.location.invalid(&found.into(), &detail));
        }
        if let Some(most) = checks.max_properties
            && found > most
        {
            outcome.add(self.location.too_many(found, most, "properties"));
        }
        for (name, value) in fields {
            self.check_field(name, value, outcome);
        }
        for name in &checks.required {
            if json_field(fields, name).is_none() {
                let path = self.location.path.field(name);
                outcome.add(self.location.at(&path).required());
            }
        }
    }

    fn check_field(&self, name: &str, value: &Value, outcome: &mut Outcome) {
        let (node, declared) = match (self.node.property(name), &self.node.additional) {
            (Some(property), _) => (property, true),
            (None, Additional::Each(each)) => (&**each, false),
            (None, Additional::Allowed(false)) => {
                outcome.add(self.location.forbidden_property(name));
                return;
            }
            (None, Additional::Allowed(true) | Additional::Unset) => return,
        };
        // Both states have been converted to the requested version, so a change of these two
        // fields is not visible.
        let is_type = matches!(name, "apiVersion" | "kind");
        let uncorrelated = matches!(self.location.path, Path::Root) && is_type;
        let old = self
            .old
            .filter(|_| !uncorrelated)
            .and_then(|old| old.key(name));
        let path = self.location.path.field(name);
        let location = if declared {
            self.location.at(&path)
        } else {
            self.location.entry(&path)
        };
        outcome.merge(self.checker.check(node, value, location, old));
    }

    fn check_branches(&self, outcome: &mut Outcome) {
        let checks = &self.node.checks;
        if !checks.any_of.is_empty() {
            self.check_any(&checks.any_of, outcome);
        }
        if !checks.one_of.is_empty() {
            self.check_one(&checks.one_of, outcome);
        }
        if !checks.all_of.is_empty() {
            self.check_all(&checks.all_of, outcome);
        }
        if let Some(not) = &checks.not
            && self.branch(not).is_valid()
        {
            outcome.add(self.location.whole("must not validate the schema (not)"));
        }
    }

    /// Kubernetes validates a branch without the old value: an error in it is ignored only if
    /// the node that has the branches is unchanged as a whole.
    fn branch(&self, node: &Node) -> Outcome {
        self.checker
            .check_strictly(node, self.value, self.location, None)
    }

    fn check_any(&self, branches: &[Node], outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let result = self.branch(branch);
            if result.is_valid() {
                outcome.merge(result);
                return;
            }
            if best
                .as_ref()
                .is_none_or(|best| result.matches > best.matches)
            {
                best = Some(result);
            }
        }
        let detail = "must validate at least one schema (anyOf)";
        outcome.add(self.location.whole(detail));
        outcome.merge(best.unwrap_or_default());
    }

    fn check_one(&self, branches: &[Node], outcome: &mut Outcome) {
        let mut valid: Vec<Outcome> = Vec::new();
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let result = self.branch(branch);
            if result.is_valid() {
                valid.push(result);
                best = None;
            } else if valid.is_empty()
                && best
                    .as_ref()
                    .is_none_or(|best| result.matches > best.matches)
            {
                best = Some(result);
            }
        }
        let count = valid.len();
        if let (1, Some(only)) = (count, valid.pop()) {
            outcome.merge(only);
            return;
        }
        let found = match count {
            0 => "Found none valid".to_owned(),
            count => format!("Found {count} valid alternatives"),
        };
        let detail = format!("must validate one and only one schema (oneOf). {found}");
        outcome.add(self.location.whole(&detail));
        outcome.merge(best.unwrap_or_default());
    }

    fn check_all(&self, branches: &[Node], outcome: &mut Outcome) {
        let mut valid = 0;
        for branch in branches {
            let result = self.branch(branch);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid != branches.len() {
            let more = if valid == 0 { ". None validated" } else { "" };
            let detail = format!("must validate all the schemas (allOf){more}");
            outcome.add(self.location.whole(&detail));
        }
    }
}
