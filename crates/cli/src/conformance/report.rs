//! The results of a run, as text and as data.

use std::io::Write;

use serde_json::{Value, json};

use super::promise::Promise;
use crate::{Failure, Format, Outcome, output, plain};

/// The result of a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every fact was observed in time.
    Kept,
    /// Broken, with the observation.
    Broken(String),
    /// Not run, or not completed, with the reason.
    NotRun(String),
}

/// A promise with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromiseResult {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) verdict: Verdict,
    /// The duration in seconds.
    pub(crate) seconds: u64,
    /// A description of what is left of its machine, if anything.
    pub(crate) leftover: Option<String>,
}

/// The subjects of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subjects {
    /// The Kubernetes version of the management cluster.
    pub(crate) kubernetes: String,
    /// `apiVersion` and kind of the bootstrap object, separated by a space.
    pub(crate) bootstrap: String,
    /// `apiVersion` and kind of the infrastructure object, separated by a space.
    pub(crate) infrastructure: String,
}

impl PromiseResult {
    /// The result of a promise that was not run, with the reason.
    pub(crate) fn not_run(promise: &Promise, why: String) -> Self {
        Self {
            name: promise.name,
            meaning: promise.meaning,
            verdict: Verdict::NotRun(why),
            seconds: 0,
            leftover: None,
        }
    }
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) subjects: Subjects,
    pub(crate) results: Vec<PromiseResult>,
    /// Whether the run was ended by a signal.
    pub(crate) interrupted: bool,
    /// A description of the objects that could not be deleted.
    pub(crate) leftover: Option<String>,
}

impl Report {
    pub(crate) fn new(subjects: Subjects) -> Self {
        Self {
            subjects,
            results: Vec::new(),
            interrupted: false,
            leftover: None,
        }
    }

    /// `No` if a promise is broken or something is left behind. `Yes` if at least one promise is
    /// kept and the run was not interrupted. `NoResult` otherwise.
    pub(crate) fn outcome(&self) -> Outcome {
        let has = |wanted: fn(&Verdict) -> bool| {
            self.results.iter().any(|it| wanted(&it.verdict))
        };
        if has(|it| matches!(it, Verdict::Broken(_))) || self.leftover.is_some() {
            Outcome::No
        } else if has(|it| *it == Verdict::Kept) && !self.interrupted {
            Outcome::Yes
        } else {
            Outcome::NoResult
        }
    }

    pub(crate) fn print(
        &self,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        output::print(out, format, &self.data(), |out| self.text(out))
    }

    fn text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Subjects {
            kubernetes,
            bootstrap,
            infrastructure,
        } = &self.subjects;
        writeln!(out, "infrastructure  {infrastructure}")?;
        writeln!(out, "bootstrap       {bootstrap}")?;
        writeln!(out, "kubernetes      {kubernetes}\n")?;
        for it in &self.results {
            let (verdict, detail) = match &it.verdict {
                Verdict::Kept => ("kept", it.meaning.to_owned()),
                Verdict::Broken(why) => ("broken", why.clone()),
                Verdict::NotRun(why) => ("not run", why.clone()),
            };
            let detail = plain::line(&detail);
            writeln!(out, "{verdict:<7}  {:<26}  {detail}", it.name)?;
        }
        writeln!(out)?;
        if let Some(leftover) = &self.leftover {
            writeln!(out, "left behind: {}", plain::line(leftover))?;
        }
        if self.interrupted {
            writeln!(out, "interrupted")?;
        }
        let [kept, broken, not_run] = self.counts();
        writeln!(out, "{kept} kept, {broken} broken, {not_run} not run")?;
        Ok(())
    }

    /// The numbers of promises that are kept, broken and not run.
    fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for it in &self.results {
            match it.verdict {
                Verdict::Kept => counts[0] += 1,
                Verdict::Broken(_) => counts[1] += 1,
                Verdict::NotRun(_) => counts[2] += 1,
            }
        }
        counts
    }

    fn data(&self) -> Value {
        let [kept, broken, not_run] = self.counts();
        let items: Vec<Value> = self
            .results
            .iter()
            .map(|it| {
                let (result, detail) = match &it.verdict {
                    Verdict::Kept => ("Kept", ""),
                    Verdict::Broken(why) => ("Broken", why.as_str()),
                    Verdict::NotRun(why) => ("NotRun", why.as_str()),
                };
                json!({
                    "name": it.name, "meaning": it.meaning, "result": result,
                    "message": detail, "seconds": it.seconds,
                })
            })
            .collect();
        json!({
            "kubernetes": self.subjects.kubernetes,
            "bootstrap": self.subjects.bootstrap,
            "infrastructure": self.subjects.infrastructure,
            "items": items, "leftBehind": self.leftover, "interrupted": self.interrupted,
            "kept": kept, "broken": broken, "notRun": not_run,
        })
    }
}
