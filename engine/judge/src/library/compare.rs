//! How far two answers agree.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::oracle::is_unanswered;
use super::ours::list;

/// What is compared of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Aspect {
    /// Whether something is accepted.
    Verdict,
    /// The text of an error, a warning or an audit annotation.
    Text,
    /// The object after pruning and defaulting.
    Object,
    /// The cost of an evaluation.
    Cost,
    /// The estimate of the highest cost.
    Estimate,
}

impl Aspect {
    pub(super) const ALL: [Self; 5] = [
        Self::Verdict,
        Self::Text,
        Self::Object,
        Self::Cost,
        Self::Estimate,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Text => "text",
            Self::Object => "object",
            Self::Cost => "run-time cost",
            Self::Estimate => "estimated cost",
        }
    }
}

/// One difference between two answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) aspect: Aspect,
    /// The part of the answer: `definition`, `writes[2]`.
    pub(super) place: String,
    pub(super) theirs: Value,
    pub(super) ours: Value,
}

impl Difference {
    /// The key by which differences are grouped: the aspect, and the first text that only one side
    /// has, without names and numbers.
    pub(super) fn matter(&self) -> (Aspect, String) {
        if self.aspect == Aspect::Cost {
            return (self.aspect, self.cost_difference());
        }
        let texts = |value: &Value| -> Vec<String> {
            let errors = if value["errors"].is_array() {
                &value["errors"]
            } else {
                value
            };
            match errors {
                Value::Array(items) => items.iter().map(Value::to_string).collect(),
                other => vec![other.to_string()],
            }
        };
        let (theirs, ours) = (texts(&self.theirs), texts(&self.ours));
        let only = |some: &[String], others: &[String]| {
            some.iter().find(|it| !others.contains(it)).cloned()
        };
        let first = only(&theirs, &ours)
            .or_else(|| only(&ours, &theirs))
            .unwrap_or_default();
        let detail = first.rsplit(": ").next().unwrap_or_default();
        let plain = detail.chars().filter(|c| c.is_alphabetic() || *c == ' ');
        (self.aspect, plain.take(40).collect())
    }
}

impl Difference {
    /// How two costs differ: which one is greater, or that the evaluations differ.
    fn cost_difference(&self) -> String {
        let costs = |value: &Value| -> Vec<u64> {
            let one = |value: &Value| value["cost"].as_u64().or(value.as_u64());
            let all = match value {
                Value::Array(all) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            all.iter().filter_map(one).collect()
        };
        let (theirs, ours) = (costs(&self.theirs), costs(&self.ours));
        match theirs.len().cmp(&ours.len()) {
            Ordering::Equal if theirs > ours => "Kubernetes charges more",
            Ordering::Equal => "Kubernetes charges less",
            _ => "other evaluations",
        }
        .to_owned()
    }
}

/// What was compared, and the differences.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    pub(super) compared: BTreeMap<Aspect, usize>,
    pub(super) differences: Vec<Difference>,
    /// Whether Kubernetes' libraries took too long or panicked, so that nothing was compared.
    pub(super) unanswered: bool,
}

/// Compares the oracle's answer with ours.
pub(super) fn compare(theirs: &Value, ours: &Value) -> Comparison {
    let mut comparison = Comparison {
        unanswered: is_unanswered(theirs),
        ..Comparison::default()
    };
    if comparison.unanswered {
        return comparison;
    }
    let mut check = Check {
        comparison: &mut comparison,
    };
    let accepted =
        check.registration("definition", &theirs["definition"], &ours["definition"]);
    if accepted {
        check.estimates(&theirs["costs"], &ours["costs"]);
        for (at, one) in list(&theirs["writes"]).iter().enumerate() {
            check.write(&format!("writes[{at}]"), one, &ours["writes"][at]);
        }
    }
    let mut all_agree = true;
    for part in ["policies", "bindings"] {
        for (at, one) in list(&theirs[part]).iter().enumerate() {
            let other = &ours[part][at];
            check.registration(&format!("{part}[{at}]"), one, other);
            all_agree &= is_accepted(one) == is_accepted(other);
        }
    }
    // The policies are not checked against a definition that is rejected.
    let checked = if accepted {
        list(&theirs["typeChecks"])
    } else {
        &[]
    };
    for (at, one) in checked.iter().enumerate() {
        check.texts(&format!("typeChecks[{at}]"), one, &ours["typeChecks"][at]);
    }
    // With different policies in force, the decisions differ rightly.
    if all_agree && ours["refusesToStart"].is_null() {
        for (at, one) in list(&theirs["decisions"]).iter().enumerate() {
            check.decision(&format!("decisions[{at}]"), one, &ours["decisions"][at]);
        }
    }
    for (at, one) in list(&theirs["mutated"]).iter().enumerate() {
        check.mutation(&format!("mutated[{at}]"), one, &ours["mutated"][at]);
    }
    comparison
}

struct Check<'a> {
    comparison: &'a mut Comparison,
}

fn is_accepted(registration: &Value) -> bool {
    registration["undecodable"].is_null() && list(&registration["errors"]).is_empty()
}

impl Check<'_> {
    fn equal(
        &mut self,
        aspect: Aspect,
        place: &str,
        theirs: &Value,
        ours: &Value,
    ) -> bool {
        *self.comparison.compared.entry(aspect).or_default() += 1;
        let is_equal = theirs == ours;
        if !is_equal {
            self.comparison.differences.push(Difference {
                aspect,
                place: place.to_owned(),
                theirs: theirs.clone(),
                ours: ours.clone(),
            });
        }
        is_equal
    }

    /// Compares whether both accept, and the errors. Returns whether both accept.
    fn registration(&mut self, place: &str, theirs: &Value, ours: &Value) -> bool {
        if theirs.is_null() {
            return false;
        }
        let (one, other) = (is_accepted(theirs), is_accepted(ours));
        if one != other {
            *self.comparison.compared.entry(Aspect::Verdict).or_default() += 1;
            self.comparison.differences.push(Difference {
                aspect: Aspect::Verdict,
                place: place.to_owned(),
                theirs: theirs.clone(),
                ours: ours.clone(),
            });
            return false;
        }
        self.equal(Aspect::Verdict, place, &json!(one), &json!(other));
        // The errors of a failed decoding are not those of the engine.
        if !one && theirs["undecodable"].is_null() {
            self.texts(place, &theirs["errors"], &ours["errors"]);
        }
        one
    }

    /// Compares sorted lists, because the server iterates over maps in random order.
    fn texts(&mut self, place: &str, theirs: &Value, ours: &Value) {
        let sorted = |value: &Value| {
            let mut texts: Vec<_> = list(value).iter().map(unnamed).collect();
            texts.sort_by_cached_key(Value::to_string);
            Value::Array(texts)
        };
        self.equal(Aspect::Text, place, &sorted(theirs), &sorted(ours));
    }

    fn estimates(&mut self, theirs: &Value, ours: &Value) {
        let mut by_path: HashMap<&Value, &Value> = HashMap::new();
        for cost in list(ours) {
            by_path.insert(&cost["path"], cost);
        }
        for cost in list(theirs) {
            let other = by_path.get(&cost["path"]).copied().unwrap_or(&Value::Null);
            self.equal(Aspect::Estimate, "costs", cost, other);
        }
    }

    fn write(&mut self, place: &str, theirs: &Value, ours: &Value) {
        if !theirs["undecodable"].is_null() {
            return;
        }
        let objects = (plain(&theirs["object"]), plain(&ours["object"]));
        if self.equal(Aspect::Object, place, &objects.0, &objects.1) {
            let (one, other) = (is_accepted(theirs), is_accepted(ours));
            if one == other {
                self.equal(Aspect::Verdict, place, &json!(one), &json!(other));
            } else {
                self.equal(Aspect::Verdict, place, theirs, ours);
                return;
            }
            self.texts(place, &theirs["unknown"], &ours["unknown"]);
            self.texts(place, &theirs["errors"], &ours["errors"]);
            self.texts(place, &theirs["warnings"], &ours["warnings"]);
            // The oracle evaluates rules even if they must not run, to measure their cost.
            let blocked = list(&ours["errors"]).iter().any(|it| {
                it.as_str()
                    .is_some_and(|it| it.contains("rules were not checked"))
            });
            if !theirs["cost"].is_null() && !blocked {
                self.equal(Aspect::Cost, place, &theirs["cost"], &ours["cost"]);
            }
        }
    }

    /// Compares whether a mutation compiles, and that one that fails before anything is patched
    /// here fails there. The engine leaves patches to its host, which the test `mutations` of the
    /// server judges.
    fn mutation(&mut self, place: &str, theirs: &Value, ours: &Value) {
        let compiles = json!(theirs["uncompiled"].is_null());
        if compiles != ours["compiles"] {
            self.equal(Aspect::Verdict, place, theirs, ours);
            return;
        }
        self.equal(Aspect::Verdict, place, &compiles, &ours["compiles"]);
        if !ours["error"].is_null() && theirs["error"].is_null() {
            self.equal(Aspect::Verdict, place, theirs, ours);
        }
    }

    fn decision(&mut self, place: &str, theirs: &Value, ours: &Value) {
        if theirs["denied"] == ours["denied"] {
            self.equal(Aspect::Verdict, place, &theirs["denied"], &ours["denied"]);
        } else {
            self.equal(Aspect::Verdict, place, theirs, ours);
            return;
        }
        for part in ["code", "reason", "message", "causes", "auditAnnotations"] {
            let place = format!("{place}.{part}");
            self.equal(Aspect::Text, &place, &theirs[part], &ours[part]);
        }
        self.texts(place, &theirs["warnings"], &ours["warnings"]);
        let none = json!([]);
        let spent = if theirs["spent"].is_null() {
            &none
        } else {
            &theirs["spent"]
        };
        self.equal(Aspect::Cost, place, spent, &ours["spent"]);
    }
}

/// A text without the number that the API server appends to the names of its own types.
fn unnamed(value: &Value) -> Value {
    const NAME: &str = "selfType";
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    let mut parts = text.split(NAME);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(NAME);
        plain.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    plain.into()
}

/// The value with whole floats as integers: Go writes 3.0 as 3. An integer that Go's decoder cannot
/// keep as one is a float.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        Value::Number(number) if number.as_i64().is_none() => {
            let float = number.as_f64().unwrap_or_default();
            let whole = format!("{float:.0}").parse::<i64>();
            let whole = whole.map_or(Value::Null, Value::from);
            if whole.as_f64() == Some(float) {
                whole
            } else {
                float.into()
            }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_equal_however_they_are_written() {
        let text = r#"{"a": [3.0, 1e10, 1.5, -0.0, 1e300]}"#;
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        let wanted = json!({"a": [3, 10_000_000_000_i64, 1.5, 0, 1e300]});
        assert_eq!(plain(&value), wanted);
    }

    #[test]
    fn an_integer_beyond_64_bits_is_the_float_that_go_reads() {
        let value = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        for (given, kept) in [
            ("9223372036854775808", "9.223372036854775808e18"),
            ("18446744073709551615", "18446744073709552000"),
            ("1000000000000000000000", "1e21"),
        ] {
            assert_eq!(plain(&value(given)), plain(&value(kept)), "{given}");
        }
        let (most, next) = ("9223372036854775807", "9223372036854775808");
        assert_ne!(plain(&value(most)), plain(&value(next)));
    }

    #[test]
    fn a_mutation_is_judged_by_whether_it_compiles_and_can_be_evaluated() {
        let agree = |theirs: Value, ours: Value| {
            let compared =
                compare(&json!({"mutated": [theirs]}), &json!({"mutated": [ours]}));
            compared.differences.is_empty()
        };
        let refused = json!({"uncompiled": "undeclared reference"});
        assert!(agree(refused.clone(), json!({"compiles": false})));
        assert!(!agree(refused, json!({"compiles": true})));
        assert!(!agree(json!({"object": {}}), json!({"compiles": false})));
        assert!(!agree(json!({"object": {}}), Value::Null));
        let fails = json!({"compiles": true, "error": "no such key"});
        assert!(!agree(json!({"object": {}}), fails.clone()));
        assert!(agree(json!({"error": "no such key"}), fails));
        // It may fail when the patch is applied, which the engine does not do.
        let evaluated = json!({"compiles": true});
        assert!(agree(json!({"error": "no such path"}), evaluated));
    }

    #[test]
    fn an_unanswered_case_has_no_difference() {
        let ours = json!({"policies": [{"errors": []}], "decisions": [{"denied": true}]});
        let compared = compare(&json!({"unanswered": "not within 20s"}), &ours);
        assert!(compared.unanswered && compared.differences.is_empty());
        assert!(compared.compared.is_empty());
    }

    #[test]
    fn types_without_a_name_are_alike() {
        let text = json!("applied to 'selfType27.()' and 'selfType'");
        assert_eq!(unnamed(&text), "applied to 'selfType.()' and 'selfType'");
    }

    #[test]
    fn a_difference_in_cost_states_which_side_charges_more() {
        let differ = |theirs: Value, ours: Value| {
            let place = "decisions[0]".to_owned();
            let aspect = Aspect::Cost;
            let found = Difference {
                aspect,
                place,
                theirs,
                ours,
            };
            found.matter().1
        };
        assert_eq!(differ(json!(18), json!(16)), "Kubernetes charges more");
        let spent = json!([{"policy": "p", "cost": 3}]);
        assert_eq!(differ(spent.clone(), json!([])), "other evaluations");
        let more = json!([{"policy": "p", "cost": 4}]);
        assert_eq!(differ(spent, more), "Kubernetes charges less");
    }
}
