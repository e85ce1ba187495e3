//! Known differences: what differs, why, and whether it is deliberate.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::compare::Difference;
use crate::record::BoxError;

/// Differences of one cause.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Explanation {
    /// The difference, as worded in the documentation.
    pub(super) what: String,
    /// The reason.
    pub(super) why: String,
    /// The names of the aspects that may differ for this cause.
    aspects: Vec<String>,
    /// Kinds of objects. All kinds if it is empty.
    #[serde(default)]
    kinds: Vec<String>,
    /// The subresource of the request. Any if it is empty.
    #[serde(default)]
    subresource: String,
    /// Texts that must all be in the real server's response.
    #[serde(default)]
    kubernetes: Vec<String>,
    /// Texts that must all be in the embedded server's response.
    #[serde(default)]
    ours: Vec<String>,
}

impl Explanation {
    /// Whether this explains a difference.
    pub(super) fn covers(&self, kind: &str, difference: &Difference) -> bool {
        let aspect = difference.aspect.name();
        let in_all =
            |text: &str, parts: &[String]| parts.iter().all(|it| text.contains(it));
        let subresource = difference.place.split('/').nth(1).unwrap_or_default();
        self.aspects.iter().any(|it| it == aspect)
            && (self.subresource.is_empty() || self.subresource == subresource)
            && (self.kinds.is_empty() || self.kinds.iter().any(|it| it == kind))
            && in_all(&difference.theirs, &self.kubernetes)
            && in_all(&difference.ours, &self.ours)
    }
}

/// Reads all explanations.
///
/// # Errors
/// The file cannot be read or parsed.
pub(super) fn read() -> Result<Vec<Explanation>, BoxError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("server/explained.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::compare::Aspect;

    #[test]
    fn a_difference_is_explained_by_its_aspect_its_place_and_both_texts() {
        let explanation = Explanation {
            what: "what".to_owned(),
            why: "why".to_owned(),
            aspects: vec!["message".to_owned()],
            kinds: vec!["Pod".to_owned()],
            subresource: "status".to_owned(),
            kubernetes: vec!["is immutable".to_owned(), "@@".to_owned()],
            ours: vec!["is immutable".to_owned()],
        };
        let difference = |aspect, theirs: &str| Difference {
            aspect,
            step: 0,
            place: "update of Pod/status".to_owned(),
            theirs: theirs.to_owned(),
            ours: "is immutable".to_owned(),
        };
        let message = difference(Aspect::Message, "is immutable @@ -1");
        assert!(explanation.covers("Pod", &message));
        assert!(!explanation.covers("Job", &message));
        let other = difference(Aspect::Message, "is immutable");
        assert!(!explanation.covers("Pod", &other));
        let elsewhere = Difference {
            place: "update of Pod".to_owned(),
            ..message
        };
        assert!(!explanation.covers("Pod", &elsewhere));
        let verdict = difference(Aspect::Verdict, "is immutable @@ -1");
        assert!(!explanation.covers("Pod", &verdict));
    }

    #[test]
    fn every_explanation_names_aspects_and_texts() {
        for it in read().expect("the list") {
            let known = |name: &String| Aspect::ALL.iter().any(|it| it.name() == name);
            assert!(it.aspects.iter().all(known), "{}", it.what);
            let says = !it.kubernetes.is_empty() || !it.ours.is_empty();
            assert!(says, "{} would cover everything", it.what);
        }
    }
}
