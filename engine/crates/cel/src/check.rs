//! The type checker: assigns a type to every expression and overloads to every call.

mod aggregate;
mod call;
mod literals;
mod structure;

pub(crate) use structure::is_patch_type;

use std::sync::{Arc, LazyLock};

use crate::ast::{Expr, Kind};
use crate::error::{Checked, CompileError, CompileErrors};
use crate::library::Overloads;
use crate::parser::{Parsed, located};
use crate::unify::Substitutions;
use crate::{Env, Type, Value};
use kubemu_gostd::regexp::Pattern;

/// A checked expression with the checker's results, by expression id.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: Expr,
    pub(crate) types: Vec<Type>,
    pub(crate) references: References,
    /// The compiled patterns of literals, by expression id.
    patterns: Vec<(usize, Pattern)>,
}

impl Tree {
    /// The type of the whole expression.
    pub(crate) fn output(&self) -> &Type {
        self.types.get(self.root.id).unwrap_or(&Type::Error)
    }

    /// The compiled pattern of a literal, if it is one.
    pub(crate) fn pattern(&self, literal: &Expr) -> Option<&Pattern> {
        let mut patterns = self.patterns.iter();
        let found = patterns.find(|(id, _)| *id == literal.id);
        found.map(|(_, pattern)| pattern)
    }

    /// The results that are kept if no program can be made.
    pub(crate) fn summary(&self) -> Checked {
        let references = self.references.values();
        let variables = references.filter_map(|reference| match reference {
            Reference::Variable(name) => Some(Arc::clone(name)),
            _ => None,
        });
        Checked {
            output: self.output().clone(),
            variables: variables.collect(),
        }
    }
}

/// The declaration that a name or a call resolves to.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable, by its full name.
    Variable(Arc<str>),
    /// A type, by the name that `type(x)` returns.
    Type(Arc<str>),
    /// A call of these overloads; `receiver` is false if the target is part of the function's
    /// name.
    Call {
        overloads: Overloads,
        receiver: bool,
    },
}

/// The references of expressions, by expression id.
#[derive(Debug)]
pub(crate) struct References(Vec<Option<Reference>>);

impl References {
    fn of(ids: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(ids, || None);
        Self(all)
    }

    pub(crate) fn get(&self, id: usize) -> Option<&Reference> {
        self.0.get(id)?.as_ref()
    }

    fn insert(&mut self, id: usize, reference: Reference) {
        if let Some(place) = self.0.get_mut(id) {
            *place = Some(reference);
        }
    }

    fn values(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().flatten()
    }
}

/// Checks `root` against `env`.
///
/// # Errors
/// Every error, in order of position.
pub(crate) fn check(
    source: &str,
    parsed: Parsed,
    env: &Env,
) -> Result<Tree, CompileErrors> {
    let Parsed { root, ids, rooted } = parsed;
    let mut checker = Checker {
        env,
        rooted,
        scopes: Vec::new(),
        types: vec![Type::Error; ids],
        references: References::of(ids),
        substitutions: Substitutions::default(),
        given: Vec::new(),
        errors: Vec::new(),
    };
    checker.check(&root);
    if checker.errors.is_empty() {
        let mut types = checker.types;
        checker.substitutions.finish_all(&mut types);
        let patterns = literals::check(&root, &types, env.dialect(), &mut checker.errors);
        if checker.errors.is_empty() {
            return Ok(Tree {
                root,
                types,
                references: checker.references,
                patterns,
            });
        }
    }
    let mut errors: Vec<CompileError> = checker
        .errors
        .into_iter()
        .map(|(at, text)| located(source, at, text))
        .collect();
    errors.sort_by_key(|error| (error.line, error.column));
    Err(CompileErrors {
        source: source.to_owned(),
        errors,
        checked: None,
    })
}

struct Checker<'e> {
    env: &'e Env,
    /// The nodes whose names follow a leading dot; errors print the dot.
    rooted: Vec<usize>,
    /// The types of iteration and accumulator variables, innermost scope last.
    scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Type>,
    references: References,
    substitutions: Substitutions,
    /// The types of a call's operands; the allocation is reused for the next call.
    given: Vec<Type>,
    errors: Vec<(usize, String)>,
}

impl Checker<'_> {
    fn ty(&self, expr: &Expr) -> Type {
        self.types.get(expr.id).cloned().unwrap_or(Type::Error)
    }

    fn set(&mut self, expr: &Expr, ty: Type) {
        if let Some(slot) = self.types.get_mut(expr.id) {
            *slot = ty;
        }
    }

    fn report(&mut self, at: usize, text: String) {
        self.errors.push((at, text));
    }

    /// Most types of Kubernetes' libraries are objects without declared fields.
    fn without_fields(&mut self, at: usize, ty: &Type) -> Type {
        let name = ty.to_string();
        if name.starts_with("kubernetes.") {
            self.report(at, format!("unexpected failed resolution of '{name}'"));
            return Type::Error;
        }
        self.report(
            at,
            format!("type '{name}' does not support field selection"),
        );
        Type::Dyn
    }

    fn undeclared(&mut self, expr: &Expr, name: &str) {
        let dot = if self.rooted.contains(&expr.id) {
            "."
        } else {
            ""
        };
        self.report(
            expr.at,
            format!("undeclared reference to '{dot}{name}' (in container '')"),
        );
    }

    fn mismatch(&mut self, at: usize, wanted: &Type, found: &Type) {
        let (wanted, found) = (
            self.substitutions.apply(wanted),
            self.substitutions.apply(found),
        );
        self.report(at, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn check(&mut self, expr: &Expr) {
        let ty = match &expr.kind {
            Kind::Literal(value) => literal_type(value),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select {
                operand,
                field,
                test,
            } => self.select(expr, operand, field, *test),
            Kind::Call {
                target,
                function,
                args,
            } => self.call(expr, target.as_deref(), function, args),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.structure(expr, name, fields),
            Kind::Fold(fold) => self.fold(fold),
        };
        self.set(expr, ty);
    }

    // --- names

    fn ident(&mut self, expr: &Expr, name: &str) -> Type {
        if let Some((_, ty)) =
            self.scopes.iter().rev().find(|(known, _)| **known == *name)
        {
            return ty.clone();
        }
        self.declared(expr, name).unwrap_or_else(|| {
            self.undeclared(expr, name);
            Type::Error
        })
    }

    /// The type of a declared variable, or of a named type.
    fn declared(&mut self, expr: &Expr, name: &str) -> Option<Type> {
        let variables = self.env.variables();
        if let Some(known) = variables.iter().find(|known| *known.name == *name) {
            let reference = Reference::Variable(Arc::clone(&known.name));
            self.references.insert(expr.id, reference);
            return Some(known.plain.clone());
        }
        let known = named_type(name);
        let ty = match &known {
            Some((_, ty)) => ty.clone(),
            None => self.struct_type(name)?,
        };
        let name = known.map_or(name, |(name, _)| name);
        self.references
            .insert(expr.id, Reference::Type(Arc::from(name)));
        Some(Type::Type(Arc::new(ty)))
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Type {
        if !test && let Some(ty) = self.qualified(expr) {
            return ty;
        }
        let ty = self.field(expr.at, operand, field, false);
        if test {
            Type::Bool
        } else {
            self.substitutions.applied(ty)
        }
    }

    /// The type of a variable or type whose name contains dots.
    fn qualified(&mut self, expr: &Expr) -> Option<Type> {
        let root = expr.first_name()?;
        let variables = self.env.variables().iter();
        let of_patches = self.env.has_patches().then_some(structure::OBJECT);
        let mut namespaces = variables
            .filter_map(|known| known.name.split_once('.'))
            .map(|(first, _)| first)
            .chain(TYPE_NAMESPACES)
            .chain(of_patches);
        if !namespaces.any(|known| known == root)
            || self.scopes.iter().any(|(known, _)| **known == *root)
        {
            return None;
        }
        let name = expr.qualified_name()?;
        self.declared(expr, &name)
    }

    fn field(&mut self, at: usize, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.substitutions.applied(self.ty(operand));
        let (target, was_optional) = match operand {
            Type::Optional(inner) => ((*inner).clone(), true),
            other => (other, false),
        };
        let ty = match &target {
            Type::Map(map) => map.value.clone(),
            Type::Object(object) => {
                if let Some(found) = object.field_type(field) {
                    found.clone()
                } else {
                    self.report(at, format!("undefined field '{field}'"));
                    Type::Error
                }
            }
            Type::Param(_) => {
                self.substitutions.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => self.without_fields(at, other),
        };
        match ty {
            Type::Dyn if was_optional || optional => OPTIONAL_DYN.clone(),
            ty if was_optional || optional => Type::optional(ty),
            ty => ty,
        }
    }
}

/// The type of a field of an object without a declared type, if the field may be absent.
static OPTIONAL_DYN: LazyLock<Type> = LazyLock::new(|| Type::optional(Type::Dyn));

fn literal_type(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        _ => Type::Dyn,
    }
}

/// The first parts of the type names that contain dots.
const TYPE_NAMESPACES: [&str; 3] = ["google", "net", "kubernetes"];

/// A type that expressions can name, with its name at run time.
fn named_type(name: &str) -> Option<(&'static str, Type)> {
    Some(match name {
        "bool" => ("bool", Type::Bool),
        "int" => ("int", Type::Int),
        "uint" => ("uint", Type::Uint),
        "double" => ("double", Type::Double),
        "string" => ("string", Type::String),
        "bytes" => ("bytes", Type::Bytes),
        "list" => ("list", Type::list(Type::Dyn)),
        "map" => ("map", Type::map_of(Type::Dyn, Type::Dyn)),
        "null_type" => ("null_type", Type::Null),
        "type" => ("type", Type::Type(Arc::new(Type::Dyn))),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "optional_type" => ("optional_type", Type::optional(Type::Dyn)),
        "net.IP" => ("net.IP", Type::named_abstract("net.IP")),
        "net.CIDR" => ("net.CIDR", Type::named_abstract("net.CIDR")),
        "kubernetes.URL" => ("kubernetes.URL", Type::named_abstract("kubernetes.URL")),
        "kubernetes.Quantity" => (
            "kubernetes.Quantity",
            Type::named_abstract("kubernetes.Quantity"),
        ),
        "kubernetes.Semver" => (
            "kubernetes.Semver",
            Type::named_abstract("kubernetes.Semver"),
        ),
        _ => return None,
    })
}
