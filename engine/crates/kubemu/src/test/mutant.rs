//! Mutants: rules with a small change, which a case should detect.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use kubemu_admission::KubeVersion;
use kubemu_cel::Mutation;
use kubemu_terminal::{Failure, plain};
use serde::{Serialize, Serializer};

use super::rule::Rule;
use super::suite::{Bench, Suite, Tested};
use crate::document::Document;
use crate::parallel;
use crate::validate::Extension;
use crate::validate::precompiled::Precompiled;

/// A rule with a change.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    pub(super) rule: Rule,
    pub(super) mutation: Mutation,
}

/// What came of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A case failed.
    Detected,
    /// Every case passed.
    Survived,
    /// A server would refuse it.
    Refused,
    /// The time was up.
    NotTried,
}

/// What came of all mutants.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mutants {
    detected: usize,
    pub(super) survivors: Vec<Survivor>,
    /// How many were not tried, because of the limits.
    not_tried: usize,
    /// Why none was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_none: Option<&'static str>,
}

/// A mutant that no case detects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Survivor {
    pub(super) file: String,
    pub(super) line: usize,
    /// What is changed.
    pub(super) change: String,
    /// The name of the case that is proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proposed: Option<String>,
    #[serde(serialize_with = "source_of", rename = "mutant")]
    pub(super) mutant: Mutant,
}

fn source_of<S: Serializer>(mutant: &Mutant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&mutant.mutation.source)
}

impl Mutant {
    /// The CRDs and policies with the mutant in place of its rule.
    pub(super) fn subjects(&self, suite: &Suite) -> Vec<Document> {
        self.rule
            .replaced_in(&suite.subjects, &self.mutation.source)
    }

    /// What is compiled, with the mutant. `None` if a server would refuse it.
    pub(super) fn precompiled(
        &self,
        suite: &Suite,
        (base, version): (&Precompiled, KubeVersion),
    ) -> Option<Arc<Precompiled>> {
        let document = suite.subjects.get(self.rule.subject)?;
        let mutated = self.rule.replaced(document, &self.mutation.source);
        let mut precompiled = base.clone();
        let is_valid = precompiled.add(&mutated, version);
        is_valid.then(|| Arc::new(precompiled))
    }

    fn change(&self) -> String {
        let Mutation {
            bytes, replacement, ..
        } = &self.mutation;
        let before = self.rule.source.get(bytes.clone()).unwrap_or_default();
        let words: Vec<&str> = before.split_whitespace().collect();
        let before = words.join(" ");
        match replacement.as_str() {
            "" => format!("without {before}"),
            after => format!("{before} -> {after}"),
        }
    }
}

impl Mutants {
    /// Tries the mutants of the rules of a suite, whose cases have these results, and returns those
    /// that survive.
    pub(super) fn try_all(
        &mut self,
        (suite, tested): (&Suite, &[Tested]),
        (limit, deadline): (usize, Instant),
        with: (KubeVersion, &dyn Extension),
    ) -> Vec<Survivor> {
        if tested.iter().any(|it| !it.passes) {
            self.why_none = Some("cases fail without a mutant");
            return Vec::new();
        }
        let mut mutants = Vec::new();
        for rule in suite.rules() {
            let each = rule.mutations().into_iter();
            mutants.extend(each.map(|mutation| Mutant {
                rule: rule.clone(),
                mutation,
            }));
        }
        self.not_tried += mutants.len().saturating_sub(limit);
        mutants.truncate(limit);
        let precompiled = suite.precompiled(with.0);
        let tried = parallel::map(mutants, |mutant| {
            let fate = if Instant::now() < deadline {
                fate(suite, &mutant, (with, &precompiled))
            } else {
                Fate::NotTried
            };
            (mutant, fate)
        });
        let mut survivors = Vec::new();
        for (mutant, fate) in tried {
            match fate {
                Fate::Detected => self.detected += 1,
                Fate::Survived => survivors.push(Survivor {
                    file: mutant.rule.file.clone(),
                    line: mutant.rule.line_of(mutant.mutation.bytes.start),
                    change: mutant.change(),
                    proposed: None,
                    mutant,
                }),
                Fate::NotTried => self.not_tried += 1,
                Fate::Refused => {}
            }
        }
        survivors
    }

    /// How many were tried.
    pub(super) fn tried(&self) -> usize {
        self.detected + self.survivors.len()
    }

    /// Prints the numbers, and the mutants that no case detects.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let (detected, tried) = (self.detected, self.tried());
        write!(out, "mutants: {detected} of {tried} detected")?;
        if let Some(why) = self.why_none {
            write!(out, "; {why}")?;
        }
        match self.not_tried {
            0 => writeln!(out)?,
            not_tried => writeln!(out, "; {not_tried} not tried, because of the limits")?,
        }
        for it in &self.survivors {
            let place = format!("{}:{}", it.file, it.line);
            write!(
                out,
                "  {}: {}",
                plain::line(&place),
                plain::line(&it.change)
            )?;
            match &it.proposed {
                Some(name) => writeln!(out, "; proposed: {}", plain::line(name))?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    }
}

impl Survivor {
    /// The name of a case that detects it.
    pub(super) fn name(&self) -> String {
        format!("line {}, {}", self.line, self.change)
    }
}

/// Tests the cases that may concern a mutant, until one fails.
fn fate(
    suite: &Suite,
    mutant: &Mutant,
    (with, precompiled): ((KubeVersion, &dyn Extension), &Precompiled),
) -> Fate {
    let Some(precompiled) = mutant.precompiled(suite, (precompiled, with.0)) else {
        return Fate::Refused;
    };
    let subjects = mutant.subjects(suite);
    let mut bench = Bench::of(&subjects, with, &precompiled);
    let cases = suite.cases.iter().filter(|it| mutant.rule.concerns(it));
    for case in cases {
        let tested: Result<Tested, Failure> = bench.test(case);
        match tested {
            Ok(tested) if tested.passes => {}
            Ok(_) => return Fate::Detected,
            Err(_) => return Fate::Refused,
        }
    }
    Fate::Survived
}
