//! Sends generated requests for every built-in kind to a real API server and to the embedded one,
//! and compares the responses. See `cargo judge server`.
//!
//! - [`seed`]: valid objects from which requests are made, in `engine/judge/server`;
//! - `mutation`: the mistakes that are made in them;
//! - `case`: the requests about one object;
//! - `run`: sends a case to a server;
//! - `compare`: the differences of two responses;
//! - `explanation`: the known differences, in `engine/judge/server/explained.yaml`;
//! - `shrink`: makes a case smaller by one part;
//! - `counts`: the counts of a run.

mod case;
mod compare;
mod counts;
mod explanation;
mod mutation;
mod run;
pub mod seed;
mod shrink;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::Client;
use kubemu_apiserver::{Options, Server as Embedded};
use kubemu_clock::Clock;
use serde_json::Value;

use crate::record::BoxError;
use case::Case;
use compare::{Aspect, Comparison, Difference};
use counts::RunCounts;
use run::Server;
use seed::Seed;

/// The maximum number of attempts to shrink a case.
const SHRINKS: usize = 60;

/// Admission plugins that the embedded server has in addition to the default ones. The real
/// server is started with the same.
const PLUGINS: [&str; 1] = ["NodeRestriction"];

/// The interval at which a run prints its progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of cases.
    pub cases: u64,
    /// The number of the first case.
    pub first: u64,
    /// The seed of the run. Another seed gives other cases.
    pub seed: u64,
    /// The number of a single case to run and to print completely.
    pub only: Option<u64>,
    /// The number of causes for which a shrunk case is printed.
    pub show: usize,
    /// The kinds for which cases are made. All kinds if it is empty.
    pub kinds: Vec<String>,
    /// Whether the counts are written to a file for the documentation.
    pub record: bool,
}

impl Plan {
    /// Reads `--cases`, `--from`, `--seed`, `--case`, `--show`, `--kind` and `--record`.
    ///
    /// # Errors
    /// A flag is unknown or its value is not a number.
    pub fn read(words: &[String]) -> Result<Self, BoxError> {
        let mut plan = Self {
            cases: 200,
            first: 0,
            only: None,
            seed: 1,
            show: 10,
            kinds: Vec::new(),
            record: false,
        };
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            if flag == "--record" {
                plan.record = true;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("{flag} needs a value"))?;
            let number = || {
                let parsed = value.parse::<u64>();
                parsed.map_err(|_| format!("{flag} needs a number, not '{value}'"))
            };
            match flag.as_str() {
                "--kind" => plan.kinds.push(value.clone()),
                "--cases" => plan.cases = number()?,
                "--case" => plan.only = Some(number()?),
                "--from" => plan.first = number()?,
                "--seed" => plan.seed = number()?,
                "--show" => plan.show = usize::try_from(number()?)?,
                _ => return Err(format!("unknown flag {flag}").into()),
            }
        }
        Ok(plan)
    }
}

/// The file with the counts of the last recorded run.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("server/agreement.json")
}

/// Both servers.
struct Pair {
    theirs: Server,
    ours: Server,
}

impl Pair {
    /// Compares the responses of both servers to a case.
    async fn compare_case(&self, case: &Case<'_>) -> Result<Comparison, BoxError> {
        // The real server waits for its store while the embedded one computes.
        let (theirs, ours) =
            futures::future::try_join(self.theirs.run(case), self.ours.run(case)).await?;
        Ok(compare::first(case, (&theirs, &ours)))
    }

    /// Prints every request of a case with both responses.
    async fn print(&self, case: &Case<'_>) -> Result<(), BoxError> {
        let theirs = self.theirs.run(case).await?;
        let ours = self.ours.run(case).await?;
        for (step, (theirs, ours)) in case.steps.iter().zip(theirs.iter().zip(&ours)) {
            let request = case.request(step, "(version)");
            let body = request.body.unwrap_or_default();
            println!("{} {} {body}", request.method, request.path);
            println!("  kubernetes  {theirs}\n  ours        {ours}");
        }
        Ok(())
    }

    /// A minimal case with the same difference.
    async fn shrunk<'a>(
        &self,
        case: Case<'a>,
        difference: Difference,
    ) -> Result<(Case<'a>, Difference), BoxError> {
        let matter = difference.skeleton();
        let mut best = (case, difference);
        let mut left = SHRINKS;
        'again: while left > 0 {
            for less in shrink::smaller(&best.0) {
                left = left.saturating_sub(1);
                let found = self.compare_case(&less).await?.difference;
                if let Some(found) = found.filter(|it| it.skeleton() == matter) {
                    best = (less, found);
                    continue 'again;
                }
            }
            break;
        }
        Ok(best)
    }
}

/// Sends the cases to the server behind `client` and to the embedded server, and prints how far
/// they agree. Returns the number of cases with different verdicts.
///
/// # Errors
/// A file cannot be read, or a request cannot be sent.
pub async fn run(client: Client, plan: &Plan) -> Result<u64, BoxError> {
    let mut seeds = seed::read()?;
    if !plan.kinds.is_empty() {
        seeds.retain(|it| plan.kinds.iter().any(|kind| kind == it.kind()));
    }
    let setup = seed::setup()?;
    let mut options = Options::new(Clock::system());
    options.seed = Some(0);
    options.enable_plugins = PLUGINS.map(str::to_owned).to_vec();
    let embedded = Embedded::new(options)?;
    let pair = Pair {
        theirs: Server::new(client),
        ours: Server::new(Client::new(embedded.in_process(), "default")),
    };
    for server in [&pair.theirs, &pair.ours] {
        server.prepare(&seeds, &setup).await?;
    }
    if let Some(number) = plan.only {
        let case = generate_case(&seeds, plan, number)?;
        return show(&pair, case, true).await.map(|()| 0);
    }
    let mut counts = RunCounts::new(explanation::read()?);
    let start = Instant::now();
    let mut told = start;
    for number in plan.first..plan.first.saturating_add(plan.cases) {
        let case = generate_case(&seeds, plan, number)?;
        let comparison = pair.compare_case(&case).await?;
        if let Some(found) = &comparison.difference
            && found.aspect == Aspect::Verdict
        {
            // A long run prints differences as soon as it finds them.
            eprintln!("case {number}: {}", found.skeleton());
        }
        counts.add(&case, &comparison);
        if told.elapsed() > PROGRESS {
            told = Instant::now();
            eprintln!(
                "{}",
                progress(&counts, number - plan.first + 1, plan, start)
            );
        }
    }
    println!("{}", progress(&counts, plan.cases, plan, start));
    println!("\n{counts}");
    let groups = counts.groups();
    for (index, (text, group)) in groups.iter().enumerate() {
        println!(
            "{} times, first in case {}: {text}",
            group.count, group.case
        );
        if index < plan.show {
            show(&pair, generate_case(&seeds, plan, group.case)?, false).await?;
        }
    }
    if plan.record {
        let text = serde_json::to_string_pretty(&counts.result(plan.seed, plan.first))?;
        fs::write(kept(), format!("{text}\n"))?;
    }
    Ok(counts.verdicts())
}

/// The case with this number.
fn generate_case<'a>(
    seeds: &'a [Seed],
    plan: &Plan,
    number: u64,
) -> Result<Case<'a>, BoxError> {
    Case::of(seeds, plan.seed, number)
        .ok_or_else(|| "there is no seed of these kinds".into())
}

/// Formats the progress of a run.
fn progress(counts: &RunCounts, done: u64, plan: &Plan, start: Instant) -> String {
    format!(
        "{done} of {} cases, {} requests, {} verdicts differ, {} s",
        plan.cases,
        counts.requests(),
        counts.verdicts(),
        start.elapsed().as_secs()
    )
}

/// Prints a case with a difference, as small as possible. `whole` also prints all requests and
/// responses of the case, even without a difference.
async fn show(pair: &Pair, case: Case<'_>, whole: bool) -> Result<(), BoxError> {
    if whole {
        pair.print(&case).await?;
    }
    let Some(found) = pair.compare_case(&case).await?.difference else {
        println!("    (no difference)");
        return Ok(());
    };
    let (case, found) = pair.shrunk(case, found).await?;
    for step in case.steps.iter().take(found.step + 1) {
        let request = case.request(step, "(version)");
        let changed = step.mutations.iter().map(|it| match &it.value {
            Some(value) => format!("{} = {value}", it.pointer),
            None => format!("{} removed", it.pointer),
        });
        let operations = step.operations.iter().map(Value::to_string);
        let parts: Vec<String> = changed.chain(operations).collect();
        println!(
            "      {} {} [{}]",
            request.method,
            request.path,
            parts.join("; ")
        );
    }
    println!("      kubernetes  {}", found.theirs);
    println!("      ours        {}", found.ours);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_its_flags() {
        let words = |text: &str| -> Vec<String> {
            text.split_whitespace().map(str::to_owned).collect()
        };
        let plan = Plan::read(&words("--cases 7 --kind Pod --record")).expect("a plan");
        assert_eq!((plan.cases, plan.record), (7, true));
        assert_eq!(plan.kinds, ["Pod"]);
        assert!(Plan::read(&words("--cases x")).is_err());
        assert!(Plan::read(&words("--odd 1")).is_err());
    }
}
