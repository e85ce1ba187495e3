//! `cargo judge documents DIR`: checks that the examples of two Kubernetes documents are used by
//! tests, or are excepted with a reason.

mod exception;
mod read;
mod tested_examples;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::Faults;

use exception::EXCEPTIONS;
use read::{Example, Form};

/// The documents: their numbers, and their files in the folder.
const DOCUMENTS: [(&str, &str); 2] = [
    ("002", "kubernetes-validating-admission-policy.txt"),
    ("004", "kubernetes-admission-controllers.txt"),
];

/// Compares the examples with the tests of the engine and with those in `more`, files of Rust, and prints
/// their number.
///
/// # Errors
/// There is no such folder, or a document or a test cannot be read.
pub(crate) fn check(
    root: &Path,
    folder: &Path,
    more: &[&str],
) -> Result<Faults, Box<dyn Error>> {
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(format!("no folder {folder} with the documents").into());
    }
    let tested_examples = tested_examples::read(root, more)?;
    let mut faults = Faults::new();
    for (number, file) in DOCUMENTS {
        let path = folder.join(file);
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let found = read::examples(&text);
        for (form, what) in [(Form::Block, "blocks"), (Form::Command, "commands")] {
            let of_form = found.iter().filter(|it| it.form == form);
            let (are, not): (Vec<&Example>, Vec<&Example>) =
                of_form.partition(|it| tested_examples.has(it));
            println!(
                "document {number}: {} {what}: {} played, {} not",
                are.len() + not.len(),
                are.len(),
                not.len()
            );
            for example in not {
                let name = format!(
                    "document {number}, {}, {form} {} (line {})",
                    example.heading, example.ordinal, example.line
                );
                match reason(number, example) {
                    Some(reason) => println!("  {name}: {reason}"),
                    None => faults.push(format!("{name}: no test uses it")),
                }
            }
            for example in are {
                if reason(number, example).is_some() {
                    faults.push(format!(
                        "document {number}, {}, {form} {}: is excepted, and a test uses it",
                        example.heading, example.ordinal
                    ));
                }
            }
        }
    }
    Ok(faults)
}

/// The reason why no test uses an example.
fn reason(document: &str, example: &Example) -> Option<&'static str> {
    let found = EXCEPTIONS.iter().find(|it| {
        it.document == document
            && it.heading == example.heading
            && it.form == example.form
            && it.ordinal == example.ordinal
    });
    found.map(|it| it.reason)
}
