//! Deliberate faults in the planner, one at a time: the model must detect every one. That proves
//! that the model can fail.
//!
//! A mutant is a change of the planner's source. The sources are copied. In the copy, each
//! function that mutants change gets an additional body for each of them; which body runs is
//! chosen when the search begins. So one build contains all mutants, and the shipped planner
//! contains none of them.

mod table;
mod tested;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::SearchScope;

/// A deliberate fault in the planner.
pub(crate) struct Mutant {
    /// Stable; names the fault, the law or the rule that the mutant violates.
    pub(crate) id: &'static str,
    /// What the planner does wrong.
    pub(crate) fault: &'static str,
    /// The file, relative to the root of the workspace.
    pub(crate) file: &'static str,
    /// The text that is replaced: it is in the file exactly once, within one function.
    pub(crate) find: &'static str,
    /// The replacement.
    pub(crate) replace: &'static str,
}

pub(crate) use table::MUTANTS;
pub(crate) use tested::{TESTED, TestedCopy};

/// The version of the copy in the build directory. With the same version Cargo would mistake the
/// copy for the original, and the model would search a mutated planner.
const VERSION: &str = r#"version = "0.0.0-mutants""#;

/// The code that is added to each crate with mutants: a function that returns the index of the
/// mutant that runs, counted from 1; 0 for none.
const CHOICE: &str = r#"
/// Which mutant runs.
pub(crate) fn mutant() -> usize {
    static MUTANT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let chosen = || std::env::var("MUTANT").ok()?.parse().ok();
    *MUTANT.get_or_init(|| chosen().unwrap_or(0))
}
"#;

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MutantOutcome {
    /// The model found a violation: the law, and the part in which it was violated.
    Caught(String, SearchScope),
    /// The model found no violation.
    Missed,
    /// The search crashed.
    SearchCrashed,
}

impl Mutant {
    /// The position of the mutant in the source, or why it cannot be determined.
    fn place(&self, source: &str) -> Result<Range<usize>, String> {
        let mut all = source.match_indices(self.find);
        match (all.next(), all.count()) {
            (Some((start, _)), 0) => Ok(start..start + self.find.len()),
            (found, more) => Err(format!(
                "{}: the text to replace occurs {} times in {}, not once; correct the table",
                self.id,
                more + usize::from(found.is_some()),
                self.file
            )),
        }
    }
}

/// The source in which each of these mutants, given with its number, can be selected at run time.
fn switchable(source: &str, mutants: &[(usize, &Mutant)]) -> Result<String, String> {
    let mut bodies: BTreeMap<(usize, usize), Vec<(usize, String)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let place = mutant.place(source)?;
        let body = body_around(source, &place).ok_or_else(|| {
            format!("{}: the text is not within one function", mutant.id)
        })?;
        let (before, after) = (body.start..place.start, place.end..body.end);
        let mutated = [&source[before], mutant.replace, &source[after]].concat();
        let all = bodies.entry((body.start, body.end)).or_default();
        all.push((*number, mutated));
    }
    let mut text = source.to_owned();
    // From the end, so that the earlier positions stay valid.
    for ((start, end), all) in bodies.into_iter().rev() {
        let arm = |(number, body): &(usize, String)| format!("{number} => {body}\n");
        let arms: String = all.iter().map(arm).collect();
        let right = &source[start..end];
        let body = format!("{{ match crate::mutant() {{\n{arms}_ => {right}\n}} }}");
        text.replace_range(start..end, &body);
    }
    Ok(text)
}

/// The body, with its braces, of the innermost function around a position, in a source that is
/// formatted by rustfmt: a function ends where its closing brace has the indentation of its first
/// word.
fn body_around(source: &str, place: &Range<usize>) -> Option<Range<usize>> {
    let mut start = 0;
    let mut lines: Vec<(usize, &str)> = Vec::new();
    for line in source.split('\n') {
        lines.push((start, line));
        start += line.len() + 1;
    }
    let depth = |line: &str| line.len() - line.trim_start().len();
    let around = |first: usize| {
        let rest = lines.get(first..)?;
        let deep = depth(rest.first()?.1);
        let opens = |line: &str| line.ends_with('{') && depth(line) == deep;
        let (opening, line) = rest.iter().find(|(_, line)| opens(line))?;
        let closes = |line: &str| depth(line) == deep && line.trim_start() == "}";
        let (closing, line_of_end) = rest.iter().find(|(_, line)| closes(line))?;
        let body = opening + line.len() - 1..closing + line_of_end.len();
        (body.start <= place.start && place.end <= body.end).then_some(body)
    };
    let is_function = |line: &str| {
        let words = line.trim_start().split(' ');
        let mut words =
            words.skip_while(|word| word.starts_with("pub") || *word == "async");
        words.next() == Some("fn")
    };
    let firsts = 0..lines.len();
    firsts
        .rev()
        .filter(|first| is_function(lines[*first].1))
        .find_map(around)
}

/// A copy of the workspace in which each of some mutants can be selected at run time.
struct SourceCopy {
    tree: PathBuf,
    /// The target folder of the workspace: what the copy depends on has been built there.
    target: PathBuf,
}

impl SourceCopy {
    /// Copies the workspace under `root` into a folder of its target folder. The mutants are numbered
    /// from 1.
    ///
    /// # Errors
    /// If git fails, the source of a mutant no longer exists, or a file cannot be copied.
    fn of<'m>(
        root: &Path,
        folder: &str,
        mutants: impl Iterator<Item = &'m Mutant>,
    ) -> io::Result<Self> {
        let tree = root.join("target/mutants").join(folder);
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        let words = [
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ];
        let listed = Command::new("git").args(words).current_dir(root).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for file in listed.split_terminator('\0') {
            let (from, to) = (root.join(file), tree.join(file));
            // One that was removed is listed too.
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(&tree))?;
                fs::copy(from, to)?;
            }
        }
        edit(&tree.join("Cargo.toml"), |manifest| {
            let line = |line| if is_version(line) { VERSION } else { line };
            Ok(manifest.lines().map(line).collect::<Vec<_>>().join("\n"))
        })?;
        mutate(&tree, mutants)?;
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| root.join("target"), PathBuf::from);
        Ok(Self { tree, target })
    }

    /// Cargo in the copy.
    fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

fn is_version(line: &str) -> bool {
    line.starts_with("version =")
}

fn edit(
    path: &Path,
    change: impl FnOnce(&str) -> Result<String, String>,
) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    fs::write(path, change(&text).map_err(io::Error::other)?)
}

/// Adds the mutants to the sources of a copy.
fn mutate<'m>(tree: &Path, mutants: impl Iterator<Item = &'m Mutant>) -> io::Result<()> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in (1..).zip(mutants) {
        files.entry(mutant.file).or_default().push((number, mutant));
    }
    let mut roots = BTreeSet::new();
    for (file, mutants) in files {
        edit(&tree.join(file), |source| switchable(source, &mutants))?;
        let part: PathBuf = Path::new(file).components().take(2).collect();
        roots.insert(tree.join(part).join("src/lib.rs"));
    }
    for root in roots {
        edit(&root, |source| Ok(source.to_owned() + CHOICE))?;
    }
    Ok(())
}

/// The search that is built from a copy with every mutant.
pub(crate) struct MutatedSearch {
    program: PathBuf,
}

impl MutatedSearch {
    /// Builds the search from a copy of the sources under `root`.
    ///
    /// # Errors
    /// If the source of a mutant no longer exists, or the copy does not compile.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let copy = SourceCopy::of(root, "tree", MUTANTS.iter())?;
        let words = ["build", "--quiet", "--release", "--offline", "--bin=proof"];
        let output = copy.cargo().args(words).output()?;
        if output.status.success() {
            let program = copy.tree.join("search");
            fs::copy(copy.target.join("release/proof"), &program)?;
            return Ok(Self { program });
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let errors = words
            .lines()
            .skip_while(|line| !line.starts_with("error"))
            .take(20);
        let errors: Vec<&str> = errors.collect();
        let error = format!("a mutant does not compile:\n{}", errors.join("\n"));
        Err(io::Error::other(error))
    }

    /// Runs the mutant with this number, counted from 1, and searches until it is detected, on
    /// one thread; `likely` is searched first.
    pub(crate) fn run(
        &self,
        number: usize,
        likely: Option<&SearchScope>,
    ) -> io::Result<MutantOutcome> {
        let begin = likely.map(|likely| format!("--begin={likely}"));
        let output = Command::new(&self.program)
            .args(["model", "--first", "--threads=1"])
            .args(begin)
            .env("MUTANT", number.to_string())
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = printed.lines().zip(printed.lines().skip(1));
        let broken = lines.into_iter().find_map(|(part, line)| {
            let invariant = line.strip_prefix("broken: ")?;
            Some((invariant.to_owned(), part.parse().ok()?))
        });
        Ok(match (output.status.code(), broken) {
            (Some(0), None) => MutantOutcome::Missed,
            (Some(1), Some((invariant, part))) => MutantOutcome::Caught(invariant, part),
            _ => MutantOutcome::SearchCrashed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn all() -> impl Iterator<Item = &'static Mutant> {
        MUTANTS.iter().chain(TESTED.iter().map(|of| &of.mutant))
    }

    #[test]
    fn every_mutant_still_applies() {
        let refused: Vec<String> = all()
            .filter_map(|mutant| {
                let source = fs::read_to_string(root().join(mutant.file)).unwrap();
                switchable(&source, &[(1, mutant)]).err()
            })
            .collect();
        assert_eq!(refused, [""; 0]);
    }

    #[test]
    fn every_test_that_a_mutant_names_exists() {
        let mut files = vec![root().join("crates")];
        let mut sources = String::new();
        while let Some(path) = files.pop() {
            if path.is_dir() {
                let entries = fs::read_dir(path).unwrap();
                files.extend(entries.map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|end| end == "rs") {
                sources += &fs::read_to_string(path).unwrap();
            }
        }
        for mutant in TESTED {
            let name = mutant.test.rsplit("::").next().unwrap();
            assert!(sources.contains(&format!("fn {name}(")), "{}", mutant.test);
        }
    }

    #[test]
    fn a_function_gets_a_body_for_each_mutant() {
        let mutant = |find, replace| Mutant {
            id: "one",
            fault: "",
            file: "",
            find,
            replace,
        };
        let source = "impl One {\n    fn two(\n        a: u8,\n    ) -> u8 {\n        a + 1\n    }\n}\n";
        let (less, more) = (mutant("+", "-"), mutant("1", "2"));
        assert_eq!(
            switchable(source, &[(3, &less), (4, &more)]).unwrap(),
            "impl One {\n    fn two(\n        a: u8,\n    ) -> u8 { match crate::mutant() {\n\
             3 => {\n        a - 1\n    }\n4 => {\n        a + 2\n    }\n\
             _ => {\n        a + 1\n    }\n} }\n}\n"
        );
        assert!(switchable(source, &[(1, &mutant("impl", ""))]).is_err());
        assert!(switchable(source, &[(1, &mutant(" ", ""))]).is_err());
    }

    #[test]
    fn every_mutant_has_a_unique_id() {
        let mut ids: Vec<_> = all().map(|mutant| mutant.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all().count());
    }
}
