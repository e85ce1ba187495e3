//! Policies about what the operator may change where a role could only allow all of it: roles
//! restrict neither fields nor the beginning of a name.

use fivespot_api::{RESOURCES, crd, name};
use serde_json::{Value, json};

use super::Rights;
use crate::controller::operator;
use crate::permission::{Limit, PERMISSIONS, Permission};

/// What a user can change of an object's metadata.
const METADATA: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

/// Whether the object, or before its deletion, is one that a set owns.
const OF_A_SET: &str = "(oldObject == null ? object : oldObject).?metadata.?ownerReferences\
    .orValue([]).exists(owner, owner.kind == 'ScheduledMachineSet')";

impl Rights {
    /// A policy and its binding for each row of the table with a [`Limit`], about requests of the
    /// operator's ServiceAccount only. Apply them before the roles, in clusters whose API server
    /// supports policies. Cannot fail.
    pub fn limits(&self) -> Vec<Value> {
        self.named_after_namespace(self.limit_policies())
    }

    /// The same under the names for the operator's own namespace.
    pub(crate) fn limit_policies(&self) -> Vec<Value> {
        let rows = PERMISSIONS.iter();
        let limited = rows.filter_map(|row| Some((row, row.limit.as_ref()?)));
        limited
            .flat_map(|(row, limit)| self.limit(row, limit))
            .collect()
    }

    fn limit(&self, row: &Permission, limit: &Limit) -> [Value; 2] {
        let name = format!("{}-{}", name::CONTROLLER, row.resource);
        let mut conditions = vec![json!({
            "name": "requested-by-operator",
            "expression": self.is_requested(limit),
        })];
        let (operations, expression, message) = match limit {
            Limit::OfSetOrFields(fields) => {
                // A finalizer can be removed whatever a mutating webhook changes beside it.
                conditions.push(json!({
                    "name": "not-being-deleted",
                    "expression": "object == null || !has(object.metadata.deletionTimestamp)",
                }));
                of_set_or_fields(row, fields)
            }
            Limit::NamePrefix(prefix) => (
                json!(["CREATE", "UPDATE", "DELETE"]),
                format!("request.name.startsWith('{prefix}')"),
                format!(
                    "the operator may only write {} whose name begins with {prefix}",
                    row.resource
                ),
            ),
        };
        let spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [row.group],
                "apiVersions": ["*"],
                "operations": operations,
                "resources": [row.resource],
            }]},
            "matchConditions": conditions,
            "validations": [{
                "expression": expression,
                "message": message,
                "reason": "Forbidden",
            }],
        });
        operator(&self.namespace).policy(&name, spec)
    }

    /// Whether a request is one of those that have the limited right.
    fn is_requested(&self, limit: &Limit) -> String {
        let user = |account| name::service_account_user(&self.namespace, account);
        let operator = user(name::CONTROLLER);
        match limit {
            Limit::OfSetOrFields(_) => {
                format!("request.userInfo.username == '{operator}'")
            }
            // The only limited right that the controller of capacities has too.
            Limit::NamePrefix(_) => format!(
                "request.userInfo.username in ['{operator}', '{}']",
                user(name::CAPACITY_CONTROLLER)
            ),
        }
    }
}

/// The operations, the expression and the message of [`Limit::OfSetOrFields`].
fn of_set_or_fields(row: &Permission, fields: &[String]) -> (Value, String, String) {
    let unchanged = unchanged(row, fields).join(" && ");
    (
        json!(["CREATE", "UPDATE", "DELETE"]),
        format!("{OF_A_SET} || object != null && oldObject != null && {unchanged}"),
        format!(
            "the operator may only change {} of {}, except of those of a {}",
            fields.join(" and "),
            row.resource,
            name::SET_KIND
        ),
    )
}

/// A comparison for everything of an object of ours that is not one of `fields`: all metadata
/// that a client can change, and each field that the schema of its `spec` has.
fn unchanged(row: &Permission, fields: &[String]) -> Vec<String> {
    let metadata = METADATA.map(|field| format!("metadata.{field}"));
    let mut others: Vec<String> = metadata.into();
    others.retain(|path| !fields.contains(path));
    if let Some(resource) = RESOURCES.iter().find(|it| it.plural == row.resource) {
        let definition = crd::without_rules(resource);
        let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        add_others("spec", &root["properties"]["spec"], fields, &mut others);
    }
    let compared = others.iter().map(|path| {
        let path = path.replace('.', ".?");
        format!("object.?{path} == oldObject.?{path}")
    });
    compared.collect()
}

/// Adds the paths below `path` of the schema, except `fields`: an object as a whole unless one of
/// `fields` is in it.
fn add_others(path: &str, schema: &Value, fields: &[String], others: &mut Vec<String>) {
    if fields.iter().any(|field| field == path) {
        return;
    }
    let inside = format!("{path}.");
    if !fields.iter().any(|field| field.starts_with(&inside)) {
        others.push(path.to_owned());
        return;
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        add_others(&format!("{inside}{name}"), schema, fields, others);
    }
}
