//! A `ValidatingAdmissionPolicy`, compiled.

use fivespot_cel::Dialect;
use serde_json::Value;

use super::expression::{Compiled, Environments, Wanted};
use super::fields::Fields;
use super::matching::Matching;
use super::world::ParamKind;
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::{FieldError, KubeVersion, name};

/// Reasons that a validation may give for refusing.
const REASONS: [&str; 4] = [
    "Forbidden",
    "Invalid",
    "RequestEntityTooLarge",
    "Unauthorized",
];
const MOST_MATCH_CONDITIONS: usize = 64;
const MOST_AUDIT_ANNOTATIONS: usize = 20;
const MOST_VALUE_EXPRESSION_BYTES: usize = 5 * 1024;

/// A compiled `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub struct Policy {
    pub(super) name: String,
    pub(super) params: Option<ParamKind>,
    pub(super) matching: Matching,
    pub(super) conditions: Vec<Expression>,
    pub(super) variables: Vec<Expression>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Expression>,
    /// Whether what cannot be evaluated is admitted.
    pub(super) ignores_errors: bool,
}

/// A named expression: a match condition, a variable, an audit annotation.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) compiled: Compiled,
}

/// One entry of `validations`.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) source: String,
    pub(super) compiled: Compiled,
    pub(super) message: String,
    pub(super) message_expression: Option<Compiled>,
    pub(super) reason: String,
}

impl Policy {
    /// Compiles a policy as the API server of `version` does when it is created.
    ///
    /// # Errors
    /// What the server would refuse it for, with paths that start at `metadata` or `spec`.
    pub fn compile(
        policy: &Value,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let (policy, errors) = Self::read(policy, version.dialect_of_new());
        if errors.is_empty() {
            Ok(policy)
        } else {
            Err(errors)
        }
    }

    /// Compiles a policy that is stored already: an expression that does not compile, as
    /// after a downgrade, fails when it is evaluated.
    ///
    /// # Errors
    /// What is wrong apart from expressions.
    pub fn stored(policy: &Value, version: KubeVersion) -> Result<Self, Vec<FieldError>> {
        let (policy, mut errors) = Self::read(policy, version.dialect_of_stored());
        errors.retain(|error| !is_about_an_expression(error));
        if errors.is_empty() {
            Ok(policy)
        } else {
            Err(errors)
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of its parameters, if it has any.
    pub const fn param_kind(&self) -> Option<&ParamKind> {
        self.params.as_ref()
    }

    fn read(policy: &Value, dialect: Dialect) -> (Self, Vec<FieldError>) {
        let metadata = policy.get("metadata");
        let rule = NameRule::DnsSubdomain;
        let mut errors = object_meta::create(metadata, rule, Scope::Cluster);
        let name = metadata
            .and_then(|it| it.get("name"))
            .and_then(Value::as_str);
        let (root, null) = (Path::Root, Value::Null);
        let path = root.field("spec");
        let spec = Fields::new(policy.get("spec").unwrap_or(&null), &path);
        let mut reader = Reader {
            spec,
            errors: &mut errors,
        };
        let ignores_errors = reader.failure_policy();
        let params = reader.params();
        let matching = reader.matching();
        let mut environments = Environments::new(dialect, params.is_some());
        let variables = reader.variables(&mut environments);
        let conditions = reader.conditions(&environments);
        let validations = reader.validations(&environments);
        let annotations = reader.annotations(&environments, name.unwrap_or_default());
        if validations.is_empty() && annotations.is_empty() {
            for field in ["validations", "auditAnnotations"] {
                let detail = "validations or auditAnnotations must be non-empty";
                errors.push(FieldError::required(path.field(field), detail));
            }
        }
        let policy = Self {
            name: name.unwrap_or_default().to_owned(),
            params,
            matching,
            conditions,
            variables,
            validations,
            annotations,
            ignores_errors,
        };
        (policy, errors)
    }
}

fn is_about_an_expression(error: &FieldError) -> bool {
    let compile = [
        "compilation failed: ",
        "program instantiation failed: ",
        "must evaluate to ",
    ];
    compile.iter().any(|start| error.detail.starts_with(start))
}

struct Reader<'a, 'e> {
    spec: Fields<'a>,
    errors: &'e mut Vec<FieldError>,
}

impl Reader<'_, '_> {
    fn failure_policy(&mut self) -> bool {
        let given = self.spec.text("failurePolicy", self.errors);
        if !["", "Fail", "Ignore"].contains(&given) {
            let path = self.spec.path.field("failurePolicy");
            let known = ["Fail", "Ignore"];
            self.errors
                .push(FieldError::not_supported(path, given.into(), known));
        }
        given == "Ignore"
    }

    fn params(&mut self) -> Option<ParamKind> {
        let value = self.spec.get("paramKind")?;
        let path = self.spec.path.field("paramKind");
        let fields = Fields::new(value, &path);
        let mut text = |name: &str| {
            let text = fields.text(name, self.errors);
            if text.is_empty() {
                self.errors.push(FieldError::required(path.field(name), ""));
            }
            text.to_owned()
        };
        Some(ParamKind {
            api_version: text("apiVersion"),
            kind: text("kind"),
        })
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

    /// An expression that has to be there.
    fn expression(
        &mut self,
        fields: Fields<'_>,
        name: &str,
        compile: impl FnOnce(&str) -> Compiled,
    ) -> (String, Compiled) {
        let source = fields.text(name, self.errors);
        let path = fields.path.field(name);
        if source.trim().is_empty() {
            let detail = format!("{name} is not specified");
            self.errors
                .push(FieldError::required(path, detail.as_str()));
            return (source.to_owned(), Err(detail));
        }
        let compiled = compile(source);
        if let Err(why) = &compiled {
            let source = source.into();
            self.errors
                .push(FieldError::invalid(path, source, why.as_str()));
        }
        (source.to_owned(), compiled)
    }

    fn duplicate(&mut self, earlier: &[Expression], name: &str, path: Path<'_>) {
        if earlier.iter().any(|one| one.name == name) {
            self.errors.push(FieldError::duplicate(path, name.into()));
        }
    }

    fn variables(&mut self, environments: &mut Environments) -> Vec<Expression> {
        let path = self.spec.path.field("variables");
        let mut variables = Vec::new();
        for (at, value) in self.spec.list("variables", self.errors).iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let name = fields.text("name", self.errors);
            let at = path.field("name");
            if name.is_empty() {
                let detail = "name is not specified";
                self.errors.push(FieldError::required(at, detail));
            } else if !name::c_identifier(name).is_empty() {
                let detail = "name is not a valid CEL identifier";
                self.errors
                    .push(FieldError::invalid(at, name.into(), detail));
            }
            self.duplicate(&variables, name, at);
            let compile = |source: &str| environments.compile(source, Wanted::Anything);
            let (source, compiled) = self.expression(fields, "expression", compile);
            environments.declare(name, &compiled);
            variables.push(Expression {
                name: name.to_owned(),
                source,
                compiled,
            });
        }
        variables
    }

    fn conditions(&mut self, environments: &Environments) -> Vec<Expression> {
        let path = self.spec.path.field("matchConditions");
        let list = self.spec.list("matchConditions", self.errors);
        if list.len() > MOST_MATCH_CONDITIONS {
            let (found, most) = (list.len() as u64, MOST_MATCH_CONDITIONS as u64);
            self.errors.push(FieldError::too_many(path, found, most));
        }
        let mut conditions = Vec::new();
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let compile = |source: &str| environments.compile(source, Wanted::Bool);
            let (source, compiled) = self.expression(fields, "expression", compile);
            let name = fields.text("name", self.errors);
            let at = path.field("name");
            if name.is_empty() {
                self.errors.push(FieldError::required(at, ""));
            } else {
                for detail in name::label_key(name) {
                    self.errors
                        .push(FieldError::invalid(at, name.into(), detail));
                }
            }
            self.duplicate(&conditions, name, at);
            conditions.push(Expression {
                name: name.to_owned(),
                source,
                compiled,
            });
        }
        conditions
    }

    fn validations(&mut self, environments: &Environments) -> Vec<Validation> {
        let path = self.spec.path.field("validations");
        let list = self.spec.list("validations", self.errors);
        let mut validations = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let compile = |source: &str| environments.compile(source, Wanted::Bool);
            let (source, compiled) = self.expression(fields, "expression", compile);
            validations.push(Validation {
                source,
                compiled,
                message: self.message(fields),
                message_expression: self.message_expression(fields, environments),
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
            "message must be non-empty if specified"
        } else if trimmed.contains(['\n', '\r']) {
            "message must not contain line breaks"
        } else {
            return trimmed.to_owned();
        };
        self.errors
            .push(FieldError::invalid(path, message.into(), detail));
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
            let detail = "must be non-empty if specified";
            self.errors
                .push(FieldError::invalid(path, source.into(), detail));
            return None;
        }
        let compiled = environments.compile_message(source);
        if let Err(why) = &compiled {
            self.errors
                .push(FieldError::invalid(path, source.into(), why.as_str()));
        }
        Some(compiled)
    }

    fn reason(&mut self, fields: Fields<'_>) -> String {
        let reason = fields.text("reason", self.errors);
        if !reason.is_empty() && !REASONS.contains(&reason) {
            let path = fields.path.field("reason");
            self.errors
                .push(FieldError::not_supported(path, reason.into(), REASONS));
        }
        match reason {
            "" => "Invalid".to_owned(),
            reason => reason.to_owned(),
        }
    }

    fn annotations(
        &mut self,
        environments: &Environments,
        policy: &str,
    ) -> Vec<Expression> {
        let path = self.spec.path.field("auditAnnotations");
        let list = self.spec.list("auditAnnotations", self.errors);
        if list.len() > MOST_AUDIT_ANNOTATIONS {
            let (found, most) = (list.len() as u64, MOST_AUDIT_ANNOTATIONS as u64);
            self.errors.push(FieldError::too_many(path, found, most));
        }
        let mut annotations = Vec::new();
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            let fields = Fields::new(value, &path);
            let key = fields.text("key", self.errors);
            let at = path.field("key");
            if key.is_empty() {
                self.errors.push(FieldError::required(at, ""));
            } else {
                // The annotation is published as `<policy>/<key>`.
                for detail in name::label_key(&format!("{policy}/{key}")) {
                    self.errors
                        .push(FieldError::invalid(at, key.into(), detail));
                }
            }
            self.duplicate(&annotations, key, at);
            let compile = |source: &str| environments.compile(source, Wanted::TextOrNull);
            let (source, compiled) = self.expression(fields, "valueExpression", compile);
            if source.trim().len() > MOST_VALUE_EXPRESSION_BYTES {
                let path = path.field("valueExpression");
                let most = MOST_VALUE_EXPRESSION_BYTES as u64;
                self.errors.push(FieldError::too_long(path, most));
            }
            annotations.push(Expression {
                name: key.to_owned(),
                source,
                compiled,
            });
        }
        annotations
    }
}
