//! What is read of a bootstrap or infrastructure object, of whatever provider.
//!
//! Only the paths that Cluster API's provider contract fixes are read, in both of its versions.

use serde_json::Value;

use crate::condition::{self, Condition};
use crate::object::text;
use crate::{Error, Meta, Reference};

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
    /// Conditions, where the provider reports any.
    pub conditions: Vec<Condition>,
}

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
            conditions: condition::read_all(object),
        })
    }

    /// The object as others refer to it.
    pub fn reference(&self) -> Reference {
        Reference::new(&self.api_version, &self.kind, &self.meta.name)
    }
}
