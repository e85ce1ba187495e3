//! The schemas of the built-in kinds, printed by a package outside the workspace.
//!
//! Why outside: internals/decisions/0034-protobuf-by-table.md.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::target;

/// Where the schemas are kept, below the engine.
pub(crate) const PATH: &str = "crates/apiserver/schema/builtin.json";

/// Returns the current schemas of the kinds in a list.
///
/// # Errors
/// The generator cannot be built, or fails.
pub(crate) fn generate(root: &Path, kinds: &Path) -> Result<String, Box<dyn Error>> {
    let package = root.join("judge/builtin-schema");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target().join("builtin-schema"))
        .env("BUILTIN_KINDS", kinds)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("the generator of built-in schemas failed: {status}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
