//! The smallest case that detects a mutant, found from the written cases by small changes.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use kubemu_admission::KubeVersion;
use kubemu_terminal::Failure;
use serde_json::{Value, json};

use super::edit::{Edit, edits, leaves, remove};
use super::mutant::{Mutant, Survivor};
use super::rule::Rule;
use super::sheet::{Case, Expected, KIND, VERSION, Verdict};
use super::suite::{Bench, Suite, passes};
use crate::diff::Mentions;
use crate::validate::judge::Answer;
use crate::validate::{Extension, Operation};

/// How many requests are tried for each mutant, and as how many a new set of CRDs and policies counts.
const MAX_TRIED: usize = 1_500;
const COST_OF_JUDGE: usize = 20;
/// How many changes of one place are combined with those of others.
const MAX_COMBINED: usize = 60;

/// Proposes cases for the mutants that no case of the suite detects, until the deadline. A case may be
/// for several mutants, which then have its name.
///
/// # Errors
/// A server would refuse a CRD or a policy.
pub(super) fn propose(
    suite: &Suite,
    survivors: &mut [Survivor],
    (with, deadline): ((KubeVersion, &dyn Extension), Instant),
) -> Result<Vec<Case>, Failure> {
    let mut proposed: Vec<Case> = Vec::new();
    let precompiled = suite.precompiled(with.0);
    let mut original = Bench::of(&suite.subjects, with, &precompiled);
    let rules = Rule::all(&suite.subjects, &suite.cases).into_iter();
    let sources: Vec<String> = rules.map(|it| it.source).collect();
    let mut left = u32::try_from(survivors.len()).unwrap_or(u32::MAX);
    for survivor in survivors {
        let now = Instant::now();
        let subjects = survivor.mutant.subjects(suite);
        let mutant = &survivor.mutant;
        let Some(mutated) = mutant.precompiled(suite, (&precompiled, with.0)) else {
            continue;
        };
        let mut search = Search {
            created_before: original.created,
            original: &mut original,
            mutated: Bench::of(&subjects, with, &mutated),
            sources: &sources,
            // Each of the mutants that are left gets the same time.
            deadline: now + deadline.saturating_duration_since(now) / left,
            tried: 0,
        };
        let mut known = None;
        for case in proposed
            .iter()
            .filter(|it| survivor.mutant.rule.concerns(it))
        {
            let answer = search.mutated.answer(case)?;
            if !matches!(answer, Answer::None(_)) && !passes(&case.expected, &answer) {
                known = Some(case.name.clone());
                break;
            }
        }
        if known.is_none()
            && let Some(mut case) = search.find(suite, &survivor.mutant)?
        {
            case.name = survivor.name();
            known = Some(case.name.clone());
            proposed.push(case);
        }
        survivor.proposed = known;
        left = left.saturating_sub(1).max(1);
    }
    Ok(proposed)
}

/// The search for one mutant.
struct Search<'s, 'e> {
    original: &'s mut Bench<'e>,
    mutated: Bench<'s>,
    /// The texts of the rules.
    sources: &'s [String],
    deadline: Instant,
    tried: usize,
    /// How many judges there were before the search.
    created_before: usize,
}

/// How the rule and its mutant differ about a request, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    Verdict,
    Message,
}

type Found = (Difference, Case);

impl Search<'_, '_> {
    /// The smallest case that was found.
    fn find(&mut self, suite: &Suite, mutant: &Mutant) -> Result<Option<Case>, Failure> {
        let mentions =
            Mentions::of([mutant.rule.source.as_str(), &mutant.mutation.source]);
        let concerned = suite.cases.iter().filter(|it| mutant.rule.concerns(it));
        // The written cases first.
        let mut bases: Vec<Case> = concerned.cloned().collect();
        let others = bases.iter().flat_map(|it| others(it, (mutant, &mentions)));
        let others: Vec<Case> = others.collect();
        bases.extend(others);
        let mut best: Option<Found> = None;
        for base in &bases {
            self.try_case(base, &mut best)?;
        }
        let mut combined = Vec::new();
        for base in &bases {
            if is_verdict(best.as_ref()) || self.is_over() {
                break;
            }
            let edits = edits(base, &suite.cases, (&mutant.rule, &mentions));
            for edit in &edits {
                // What it does not need is removed afterwards.
                if is_verdict(best.as_ref()) || self.is_over() {
                    break;
                }
                self.try_case(&edit.of(base), &mut best)?;
            }
            combined.push(edits);
        }
        // Two changes are tried where one is not enough.
        for (base, edits) in bases.iter().zip(&combined) {
            if is_verdict(best.as_ref()) {
                break;
            }
            self.pairs(base, edits, &mut best)?;
        }
        let Some(found) = best else { return Ok(None) };
        self.shrunk(found).map(Some)
    }

    fn pairs(
        &mut self,
        base: &Case,
        edits: &[Edit],
        best: &mut Option<Found>,
    ) -> Result<(), Failure> {
        let edits = edits.get(..MAX_COMBINED).unwrap_or(edits);
        for (at, first) in edits.iter().enumerate() {
            let changed = first.of(base);
            for second in edits.iter().skip(at + 1) {
                if !first.is_at_the_place_of(second) {
                    self.try_case(&second.of(&changed), best)?;
                }
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let judges = self.original.created + self.mutated.created - self.created_before;
        self.tried + judges * COST_OF_JUDGE >= MAX_TRIED
            || Instant::now() >= self.deadline
    }

    /// Keeps the case if it is better than the best so far.
    fn try_case(&mut self, case: &Case, best: &mut Option<Found>) -> Result<(), Failure> {
        if self.is_over() {
            return Ok(());
        }
        self.tried += 1;
        let Some(found) = self.difference(case)? else {
            return Ok(());
        };
        let rank = |it: &Found| (it.0, it.1.question.bytes());
        if best.as_ref().is_none_or(|best| rank(&found) < rank(best)) {
            *best = Some(found);
        }
        Ok(())
    }

    /// The case with what the original rules answer, if the mutant answers something else.
    fn difference(&mut self, case: &Case) -> Result<Option<Found>, Failure> {
        let original = self.original.answer(case)?;
        let mutated = self.mutated.answer(case)?;
        let (difference, expected) = match (original, mutated) {
            (Answer::Admitted(_), Answer::Refused(..)) => {
                (Difference::Verdict, Expected::default())
            }
            (Answer::Refused(message, _), Answer::Admitted(_)) => {
                let whole = Some(message).filter(|it| !self.has_source(it));
                (Difference::Verdict, refused(whole))
            }
            (Answer::Refused(message, _), Answer::Refused(other, _))
                if message != other && !self.has_source(&message) =>
            {
                (Difference::Message, refused(Some(message)))
            }
            _ => return Ok(None),
        };
        let mut case = case.clone();
        case.expected = expected;
        Ok(Some((difference, case)))
    }

    /// Whether a message has the text of a rule, which differs from that of each of its mutants.
    fn has_source(&self, message: &str) -> bool {
        self.sources.iter().any(|it| message.contains(it.trim()))
    }

    /// The case without the fields that it does not need.
    fn shrunk(&mut self, (difference, mut case): Found) -> Result<Case, Failure> {
        for place in leaves(&case.question.object) {
            if Instant::now() >= self.deadline {
                break;
            }
            let mut smaller = case.clone();
            remove(&mut smaller.question.object, &place);
            if let Some(old) = &mut smaller.question.old {
                remove(old, &place);
            }
            match self.difference(&smaller)? {
                Some((found, smaller)) if found == difference => case = smaller,
                _ => {}
            }
        }
        Ok(case)
    }
}

fn refused(whole: Option<String>) -> Expected {
    Expected {
        verdict: Verdict::Refused,
        whole,
        ..Expected::default()
    }
}

fn is_verdict(best: Option<&Found>) -> bool {
    best.is_some_and(|it| it.0 == Difference::Verdict)
}

/// The case with what else the rule reads: other operations, users and labels of the namespace.
fn others(case: &Case, (mutant, mentions): (&Mutant, &Mentions)) -> Vec<Case> {
    let source = &mutant.rule.source;
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut base = case.clone();
        change(&mut base);
        all.push(base);
    };
    if mentions.old && case.question.old.is_none() && case.operation.is_none() {
        add(&|it| it.question.old = Some(it.question.object.clone()));
    }
    if source.contains("request.operation") {
        for operation in [None, Some(Operation::Delete)] {
            add(&|it| {
                it.operation = operation;
                it.question.old = None;
            });
        }
    }
    for text in mentions.texts.iter().take(8) {
        if source.contains("userInfo.groups") {
            add(&|it| it.around.groups = vec![text.clone()]);
        }
        if source.contains("userInfo.username") {
            add(&|it| it.around.user = Some(text.clone()));
        }
        if source.contains("namespaceObject") {
            for name in mentions.names.iter().take(12) {
                let labels = [(name.clone(), text.clone())];
                add(&|it| it.around.labels = labels.clone().into());
            }
        }
    }
    all
}

/// The document with the cases, if there are any.
pub(super) fn document(suite: &Suite, (file, cases): (&Path, &[Case])) -> Option<Value> {
    let written: Vec<Value> = cases.iter().map(Case::written).collect();
    if written.is_empty() {
        return None;
    }
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let files = suite
        .written_files
        .in_folder(folder.unwrap_or(Path::new(".")));
    let mut document = json!({"apiVersion": VERSION, "kind": KIND});
    if !files.is_empty() {
        document["files"] = json!(files);
    }
    document["cases"] = written.into();
    Some(document)
}

/// Writes the documents into a new file.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write(path: &Path, documents: &[Value]) -> Result<(), Failure> {
    let failed = |error: &dyn fmt::Display| {
        Failure::new(format!("writing {}", path.display()), error)
            .remedy("give the path of a file that does not exist, in a folder that does")
    };
    let mut text = String::new();
    for document in documents {
        let yaml = serde_saphyr::to_string(document).map_err(|it| failed(&it))?;
        text.push_str("---\n");
        text.push_str(&yaml);
    }
    let mut file = File::create_new(path).map_err(|it| failed(&it))?;
    file.write_all(text.as_bytes()).map_err(|it| failed(&it))
}
