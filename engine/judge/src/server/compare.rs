//! Compares two responses to one request.

use std::fmt;

use serde_json::{Value, json};

use super::case::{Case, Step};
use crate::record::difference;

/// The compared parts of a response.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
}

impl Response {
    /// A response without the managed fields of the object.
    pub(super) fn new(code: u16, mut body: Value, warnings: Vec<String>) -> Self {
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.shift_remove("managedFields");
        }
        Self {
            code,
            body,
            warnings,
        }
    }

    /// Whether there is no response: the server has panicked and closed the connection.
    fn is_none(&self) -> bool {
        self.code == 0
    }

    fn is_refusal(&self) -> bool {
        self.code >= 400
    }

    /// The details of a refusal: its causes and its object. Null for other responses.
    fn details(&self) -> &Value {
        if self.is_refusal() {
            &self.body["details"]
        } else {
            &Value::Null
        }
    }

    /// Code, reason and message of a refusal. Only the code of other responses.
    fn words(&self) -> String {
        if self.is_refusal() {
            let text = |key: &str| self.body[key].as_str().unwrap_or_default();
            format!("{} {}: {}", self.code, text("reason"), text("message"))
        } else {
            self.code.to_string()
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.code, self.body, self.warnings)
    }
}

/// The kind of a difference, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aspect {
    /// One server accepts and the other refuses, or their codes or reasons differ.
    Verdict,
    /// Both refuse with different messages.
    Message,
    /// Both accept and return different objects.
    Object,
    /// The warnings differ.
    Warning,
}

impl Aspect {
    pub(super) const ALL: [Self; 4] =
        [Self::Verdict, Self::Message, Self::Object, Self::Warning];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Message => "message",
            Self::Object => "object",
            Self::Warning => "warnings",
        }
    }
}

/// The first request of a case whose responses differ.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) aspect: Aspect,
    /// The number of the request in the case.
    pub(super) step: usize,
    /// The kind of the request and of the object.
    pub(super) place: String,
    pub(super) theirs: String,
    pub(super) ours: String,
}

impl Difference {
    /// A key that is common to differences of the same cause: the place, and the texts without the
    /// values in them.
    pub(super) fn skeleton(&self) -> String {
        // The kind of the object is independent of the cause.
        let (form, kind) = self.place.split_once(" of ").unwrap_or((&self.place, ""));
        let kind = kind.split('/').next().unwrap_or_default();
        let general = |text: &str| {
            let text = skeleton(text);
            if kind.is_empty() {
                return text;
            }
            let plural = format!("{}s", kind.to_lowercase());
            text.replace(kind, "(Kind)").replace(&plural, "(kinds)")
        };
        format!(
            "{} · {form}\n    kubernetes  {}\n    ours        {}",
            self.aspect.name(),
            general(&self.theirs),
            general(&self.ours)
        )
    }
}

/// The result of comparing the responses to a case.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    /// The number of compared responses.
    pub(super) compared: usize,
    /// The first difference. Nothing is compared after it.
    pub(super) difference: Option<Difference>,
    /// Whether the real server has panicked. There is then nothing to compare with.
    pub(super) is_unanswered: bool,
}

/// Compares the responses to a case until two differ or the real server gives none.
pub(super) fn first(
    case: &Case<'_>,
    (theirs, ours): (&[Response], &[Response]),
) -> Comparison {
    let both = case.steps.iter().zip(theirs.iter().zip(ours));
    for (index, (step, (theirs, ours))) in both.enumerate() {
        if theirs.is_none() {
            return Comparison {
                compared: index,
                is_unanswered: true,
                ..Comparison::default()
            };
        }
        if let Some((aspect, theirs, ours)) = compare(theirs, ours) {
            let place = place(case, step);
            let difference = Difference {
                aspect,
                step: index,
                place,
                theirs,
                ours,
            };
            return Comparison {
                compared: index + 1,
                difference: Some(difference),
                ..Comparison::default()
            };
        }
    }
    Comparison {
        compared: case.steps.len(),
        ..Comparison::default()
    }
}

fn place(case: &Case<'_>, step: &Step) -> String {
    let below = match step.subresource.as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    format!("{} of {}{below}", step.form.name(), case.seed.kind())
}

fn compare(theirs: &Response, ours: &Response) -> Option<(Aspect, String, String)> {
    let same_words = theirs.words() == ours.words()
        || difference::differ_in_order_alone(
            &json!(theirs.words()),
            &json!(ours.words()),
        );
    let reason = |it: &Response| it.is_refusal().then(|| it.body["reason"].clone());
    if theirs.code != ours.code || reason(theirs) != reason(ours) {
        return Some((Aspect::Verdict, theirs.words(), ours.words()));
    }
    if theirs.is_refusal() {
        if !same_words {
            return Some((Aspect::Message, theirs.words(), ours.words()));
        }
        let (theirs, ours) = (theirs.details(), ours.details());
        if difference::differ_in_order_alone(theirs, ours) {
            return None;
        }
        let once = |details: &Value| {
            let mut details = details.clone();
            if let Some(causes) = details["causes"].as_array_mut() {
                causes.sort_by_cached_key(Value::to_string);
                causes.dedup();
            }
            details
        };
        let what = if once(theirs) == once(ours) {
            "repeated causes"
        } else {
            "details"
        };
        let shown = |it: &Value| format!("{what}: {it}");
        return Some((Aspect::Message, shown(theirs), shown(ours)));
    }
    if let Some(gap) = difference::gaps(&theirs.body, &ours.body).first() {
        let place = gap.place.join("/");
        let at = |said: &Option<Value>| {
            let said = said.as_ref().map_or("nothing".to_owned(), Value::to_string);
            format!("{place}: {said}")
        };
        return Some((Aspect::Object, at(&gap.real), at(&gap.ours)));
    }
    (theirs.warnings != ours.warnings).then(|| {
        let joined = |it: &Response| it.warnings.join("; ");
        (Aspect::Warning, joined(theirs), joined(ours))
    })
}

/// Replaces the values in a text: quoted parts, and numbers that are words or end one.
fn skeleton(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut quoted = false;
    let mut escaped = false;
    for it in text.chars() {
        if it == '"' && !escaped {
            quoted = !quoted;
            if quoted {
                kept.push_str("\"…\"");
            }
        } else if quoted {
            escaped = it == '\\' && !escaped;
        } else if it.is_ascii_digit() {
            if !kept.ends_with('N') {
                kept.push('N');
            }
        } else {
            kept.push(it);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, message: &str) -> Response {
        let body = json!({"reason": "Invalid", "message": message});
        Response::new(code, body, Vec::new())
    }

    #[test]
    fn a_skeleton_has_no_values() {
        let text =
            "Pod \"c17\" is invalid: spec.x[3]: Invalid value: \"a\\\"b\": must be 5";
        let expected = "Pod \"…\" is invalid: spec.x[N]: Invalid value: \"…\": must be N";
        assert_eq!(skeleton(text), expected);
    }

    #[test]
    fn the_verdict_is_compared_first_and_the_order_of_errors_is_ignored() {
        let aspect =
            |theirs: &Response, ours: &Response| compare(theirs, ours).map(|it| it.0);
        let accepted = Response::new(201, json!({}), Vec::new());
        let refused = refusal(422, "[a: x, b: y]");
        assert_eq!(aspect(&accepted, &refused), Some(Aspect::Verdict));
        assert_eq!(aspect(&refused, &refusal(422, "[b: y, a: x]")), None);
        let other = refusal(422, "[b: z, a: x]");
        assert_eq!(aspect(&refused, &other), Some(Aspect::Message));
        let twice = |count: usize| {
            let causes = vec![json!({"field": "a"}); count];
            let body = json!({"details": {"causes": causes}});
            Response::new(422, body, Vec::new())
        };
        let (_, repeated, _) = compare(&twice(1), &twice(2)).expect("a difference");
        assert!(repeated.starts_with("repeated causes: "));
        let stored = Response::new(201, json!({"spec": {"a": 1}}), Vec::new());
        assert_eq!(aspect(&accepted, &stored), Some(Aspect::Object));
    }
}
