//! Deliberate mistakes in the planner, each by itself: the model has to catch every one. That is
//! what shows that the model can fail.
//!
//! A mistake is a change of the planner's source. The sources are copied, changed and built apart,
//! so that the shipped planner holds no trace of it.

mod table;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A deliberate mistake.
pub(crate) struct Mutant {
    /// Stable; names the fault, the law or the rule that it stands for.
    pub(crate) id: &'static str,
    /// What the planner does wrong, in words.
    pub(crate) fault: &'static str,
    /// The file, from the root of the workspace.
    pub(crate) file: &'static str,
    /// What is replaced: it stands in the file exactly once.
    pub(crate) find: &'static str,
    /// What it is replaced with.
    pub(crate) replace: &'static str,
}

pub(crate) use table::MUTANTS;

/// The crates that the planner and the model are built from.
const CRATES: [&str; 5] = [
    "crates/schedule",
    "crates/api",
    "crates/capi",
    "crates/plan",
    "proof",
];

/// What tells the copy from the original in the folder of the builds. With the same version Cargo
/// would take one for the other, and the model would search a planner with a mistake in it.
const VERSION: &str = r#"version = "0.0.0-mistaken""#;

/// Compiles the planner quickly rather than well: it is asked each question once.
const QUICK: &str = "\n[profile.release.package.fivespot-plan]\nopt-level = 0\n";

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The model found a law broken; the law.
    Caught(String),
    /// The model found nothing.
    Missed,
    /// It could not be tried.
    Broken(String),
}

impl Mutant {
    /// The source with the mistake in it, or why that cannot be.
    pub(crate) fn apply(&self, source: &str) -> Result<String, String> {
        match source.matches(self.find).count() {
            1 => Ok(source.replacen(self.find, self.replace, 1)),
            count => Err(format!(
                "{}: what it replaces stands {count} times in {}; say it anew",
                self.id, self.file
            )),
        }
    }
}

/// A copy of the sources, in which mistakes are made.
pub(crate) struct Copy {
    root: PathBuf,
    tree: PathBuf,
    /// One mistake is made and built at a time.
    building: Mutex<()>,
}

impl Copy {
    /// Copies the sources under `root` to a folder beside the build's.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let tree = root.join("target/mutants/tree");
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        for part in CRATES {
            copy(&root.join(part), &tree.join(part))?;
            let manifest = tree.join(part).join("Cargo.toml");
            fs::write(&manifest, shipped(&fs::read_to_string(&manifest)?))?;
        }
        for file in ["Cargo.lock", "rust-toolchain.toml", "clippy.toml"] {
            if root.join(file).exists() {
                fs::copy(root.join(file), tree.join(file))?;
            }
        }
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
        let members = format!("members = {CRATES:?}");
        let manifest: Vec<&str> = manifest
            .lines()
            .map(|line| {
                if line.starts_with("members =") {
                    members.as_str()
                } else if line.starts_with("version =") {
                    VERSION
                } else {
                    line
                }
            })
            .filter(|line| !line.starts_with("exclude ="))
            .collect();
        let manifest = manifest.join("\n") + QUICK;
        fs::write(tree.join("Cargo.toml"), manifest)?;
        Ok(Self {
            root: root.to_owned(),
            tree,
            building: Mutex::default(),
        })
    }

    /// Makes the mistake, builds, takes the mistake back, and searches. While one is searched, the
    /// next may be built.
    pub(crate) fn run(&self, mutant: &Mutant) -> io::Result<Fate> {
        let search = self.tree.join(mutant.id);
        let building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.tree.join(mutant.file);
        let source = fs::read_to_string(&file)?;
        let changed = match mutant.apply(&source) {
            Ok(changed) => changed,
            Err(why) => return Ok(Fate::Broken(why)),
        };
        fs::write(&file, changed)?;
        let built = self.build(&search);
        fs::write(&file, source)?;
        drop(building);
        if let Some(why) = built? {
            return Ok(Fate::Broken(why));
        }
        let output = Command::new(&search).args(["model", "--first"]).output()?;
        fs::remove_file(&search)?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let broken = told.lines().find_map(|line| line.strip_prefix("broken: "));
        Ok(match (output.status.code(), broken) {
            (Some(0), None) => Fate::Missed,
            (Some(1), Some(law)) => Fate::Caught(law.to_owned()),
            _ => Fate::Broken("the search died".to_owned()),
        })
    }

    /// Builds the search and puts it at `path`; why that cannot be, where it cannot. Everything but
    /// what changes is built already where the shipped model is.
    fn build(&self, path: &Path) -> io::Result<Option<String>> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| self.root.join("target"), PathBuf::from);
        let output = Command::new(cargo)
            .args(["build", "--quiet", "--release", "--offline", "-p", "proof"])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &target)
            // From one mistake to the next hardly anything has to be compiled again.
            .env("CARGO_INCREMENTAL", "1")
            .output()?;
        if output.status.success() {
            fs::copy(target.join("release/proof"), path)?;
            return Ok(None);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let line = words.lines().find(|line| line.starts_with("error"));
        Ok(Some(line.unwrap_or("it cannot be built").to_owned()))
    }
}

/// A manifest without what only tests are built from, which is not copied.
fn shipped(manifest: &str) -> String {
    let mut is_shipped = true;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            is_shipped = *line != "[dev-dependencies]";
        }
        is_shipped
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn every_mistake_can_still_be_made() {
        let refused: Vec<String> = MUTANTS
            .iter()
            .filter_map(|mutant| {
                let source = fs::read_to_string(root().join(mutant.file)).unwrap();
                mutant.apply(&source).err()
            })
            .collect();
        assert_eq!(refused, [""; 0]);
    }

    #[test]
    fn every_mistake_has_a_name_of_its_own() {
        let mut ids: Vec<_> = MUTANTS.iter().map(|mutant| mutant.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), MUTANTS.len());
    }
}
