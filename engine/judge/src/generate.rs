//! `cargo judge gen`: writes the generated files of the engine.

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;

use crate::{Faults, builtin_kind, builtin_schema, page, protobuf};

/// The crates whose public items are listed, because other projects may use them.
const PUBLIC: [&str; 4] = ["admission", "apiserver", "cel", "gostd"];

/// A generated file: its path below the engine's folder, and its text.
type GeneratedFile = (String, String);

/// Writes every generated file that is out of date.
///
/// # Errors
/// A generator fails, or a file cannot be written.
pub(crate) fn write(root: &Path) -> Result<(), Box<dyn Error>> {
    for (path, text) in files(root)? {
        if found(&root.join(&path))?.as_deref() != Some(text.as_str()) {
            fs::write(root.join(&path), text)?;
            println!("wrote {path}");
        }
    }
    Ok(())
}

/// The files that [`write()`] would change.
///
/// # Errors
/// A generator fails, or a file cannot be read.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut faults = Faults::new();
    for (path, text) in files(root)? {
        let found = found(&root.join(&path))?.unwrap_or_default();
        if found != text {
            let mut lines = (found.lines(), text.lines());
            let same = (lines.0.by_ref().zip(lines.1.by_ref()))
                .take_while(|(found, text)| found == text)
                .count();
            faults.push(format!(
                "{path}:{}: out of date; run `cargo judge gen`",
                same + 1
            ));
        }
    }
    Ok(faults)
}

fn files(root: &Path) -> Result<Vec<GeneratedFile>, Box<dyn Error>> {
    let kinds = builtin_kind::list()?;
    let mut files = vec![
        (page::PATH.to_owned(), page::page(root)?),
        (
            builtin_schema::PATH.to_owned(),
            builtin_schema::generate(root, &kinds)?,
        ),
    ];
    for (path, text) in protobuf::generate(root, &kinds)? {
        files.push((path.to_owned(), text));
    }
    for name in PUBLIC {
        let items = kubemu_public::list(&root.join("crates").join(name).join("src"))?;
        let text = format!(
            "# What kubemu-{name} offers to other crates. Written by `cargo judge gen`.\n\n{items}"
        );
        files.push((format!("docs/public/{name}.txt"), text));
    }
    Ok(files)
}

/// The text of a file; `None` if there is no such file.
fn found(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
