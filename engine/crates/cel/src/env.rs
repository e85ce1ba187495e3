//! The environment that expressions are compiled in.

use std::sync::Arc;

use crate::{Dialect, Paths, Type};

/// The dialect and the variables that expressions are compiled against.
#[derive(Clone, Debug)]
pub struct Env {
    dialect: Dialect,
    variables: Vec<Variable>,
    paths: Option<Paths>,
    /// Whether expressions may create patches.
    patches: bool,
    /// Whether expressions may bind names.
    bindings: bool,
}

/// A declared variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    /// The type that its JSON is read with.
    pub(crate) ty: Type,
    /// The type that the checker uses.
    pub(crate) plain: Type,
}

impl Env {
    /// An environment without variables.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            variables: Vec::new(),
            paths: None,
            patches: false,
            bindings: false,
        }
    }

    /// Declares a variable; a second declaration of a name replaces the first.
    #[must_use]
    pub fn variable(mut self, name: impl Into<Arc<str>>, ty: Type) -> Self {
        let name = name.into();
        self.variables.retain(|known| known.name != name);
        self.variables.push(Variable {
            name,
            plain: ty.plain(),
            ty,
        });
        self
    }

    /// Adds the declarations for mutations of a MutatingAdmissionPolicy: the types `Object`,
    /// `Object.spec` and so on, the type `JSONPatch`, and `jsonpatch.escapeKey`.
    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    pub(crate) fn has_patches(&self) -> bool {
        self.patches
    }

    /// Adds the macro `cel.bind(name, value, expression)`.
    #[must_use]
    pub fn with_bindings(mut self) -> Self {
        self.bindings = true;
        self
    }

    pub(crate) fn has_bindings(&self) -> bool {
        self.bindings
    }

    /// Numbers the paths that programs follow, so that programs can share the targets.
    #[must_use]
    pub fn with_paths(mut self, paths: Paths) -> Self {
        self.paths = Some(paths);
        self
    }

    pub(crate) fn paths(&self) -> Option<&Paths> {
        self.paths.as_ref()
    }

    /// The dialect expressions are compiled in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }
}
