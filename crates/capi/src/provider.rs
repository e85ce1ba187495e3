//! Reads bootstrap and infrastructure objects of any provider.
//!
//! Only the fields that Cluster API's provider contract defines are read, in both of its versions.

use serde_json::Value;

use crate::object::text;
use crate::{Error, Meta, Reference, condition, one_line};

/// A bootstrap or infrastructure object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Group and version of the object that was read.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// The metadata.
    pub meta: Meta,
    /// Whether the provider has finished: the bootstrap data or the machine exists.
    pub is_ready: bool,
    /// Why the provider has not made progress, in its own message: one line of bounded length.
    /// `None` if it reports nothing.
    ///
    /// It consists of the conditions and the failure in `status.failureReason` and
    /// `failureMessage` (v1beta1) or in `status.deprecated.v1beta1` (v1beta2), which Cluster API
    /// does not copy. A past failure may remain after the object is ready.
    pub problem: Option<String>,
}

/// The fields of its `status` that are read.
pub const STATUS: [&str; 6] = [
    "conditions",
    "deprecated",
    "failureMessage",
    "failureReason",
    "initialization",
    "ready",
];

/// The fields of `status.deprecated.v1beta1` that are read.
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
        // In this order: bootstrap v1beta2, infrastructure v1beta2, both kinds in v1beta1.
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
            problem: problem(object),
        })
    }

    /// A reference to the object.
    pub fn reference(&self) -> Reference {
        Reference::new(&self.api_version, &self.kind, &self.meta.name)
    }
}

/// The message of the conditions, and the reported failure unless the message contains it.
fn problem(object: &Value) -> Option<String> {
    let status = &object["status"];
    let condition = condition::first_problem(object).map(sentence);
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

/// The terminal failure of the v1beta1 contract, in the location of either version.
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
