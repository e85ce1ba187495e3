//! Workflow commands of GitHub Actions: an annotation for each finding, on its line.

use std::io::{self, Write};

use super::LintLevel;
use super::answer::{Answer, Level};

/// Prints one command for each finding.
pub(super) fn print(
    out: &mut dyn Write,
    answers: &[Answer],
    lint: LintLevel,
) -> io::Result<()> {
    for answer in answers {
        let subject = &answer.subject;
        for finding in answer.findings(lint) {
            let command = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Note => "notice",
            };
            write!(out, "::{command} ")?;
            if let Some(place) = &subject.place {
                let line = place.line_of(&finding.field);
                write!(out, "file={},line={line},", property(&place.file))?;
            }
            let title = format!("{} {}", finding.rule, subject.handle());
            let (title, message) = (property(&title), data(&finding.text()));
            writeln!(out, "title={title}::{message}")?;
        }
    }
    Ok(())
}

/// Escapes a message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
