//! How built-in kinds are written in protobuf, printed by a Go program from Kubernetes'
//! own types.
//!
//! Why: docs/decisions/0034-protobuf-by-table.md.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the table is kept, below the root.
pub(crate) const PATH: &str = "crates/apiserver/schema/protobuf.txt";

/// The table as it should be; none where there is no Go to ask.
///
/// # Errors
/// The generator fails.
pub(crate) fn generate(root: &Path) -> Result<Option<String>, Box<dyn Error>> {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("Go is missing; {PATH} is left as it is and not compared");
        return Ok(None);
    }
    let output = Command::new("go")
        .args(["run", "."])
        .current_dir(root.join("xtask").join("protobuf"))
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("the generator of {PATH} failed: {status}").into());
    }
    Ok(Some(String::from_utf8(output.stdout)?))
}
