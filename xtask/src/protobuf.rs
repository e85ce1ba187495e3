//! How built-in kinds are written in protobuf, and what Go writes of their empty parts,
//! printed by a Go program from Kubernetes' own types.
//!
//! Why: docs/decisions/0034-protobuf-by-table.md.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the tables are kept, below the root, and what the program is called with for each.
const TABLES: [(&str, &[&str]); 2] = [
    ("crates/apiserver/schema/protobuf.txt", &[]),
    ("crates/apiserver/schema/empty.json", &["empty"]),
];

/// The tables of the kinds in a list as they should be, by path; none where there is no Go to ask.
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

/// What the program prints of the kinds it reads; none where it fails.
fn print(
    root: &Path,
    words: &[&str],
    kinds: File,
) -> Result<Option<String>, Box<dyn Error>> {
    let output = Command::new("go")
        .args(["run", "."])
        .args(words)
        .current_dir(root.join("xtask").join("protobuf"))
        .stdin(kinds)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(Some(text).filter(|_| output.status.success()))
}
