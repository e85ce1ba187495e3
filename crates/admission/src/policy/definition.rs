//! A `ValidatingAdmissionPolicy`, compiled.

use fivespot_cel::{Dialect, Paths};
use serde_json::Value;

use super::expression::Compiled;
use super::fields::Fields;
use super::known_kind::KnownKind;
use super::matching::Matching;
use super::registration::Reader;
use super::type_check::{self, ExpressionWarning, Schemas};
use super::world::ParamKind;
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
    /// Whether what cannot be evaluated is admitted.
    pub(super) ignores_errors: bool,
    /// What the expressions read again and again.
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

    /// What the server would write into `status.typeChecking` of a policy: which expressions do
    /// not fit those of `definitions` and of the kinds `known` besides that it matches by name.
    /// Empty where all fit, and where none is matched.
    ///
    /// A warning refuses nothing; an expression that does not fit fails, or is never true, for
    /// the objects of that kind.
    pub fn type_check(
        policy: &Value,
        definitions: &[&Crd],
        known: &[KnownKind<'_>],
        version: KubeVersion,
    ) -> Vec<ExpressionWarning> {
        type_check::check(policy, Schemas { definitions, known }, version)
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
