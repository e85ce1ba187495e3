//! The results of cases, and how they are printed.

use std::io::{self, Write};

use kubemu_terminal::plain;
use serde::Serialize;
use serde_json::Value;

use super::coverage::Covered;
use super::mutant::Mutants;
use super::sheet::{Case, Expected, Verdict};
use super::suite::Tested;
use crate::validate::judge::Answer;
use crate::validate::junit::escaped;

/// The results of all cases.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) cases: Vec<CaseResult>,
    /// How many documents are neither cases nor CRDs, policies or what these need.
    pub(super) unused: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) coverage: Option<Covered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mutants: Option<Mutants>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseResult {
    name: String,
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) passed: bool,
    expected: String,
    got: String,
    /// The message of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What was asked.
    request: Value,
}

impl CaseResult {
    pub(super) fn of(case: &Case, tested: &Tested) -> Self {
        Self {
            name: case.name.clone(),
            file: case.location.file.clone(),
            line: case.line,
            passed: tested.passes,
            expected: expected(&case.expected),
            got: got(&tested.answer),
            message: match &tested.answer {
                Answer::Refused(message, _) => Some(message.clone()),
                Answer::Admitted(_) | Answer::None(_) => None,
            },
            request: case.request(),
        }
    }

    /// The name, what was expected and what came.
    pub(super) fn failure(&self) -> String {
        let Self {
            name,
            expected,
            got,
            ..
        } = self;
        format!("{name}: expected {expected}, got {got}")
    }

    /// The place and the name.
    fn title(&self) -> String {
        let title = format!("{}:{}: {}", self.file, self.line, self.name);
        plain::line(&title).into_owned()
    }
}

fn expected(expected: &Expected) -> String {
    let mut words = match expected.verdict {
        Verdict::Admitted => "admitted".to_owned(),
        Verdict::Refused => "refused".to_owned(),
    };
    if let Some(whole) = &expected.whole {
        words = format!("{words}: {whole}");
    } else if let Some(part) = &expected.part {
        words = format!("{words}, with {part:?} in the message");
    }
    if let Some(warning) = &expected.warning {
        words = format!("{words}, with {warning:?} in a warning");
    }
    words
}

fn got(answer: &Answer) -> String {
    let (words, warnings) = match answer {
        Answer::Admitted(warnings) => ("admitted".to_owned(), warnings.as_slice()),
        Answer::Refused(message, warnings) => {
            (format!("refused: {message}"), &**warnings)
        }
        Answer::None(why) => (format!("no verdict: {why}"), &[][..]),
    };
    match warnings {
        [] => words,
        warnings => format!("{words}; warnings: {}", warnings.join("; ")),
    }
}

impl Report {
    /// Prints the cases that fail, and the counts.
    pub(super) fn failures(&self, out: &mut dyn Write) -> io::Result<()> {
        for case in self.cases.iter().filter(|it| !it.passed) {
            failure(out, case)?;
        }
        self.counts(out)
    }

    /// Prints every case, and the counts.
    pub(super) fn every_case(&self, out: &mut dyn Write) -> io::Result<()> {
        for case in &self.cases {
            if case.passed {
                writeln!(out, "pass {}", case.title())?;
            } else {
                failure(out, case)?;
            }
        }
        self.counts(out)
    }

    fn failed(&self) -> usize {
        self.cases.iter().filter(|it| !it.passed).count()
    }

    fn counts(&self, out: &mut dyn Write) -> io::Result<()> {
        let failed = self.failed();
        let passed = self.cases.len() - failed;
        write!(out, "{passed} passed, {failed} failed")?;
        match self.unused {
            0 => writeln!(out),
            1 => writeln!(out, "; 1 document of another kind is not used"),
            unused => writeln!(out, "; {unused} documents of other kinds are not used"),
        }?;
        if let Some(coverage) = &self.coverage {
            coverage.text(out)?;
        }
        if let Some(mutants) = &self.mutants {
            mutants.text(out)?;
        }
        Ok(())
    }

    /// Prints JUnit's XML: one suite, with a test case for each case.
    pub(super) fn junit(&self, out: &mut dyn Write, program: &str) -> io::Result<()> {
        let (all, failed) = (self.cases.len(), self.failed());
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(
            out,
            "<testsuite name=\"{program} test\" tests=\"{all}\" failures=\"{failed}\">"
        )?;
        for case in &self.cases {
            let place = format!("{}:{}", case.file, case.line);
            let place = escaped(&plain::line(&place));
            let name = escaped(&plain::line(&case.name));
            write!(out, "  <testcase name=\"{name}\" classname=\"{place}\"")?;
            if case.passed {
                writeln!(out, "/>")?;
                continue;
            }
            let text = format!("expected {}\ngot {}", case.expected, case.got);
            let text = escaped(&plain::lines(&text));
            writeln!(out, ">\n    <failure>{text}</failure>\n  </testcase>")?;
        }
        writeln!(out, "</testsuite>")
    }
}

fn failure(out: &mut dyn Write, case: &CaseResult) -> io::Result<()> {
    writeln!(out, "FAIL {}", case.title())?;
    for (label, words) in [("expected", &case.expected), ("got", &case.got)] {
        writeln!(out, "  {label}: {}", plain::line(words))?;
    }
    Ok(())
}
