//! Type checks a policy's expressions with the schemas of the kinds it matches: the content of
//! `status.typeChecking`, which an API server writes some time after the policy was stored.

use kubemu_cel::{CompileErrors, Dialect, ObjectType, Program, Type};
use serde_json::Value;

use super::expression::Environments;
use super::known_kind::KnownKind;
use crate::crd::Crd;
use crate::field::Path;
use crate::{FieldError, KubeVersion};

/// The maximum number of kinds that are checked.
const MAX_KINDS: usize = 10;

/// An expression that fails the type check, as in `status.typeChecking.expressionWarnings`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionWarning {
    /// The index of the validation.
    pub validation: usize,
    /// The field of the validation: `expression` or `messageExpression`.
    pub name: &'static str,
    /// The kind and the error, as the API server prints them; several are separated by an empty
    /// line.
    pub warning: String,
}

impl ExpressionWarning {
    /// The field of the policy, such as `spec.validations[0].expression`.
    pub fn field(&self) -> String {
        format!("spec.validations[{}].{}", self.validation, self.name)
    }

    /// The warning as an error of `policy`; no API server rejects a policy for it.
    pub fn error(&self, policy: &Value) -> FieldError {
        let (spec, at) = (Path::Root.field("spec"), self.validation);
        let validations = spec.field("validations");
        let validation = validations.index(at);
        let source = policy["spec"]["validations"][at][self.name].clone();
        let detail = self.warning.trim_end();
        FieldError::invalid(validation.field(self.name), source, detail)
    }
}

/// One kind that a policy matches by name.
struct Matched<'a> {
    /// `<group>/<version>, Kind=<kind>`.
    title: (&'a str, &'a str, &'a str),
    ty: Type,
}

/// The kinds with known schemas.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a> {
    pub(super) definitions: &'a [&'a Crd],
    pub(super) known: &'a [KnownKind<'a>],
}

/// Checks the validations of `policy`, and their message expressions, with the kinds among
/// `schemas` that it matches by name; wildcards match no kinds here.
/// [`Policy::compile`](super::Policy::compile) reports the errors of the policy itself.
pub(super) fn check(
    policy: &Value,
    schemas: Schemas<'_>,
    version: KubeVersion,
) -> Vec<ExpressionWarning> {
    let spec = &policy["spec"];
    let kinds = schemas.matched(&spec["matchConstraints"]);
    let dialect = version.dialect_of_stored();
    let params = spec.get("paramKind").filter(|it| !it.is_null());
    let params = params.map(|kind| schemas.params(kind));
    let environments: Vec<Environments> = kinds
        .iter()
        .map(|kind| environment(spec, (&kind.ty, params.as_ref()), dialect))
        .collect();
    let mut warnings = Vec::new();
    for (at, validation) in items(&spec["validations"]).enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = validation[field].as_str().unwrap_or_default();
            if source.is_empty() {
                continue;
            }
            let found = kinds.iter().zip(&environments).filter_map(|(kind, known)| {
                let errors = known.check(source).err()?;
                let (group, version, kind) = kind.title;
                Some(format!("{group}/{version}, Kind={kind}: {errors}\n"))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                warnings.push(ExpressionWarning {
                    validation: at,
                    name: field,
                    warning: found.join("\n"),
                });
            }
        }
    }
    warnings
}

impl Environments {
    /// Whether an expression compiles, with any result type.
    fn check(&self, source: &str) -> Result<(), CompileErrors> {
        Program::compile(source, self.with_authorizer()).map(|_| ())
    }
}

/// The environments of the expressions, with the policy's variables. A variable that does not
/// compile is dynamic, so that its uses cause no warnings.
fn environment(
    spec: &Value,
    (object, params): (&Type, Option<&Type>),
    dialect: Dialect,
) -> Environments {
    let mut known = Environments::typed(dialect, object, params);
    for variable in items(&spec["variables"]) {
        let text = |field: &str| variable[field].as_str().unwrap_or_default();
        known.compose();
        let compiled = known.compile_any(text("expression"));
        known.declare(text("name"), &compiled);
    }
    known
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

impl<'a> Schemas<'a> {
    /// The kinds that resource rules name, sorted by name.
    fn matched(self, constraints: &Value) -> Vec<Matched<'a>> {
        let mut found: Vec<Matched<'a>> = Vec::new();
        for rule in items(&constraints["resourceRules"]) {
            let names = |field: &str| -> Vec<&str> {
                items(&rule[field]).filter_map(Value::as_str).collect()
            };
            let (groups, versions) = (names("apiGroups"), names("apiVersions"));
            if groups.iter().chain(&versions).any(|it| it.contains('*')) {
                continue;
            }
            let named = RuleNames {
                groups: &groups,
                versions: &versions,
                resources: &names("resources"),
            };
            self.named(&named, &mut found);
        }
        found.sort_by_key(|it| it.title);
        found.truncate(MAX_KINDS);
        found
    }

    /// Adds the kinds that one rule names, each once.
    fn named(self, named: &RuleNames<'_>, found: &mut Vec<Matched<'a>>) {
        for definition in self.definitions {
            let (group, plural) = (definition.group(), definition.plural());
            let versions = definition.versions().iter();
            for version in versions
                .filter(|it| it.is_served() && named.has(group, it.name(), plural))
            {
                let title = (group, version.name(), definition.kind());
                if let (Some((ty, _)), true) = (version.declared(), is_new(found, title))
                {
                    let ty = with_metadata(&ty);
                    found.push(Matched { title, ty });
                }
            }
        }
        for kind in self.known {
            let title = (kind.group, kind.version, kind.kind);
            if named.has(kind.group, kind.version, kind.resource)
                && is_new(found, title)
                && let Some(ty) = kind.ty()
            {
                found.push(Matched { title, ty });
            }
        }
    }

    /// The type of the parameters; dynamic if there is no schema.
    fn params(self, kind: &Value) -> Type {
        let text = |field: &str| kind[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let mut all = self.definitions.iter();
        let found = all.find(|it| (it.group(), it.kind()) == (group, kind));
        let declared = found.and_then(|it| it.served(version)?.declared());
        if let Some((ty, _)) = declared {
            return with_metadata(&ty);
        }
        let named = (group, version, kind);
        let mut known = self.known.iter();
        let found = known.find(|it| (it.group, it.version, it.kind) == named);
        found.and_then(KnownKind::ty).unwrap_or(Type::Dyn)
    }
}

/// The names in one resource rule.
struct RuleNames<'r> {
    groups: &'r [&'r str],
    versions: &'r [&'r str],
    resources: &'r [&'r str],
}

impl RuleNames<'_> {
    fn has(&self, group: &str, version: &str, resource: &str) -> bool {
        self.groups.contains(&group)
            && self.versions.contains(&version)
            && self.resources.contains(&resource)
    }
}

fn is_new(found: &[Matched<'_>], title: (&str, &str, &str)) -> bool {
    !found.iter().any(|it| it.title == title)
}

/// A policy sees all of `metadata`, of which a rule of a definition only sees two fields.
fn with_metadata(ty: &Type) -> Type {
    let Type::Object(object) = ty else {
        return ty.clone();
    };
    let others = object
        .fields()
        .filter(|(_, field)| *field.json != *"metadata")
        .map(|(_, field)| (field.json.clone(), field.ty.clone()));
    let metadata = ("metadata".into(), metadata());
    let fields = others.chain([metadata]);
    Type::object(ObjectType::new(fields).named(object.name()))
}

fn metadata() -> Type {
    let texts = |names: &[&'static str]| -> Vec<(&'static str, Type)> {
        names.iter().map(|name| (*name, Type::String)).collect()
    };
    let object = |name: &str, fields: Vec<(&'static str, Type)>| {
        Type::object(ObjectType::new(fields).named(name))
    };
    let mut owner = texts(&["apiVersion", "kind", "name", "uid"]);
    owner.push(("blockOwnerDeletion", Type::Bool));
    owner.push(("controller", Type::Bool));
    let mut entry = texts(&[
        "apiVersion",
        "fieldsType",
        "manager",
        "operation",
        "subresource",
    ]);
    entry.push(("time", Type::Timestamp));
    entry.push((
        "fieldsV1",
        object("metadata.managedFields.fieldsV1", Vec::new()),
    ));
    let mut fields = texts(&[
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
    ]);
    fields.extend([
        ("generation", Type::Int),
        ("creationTimestamp", Type::Timestamp),
        ("deletionTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("labels", Type::map(Type::String)),
        ("annotations", Type::map(Type::String)),
        ("finalizers", Type::list(Type::String)),
        (
            "ownerReferences",
            Type::list(object("metadata.ownerReferences", owner)),
        ),
        (
            "managedFields",
            Type::list(object("metadata.managedFields", entry)),
        ),
    ]);
    object("metadata", fields)
}
