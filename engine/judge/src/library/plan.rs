//! The arguments of `cargo judge library`.

use std::error::Error;
use std::path::PathBuf;
use std::thread;

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) cases: u64,
    /// The number of the first case.
    pub(super) first: u64,
    pub(super) seed: u64,
    pub(super) only: Option<u64>,
    /// A file with the cases to run again, as a run prints them on standard error.
    pub(super) among: Option<PathBuf>,
    /// A file with one question that replaces the generated ones.
    pub(super) question: Option<PathBuf>,
    /// A file with questions, one per line, that replace the generated ones.
    pub(super) questions: Option<PathBuf>,
    pub(super) jobs: usize,
    /// Whether the result is kept for the documentation.
    pub(super) record: bool,
    /// How many cases with a difference are printed.
    pub(super) show: usize,
}

impl Plan {
    /// Parses the arguments after `library`.
    ///
    /// # Errors
    /// A flag is unknown or has no number.
    pub(crate) fn read(words: &[&str]) -> Result<Self, Box<dyn Error>> {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let mut plan = Self {
            cases: 1000,
            first: 0,
            seed: 1,
            only: None,
            among: None,
            question: None,
            questions: None,
            jobs,
            record: false,
            show: 5,
        };
        let words: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| {
                let records = *word == "--record";
                plan.record |= records;
                !records
            })
            .collect();
        for pair in words.chunks(2) {
            let [flag, number] = pair else {
                return Err(format!("{} needs a number", pair.join(" ")).into());
            };
            let file = match *flag {
                "--question" => Some(&mut plan.question),
                "--questions" => Some(&mut plan.questions),
                "--among" => Some(&mut plan.among),
                _ => None,
            };
            if let Some(file) = file {
                *file = Some(PathBuf::from(number));
                continue;
            }
            let number: u64 = number
                .parse()
                .map_err(|_| format!("{flag} needs a number, not '{number}'"))?;
            match *flag {
                "--cases" => plan.cases = number,
                "--from" => plan.first = number,
                "--seed" => plan.seed = number,
                "--show" => plan.show = usize::try_from(number)?,
                "--case" => plan.only = Some(number),
                "--jobs" => plan.jobs = usize::try_from(number)?.max(1),
                _ => return Err(format!("unknown flag {flag}").into()),
            }
        }
        Ok(plan)
    }
}
