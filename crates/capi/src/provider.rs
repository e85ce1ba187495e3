//! What is read of a bootstrap or infrastructure object, of whatever provider.
//!
//! Only the paths that Cluster API's provider contract fixes are read, in both of its versions.

use serde_json::Value;

use crate::object::text;
use crate::{Error, Meta, Reference, condition, one_line};

/// A bootstrap or infrastructure object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Group and version it was read in.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name, uid, owners and the rest.
    pub meta: Meta,
    /// Whether the provider has done its part: bootstrap data, or a machine.
    pub is_ready: bool,
    /// Why the provider has not come further, in its own words: one line of bounded length. None
    /// where it reports nothing.
    ///
    /// It is what the conditions say, and the failure of `status.failureReason` and
    /// `failureMessage` (v1beta1) or of `status.deprecated.v1beta1` (v1beta2), which Cluster API
    /// does not copy. A failure that is over may still be there when the object is ready.
    pub trouble: Option<String>,
}

/// What is read of its `status`.
pub const STATUS: [&str; 6] = [
    "conditions",
    "deprecated",
    "failureMessage",
    "failureReason",
    "initialization",
    "ready",
];

/// What is read of `status.deprecated.v1beta1`.
pub const FAILURE: [&str; 2] = ["failureMessage", "failureReason"];

impl Provider {
    /// Reads a stored object of any kind.
    ///
    /// # Errors
    /// [`Error::Missing`] without apiVersion, kind, name or uid.
    pub fn read(object: &Value) -> Result<Self, Error> {
        let status = &object["status"];
        let kind = text(&object["kind"]).ok_or(Error::Missing {
            kind: "object".to_owned(),
            field: "kind",
        })?;
        let api_version = text(&object["apiVersion"]).ok_or(Error::Missing {
            kind: kind.clone(),
            field: "apiVersion",
        })?;
        // One of: bootstrap v1beta2, infrastructure v1beta2, both of v1beta1.
        let marks = [
            &status["initialization"]["dataSecretCreated"],
            &status["initialization"]["provisioned"],
            &status["ready"],
        ];
        Ok(Self {
            api_version,
            kind,
            meta: Meta::read(object)?,
            is_ready: marks.into_iter().any(|mark| *mark == Value::Bool(true)),
            trouble: trouble(object),
        })
    }

    /// The object as others refer to it.
    pub fn reference(&self) -> Reference {
        Reference::new(&self.api_version, &self.kind, &self.meta.name)
    }
}

/// What the conditions say, and the reported failure where that says more.
fn trouble(object: &Value) -> Option<String> {
    let status = &object["status"];
    let condition = condition::trouble(object).map(sentence);
    let reported = failure(status).or_else(|| failure(&status["deprecated"]["v1beta1"]));
    let reported = reported.map(sentence);
    match (condition, reported) {
        (Some(condition), Some(reported)) if condition.contains(&reported) => {
            Some(condition)
        }
        (Some(condition), Some(reported)) => Some(format!("{condition}; {reported}")),
        (condition, reported) => condition.or(reported),
    }
}

/// The terminal failure of the v1beta1 contract, at the place of either version.
fn failure(status: &Value) -> Option<(String, String)> {
    let (reason, message) = (
        text(&status["failureReason"]),
        text(&status["failureMessage"]),
    );
    (reason.is_some() || message.is_some())
        .then(|| (reason.unwrap_or_default(), message.unwrap_or_default()))
}

fn sentence((reason, message): (String, String)) -> String {
    let parts = [one_line(&reason), one_line(&message)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}
