//! Kinds without a CustomResourceDefinition, for the type checks of policies.

use kubemu_cel::{ObjectType, Type};
use serde_json::Value;

/// A built-in kind of an API server, with the schema that the server publishes in OpenAPI.
#[derive(Clone, Copy)]
pub struct KnownKind<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind, such as `Pod`.
    pub kind: &'a str,
    /// The resource, such as `pods`.
    pub resource: &'a str,
    /// The schema, which may have references.
    pub schema: &'a Value,
    /// Returns the schema of a `$ref`, given the part after its last slash.
    pub find: fn(&str) -> Option<&'a Value>,
}

/// A recursive schema, which has no type: Kubernetes checks nothing against it.
struct Cyclic;

impl<'a> KnownKind<'a> {
    /// The type of its objects, after `SchemaDeclType` of k8s.io/apiserver/pkg/cel/common;
    /// `None` if the schema is recursive or missing.
    pub(super) fn ty(&self) -> Option<Type> {
        self.declared(self.schema, &mut Vec::new()).ok()
    }

    /// Schemas that Kubernetes has no type for are dynamic here, so that they cause no
    /// warnings.
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

/// The name of the referenced schema, also if the reference has its own description.
fn reference(schema: &Value) -> Option<&str> {
    let target = match schema["allOf"].as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => schema,
    };
    target["$ref"].as_str()?.rsplit('/').next()
}
