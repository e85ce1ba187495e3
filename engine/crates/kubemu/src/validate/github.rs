//! Workflow commands of GitHub Actions: an annotation for each finding, on its line.

use std::io::{self, Write};

use kubemu_terminal::plain;

use super::extension::Extension;
use super::object_result::{Level, ObjectResult};

/// Prints one command for each finding.
pub(super) fn print(
    out: &mut dyn Write,
    object_results: &[ObjectResult],
    extension: &dyn Extension,
) -> io::Result<()> {
    for object_result in object_results {
        let subject = &object_result.subject;
        for finding in object_result.findings(extension) {
            let command = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Note => "notice",
            };
            write!(out, "::{command} ")?;
            if let Some(location) = &subject.location {
                let line = location.line_of(&finding.field);
                write!(out, "file={},line={line},", property(&location.file))?;
            }
            let title = format!("{} {}", finding.rule, subject.handle());
            let (title, message) = (property(&title), data(&finding.text()));
            writeln!(out, "title={title}::{message}")?;
        }
    }
    Ok(())
}

/// Escapes a message of a workflow command. What a terminal could act on is shown as its escape.
fn data(text: &str) -> String {
    plain::lines(text).replace('%', "%25").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
