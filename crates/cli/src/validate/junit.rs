//! The XML that test reports are made of: a case for each object.

use std::io::{self, Write};

use super::answer::{Answer, Verdict};

/// Prints one suite.
pub(super) fn print(out: &mut dyn Write, answers: &[Answer]) -> io::Result<()> {
    let count =
        |is: fn(&Verdict) -> bool| answers.iter().filter(|it| is(&it.verdict)).count();
    let refused = count(|it| matches!(it, Verdict::Refused(_)));
    let skipped = count(|it| matches!(it, Verdict::Skipped(_)));
    let all = answers.len();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuite name=\"5spot validate\" tests=\"{all}\" failures=\"{refused}\" \
         skipped=\"{skipped}\">"
    )?;
    for answer in answers {
        case(out, answer)?;
    }
    writeln!(out, "</testsuite>")
}

fn case(out: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    let subject = &answer.subject;
    let name = escaped(&format!("{}/{}", subject.namespace, subject.handle()));
    let class = escaped(&subject.origin);
    writeln!(out, "  <testcase name=\"{name}\" classname=\"{class}\">")?;
    match &answer.verdict {
        Verdict::Valid => {}
        Verdict::Skipped(why) => {
            writeln!(out, "    <skipped message=\"{}\"/>", escaped(why))?;
        }
        Verdict::Refused(refusals) => {
            for refusal in refusals {
                let text = escaped(refusal.text().trim_end());
                writeln!(out, "    <failure>{text}</failure>")?;
            }
        }
    }
    let remarks = answer.findings().into_iter().filter(|it| !it.is_error);
    let remarks: Vec<String> = remarks
        .map(|it| format!("{} {}: {}", it.rule, it.field, it.message))
        .collect();
    if !remarks.is_empty() {
        let text = escaped(&remarks.join("\n"));
        writeln!(out, "    <system-out>{text}</system-out>")?;
    }
    writeln!(out, "  </testcase>")
}

/// Text as XML takes it; characters that XML has no way to write become a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            other if other.is_control() => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}
