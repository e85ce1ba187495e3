//! A compiled `ValidatingAdmissionPolicy`.

use kubemu_cel::{Dialect, Paths};
use serde_json::Value;

use super::expression::Compiled;
use super::fields::Fields;
use super::known_kind::KnownKind;
use super::matching::Matching;
use super::registration::Reader;
use super::resolver::ParamKind;
use super::type_check::{self, ExpressionWarning, Schemas};
use crate::crd::Crd;
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::{FieldError, KubeVersion};

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
    /// Whether evaluation errors are ignored (`failurePolicy: Ignore`).
    pub(super) ignores_errors: bool,
    /// The paths that the expressions share.
    pub(super) paths: Paths,
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
    /// Compiles a policy as the API server of `version` does at its creation.
    ///
    /// # Errors
    /// The API server's errors, with paths that start at `metadata` or `spec`.
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

    /// Compiles a stored policy: an expression that does not compile, for example after a
    /// downgrade, fails when it is evaluated.
    ///
    /// # Errors
    /// The errors that are not about expressions.
    pub fn stored(policy: &Value, version: KubeVersion) -> Result<Self, Vec<FieldError>> {
        let (policy, mut errors) = Self::read(policy, version.dialect_of_stored());
        errors.retain(|error| !is_about_an_expression(error));
        if errors.is_empty() {
            Ok(policy)
        } else {
            Err(errors)
        }
    }

    /// The API server's `status.typeChecking` of a policy: the expressions that do not fit the
    /// schemas of `definitions`, and of the kinds `known`, that the policy matches by name.
    /// Empty if all fit, or if no kind is matched.
    ///
    /// A warning does not reject the policy; an expression that does not fit fails, or is never
    /// true, for the objects of that kind.
    pub fn type_check(
        policy: &Value,
        definitions: &[&Crd],
        known: &[KnownKind<'_>],
        version: KubeVersion,
    ) -> Vec<ExpressionWarning> {
        type_check::check(policy, Schemas { definitions, known }, version)
    }

    /// The policy's name.
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
        let name = name.unwrap_or_default();
        let policy = Reader {
            policy: name,
            spec,
            errors: &mut errors,
        }
        .policy(dialect);
        (policy, errors)
    }
}

pub(super) fn is_about_an_expression(error: &FieldError) -> bool {
    let compile = [
        "compilation failed: ",
        "program instantiation failed: ",
        "must evaluate to ",
    ];
    compile.iter().any(|start| error.detail.starts_with(start))
}
