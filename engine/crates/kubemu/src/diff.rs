//! `kubemu diff`: finds an object about which two sets of definitions and policies differ.

mod change;
mod compared;
mod expression;
mod kinds;
mod minimal;
mod place;
mod policy;
mod report;
mod sample;
mod search;
mod shrink;
mod side;
mod value;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use kubemu_admission::KubeVersion;
use kubemu_terminal::{Failure, Outcome};
use serde_json::Value;

use crate::document;
use crate::validate::Extension;
use crate::validate::judge::{Judge, Question};
use compared::Compared;
pub(crate) use expression::Mentions;
use report::Finding;
use search::{Difference, Search};
use side::{Shared, Side};

/// The examples of the command's help.
pub const EXAMPLES: &str = "\
Examples:
  kubemu diff crd-v1.yaml crd-v2.yaml
  kubemu diff old/ new/ --example samples/ -o json
  kubemu diff policy.yaml strict.yaml --crd crds/";

/// Find the smallest object that one set of CRDs and policies admits and another refuses
///
/// Compares CustomResourceDefinitions and ValidatingAdmissionPolicies. Objects at the bounds of what
/// differs are generated and judged by both sides, and what is found is sent to a server of each side.
/// Exit codes: 0 none found, 1 found, 2 error (or no object was found that either side admits).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(skip)]
pub struct Args {
    /// File or directory with the old CRDs, policies and bindings
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// File or directory with the new CRDs, policies and bindings
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Files or directories with CRDs that both sides have (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,
    /// Files or directories with parameter objects of policies (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    param: Vec<PathBuf>,
    /// Files or directories with objects from which the search starts, too (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    example: Vec<PathBuf>,
    /// How many requests to try for each version of a kind; large objects and expensive rules count
    /// as several
    #[arg(long, value_name = "REQUESTS", default_value_t = 20_000)]
    budget: u64,
    /// Kubernetes version of the API server
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The forms in which differences are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// Compares the two sides and prints what differs.
///
/// # Errors
/// A file cannot be read, or a server would refuse a definition or a policy.
pub fn run(
    args: &Args,
    extension: &dyn Extension,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let shared = Shared {
        definitions: document::read(&args.crd)?,
        params: document::read(&args.param)?,
    };
    let examples = document::read(&args.example)?.into_iter();
    let examples: Vec<Value> = examples.map(|it| it.object).collect();
    let sides = [
        Side::read(&args.old, &shared)?,
        Side::read(&args.new, &shared)?,
    ];
    let findings = findings(&sides, &examples, (args, extension))?;
    match args.output {
        Form::Text => report::text(out, &findings)?,
        Form::Json => report::json(out, &findings)?,
    }
    Ok(if findings.iter().any(|it| !it.found.is_empty()) {
        Outcome::No
    } else if findings.iter().any(|it| it.is_undecided) {
        Outcome::NoResult
    } else {
        Outcome::Yes
    })
}

fn findings(
    sides: &[Side; 2],
    examples: &[Value],
    (args, extension): (&Args, &dyn Extension),
) -> Result<Vec<Finding>, Failure> {
    let [old, new] = sides;
    let judge = |it: &Side| Judge::new(&it.cast, args.kube_version, extension);
    let judges = [judge(old)?, judge(new)?];
    let (kinds, unmatched) = kinds::compare(old, new);
    let mut all = Vec::new();
    for compared in &kinds {
        let is_kind = |it: &&Value| {
            it["apiVersion"] == compared.api_version && it["kind"] == compared.kind
        };
        let examples: Vec<Value> = examples.iter().filter(is_kind).cloned().collect();
        all.push(finding(compared, &judges, (&examples, args.budget))?);
    }
    if !unmatched.is_empty() {
        all.push(Finding::not_searched(unmatched));
    }
    Ok(all)
}

/// What is found about one version of a kind.
fn finding(
    compared: &Compared,
    judges: &[Judge<'_>; 2],
    (examples, budget): (&[Value], u64),
) -> Result<Finding, Failure> {
    let mut search = Search::new(judges, compared, budget);
    search.run(examples)?;
    let is_exhausted = search.budget.is_exhausted();
    let mut not_covered = compared.not_covered.clone();
    for (side, schema) in compared.schemas.iter().enumerate() {
        if schema.is_some() && !search.admitted.get(side).copied().unwrap_or_default() {
            let side = ["OLD", "NEW"].get(side).copied().unwrap_or_default();
            let words = format!(
                "no object was found that {side} admits; give one with --example"
            );
            not_covered.push(words);
        }
    }
    let mut found = std::mem::take(&mut search.found);
    // What is stored matters where no verdict differs.
    if found.len() > 1 {
        found.remove(&Difference::Stored);
    }
    let mut replayed = Vec::new();
    for (difference, question) in found {
        let smallest = shrink::shrink(&mut search, question, difference)?;
        match replay(judges, (difference, smallest))? {
            Some(it) => replayed.push(it),
            None => not_covered.push(
                "an object about which the rules differ and the servers do not"
                    .to_owned(),
            ),
        }
    }
    Ok(Finding {
        api_version: compared.api_version.clone(),
        kind: compared.kind.clone(),
        changed: compared.changed.clone(),
        found: replayed,
        requests: search.budget.used,
        is_exhausted,
        is_undecided: search.admitted == [false, false],
        not_covered,
    })
}

type Replayed = (Difference, Question, [crate::validate::judge::Reply; 2]);

/// Sends the question to a server of each side. `None` if the servers do not differ in that way.
fn replay(
    judges: &[Judge<'_>; 2],
    (difference, question): (Difference, Question),
) -> Result<Option<Replayed>, Failure> {
    let [old, new] = judges;
    let replies = [old.reply(&question)?, new.reply(&question)?];
    let [old, new] = &replies;
    let differs = match (&old.refusal, &new.refusal) {
        (None, Some(_)) => difference == Difference::Refused,
        (Some(_), None) => difference == Difference::Admitted,
        (None, None) => difference == Difference::Stored && old.stored != new.stored,
        (Some(_), Some(_)) => false,
    };
    Ok(differs.then_some((difference, question, replies)))
}
