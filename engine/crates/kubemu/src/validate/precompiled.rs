//! CRDs and policies that several engines have: compiled once.

use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::Crd;
use kubemu_admission::policy::Policy;
use serde_json::Value;

use crate::document::Document;

/// Compiled CRDs and policies, each with its text. What cannot be compiled is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precompiled {
    definitions: Entries<Crd>,
    policies: Entries<Policy>,
}

type Entries<T> = Vec<(Arc<Value>, Arc<T>)>;

impl Precompiled {
    /// Compiles the documents that are CRDs or policies. Engines of another version must not use it.
    pub(crate) fn of(documents: &[Document], version: KubeVersion) -> Self {
        let mut all = Self::default();
        for document in documents {
            all.add(document, version);
        }
        all
    }

    /// Compiles one more document. `false` if a server would refuse it.
    pub(crate) fn add(&mut self, document: &Document, version: KubeVersion) -> bool {
        let object = &document.object;
        let text = || Arc::new(object.clone());
        match document.text("/kind") {
            "CustomResourceDefinition" => {
                let compiled = Crd::compile(object, version).ok();
                let entry = compiled.map(|it| (text(), Arc::new(it)));
                let is_valid = entry.is_some();
                self.definitions.extend(entry);
                is_valid
            }
            "ValidatingAdmissionPolicy" => {
                let compiled = Policy::compile(object, version).ok();
                let entry = compiled.map(|it| (text(), Arc::new(it)));
                let is_valid = entry.is_some();
                self.policies.extend(entry);
                is_valid
            }
            _ => true,
        }
    }

    pub(super) fn definition(&self, object: &Value) -> Option<Arc<Crd>> {
        find(&self.definitions, object)
    }

    pub(super) fn policy(&self, object: &Value) -> Option<Arc<Policy>> {
        find(&self.policies, object)
    }
}

fn find<T>(all: &[(Arc<Value>, Arc<T>)], object: &Value) -> Option<Arc<T>> {
    let name = &object["metadata"]["name"];
    let mut named = all.iter().filter(|it| it.0["metadata"]["name"] == *name);
    let found = named.find(|it| *it.0 == *object);
    found.map(|it| Arc::clone(&it.1))
}
