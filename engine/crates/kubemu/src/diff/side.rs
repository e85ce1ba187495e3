//! The definitions and policies of one side, as they are given.

use std::path::PathBuf;

use kubemu_terminal::Failure;
use serde_json::Value;

use crate::document::{self, Document};
use crate::validate::judge::{Cast, binding_of};

/// The kinds that are compared.
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
const DEFINITION: &str = "CustomResourceDefinition";

/// One side.
pub(super) struct Side {
    pub(super) cast: Cast,
    /// How many objects of other kinds there are.
    pub(super) ignored: usize,
}

/// The objects that both sides have.
pub(super) struct Shared {
    pub(super) definitions: Vec<Document>,
    pub(super) params: Vec<Document>,
}

impl Side {
    /// Reads one side.
    ///
    /// # Errors
    /// The path cannot be read, or has no definition and no policy.
    pub(super) fn read(path: &PathBuf, shared: &Shared) -> Result<Self, Failure> {
        let documents = document::read(std::slice::from_ref(path))?;
        let mut side = Self {
            cast: Cast {
                definitions: shared.definitions.clone(),
                params: shared.params.clone(),
                ..Cast::default()
            },
            ignored: 0,
        };
        let mut found = 0;
        for document in documents {
            match document.text("/kind") {
                DEFINITION => side.cast.definitions.push(document),
                POLICY | BINDING => side.cast.policies.push(document),
                _ => {
                    side.ignored += 1;
                    continue;
                }
            }
            found += 1;
        }
        if found == 0 {
            let what = format!("reading {}", path.display());
            let why = format!("it contains no {DEFINITION} and no {POLICY}");
            return Err(Failure::new(what, why).remedy("give files that contain them"));
        }
        side.bind_all();
        Ok(side)
    }

    /// Binds each policy that has no binding, because a policy without one decides nothing.
    fn bind_all(&mut self) {
        let policies: Vec<String> = self.policies().map(name).collect();
        for policy in policies {
            if self.bindings_of(&policy).next().is_none() {
                self.cast.policies.push(binding_of(&policy));
            }
        }
    }

    /// The definitions, the last of several with the same name.
    pub(super) fn definition(&self, group: &str, kind: &str) -> Option<&Value> {
        let is_kind = |it: &&Value| {
            it["spec"]["group"] == group && it["spec"]["names"]["kind"] == kind
        };
        let mut all = self.cast.definitions.iter().map(|it| &it.object);
        all.rfind(is_kind)
    }

    pub(super) fn policies(&self) -> impl Iterator<Item = &Value> {
        let all = self.cast.policies.iter().map(|it| &it.object);
        all.filter(|it| it["kind"] == POLICY)
    }

    pub(super) fn bindings_of<'a>(
        &'a self,
        policy: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let all = self.cast.policies.iter().map(|it| &it.object);
        all.filter(move |it| it["kind"] == BINDING && it["spec"]["policyName"] == policy)
    }
}

/// The name of an object.
pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
