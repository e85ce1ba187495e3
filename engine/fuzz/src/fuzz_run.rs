//! One run of one target.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::corpus::Corpus;
use crate::random::Random;
use crate::target::Target;

/// The stack of the thread that runs the target: as large as that of a server's thread.
const STACK: usize = 2 << 20;

/// How long a run takes, its seed, and what earlier runs have found.
#[derive(Clone, Debug)]
pub struct FuzzRun {
    /// The same seed gives the same inputs in the same order.
    pub seed: u64,
    /// The number of inputs; `None` for as many as fit into the time.
    pub cases: Option<u64>,
    /// The longest duration of the run.
    pub time: Duration,
    /// Inputs that are tried right after the seeds of the target: [`Counts::kept`] of other runs.
    pub corpus: Vec<Vec<u8>>,
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The number of inputs.
    pub cases: u64,
    /// The number of different answers.
    pub answers: usize,
    /// The duration of the slowest input.
    pub slowest: Duration,
    /// The inputs that had a new answer.
    pub kept: Vec<Vec<u8>>,
}

/// An input that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The input.
    pub text: Vec<u8>,
    /// The message of the panic.
    pub message: String,
    /// The number of the input in the run, from 0.
    pub case: u64,
}

impl FuzzRun {
    /// Runs a target, first with its seeds.
    ///
    /// An input that overflows the stack ends the process; the same seed reproduces it.
    ///
    /// # Errors
    /// The first input that makes the target panic or violates a property.
    pub fn run(self, target: &'static Target) -> Result<Counts, Failure> {
        let thread = std::thread::Builder::new()
            .name(target.name.to_owned())
            .stack_size(STACK)
            .spawn(move || self.feed(target));
        let failed = |message: &str| Failure {
            text: Vec::new(),
            message: message.to_owned(),
            case: 0,
        };
        thread
            .map_err(|error| failed(&error.to_string()))?
            .join()
            .unwrap_or_else(|_| Err(failed("the thread of the target panicked")))
    }

    fn feed(self, target: &'static Target) -> Result<Counts, Failure> {
        let mut random = Random::seeded(self.seed);
        let seeds = (target.seeds)();
        let mut corpus = Corpus::new(seeds.clone(), target.words.to_vec());
        let mut counts = Counts::default();
        let begun = Instant::now();
        let first = seeds.len();
        let mut seeds = seeds.into_iter().chain(self.corpus);
        while begun.elapsed() < self.time && Some(counts.cases) != self.cases {
            let text = seeds.next().unwrap_or_else(|| corpus.next(&mut random));
            let fed = Instant::now();
            let answer = catch_unwind(AssertUnwindSafe(|| (target.feed)(&text)));
            counts.slowest = counts.slowest.max(fed.elapsed());
            match answer {
                Ok(answer) => corpus.learn(&text, &answer),
                Err(panic) => {
                    return Err(Failure {
                        text,
                        message: panic_message(panic.as_ref()),
                        case: counts.cases,
                    });
                }
            }
            counts.cases += 1;
            counts.answers = corpus.answers();
        }
        counts.kept = corpus.into_texts().split_off(first);
        Ok(counts)
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
