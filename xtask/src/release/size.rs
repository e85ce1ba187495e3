//! The sizes of the released files, and the section of `docs/releases.md` about them.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{build, file_names};
use crate::cluster::target;
use crate::marked_page::filled;
use crate::stored_results::items;

/// Where the page is, below the root.
pub(crate) const PAGE: &str = "docs/releases.md";

/// Where the sizes are kept, below the root.
const RESULTS: &str = "xtask/results/release.json";

/// The images, with the limit of each in MiB, compressed as registries store it.
const LIMITS: [(&str, u64); 4] = [
    ("5spot", 15),
    ("5spot-controller", 8),
    ("5spot-webhook", 8),
    ("5spot-reclaim-agent", 5),
];

const MIB: u64 = 1 << 20;

/// Checks the sizes of the images in a folder.
///
/// # Errors
/// An image is larger than its limit, or the folder cannot be read.
pub(super) fn check(folder: &Path) -> Result<(), Box<dyn Error>> {
    for name in file_names(folder)? {
        let Some(limit) = limit(&name) else {
            continue;
        };
        let bytes = fs::metadata(folder.join(&name))?.len();
        if bytes > limit * MIB {
            return Err(
                format!("{name} has {bytes} bytes; the limit is {limit} MiB").into(),
            );
        }
    }
    Ok(())
}

/// The limit of an image in MiB, by the name of its file: `5spot-amd64.oci.tar`.
fn limit(file: &str) -> Option<u64> {
    let stem = file.strip_suffix(".oci.tar")?;
    let (image, _) = stem.rsplit_once('-')?;
    let found = LIMITS.iter().find(|(name, _)| *name == image);
    found.map(|(_, limit)| *limit)
}

/// Keeps the sizes of the files that were built for this machine's architecture.
///
/// # Errors
/// There are no files, or the result cannot be written.
pub(crate) fn record(root: &Path) -> Result<(), Box<dyn Error>> {
    let folder = target(root).join("release-files");
    let (architecture, triple) = build::own()?;
    let mut files = Vec::new();
    for name in file_names(&folder)? {
        let bytes = fs::metadata(folder.join(&name))?.len();
        let is_image = limit(&name).is_some();
        if is_image || name.ends_with(&format!("{architecture}.tar.gz")) {
            files.push(json!({"name": name, "bytes": bytes, "limitMiB": limit(&name)}));
        }
    }
    if files.is_empty() {
        return Err("no release files; run `cargo xtask release --dry-run`".into());
    }
    let kept = json!({"target": triple, "files": files});
    let path = root.join(RESULTS);
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    fs::write(path, serde_json::to_string_pretty(&kept)? + "\n")?;
    println!("`cargo xtask gen` writes the sizes to {PAGE}");
    Ok(())
}

/// The page with the sizes.
///
/// # Errors
/// The page or the sizes cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let kept = serde_json::from_str(&fs::read_to_string(root.join(RESULTS))?)?;
    filled(root, PAGE, [("sizes", table(&kept))])
}

fn table(kept: &Value) -> String {
    let triple = kept["target"].as_str().unwrap_or_default();
    let mut text = format!(
        "Of a build for `{triple}`. Images are measured as registries store them, compressed.\n\n\
         | file | MiB | limit |\n|---|---:|---:|\n"
    );
    for file in items(&kept["files"]) {
        let bytes = file["bytes"].as_u64().unwrap_or_default();
        // Rounded up to tenths.
        let tenths = (bytes * 10).div_ceil(MIB);
        let name = file["name"].as_str().unwrap_or_default();
        let limit = match file["limitMiB"].as_u64() {
            Some(limit) => limit.to_string(),
            None => "none".to_owned(),
        };
        let (whole, tenth) = (tenths / 10, tenths % 10);
        let _ = writeln!(text, "| `{name}` | {whole}.{tenth} | {limit} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_have_a_limit() {
        assert_eq!(limit("5spot-amd64.oci.tar"), Some(15));
        assert_eq!(limit("5spot-reclaim-agent-arm64.oci.tar"), Some(5));
        assert_eq!(limit("5spot-0.1.0-linux-amd64.tar.gz"), None);
    }

    #[test]
    fn sizes_are_rounded_up() {
        let kept = json!({"target": "x", "files": [
            {"name": "a.oci.tar", "bytes": MIB + 1, "limitMiB": 15},
        ]});
        let text = table(&kept);
        assert!(text.ends_with("| `a.oci.tar` | 1.1 | 15 |\n"), "{text}");
    }
}
