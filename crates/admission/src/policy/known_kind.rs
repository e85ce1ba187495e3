//! Kinds that no CustomResourceDefinition describes, for the type checks of policies.

use fivespot_cel::{ObjectType, Type};
use serde_json::Value;

/// A kind that is built into a server, with the schema that the server publishes in OpenAPI.
#[derive(Clone, Copy)]
pub struct KnownKind<'a> {
    /// Its group; empty for the core group.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its kind, such as `Pod`.
    pub kind: &'a str,
    /// Its resource, such as `pods`.
    pub resource: &'a str,
    /// The schema, which may refer to others.
    pub schema: &'a Value,
    /// Finds the schema that a `$ref` names by what is behind its last slash.
    pub find: fn(&str) -> Option<&'a Value>,
}

/// A schema that contains itself, which has no type: Kubernetes checks nothing against it.
struct Cyclic;

impl<'a> KnownKind<'a> {
    /// The type of its objects, after `SchemaDeclType` of k8s.io/apiserver/pkg/cel/common; none
    /// for one whose schema contains itself or is missing.
    pub(super) fn ty(&self) -> Option<Type> {
        self.declared(self.schema, &mut Vec::new()).ok()
    }

    /// What Kubernetes has no type for may be anything here, so that nothing is said of it.
    fn declared(
        &self,
        schema: &'a Value,
        within: &mut Vec<&'a str>,
    ) -> Result<Type, Cyclic> {
        if let Some(name) = reference(schema) {
            let Some(found) = (self.find)(name) else {
                return Ok(Type::Dyn);
            };
            if within.contains(&name) {
                return Err(Cyclic);
            }
            within.push(name);
            let ty = self.declared(found, within);
            within.pop();
            return ty;
        }
        let format = schema["format"].as_str().unwrap_or_default();
        Ok(match schema["type"].as_str().unwrap_or_default() {
            _ if format == "int-or-string" => Type::Dyn,
            "array" => Type::list(self.declared(&schema["items"], within)?),
            "object" if schema["additionalProperties"].is_object() => {
                Type::map(self.declared(&schema["additionalProperties"], within)?)
            }
            "object" => {
                let properties = schema["properties"].as_object();
                let fields: Result<Vec<_>, Cyclic> = properties
                    .into_iter()
                    .flatten()
                    .map(|(name, schema)| {
                        Ok((name.as_str(), self.declared(schema, within)?))
                    })
                    .collect();
                Type::object(ObjectType::new(fields?))
            }
            "string" => match format {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" => Type::Date,
                "date-time" => Type::Timestamp,
                _ => Type::String,
            },
            "boolean" => Type::Bool,
            "integer" => Type::Int,
            "number" => Type::Double,
            _ => Type::Dyn,
        })
    }
}

/// The name of the schema that is referred to, be it to have a description of its own.
fn reference(schema: &Value) -> Option<&str> {
    let target = match schema["allOf"].as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => schema,
    };
    target["$ref"].as_str()?.rsplit('/').next()
}
