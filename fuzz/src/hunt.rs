//! One run of one target.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::corpus::Corpus;
use crate::random::Random;
use crate::target::Target;

/// The stack of the thread that is fed: what a thread of a server has.
const STACK: usize = 2 << 20;

/// How long to look, and from which seed.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// The same seed feeds the same texts in the same order.
    pub seed: u64,
    /// How many texts; none for as many as there is time for.
    pub cases: Option<u64>,
    /// How long at most.
    pub time: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// How many texts were fed.
    pub cases: u64,
    /// How many different answers they had.
    pub answers: usize,
    /// How long the slowest took.
    pub slowest: Duration,
}

/// A text that breaks something.
#[derive(Clone, Debug)]
pub struct Found {
    /// The text.
    pub text: Vec<u8>,
    /// What the panic said.
    pub why: String,
    /// Which text of the run it is, from 0.
    pub case: u64,
}

impl Hunt {
    /// Feeds a target, first with what was written on purpose.
    ///
    /// A text that overflows the stack ends the process; the same seed gets there again.
    ///
    /// # Errors
    /// The first text that makes it panic or breaks a law.
    pub fn run(self, target: &'static Target) -> Result<Tally, Found> {
        let hunting = std::thread::Builder::new()
            .name(target.name.to_owned())
            .stack_size(STACK)
            .spawn(move || self.feed(target));
        let failed = |why: &str| Found {
            text: Vec::new(),
            why: why.to_owned(),
            case: 0,
        };
        hunting
            .map_err(|error| failed(&error.to_string()))?
            .join()
            .unwrap_or_else(|_| Err(failed("the hunt itself failed")))
    }

    fn feed(self, target: &'static Target) -> Result<Tally, Found> {
        let mut random = Random::seeded(self.seed);
        let seeds = (target.seeds)();
        let mut corpus = Corpus::new(seeds.clone(), target.words.to_vec());
        let mut tally = Tally::default();
        let begun = Instant::now();
        let mut seeds = seeds.into_iter();
        while begun.elapsed() < self.time && Some(tally.cases) != self.cases {
            let text = seeds.next().unwrap_or_else(|| corpus.next(&mut random));
            let fed = Instant::now();
            let answer = catch_unwind(AssertUnwindSafe(|| (target.feed)(&text)));
            tally.slowest = tally.slowest.max(fed.elapsed());
            match answer {
                Ok(answer) => corpus.learn(&text, &answer),
                Err(panic) => {
                    return Err(Found {
                        text,
                        why: words(panic.as_ref()),
                        case: tally.cases,
                    });
                }
            }
            tally.cases += 1;
            tally.answers = corpus.answers();
        }
        Ok(tally)
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
    text.unwrap_or_else(|| "a panic without words".to_owned())
}
