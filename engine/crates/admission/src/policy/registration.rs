//! Validation of a policy at its creation.

use kubemu_cel::{Dialect, is_reserved};
use kubemu_gostd::unicode::to_lower;

use super::definition::{Expression, Policy, Validation};
use super::expression::{Compiled, Environments, ExpectedType};
use super::fields::Fields;
use super::matching::Matching;
use super::mutating_policy::{self, MutatingPolicy};
use super::resolver::ParamKind;
use crate::crd_rules::has_lines;
use crate::field::Path;
use crate::{FieldError, name};

/// The reasons that a validation may have.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MAX_MATCH_CONDITIONS: usize = 64;
const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION_BYTES: usize = 5 * 1024;

/// Reads the spec of a policy and adds its errors in the API server's order.
pub(super) struct Reader<'a, 'e> {
    /// The name of the policy.
    pub(super) policy: &'a str,
    pub(super) spec: Fields<'a>,
    pub(super) errors: &'e mut Vec<FieldError>,
}

impl Reader<'_, '_> {
    pub(super) fn policy(mut self, dialect: Dialect) -> Policy {
        let ignores_errors = self.failure_policy();
        let params = self.params();
        let matching = self.matching();
        let mut environments = Environments::new(dialect, params.is_some());
        let paths = environments.number_paths();
        let conditions = self.conditions(&environments);
        let variables = self.variables(&mut environments);
        let validations = self.validations(&environments);
        let annotations = self.annotations(&environments);
        if validations.is_empty() && annotations.is_empty() {
            for field in ["validations", "auditAnnotations"] {
                let detail =
                    "validations or auditAnnotations must contain at least one item";
                let path = self.spec.path.field(field);
                self.errors.push(FieldError::required(path, detail));
            }
        }
        Policy {
            name: self.policy.to_owned(),
            params,
            matching,
            conditions,
            variables,
            validations,
            annotations,
            ignores_errors,
            paths,
        }
    }

    pub(super) fn mutating_policy(mut self, dialect: Dialect) -> MutatingPolicy {
        let ignores_errors = self.failure_policy();
        let params = self.params();
        let matching = self.matching();
        mutating_policy::check_operations(self.spec, "matchConstraints", self.errors);
        let mut environments = Environments::new(dialect, params.is_some());
        let paths = environments.number_paths();
        let conditions = self.conditions(&environments);
        let variables = self.variables(&mut environments);
        let mutations = self.mutations(&environments);
        let reinvokes = self.reinvocation_policy();
        let policy = Policy {
            name: self.policy.to_owned(),
            params,
            matching,
            conditions,
            variables,
            validations: Vec::new(),
            annotations: Vec::new(),
            ignores_errors,
            paths,
        };
        MutatingPolicy {
            policy,
            mutations,
            reinvokes,
        }
    }

    fn failure_policy(&mut self) -> bool {
        let known = ["Fail", "Ignore"];
        let given = self.spec.word("failurePolicy", known, self.errors);
        given == Some("Ignore")
    }

    fn params(&mut self) -> Option<ParamKind> {
        let value = self.spec.get("paramKind")?;
        let path = self.spec.path.field("paramKind");
        let fields = Fields::new(value, &path);
        let api_version = fields.text("apiVersion", self.errors);
        self.api_version(path.field("apiVersion"), api_version);
        let kind = fields.text("kind", self.errors);
        let at = path.field("kind");
        let wrong = name::dns_1035_label(&to_lower(kind));
        if kind.is_empty() {
            self.errors.push(FieldError::required(at, ""));
        } else if !wrong.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                wrong.join(",")
            );
            self.refuse(at, kind, &detail);
        }
        Some(ParamKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }

    fn api_version(&mut self, path: Path<'_>, given: &str) {
        if given.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            return;
        }
        let (group, version) = match given.split('/').collect::<Vec<_>>().as_slice() {
            ["", ""] => ("", ""),
            [version] => ("", *version),
            [group, version] => (*group, *version),
            _ => {
                let detail = format!("unexpected GroupVersion string: {given}");
                self.refuse(path, given, &detail);
                return;
            }
        };
        if !group.is_empty() {
            self.refuse_joined(path, group, &name::dns_subdomain(group));
        }
        if version.is_empty() {
            self.refuse(path, given, "version must be specified");
        } else {
            self.refuse_joined(path, version, &name::dns_1035_label(version));
        }
    }

    fn matching(&mut self) -> Matching {
        let path = self.spec.path.field("matchConstraints");
        let Some(value) = self.spec.get("matchConstraints") else {
            self.errors.push(FieldError::required(path, ""));
            return Matching::default();
        };
        let matching = Matching::compile(Fields::new(value, &path), self.errors);
        if !matching.has_rules() {
            let path = path.field("resourceRules");
            self.errors.push(FieldError::required(path, ""));
        }
        matching
    }

    pub(super) fn refuse(&mut self, path: Path<'_>, value: &str, detail: &str) {
        self.errors
            .push(FieldError::invalid(path, value.into(), detail));
    }

    /// Adds the compile error of an expression.
    pub(super) fn refuse_expression(&mut self, path: Path<'_>, source: &str, why: &str) {
        // An error in the creation of a program is an internal error in the API server.
        let error = if why.starts_with("program instantiation failed") {
            FieldError::internal(path, why)
        } else {
            FieldError::invalid(path, source.into(), why)
        };
        self.errors.push(error);
    }

    fn refuse_joined(&mut self, path: Path<'_>, value: &str, details: &[String]) {
        if !details.is_empty() {
            self.refuse(path, value, &details.join(","));
        }
    }

    /// Compiles a required expression; `missing` is the error if it is absent.
    fn expression(
        &mut self,
        (fields, name): (Fields<'_>, &str),
        missing: &str,
        compile: impl FnOnce(&str) -> Compiled,
    ) -> (String, Compiled) {
        let source = fields.text(name, self.errors);
        let path = fields.path.field(name);
        if source.trim().is_empty() {
            self.errors.push(FieldError::required(path, missing));
            return (source.to_owned(), Err(missing.to_owned()));
        }
        let compiled = compile(source);
        if let Err(why) = &compiled {
            self.refuse_expression(path, source, why);
        }
        (source.to_owned(), compiled)
    }

    /// Match conditions do not have `variables`.
    pub(super) fn conditions(&mut self, environments: &Environments) -> Vec<Expression> {
        let path = self.spec.path.field("matchConditions");
        let list = self.spec.list("matchConditions", self.errors);
        if list.len() > MAX_MATCH_CONDITIONS {
            let (found, most) = (list.len() as u64, MAX_MATCH_CONDITIONS as u64);
            self.errors.push(FieldError::too_many(path, found, most));
        }
        let mut conditions: Vec<Expression> = Vec::new();
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let source = fields.text("expression", self.errors).trim();
            let at = path.field("expression");
            let compiled = environments.compile(source, ExpectedType::Bool);
            match &compiled {
                _ if source.is_empty() => self.errors.push(FieldError::required(at, "")),
                Err(why) => self.refuse_expression(at, source, why),
                Ok(_) => {}
            }
            let name = fields.text("name", self.errors);
            let at = path.field("name");
            if name.is_empty() {
                self.errors.push(FieldError::required(at, ""));
            } else {
                for detail in name::label_key(name) {
                    self.refuse(at, name, &detail);
                }
                self.duplicate(&conditions, name, at);
            }
            conditions.push(Expression {
                name: name.to_owned(),
                source: fields.text("expression", self.errors).to_owned(),
                compiled,
            });
        }
        conditions
    }

    fn duplicate(&mut self, earlier: &[Expression], name: &str, path: Path<'_>) {
        if earlier.iter().any(|one| one.name == name) {
            self.errors.push(FieldError::duplicate(path, name.into()));
        }
    }

    /// A later variable replaces an earlier one with the same name.
    fn variables(&mut self, environments: &mut Environments) -> Vec<Expression> {
        let path = self.spec.path.field("variables");
        let mut variables = Vec::new();
        for (at, value) in self.spec.list("variables", self.errors).iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let name = fields.text("name", self.errors);
            let at = path.field("name");
            if name.trim().is_empty() {
                let detail = "name is not specified";
                self.errors.push(FieldError::required(at, detail));
            } else if !name::c_identifier(name).is_empty() || is_reserved(name) {
                self.refuse(at, name, "must be a valid CEL identifier");
            }
            environments.compose();
            let compile =
                |source: &str| environments.compile(source, ExpectedType::Anything);
            let missing = "expression is not specified";
            let (source, compiled) =
                self.expression((fields, "expression"), missing, compile);
            if !source.trim().is_empty() {
                environments.declare(name, &compiled);
            }
            variables.push(Expression {
                name: name.to_owned(),
                source,
                compiled,
            });
        }
        variables
    }

    fn validations(&mut self, environments: &Environments) -> Vec<Validation> {
        let path = self.spec.path.field("validations");
        let list = self.spec.list("validations", self.errors);
        let mut validations = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let compile = |source: &str| environments.compile(source, ExpectedType::Bool);
            let missing = "expression is not specified";
            let (source, compiled) =
                self.expression((fields, "expression"), missing, compile);
            validations.push(Validation {
                source,
                compiled,
                message_expression: self.message_expression(fields, environments),
                message: self.message(fields),
                reason: self.reason(fields),
            });
        }
        validations
    }

    fn message(&mut self, fields: Fields<'_>) -> String {
        let message = fields.text("message", self.errors);
        let path = fields.path.field("message");
        let trimmed = message.trim();
        let detail = if !message.is_empty() && trimmed.is_empty() {
            "must be non-empty if specified"
        } else if has_lines(trimmed) {
            "must not contain line breaks"
        } else {
            return trimmed.to_owned();
        };
        self.refuse(path, message, detail);
        String::new()
    }

    fn message_expression(
        &mut self,
        fields: Fields<'_>,
        environments: &Environments,
    ) -> Option<Compiled> {
        let source = fields.text("messageExpression", self.errors);
        let path = fields.path.field("messageExpression");
        if source.is_empty() {
            return None;
        }
        if source.trim().is_empty() {
            self.refuse(path, source, "must be non-empty if specified");
            return None;
        }
        let compiled = environments.compile_message(source);
        if let Err(why) = &compiled {
            self.refuse_expression(path, source, why);
        }
        Some(compiled)
    }

    fn reason(&mut self, fields: Fields<'_>) -> String {
        let reason = fields.word("reason", REASONS, self.errors);
        reason.unwrap_or("Invalid").to_owned()
    }

    fn annotations(&mut self, environments: &Environments) -> Vec<Expression> {
        let path = self.spec.path.field("auditAnnotations");
        let list = self.spec.list("auditAnnotations", self.errors);
        if list.len() > MAX_AUDIT_ANNOTATIONS {
            let detail = "must not have more than 20 auditAnnotations";
            let list = list.to_vec().into();
            self.errors.push(FieldError::invalid(path, list, detail));
        }
        let mut annotations = Vec::new();
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let key = fields.text("key", self.errors);
            let at = path.field("key");
            // The annotation is published as `<policy>/<key>`.
            let published = format!("{}/{key}", self.policy);
            if self.policy.is_empty() {
                self.refuse(at, key, "requires metadata.name be non-empty");
            } else {
                for detail in name::label_key(&published) {
                    self.refuse(at, &published, &detail);
                }
            }
            let (source, compiled) = self.value_expression(fields, environments);
            self.duplicate(&annotations, key, at);
            annotations.push(Expression {
                name: key.to_owned(),
                source,
                compiled,
            });
        }
        annotations
    }

    fn value_expression(
        &mut self,
        fields: Fields<'_>,
        environments: &Environments,
    ) -> (String, Compiled) {
        let source = fields.text("valueExpression", self.errors);
        let path = fields.path.field("valueExpression");
        if source.trim().len() > MAX_VALUE_EXPRESSION_BYTES {
            let detail =
                format!("must not exceed {MAX_VALUE_EXPRESSION_BYTES} bytes in length");
            self.errors
                .push(FieldError::required(path, detail.as_str()));
            return (source.to_owned(), Err(detail));
        }
        let compile =
            |source: &str| environments.compile(source.trim(), ExpectedType::TextOrNull);
        let missing = "valueExpression is not specified";
        self.expression((fields, "valueExpression"), missing, compile)
    }
}
