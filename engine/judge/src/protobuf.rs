//! The protobuf encoding of built-in kinds, the JSON that Go writes for their empty parts and the
//! names of their types, printed by a Go program from Kubernetes' own types.
//!
//! Why: internals/decisions/0034-protobuf-by-table.md.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use kubemu_golang as go;

/// The paths of the tables, below the engine, and the arguments of the program for each.
const TABLES: [(&str, &[&str]); 3] = [
    ("crates/apiserver/schema/protobuf.txt", &[]),
    ("crates/apiserver/schema/empty.json", &["empty"]),
    ("crates/apiserver/schema/go-types.txt", &["types"]),
];

/// Returns the current tables of the kinds in a list, by path; none if Go is not installed.
///
/// # Errors
/// The generator fails.
pub(crate) fn generate(
    root: &Path,
    kinds: &Path,
) -> Result<Vec<(&'static str, String)>, Box<dyn Error>> {
    if Command::new("go").arg("version").output().is_err() {
        for (path, _) in TABLES {
            eprintln!("Go is missing; {path} is left as it is and not compared");
        }
        return Ok(Vec::new());
    }
    let tables = TABLES.map(|(path, words)| {
        let output = print(root, words, File::open(kinds)?)?;
        let text = output.ok_or_else(|| format!("the generator of {path} failed"))?;
        Ok((path, text))
    });
    tables.into_iter().collect()
}

/// The output of the program for the kinds on its standard input; `None` if it fails.
fn print(
    root: &Path,
    words: &[&str],
    kinds: File,
) -> Result<Option<String>, Box<dyn Error>> {
    let output = Command::new("go")
        .arg("run")
        .args(go::FLAGS)
        .arg(".")
        .args(words)
        .env("CGO_ENABLED", "0")
        .current_dir(root.join("judge/protobuf"))
        .stdin(kinds)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(Some(text).filter(|_| output.status.success()))
}
