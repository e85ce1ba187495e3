//! The licences of the packages that are linked into the binaries, for the images and archives.
//!
//! The files of every package are copied, so that all copyright notices are included; equal texts
//! are written once. `cargo-about` would recognize licences by their text, for which it needs a
//! template and a list of exceptions; only the texts themselves are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;
use serde_json::Value;

/// The files that [`write`] creates in its folder.
pub(super) const FILES: [&str; 2] = ["THIRD-PARTY-LICENSES", "RUST-LICENSES.html"];

/// The beginnings of the names of files with a licence or a notice.
const NAMES: [&str; 7] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
    "patents",
];

/// How many folders deep below a package such files are searched: bundled C libraries are in
/// folders.
const DEPTH: usize = 3;

/// The licence of the C library, which is not in any package.
const MUSL: &str = "\
Copyright (c) 2005-2020 Rich Felker, et al.

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the \"Software\"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense,
and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

/// Writes [`FILES`] for the programs of a source tree and a target into a new folder below `out`,
/// and returns the folder.
///
/// # Errors
/// Cargo or rustc fails, or a package has no licence.
pub(super) fn write(
    root: &Path,
    triple: &str,
    out: &Path,
) -> Result<PathBuf, Box<dyn Error>> {
    let folder = out.join("notices");
    fs::create_dir_all(&folder)?;
    let packages = packages(root, triple)?;
    fs::write(folder.join(FILES[0]), page(&packages)?)?;
    let sysroot = process::output(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(root),
    )?;
    let own = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::copy(&own, folder.join(FILES[1]))
        .map_err(|error| format!("{}: {error}", own.display()))?;
    Ok(folder)
}

/// A linked package.
struct Package {
    /// Name and version.
    title: String,
    /// The SPDX expression of its manifest.
    licence: String,
    folder: PathBuf,
}

/// The packages that are linked into the programs, sorted, except those of this workspace.
fn packages(root: &Path, triple: &str) -> Result<Vec<Package>, Box<dyn Error>> {
    let words = ["tree", "--locked", "--target", triple, "--prefix", "none"];
    let linked = ["-e", "normal,no-proc-macro", "-f", "{p}"];
    let tree = process::output(
        Command::new("cargo")
            .args([&words[..], &super::PACKAGES, &linked].concat())
            .current_dir(root),
    )?;
    let titles: BTreeSet<String> = tree.lines().filter_map(title).collect();
    let words = [
        "metadata",
        "--locked",
        "--format-version=1",
        "--all-features",
    ];
    let metadata: Value = serde_json::from_str(&process::output(
        Command::new("cargo").args(words).current_dir(root),
    )?)?;
    let mut all = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let title = format!("{} {}", text("name"), text("version"));
        if package["source"].is_null() || !titles.contains(&title) {
            continue;
        }
        let manifest = Path::new(text("manifest_path"));
        all.push(Package {
            title,
            licence: text("license").to_owned(),
            folder: manifest.parent().unwrap_or(manifest).to_owned(),
        });
    }
    all.sort_by(|one, other| one.title.cmp(&other.title));
    Ok(all)
}

/// The title of a package from a line of `cargo tree`: `anyhow 1.0.1` for `anyhow v1.0.1 (*)`.
fn title(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?);
    Some(format!("{name} {}", version.strip_prefix('v')?))
}

/// Every package with its licence, then every text with the packages that contain it.
fn page(packages: &[Package]) -> Result<String, Box<dyn Error>> {
    let mut page = "The programs contain, beside 5-Spot itself:\n\n".to_owned();
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let Package { title, licence, .. } = package;
        if licence.is_empty() {
            return Err(format!("{title} has no licence").into());
        }
        let found = texts_of(&package.folder, DEPTH)?;
        let remark = if found.is_empty() {
            "; the package contains no text of it"
        } else {
            ""
        };
        let _ = writeln!(page, "{title}: {licence}{remark}");
        for text in found {
            texts.entry(text).or_default().push(title);
        }
    }
    texts.insert(MUSL.to_owned(), vec!["musl"]);
    page.push_str("musl: MIT\nRust's standard library: see RUST-LICENSES.html\n");
    for (text, titles) in texts {
        let line = "-".repeat(72);
        let _ = write!(page, "\n{line}\n{}\n{line}\n\n{text}\n", titles.join(", "));
    }
    Ok(page)
}

/// The texts of licences and notices in a folder and its subfolders.
fn texts_of(folder: &Path, depth: usize) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut texts = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                texts.append(&mut texts_of(&path, depth - 1)?);
            }
        } else if is_notice(&entry.file_name().to_string_lossy()) {
            let text = String::from_utf8_lossy(&fs::read(path)?).replace("\r\n", "\n");
            texts.insert(text.trim_end().to_owned());
        }
    }
    Ok(texts)
}

/// Whether a file with this name is a licence or a notice, and not source code.
fn is_notice(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_source = [".rs", ".c", ".h", ".toml", ".py", ".hbs", ".json"]
        .iter()
        .any(|end| name.ends_with(end));
    !is_source && NAMES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_the_line_of_cargo_tree() {
        let found = title("ring v0.17.14 (*)");
        assert_eq!(found.as_deref(), Some("ring 0.17.14"));
        assert_eq!(title(""), None);
    }

    #[test]
    fn notices_are_distinguished_from_source_code() {
        for name in [
            "LICENSE-MIT",
            "COPYING",
            "NOTICE",
            "license.txt",
            "LICENSE.md",
        ] {
            assert!(is_notice(name), "{name}");
        }
        for name in ["licenses.rs", "README.md", "copyright.h"] {
            assert!(!is_notice(name), "{name}");
        }
    }

    #[test]
    fn what_is_linked_has_its_licence_in_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let packages = packages(&root, "x86_64-unknown-linux-musl").unwrap();
        let page = page(&packages).unwrap();
        for part in [
            "ring 0.17",
            "tikv-jemallocator",
            "Jason Evans",
            "Rich Felker",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("fivespot"), "only what is not ours");
        assert!(!page.contains("criterion"), "only what is linked");
    }
}
