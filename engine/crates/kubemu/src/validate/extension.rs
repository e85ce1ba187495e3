//! What a program adds to the validation of manifests.

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::object_result::Level;
use crate::document::Document;

/// Definitions, policies, rules and lints of a program's own.
pub trait Extension: Sync {
    /// The program, as reports name it.
    fn program(&self) -> Program;

    /// CRDs that need not be given. They must be valid.
    fn definitions(&self, _version: KubeVersion) -> Vec<Value> {
        Vec::new()
    }

    /// Policies and bindings that need not be given. They must be valid.
    fn policies(&self, _version: KubeVersion) -> Vec<Value> {
        Vec::new()
    }

    /// Rewrites an object of an older group as one of the current group.
    fn to_current_group(&self, _object: &mut Value) {}

    /// The lints about one object.
    fn lints(&self, _object: &Value) -> Vec<Lint> {
        Vec::new()
    }

    /// The lints about several objects together, each with the index of its document. Objects
    /// without a namespace are in `namespace`.
    fn lints_of_all(
        &self,
        _documents: &[Document],
        _namespace: &str,
    ) -> Vec<(usize, Lint)> {
        Vec::new()
    }

    /// The id of the rule with this message, if it is one of the program.
    fn rule(&self, _field: &str, _message: &str) -> Option<&'static str> {
        None
    }

    /// What a rule or a lint of the program requires, and why.
    fn description(&self, _id: &str) -> Option<Description> {
        None
    }
}

/// A program, as reports name it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The URL of its sources.
    pub repository: &'static str,
}

/// A warning about a legal but suspicious setting.
#[derive(Clone, Debug)]
pub struct Lint {
    /// Its stable code.
    pub code: &'static str,
    /// The field that it concerns.
    pub field: String,
    /// What was found, in one sentence.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// Whether it makes the object invalid.
    pub level: Level,
}

/// What a rule requires, and why.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What it requires.
    pub short: &'static str,
    /// Why it exists.
    pub full: &'static str,
}
