//! The software bills of materials, as CycloneDX: what each binary is made of, with licences.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::run_program;

/// The folders of the packages, and the programs that they make.
const PACKAGES: [(&str, &str); 2] = [
    ("crates/cli", "5spot"),
    ("crates/agent", "5spot-reclaim-agent"),
];

/// Writes `<program>-<target>.cdx.json` for each program.
///
/// # Errors
/// There is no cargo-cyclonedx, or it fails.
pub(super) fn write(
    root: &Path,
    triple: &str,
    time: &str,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    for (folder, program) in PACKAGES {
        let name = format!("{program}-{triple}.cdx");
        run_program(
            Command::new("cargo")
                .args(["cyclonedx", "--quiet", "--format", "json"])
                .args(["--spec-version", "1.5", "--target", triple])
                .args(["--override-filename", &name])
                .arg("--manifest-path")
                .arg(root.join(folder).join("Cargo.toml"))
                // Without it a bill has a random number and the time.
                .env("SOURCE_DATE_EPOCH", time)
                .current_dir(root),
        )?;
        let name = format!("{name}.json");
        // It is written beside the manifest.
        let written = root.join(folder).join(&name);
        let bill = fs::read_to_string(&written)?;
        // Packages of this source are named by their paths.
        let bill = bill.replace(&root.display().to_string(), "/5spot");
        fs::write(out.join(name), bill)?;
        fs::remove_file(written)?;
    }
    Ok(())
}
