//! The JUnit XML format: a test case for each object.

use std::io::{self, Write};

use kubemu_terminal::{is_active_character, plain};

use super::extension::Extension;
use super::object_result::{Finding, Level, ObjectResult, Verdict};

/// Prints one test suite.
pub(super) fn print(
    out: &mut dyn Write,
    object_results: &[ObjectResult],
    extension: &dyn Extension,
) -> io::Result<()> {
    let is_skipped = |it: &&ObjectResult| matches!(it.verdict, Verdict::Skipped(_));
    let refused = object_results.iter().filter(|it| it.is_invalid()).count();
    let skipped = object_results.iter().filter(is_skipped).count();
    let all = object_results.len();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let name = extension.program().name;
    writeln!(
        out,
        "<testsuite name=\"{name} validate\" tests=\"{all}\" failures=\"{refused}\" \
         skipped=\"{skipped}\">"
    )?;
    for object_result in object_results {
        case(out, object_result, extension)?;
    }
    writeln!(out, "</testsuite>")
}

fn case(
    out: &mut dyn Write,
    object_result: &ObjectResult,
    extension: &dyn Extension,
) -> io::Result<()> {
    let subject = &object_result.subject;
    let name = escaped(&subject.full_handle());
    let class = escaped(&plain::line(&subject.origin));
    writeln!(out, "  <testcase name=\"{name}\" classname=\"{class}\">")?;
    match &object_result.verdict {
        Verdict::Valid => {}
        Verdict::Skipped(why) => {
            writeln!(
                out,
                "    <skipped message=\"{}\"/>",
                escaped(&plain::line(why))
            )?;
        }
        Verdict::Refused(refusals) => {
            for refusal in refusals {
                let text = escaped(refusal.text().trim_end());
                writeln!(out, "    <failure>{text}</failure>")?;
            }
        }
    }
    let warnings_and_lints = object_result.warnings_and_lints(extension).into_iter();
    let (errors, others): (Vec<_>, Vec<_>) =
        warnings_and_lints.partition(|it| it.level == Level::Error);
    for (element, findings) in [("failure", errors), ("system-out", others)] {
        let lines = findings.iter().map(line).collect::<Vec<_>>();
        if !lines.is_empty() {
            let text = escaped(&lines.join("\n"));
            writeln!(out, "    <{element}>{text}</{element}>")?;
        }
    }
    writeln!(out, "  </testcase>")
}

fn line(finding: &Finding) -> String {
    let colon = if finding.field.is_empty() { ":" } else { "" };
    let text = format!("{}{colon} {}", finding.rule, finding.text());
    plain::line(&text).into_owned()
}

/// Escapes text for XML. Characters that XML cannot represent become a question mark.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            other if is_active_character(other) => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}
