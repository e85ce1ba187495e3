//! `cargo xtask figures`: which sources each recorded result is about, and whether they have changed.
//!
//! [`RECORD`] has, for each file of results, the commit and the date of its recording and a hash of
//! the sources that it judges. `cargo xtask gen` adds a result that is new or has another content.
//! The page tells a result whose sources have changed since from others, so it changes with the first
//! edit after a recording, and not with those that follow.

mod judged;
mod number;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Faults, stored_results};
use judged::JUDGED;

/// Where the recordings are kept, below the root.
pub(crate) const RECORD: &str = "xtask/results/recorded.json";

/// Digits of a hash that are kept.
const DIGITS: usize = 16;

/// A recording of a result.
pub(crate) struct Figure {
    file: String,
    /// What it shows.
    number: String,
    commit: String,
    date: String,
    /// The hash of the sources when it was recorded.
    recorded: String,
    /// The hash of the sources now.
    current: String,
}

/// Every result with its recording.
///
/// # Errors
/// A result has no recording, or a file cannot be read.
pub(crate) fn figures(root: &Path) -> Result<Vec<Figure>, Box<dyn Error>> {
    let stamps = stamps(root)?;
    let mut hashes = BTreeMap::new();
    let mut figures = Vec::new();
    for (file, sources) in results(root)? {
        let of = &stamps[&file];
        if of["content"] != content(root, &file)? {
            return Err(format!(
                "{file} is not what {RECORD} knows; run `cargo xtask gen` if it was recorded with \
                 the sources as they are"
            )
            .into());
        }
        let text = |field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let (commit, date, recorded) = (text("commit"), text("date"), text("sources"));
        let current = hash_of(root, sources, &mut hashes)?;
        let result = serde_json::from_str(&fs::read_to_string(root.join(&file))?)?;
        figures.push(Figure {
            number: number::of(&file, &result),
            file,
            commit,
            date,
            recorded,
            current,
        });
    }
    Ok(figures)
}

/// Prints every result, and how to see what has changed since.
///
/// # Errors
/// As for [`figures`].
pub(crate) fn print(root: &Path) -> Result<(), Box<dyn Error>> {
    for of in figures(root)? {
        println!("{} {} {}", of.date, of.file, of.state());
        if !of.is_current() {
            let sources = judged::sources(&of.file).unwrap_or_default().join(" ");
            println!("    git diff --stat {} -- {sources}", of.commit);
        }
    }
    Ok(())
}

/// Returns a fault if the sources of a result have changed since it was recorded.
///
/// # Errors
/// It is not a recorded result, or as for [`figures`].
pub(crate) fn check(root: &Path, file: &str) -> Result<Faults, Box<dyn Error>> {
    let figures = figures(root)?;
    let of = figures.iter().find(|of| of.file == file);
    let of = of.ok_or_else(|| format!("{file} is not a recorded result"))?;
    println!("{} of {}: {}", of.file, of.date, of.state());
    Ok(if of.is_current() {
        Faults::new()
    } else {
        vec![format!("{file} is about other sources")]
    })
}

/// Records that results are about the sources as they are, also if their content is as before.
///
/// # Errors
/// One is not a recorded result, git fails, or a file cannot be read or written.
pub(crate) fn stamp(root: &Path, files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut stamps = stamps(root)?;
    for file in files {
        let sources = judged::sources(file)
            .ok_or_else(|| format!("{file} is not a recorded result"))?;
        stamps[file] = new_stamp(root, file, &sources)?;
    }
    write(root, &stamps)
}

/// Records the results that are new or have another content than the recorded ones, and drops those
/// that are gone.
///
/// # Errors
/// git fails, or a file cannot be read or written.
pub(crate) fn record_new(root: &Path) -> Result<(), Box<dyn Error>> {
    let old = stamps(root)?;
    let mut stamps = json!({});
    for (file, sources) in results(root)? {
        let is_known = old[&file]["content"] == content(root, &file)?;
        stamps[&file] = if is_known {
            old[&file].clone()
        } else {
            new_stamp(root, &file, &sources)?
        };
    }
    if stamps != old {
        write(root, &stamps)?;
    }
    Ok(())
}

/// The table of the page about the recordings.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = "\
| result | shows | on | with commit | hash of its sources | which since then have |
|---|---|---|---|---|---|
"
    .to_owned();
    for of in figures {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            of.file,
            of.number,
            of.date,
            of.commit,
            of.recorded,
            of.state()
        );
    }
    text
}

impl Figure {
    fn is_current(&self) -> bool {
        self.recorded == self.current
    }

    fn state(&self) -> &'static str {
        if self.is_current() {
            "not changed"
        } else {
            "changed"
        }
    }
}

/// Every file of results, with the sources that it judges.
fn results(root: &Path) -> io::Result<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    for row in JUDGED {
        if !row.results.ends_with('/') {
            all.push((row.results.to_owned(), row.sources()));
            continue;
        }
        for file in stored_results::files(&root.join(row.results))? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if file.is_file() {
                all.push((format!("{}{name}", row.results), row.sources()));
            }
        }
    }
    Ok(all)
}

fn stamps(root: &Path) -> Result<Value, Box<dyn Error>> {
    match fs::read_to_string(root.join(RECORD)) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(json!({})),
        Err(error) => Err(error.into()),
    }
}

fn write(root: &Path, stamps: &Value) -> Result<(), Box<dyn Error>> {
    let text = serde_json::to_string_pretty(stamps)?;
    Ok(fs::write(root.join(RECORD), format!("{text}\n"))?)
}

fn new_stamp(
    root: &Path,
    file: &str,
    sources: &[String],
) -> Result<Value, Box<dyn Error>> {
    let git = ["rev-parse", "--short=8", "HEAD"];
    let commit = process::output(Command::new("git").args(git).current_dir(root))?;
    #[expect(clippy::disallowed_methods, reason = "the date of a recording")]
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    Ok(json!({
        "commit": commit.trim(),
        "date": today.to_string(),
        "sources": hash_of(root, sources.to_vec(), &mut BTreeMap::new())?,
        "content": content(root, file)?,
    }))
}

fn content(root: &Path, file: &str) -> io::Result<String> {
    Ok(digest(&fs::read(root.join(file))?))
}

fn digest(bytes: &[u8]) -> String {
    let mut text = format!("{:x}", Sha256::digest(bytes));
    text.truncate(DIGITS);
    text
}

/// The hash of files and folders of sources. `known` has those that were computed before.
fn hash_of(
    root: &Path,
    sources: Vec<String>,
    known: &mut BTreeMap<String, String>,
) -> io::Result<String> {
    let mut all = String::new();
    for source in sources {
        if !known.contains_key(&source) {
            let mut files = Vec::new();
            list(&root.join(&source), &mut files)?;
            files.sort();
            let mut lines = String::new();
            for file in files {
                let path = file.strip_prefix(root).unwrap_or(&file);
                let _ =
                    writeln!(lines, "{} {}", digest(&fs::read(&file)?), path.display());
            }
            known.insert(source.clone(), digest(lines.as_bytes()));
        }
        let _ = writeln!(all, "{} {source}", known[&source]);
    }
    Ok(digest(all.as_bytes()))
}

/// Adds a file, or the files of a folder and its subfolders, without what tests leave behind.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        let name = path.to_string_lossy();
        if !name.ends_with(".snap.new") && !name.ends_with(".pending-snap") {
            files.push(path.to_owned());
        }
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        list(&entry?.path(), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with every result and every source, in a folder of its own.
    fn tree(name: &str) -> PathBuf {
        let id = std::process::id();
        let root = std::env::temp_dir().join(format!("5spot-figures-{name}-{id}"));
        for row in JUDGED {
            for source in row.sources() {
                fs::create_dir_all(root.join(&source)).unwrap();
                fs::write(root.join(&source).join("a.rs"), "one").unwrap();
            }
            let file = if row.results.ends_with('/') {
                root.join(row.results).join("x.json")
            } else {
                root.join(row.results)
            };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "{}").unwrap();
        }
        fs::create_dir_all(root.join("xtask/results")).unwrap();
        let git = |words: &[&str]| {
            process::output(Command::new("git").args(words).current_dir(&root)).unwrap()
        };
        git(&["init", "--quiet"]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(&[&who[..], &["commit", "--quiet", "--allow-empty", "-m", "a"]].concat());
        root
    }

    #[test]
    fn a_result_is_about_its_sources_until_one_of_their_files_changes() {
        let root = tree("edit");
        let model = "proof/results/model.json";
        record_new(&root).unwrap();
        assert_eq!(check(&root, model).unwrap(), Faults::new());
        let plan = root.join("crates/plan/src/a.rs");
        fs::write(&plan, "two").unwrap();
        assert_eq!(check(&root, model).unwrap().len(), 1);
        let now = table(&figures(&root).unwrap());
        let row = now.lines().find(|line| line.contains(model)).unwrap();
        assert!(row.ends_with("| changed |"), "{row}");
        // Not a source of the fuzz targets.
        assert_eq!(
            check(&root, "proof/results/fuzz.json").unwrap(),
            Faults::new()
        );
        // The same numbers, recorded again.
        stamp(&root, &[model.to_owned()]).unwrap();
        assert_eq!(check(&root, model).unwrap(), Faults::new());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_result_that_was_recorded_again_needs_a_new_recording() {
        let root = tree("again");
        record_new(&root).unwrap();
        let before = table(&figures(&root).unwrap());
        fs::write(root.join("proof/results/fuzz.json"), "[]").unwrap();
        let error = figures(&root).err().unwrap().to_string();
        assert!(
            error.starts_with("proof/results/fuzz.json is not what"),
            "{error}"
        );
        record_new(&root).unwrap();
        assert_eq!(table(&figures(&root).unwrap()), before);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn every_source_and_every_result_is_in_this_tree() {
        let root = crate::root();
        for (file, sources) in results(&root).unwrap() {
            assert!(root.join(&file).is_file(), "{file}");
            for source in sources {
                assert!(root.join(&source).exists(), "{source} of {file}");
            }
        }
    }
}
