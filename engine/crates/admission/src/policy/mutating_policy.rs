//! A compiled `MutatingAdmissionPolicy`.

use kubemu_cel::Dialect;
use serde_json::Value;

use super::definition::{Policy, is_about_an_expression};
use super::expression::{Compiled, Environments, ExpectedType};
use super::fields::Fields;
use super::registration::Reader;
use super::resolver::ParamKind;
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::{FieldError, KubeVersion};

/// A compiled `MutatingAdmissionPolicy`.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// The parts that it has in common with a validating policy.
    pub(super) policy: Policy,
    pub(super) mutations: Vec<Mutation>,
    /// Whether it is reinvoked if the object is changed after it (`reinvocationPolicy`).
    pub(super) reinvokes: bool,
}

/// One entry of `mutations`.
#[derive(Debug)]
pub(super) struct Mutation {
    pub(super) kind: PatchType,
    pub(super) source: String,
    pub(super) compiled: Compiled,
}

/// The type of a mutation's patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchType {
    /// An object that is merged (`ApplyConfiguration`).
    ApplyConfiguration,
    /// The operations of a JSON patch.
    JsonPatch,
}

impl PatchType {
    const ALL: [Self; 2] = [Self::ApplyConfiguration, Self::JsonPatch];

    /// The name in `patchType`.
    const fn name(self) -> &'static str {
        match self {
            Self::ApplyConfiguration => "ApplyConfiguration",
            Self::JsonPatch => "JSONPatch",
        }
    }

    /// The field that contains its expression.
    const fn field(self) -> &'static str {
        match self {
            Self::ApplyConfiguration => "applyConfiguration",
            Self::JsonPatch => "jsonPatch",
        }
    }

    const fn expected_type(self) -> ExpectedType {
        match self {
            Self::ApplyConfiguration => ExpectedType::Object,
            Self::JsonPatch => ExpectedType::Operations,
        }
    }
}

impl MutatingPolicy {
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

    /// The policy's name.
    pub fn name(&self) -> &str {
        self.policy.name()
    }

    /// The kind of its parameters, if it has any.
    pub const fn param_kind(&self) -> Option<&ParamKind> {
        self.policy.param_kind()
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
        let policy = Reader {
            policy: name.unwrap_or_default(),
            spec,
            errors: &mut errors,
        }
        .mutating_policy(dialect);
        (policy, errors)
    }
}

/// Adds errors for operations in the rules of `field` that have no object to mutate. The API
/// server's error has no rule index.
pub(super) fn check_operations(
    spec: Fields<'_>,
    field: &str,
    errors: &mut Vec<FieldError>,
) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let rules = spec.get(field).and_then(|it| it.get("resourceRules"));
    let rules = rules.and_then(Value::as_array).into_iter().flatten();
    let operations = rules.filter_map(|rule| rule.get("operations")?.as_array());
    let others = operations
        .flatten()
        .filter_map(Value::as_str)
        .filter(|it| !KNOWN.contains(it));
    let (rules, path) = (spec.path.field(field), "operations");
    let rules = rules.field("resourceRules");
    errors.extend(others.map(|it| {
        FieldError::not_supported(rules.field(path), it.into(), KNOWN).of_named_type()
    }));
}

impl Reader<'_, '_> {
    pub(super) fn mutations(&mut self, environments: &Environments) -> Vec<Mutation> {
        let path = self.spec.path.field("mutations");
        let list = self.spec.list("mutations", self.errors);
        if list.is_empty() {
            let detail = "mutations must contain at least one item";
            self.errors.push(FieldError::required(path, detail));
        }
        let mut mutations = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            let path = path.index(at);
            mutations.extend(self.mutation(Fields::new(value, &path), environments));
        }
        mutations
    }

    fn mutation(
        &mut self,
        fields: Fields<'_>,
        environments: &Environments,
    ) -> Option<Mutation> {
        let path = fields.path;
        let given = fields.text("patchType", self.errors);
        let Some(kind) = PatchType::ALL.into_iter().find(|it| it.name() == given) else {
            let at = path.field("patchType");
            self.errors.push(match given {
                "" => FieldError::required(at, ""),
                other => {
                    let known = PatchType::ALL.map(PatchType::name);
                    FieldError::not_supported(at, other.into(), known).of_named_type()
                }
            });
            return None;
        };
        let (own, name) = (kind.field(), kind.name());
        let mutation = match fields.get(own) {
            None => {
                let detail = format!("must be specified when patchType is {name}");
                self.errors
                    .push(FieldError::required(path.field(own), detail));
                None
            }
            Some(value) => {
                let at = path.field(own);
                let fields = Fields::new(value, &at);
                Some(self.patch_expression(fields, kind, environments))
            }
        };
        for other in PatchType::ALL.into_iter().filter(|it| *it != kind) {
            let other = other.field();
            if fields.get(other).is_some() {
                let detail = format!("must not be specified when patchType is {name}");
                self.refuse(path.field(other), &format!("{{{other}}}"), &detail);
            }
        }
        mutation
    }

    fn patch_expression(
        &mut self,
        fields: Fields<'_>,
        kind: PatchType,
        environments: &Environments,
    ) -> Mutation {
        let source = fields.text("expression", self.errors);
        let path = fields.path.field("expression");
        let trimmed = source.trim();
        let compiled = if trimmed.is_empty() {
            self.errors.push(FieldError::required(path, ""));
            Err(String::new())
        } else {
            let compiled = environments.compile_patch(trimmed, kind.expected_type());
            if let Err(why) = &compiled {
                self.refuse_expression(path, trimmed, why);
            }
            compiled
        };
        Mutation {
            kind,
            source: source.to_owned(),
            compiled,
        }
    }

    /// Reads `reinvocationPolicy`; returns whether it is `IfNeeded`.
    pub(super) fn reinvocation_policy(&mut self) -> bool {
        let known = ["IfNeeded", "Never"];
        let given = self.spec.text("reinvocationPolicy", self.errors);
        let path = self.spec.path.field("reinvocationPolicy");
        if given.is_empty() {
            self.errors.push(FieldError::required(path, ""));
        } else if !known.contains(&given) {
            let error = FieldError::not_supported(path, given.into(), known);
            self.errors.push(error.of_named_type());
        }
        given == "IfNeeded"
    }
}
