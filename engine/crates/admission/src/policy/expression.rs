//! The environments of a policy's expressions, and their compilation.

use std::cell::OnceCell;
use std::sync::LazyLock;

use kubemu_cel::{Dialect, Env, ObjectType, Paths, Program, Type};

use crate::crd_rules::compilation_failed;

/// A compiled expression, or its compile error.
pub(super) type Compiled = Result<Program, String>;

/// The environments in which the expressions of one policy are compiled.
#[derive(Debug)]
pub(super) struct Environments {
    base: Env,
    /// `None` for expressions without `variables`, which is then undeclared.
    variables: Option<Vec<(String, Type)>>,
    cache: EnvCache,
}

/// The environments made from the base and the variables; discarded when a variable is
/// declared.
#[derive(Debug, Default)]
struct EnvCache {
    plain: OnceCell<Env>,
    with_authorizer: OnceCell<Env>,
    with_resource_check: OnceCell<Env>,
    with_patches: OnceCell<Env>,
}

impl Environments {
    /// Environments with objects and parameters of dynamic type.
    pub(super) fn new(dialect: Dialect, has_params: bool) -> Self {
        Self::typed(dialect, &Type::Dyn, has_params.then_some(&Type::Dyn))
    }

    /// Environments with objects of one type, and parameters of another if there are any.
    pub(super) fn typed(dialect: Dialect, object: &Type, params: Option<&Type>) -> Self {
        let base = Env::new(dialect)
            .variable("object", object.clone())
            .variable("oldObject", object.clone())
            .variable("namespaceObject", namespace())
            .variable("request", request());
        let base = match params {
            Some(params) => base.variable("params", params.clone()),
            None => base,
        };
        Self {
            base,
            variables: None,
            cache: EnvCache::default(),
        }
    }

    /// Numbers the paths that start at variables with the same value for all expressions of one
    /// evaluation.
    pub(super) fn number_paths(&mut self) -> Paths {
        let paths = Paths::of(&["object", "oldObject", "params"]);
        self.base = self.base.clone().with_paths(paths.clone());
        self.cache = EnvCache::default();
        paths
    }

    /// Declares `variables` for the expressions that are compiled after this call.
    pub(super) fn compose(&mut self) {
        if self.variables.is_none() {
            self.variables = Some(Vec::new());
            self.cache = EnvCache::default();
        }
    }

    /// Declares `variables.<name>` too.
    pub(super) fn declare(&mut self, name: &str, compiled: &Compiled) {
        let ty = match compiled {
            Ok(program) => composed_type(program.output_type()),
            Err(_) => Type::Dyn,
        };
        let variables = self.variables.get_or_insert_default();
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), ty));
        self.cache = EnvCache::default();
    }

    /// Compiles an expression that may use the authorizer, as all but messages may.
    pub(super) fn compile(&self, source: &str, expected: ExpectedType) -> Compiled {
        compile(source, self.with_resource_check(), expected)
    }

    /// Compiles the expression of a mutation.
    pub(super) fn compile_patch(&self, source: &str, expected: ExpectedType) -> Compiled {
        let env = self
            .cache
            .with_patches
            .get_or_init(|| self.with_resource_check().clone().with_patches());
        compile(source, env, expected)
    }

    fn with_resource_check(&self) -> &Env {
        self.cache.with_resource_check.get_or_init(|| {
            let check = Type::named_abstract("kubernetes.authorization.ResourceCheck");
            let env = self.with_authorizer().clone();
            env.variable("authorizer.requestResource", check)
        })
    }

    /// Compiles an expression of any type, as the type check does.
    pub(super) fn compile_any(&self, source: &str) -> Compiled {
        compile(source, self.with_authorizer(), ExpectedType::Anything)
    }

    pub(super) fn with_authorizer(&self) -> &Env {
        self.cache.with_authorizer.get_or_init(|| {
            let authorizer = Type::named_abstract("kubernetes.authorization.Authorizer");
            self.env().clone().variable("authorizer", authorizer)
        })
    }

    /// Compiles the expression of a message.
    pub(super) fn compile_message(&self, source: &str) -> Compiled {
        compile(source, self.env(), ExpectedType::Text)
    }

    fn env(&self) -> &Env {
        let Some(variables) = &self.variables else {
            return &self.base;
        };
        self.cache.plain.get_or_init(|| {
            let variables =
                ObjectType::new(variables.clone()).named("kubernetes.variables");
            self.base
                .clone()
                .variable("variables", Type::object(variables))
        })
    }
}

/// The type of a composed variable where it is used: the API server keeps primitive types, and
/// lists and maps of them, and treats all others as dynamic.
fn composed_type(ty: &Type) -> Type {
    match ty {
        Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Timestamp
        | Type::Duration => ty.clone(),
        Type::List(list) => Type::list(composed_type(&list.item)),
        Type::Map(map) => {
            Type::map_of(composed_type(&map.key), composed_type(&map.value))
        }
        _ => Type::Dyn,
    }
}

/// The required result type of an expression.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ExpectedType {
    Bool,
    Text,
    TextOrNull,
    Anything,
    /// An object to merge.
    Object,
    /// The operations of a JSON patch.
    Operations,
}

fn compile(source: &str, env: &Env, expected: ExpectedType) -> Compiled {
    match Program::compile(source, env) {
        Ok(program) => {
            expect(program.output_type(), expected)?;
            Ok(program)
        }
        Err(errors) => {
            // An error of the result type takes precedence over an error in the creation of a
            // program.
            if let Some(found) = errors.output_type() {
                expect(found, expected)?;
            }
            Err(compilation_failed("", &errors))
        }
    }
}

/// Rejects a result of another type than the required one.
fn expect(found: &Type, expected: ExpectedType) -> Result<(), String> {
    let (fits, words) = match expected {
        ExpectedType::Bool => (*found == Type::Bool, "bool"),
        ExpectedType::Text => (*found == Type::String, "string"),
        ExpectedType::TextOrNull => (
            matches!(found, Type::String | Type::Null),
            "one of [string null_type]",
        ),
        ExpectedType::Anything => (true, ""),
        ExpectedType::Object => (found.to_string() == "Object", "Object"),
        ExpectedType::Operations => {
            let words = "list(JSONPatch)";
            (found.to_string() == words, words)
        }
    };
    if fits {
        return Ok(());
    }
    let found = found
        .to_string()
        .replace("timestamp", "google.protobuf.Timestamp")
        .replace("duration", "google.protobuf.Duration");
    Err(format!("must evaluate to {words} but got {found}"))
}

fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields.iter().map(|(field, ty)| (*field, ty.clone()));
    Type::object(ObjectType::new(fields).named(name))
}

/// The type of `request`.
fn request() -> Type {
    static REQUEST: LazyLock<Type> = LazyLock::new(declared_request);
    REQUEST.clone()
}

fn declared_request() -> Type {
    let text = || Type::String;
    let kind = object(
        "kubernetes.GroupVersionKind",
        &[("group", text()), ("version", text()), ("kind", text())],
    );
    let resource = object(
        "kubernetes.GroupVersionResource",
        &[("group", text()), ("version", text()), ("resource", text())],
    );
    let user = object(
        "kubernetes.UserInfo",
        &[
            ("username", text()),
            ("uid", text()),
            ("groups", Type::list(text())),
            ("extra", Type::map(Type::list(text()))),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// The type of `namespaceObject`; it does not contain every field of a namespace.
fn namespace() -> Type {
    static NAMESPACE: LazyLock<Type> = LazyLock::new(declared_namespace);
    NAMESPACE.clone()
}

fn declared_namespace() -> Type {
    let text = || Type::String;
    let spec = object(
        "kubernetes.NamespaceSpec",
        &[("finalizers", Type::list(text()))],
    );
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Type::Timestamp),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let status = object(
        "kubernetes.NamespaceStatus",
        &[("conditions", Type::list(condition)), ("phase", text())],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", Type::map(text())),
            ("annotations", Type::map(text())),
            ("UID", text()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", text()),
            ("finalizers", Type::list(text())),
        ],
    );
    object(
        "kubernetes.Namespace",
        &[("metadata", metadata), ("spec", spec), ("status", status)],
    )
}
