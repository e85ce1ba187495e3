//! The CRDs that objects are validated against: the built-in ones, those among the objects, and
//! those of `--crd`.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubemu_admission::crd::Crd;
use kubemu_terminal::Failure;

use super::engine::{Sources, invalid};
use super::extension::Extension;
use super::object_result::{ObjectResult, Subject, Verdict};
use super::refusal::Refusal;
use crate::document::Document;

/// The CRDs, compiled. Of several of the same kind, the last one.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) compiled: Vec<Arc<Crd>>,
    /// Those that a server needs to know the kinds: the given ones and, for objects that policies
    /// change, the others.
    pub(super) of_server: Vec<Document>,
    /// The results for given documents that a server would refuse, or that are of other kinds.
    pub(super) unusable: Vec<ObjectResult>,
}

impl Definitions {
    /// Compiles the CRDs. `objects` are those to validate; a CRD among them that a server would
    /// refuse has its result there.
    ///
    /// # Errors
    /// A built-in CRD is refused, which is not known to happen.
    pub(super) fn of(
        (sources, objects): (&Sources, &[&Document]),
        extension: &dyn Extension,
        is_mutating: bool,
    ) -> Result<Self, Failure> {
        let version = sources.version;
        let mut all = Self::default();
        for object in extension.definitions(version) {
            let it = Crd::compile(&object, version);
            let it = it.map_err(|it| invalid("the built-in CRD", &it))?;
            let it = Arc::new(it);
            let origin = "the built-in CRD".to_owned();
            let document = Document {
                origin,
                object,
                location: None,
            };
            all.replace(&document, it, is_mutating);
        }
        // Those of other groups than the objects have would be compiled in vain.
        let group = |it: &&Document| Subject::of(it).group;
        let groups: BTreeSet<String> = objects.iter().map(group).collect();
        let is_used = |it: &&&Document| groups.contains(it.text("/spec/group"));
        for document in objects.iter().filter(is_used) {
            if let Ok(definition) = compile(document, sources) {
                all.replace(document, definition, is_mutating);
            }
        }
        for document in &sources.definitions {
            match compile(document, sources) {
                Ok(definition) => all.replace(document, definition, true),
                Err(result) => all.unusable.push(*result),
            }
        }
        Ok(all)
    }

    /// Adds a CRD, in place of the built-in or the earlier one of its kind.
    fn replace(
        &mut self,
        document: &Document,
        definition: Arc<Crd>,
        is_for_server: bool,
    ) {
        let of_kind = (definition.group(), definition.kind());
        self.compiled
            .retain(|it| (it.group(), it.kind()) != of_kind);
        self.compiled.push(definition);
        let name = document.text("/metadata/name");
        self.of_server
            .retain(|it| it.text("/metadata/name") != name);
        if is_for_server {
            self.of_server.push(document.clone());
        }
    }
}

/// The CRD of a document.
///
/// # Errors
/// The result for a document that is none, or that a server would refuse.
fn compile(
    document: &Document,
    sources: &Sources,
) -> Result<Arc<Crd>, Box<ObjectResult>> {
    let subject = Subject::of(document);
    if subject.kind != "CustomResourceDefinition" {
        let why = "not a CustomResourceDefinition, give it with --file".to_owned();
        let result = ObjectResult::without_steps(subject, Verdict::Skipped(why));
        return Err(Box::new(result));
    }
    if let Some(known) = sources.precompiled.definition(&document.object) {
        return Ok(known);
    }
    let compiled = Crd::compile(&document.object, sources.version);
    compiled.map(Arc::new).map_err(|errors| {
        let refusal = Refusal::invalid(&subject, &errors);
        let refused = Verdict::Refused(vec![refusal]);
        Box::new(ObjectResult::without_steps(subject, refused))
    })
}
