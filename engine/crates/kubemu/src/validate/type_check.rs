//! `--type-check`: policies whose expressions do not match the types of their CRDs.

use kubemu_admission::FieldError;
use kubemu_admission::crd::Crd;
use kubemu_admission::policy::Policy;

use super::engine::{Engine, Sources};
use super::object_result::{ObjectResult, Subject, Verdict};
use super::refusal::Refusal;

/// A result for each policy with type errors, with the messages of `status.typeChecking`.
pub(super) fn refused(sources: &Sources, engine: &Engine<'_>) -> Vec<ObjectResult> {
    let definitions: Vec<&Crd> = engine.definitions().iter().map(|it| &**it).collect();
    let policies = engine.builtin_policies().iter().chain(&sources.policies);
    let object_results = policies.filter_map(|document| {
        let policy = &document.object;
        let warnings = Policy::type_check(policy, &definitions, &[], sources.version);
        if warnings.is_empty() || policy["kind"] != "ValidatingAdmissionPolicy" {
            return None;
        }
        let errors: Vec<FieldError> =
            warnings.iter().map(|it| it.error(policy)).collect();
        let subject = Subject::of(document);
        let refusal = Refusal::invalid(&subject, &errors);
        Some(ObjectResult::without_steps(
            subject,
            Verdict::Refused(vec![refusal]),
        ))
    });
    object_results.collect()
}
