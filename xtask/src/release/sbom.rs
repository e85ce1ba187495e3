//! The software bills of materials, as CycloneDX: the packages in each binary, with licences.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;
use serde_json::Value;

/// The folders of the packages, and the programs that they build.
const PACKAGES: [(&str, &str); 4] = [
    ("crates/cli", "5spot"),
    ("crates/controller", "5spot-controller"),
    ("crates/webhook", "5spot-webhook"),
    ("crates/agent", "5spot-reclaim-agent"),
];

/// The depth of our packages' manifests below the root.
const DEPTH: usize = 2;

/// Writes `<program>-<target>.cdx.json` for each program.
///
/// # Errors
/// cargo-cyclonedx is not installed, or it fails.
pub(super) fn write(
    root: &Path,
    triple: &str,
    time: &str,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    let name = format!("5spot-release-{triple}.cdx");
    process::run(
        Command::new("cargo")
            .args(["cyclonedx", "--quiet", "--format", "json"])
            .args([
                "--spec-version",
                "1.5",
                "--target",
                triple,
                "--all-features",
            ])
            .args(["--override-filename", &name])
            .current_dir(root),
    )?;
    // cargo-cyclonedx writes a bill next to the manifest of each package.
    let mut bills = BTreeMap::new();
    take(root, &format!("{name}.json"), DEPTH, &mut bills)?;
    for (folder, program) in PACKAGES {
        let bill = bills
            .get(&root.join(folder))
            .ok_or_else(|| format!("cargo cyclonedx wrote nothing for {folder}"))?;
        // Packages of the workspace have names with their paths.
        let bill = bill.replace(&root.display().to_string(), "/5spot");
        let bill = at(serde_json::from_str(&bill)?, time)?;
        let path = out.join(format!("{program}-{triple}.cdx.json"));
        fs::write(path, serde_json::to_string_pretty(&bill)? + "\n")?;
    }
    Ok(())
}

/// Removes the files with a name from a folder and its subfolders, and returns their contents.
fn take(
    folder: &Path,
    name: &str,
    depth: usize,
    taken: &mut BTreeMap<PathBuf, String>,
) -> Result<(), Box<dyn Error>> {
    let path = folder.join(name);
    if path.is_file() {
        taken.insert(folder.to_owned(), fs::read_to_string(&path)?);
        fs::remove_file(path)?;
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_source = !matches!(entry.file_name().to_str(), Some("target" | ".git"));
        if is_source && entry.file_type()?.is_dir() {
            take(&entry.path(), name, depth - 1, taken)?;
        }
    }
    Ok(())
}

/// A bill with a fixed time, in seconds since 1970. As written, it contains the current time and a
/// random number.
fn at(mut bill: Value, time: &str) -> Result<Value, Box<dyn Error>> {
    let time = jiff::Timestamp::from_second(time.parse()?)?;
    bill["metadata"]["timestamp"] = time.to_string().into();
    if let Some(fields) = bill.as_object_mut() {
        fields.remove("serialNumber");
    }
    Ok(bill)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bill_depends_only_on_the_commit() {
        let written = |number: &str, time: &str| json!({"serialNumber": number, "metadata": {"timestamp": time}, "components": []});
        let [one, other] = [
            written("urn:1", "2026-11-24"),
            written("urn:2", "2026-11-25"),
        ]
        .map(|bill| at(bill, "1770000000").unwrap());
        assert_eq!(one, other);
        assert_eq!(one["metadata"]["timestamp"], "2026-02-02T02:40:00Z");
    }
}
