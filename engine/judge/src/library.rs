//! `cargo judge library`: compares our admission engine with Kubernetes' own libraries.
//!
//! Cases are generated from a seed: definitions with rules and objects, unusual definitions,
//! policies with requests. Both sides evaluate them, and the answers are compared. A case can be
//! generated again from the seed and its number.

mod almost_valid_text;
mod compare;
mod counts;
mod definition;
mod explain;
mod expression;
mod form;
mod from_file;
mod generated;
pub(crate) mod gostd;
mod kind;
mod literal;
pub(crate) mod mutation;
pub(crate) mod oracle;
mod ours;
mod plan;
mod policy;
mod request;
mod resolver;
mod schema;
mod scope;
mod shrink;
mod table;
mod text_questions;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::Faults;
use compare::{Comparison, Difference, compare};
use counts::DifferenceCounts;
use oracle::Oracle;
use plan::Plan;

/// Most attempts per case: some answers of the oracle depend on the order in which Go iterates over
/// a map, which varies.
const ATTEMPTS: usize = 12;

/// The result of all cases.
#[derive(Default)]
struct Total {
    cases: u64,
    counts: DifferenceCounts,
    /// The cases with differences, by number.
    found: BTreeMap<u64, Vec<Difference>>,
}

/// Runs the comparison that these flags select.
///
/// # Errors
/// As for [`run`], or a flag is unknown.
pub(crate) fn task(root: &Path, words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    run(root, Plan::read(words)?)
}

/// Runs the cases and prints how many answers agree. Verdicts that differ are faults.
///
/// # Errors
/// Go is not installed, the oracle cannot be built, or it ends early.
fn run(root: &Path, plan: Plan) -> Result<Faults, Box<dyn Error>> {
    if let Some(file) = &plan.questions {
        return from_file::run(root, file);
    }
    let program = oracle::build(root)?;
    if let Some(file) = &plan.question {
        let question = serde_json::from_str(&fs::read_to_string(file)?)?;
        return replay(&program, &question);
    }
    if let Some(case) = plan.only {
        return replay(&program, &generated::question(plan.seed, case));
    }
    let cases = match &plan.among {
        Some(file) => named(&fs::read_to_string(file)?),
        None => (plan.first..plan.first.saturating_add(plan.cases)).collect(),
    };
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Total::default());
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.jobs)
            .map(|_| {
                scope.spawn(|| {
                    work(&program, (plan.seed, &cases), &next, &total)
                        .map_err(|it| it.to_string())
                })
            })
            .collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .filter_map(|ended| match ended {
                Ok(result) => result.err(),
                Err(_) => Some("a worker panicked".to_owned()),
            })
            .collect()
    });
    if let Some(first) = failures.into_iter().next() {
        return Err(first.into());
    }
    let total = total.into_inner().unwrap_or_default();
    print!(
        "{} cases of seed {}\n\n{}",
        total.cases, plan.seed, total.counts
    );
    if plan.record {
        let result = if plan.among.is_some() {
            json!({"explained": explain::explained(total.found.iter())})
        } else {
            total.result(plan.seed)
        };
        crate::page::engine::store_differential(root, result)?;
    }
    let mut oracle = Oracle::start(&program)?;
    for (case, differences) in total.worst(plan.show) {
        print!(
            "{}",
            minimal_case(*case, differences, &mut oracle, plan.seed)?
        );
    }
    Ok(total.counts.faults())
}

/// The numbers of the cases that a run has printed, without duplicates.
fn named(printed: &str) -> Vec<u64> {
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("case "));
    let numbers = lines.filter_map(|line| line.split(':').next()?.parse().ok());
    let numbers: BTreeSet<u64> = numbers.collect();
    numbers.into_iter().collect()
}

/// Judges cases until none is left.
fn work(
    program: &Path,
    (seed, cases): (u64, &[u64]),
    next: &AtomicUsize,
    total: &Mutex<Total>,
) -> Result<(), Box<dyn Error>> {
    let mut oracle = Oracle::start(program)?;
    loop {
        let Some(&case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else {
            return Ok(());
        };
        let question = generated::question(seed, case);
        let comparison = compare_question(&mut oracle, &question)
            .map_err(|error| format!("case {case}: {error}"))?;
        if let Ok(mut total) = total.lock() {
            total.add(case, comparison);
        }
    }
}

/// Compares both answers to a question. The oracle is queried again while its answer differs.
fn compare_question(
    oracle: &mut Oracle,
    question: &Value,
) -> Result<Comparison, Box<dyn Error>> {
    let ours = ours::answer_in_time(question)?;
    let first = compare(&oracle.query(question)?, &ours);
    let mut persistent = first.clone();
    for _ in 1..ATTEMPTS {
        if persistent.differences.is_empty() {
            break;
        }
        let again = compare(&oracle.query(question)?, &ours);
        // A difference counts only if every attempt has it.
        persistent.differences.retain(|known| {
            again
                .differences
                .iter()
                .any(|it| it.place == known.place && it.aspect == known.aspect)
        });
    }
    Ok(persistent)
}

impl Total {
    fn add(&mut self, case: u64, comparison: Comparison) {
        self.cases += 1;
        self.counts.add(&comparison);
        if comparison.unanswered {
            eprintln!("case {case}: not answered by Kubernetes' libraries");
        }
        for difference in &comparison.differences {
            // Printed at once, so that a long run shows its differences before it ends.
            let aspect = difference.aspect.name();
            eprintln!("case {case}: {aspect} of {}", difference.place);
        }
        if !comparison.differences.is_empty() {
            self.found.insert(case, comparison.differences);
        }
    }

    /// The table as JSON.
    fn result(&self, seed: u64) -> Value {
        let rows = self.counts.rows().map(|(aspect, all, differing)| {
            json!({"aspect": aspect.name(), "answers": all, "differing": differing})
        });
        json!({"cases": self.cases, "seed": seed, "rows": rows,
            "unanswered": self.counts.unanswered(),
            "explained": explain::explained(self.found.iter())})
    }

    /// The first cases with differences; those of verdicts come first.
    fn worst(&self, most: usize) -> Vec<(&u64, &Vec<Difference>)> {
        let mut found: Vec<_> = self.found.iter().collect();
        let worst =
            |differences: &[Difference]| differences.iter().map(|it| it.aspect).min();
        found.sort_by_key(|(case, differences)| (worst(differences), **case));
        found.truncate(most);
        found
    }
}

/// A case with a difference, reduced as far as possible.
fn minimal_case(
    case: u64,
    differences: &[Difference],
    oracle: &mut Oracle,
    seed: u64,
) -> Result<String, Box<dyn Error>> {
    let Some(difference) = differences.iter().min_by_key(|it| it.aspect) else {
        return Ok(String::new());
    };
    let matter = difference.matter();
    let question = generated::question(seed, case);
    let small = shrink::shrink(&question, |smaller| {
        let comparison = compare_question(oracle, smaller)?;
        Ok(comparison
            .differences
            .iter()
            .any(|it| it.matter() == matter))
    })?;
    let persistent = compare_question(oracle, &small)?;
    let found = persistent
        .differences
        .iter()
        .find(|it| it.matter() == matter);
    let found = found.unwrap_or(difference);
    Ok(format!(
        "\ncase {case}: {} of {}\n  question    {small}\n  kubernetes  {}\n  ours        {}\n  \
         replay      cargo judge library --seed {seed} --case {case}\n",
        found.aspect.name(),
        found.place,
        found.theirs,
        found.ours,
    ))
}

/// Prints a case in full.
fn replay(program: &Path, question: &Value) -> Result<Faults, Box<dyn Error>> {
    let mut oracle = Oracle::start(program)?;
    let theirs = oracle.query(question)?;
    let ours = ours::answer_in_time(question)?;
    for (name, value) in [
        ("question", question),
        ("kubernetes", &theirs),
        ("ours", &ours),
    ] {
        println!("{name}: {}", serde_json::to_string_pretty(value)?);
    }
    let comparison = compare_question(&mut oracle, question)?;
    let faults = comparison.differences.iter().map(|it| {
        let Difference {
            aspect,
            place,
            theirs,
            ours,
        } = it;
        format!(
            "{} of {place}:\n  kubernetes  {theirs}\n  ours        {ours}",
            aspect.name()
        )
    });
    Ok(faults.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_cases_are_read_from_the_output_of_a_run() {
        let printed = "case 7: text of definition\nnoise\ncase 7: run-time cost of writes[1]\n\
                    case 3: verdict of policies[0]\ncase x: y\n";
        assert_eq!(named(printed), [3, 7]);
    }
}
