//! Where the policies are published, from `judge/policies/sources.yaml`, and how they are read.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang as go;
use serde::Deserialize;
use serde_json::Value;

const FOLDER: &str = "judge/policies";

/// The name of the file with the policy. What it needs, such as CRDs, is in files beside it.
pub(super) const POLICY: &str = "policy.yaml";
/// The name of the file with the cases, beside it.
pub(super) const CASES: &str = "cases.yaml";

/// A policy, and where it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    pub(super) name: String,
    /// A Go module with its version.
    #[serde(default)]
    module: Option<String>,
    /// The owner and the name of a repository on GitHub, with a commit.
    #[serde(default)]
    repository: Option<String>,
    /// The files: that of the policy first. `FILE#NAME` is the part of a page in Markdown with the
    /// object of that name.
    files: Vec<String>,
}

/// All policies.
///
/// # Errors
/// The list cannot be read.
pub(super) fn all(root: &Path) -> Result<Vec<Source>, Box<dyn Error>> {
    let text = fs::read_to_string(root.join(FOLDER).join("sources.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

impl Source {
    /// The module or the repository with its version.
    pub(super) fn origin(&self) -> String {
        let origin = self.module.as_ref().or(self.repository.as_ref());
        origin.cloned().unwrap_or_default()
    }

    /// Writes the policy, what it needs and the cases into a folder. `false` if it is in a repository
    /// of which there is no checkout.
    ///
    /// # Errors
    /// The module cannot be had, the checkout is of another commit, or a file is not there.
    pub(super) fn fetch(
        &self,
        root: &Path,
        folder: &Path,
        repositories: Option<&Path>,
    ) -> Result<bool, Box<dyn Error>> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let from = match (&self.module, &self.repository) {
            (Some(module), _) => downloaded(module)?,
            (None, Some(repository)) => match checkout(repository, repositories)? {
                Some(from) => from,
                None => return Ok(false),
            },
            (None, None) => return Err(format!("{}: no module", self.name).into()),
        };
        for (index, file) in self.files.iter().enumerate() {
            let (path, part) = file.split_once('#').unwrap_or((file, ""));
            let path = from.join(path);
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let text = match part {
                "" => text,
                name => block(&text, name)
                    .ok_or_else(|| format!("{}: no {name}", path.display()))?,
            };
            let name = match index {
                0 => POLICY.to_owned(),
                index => format!("with-{index}.yaml"),
            };
            fs::write(folder.join(name), text)?;
        }
        let cases = root.join(FOLDER).join(format!("cases/{}.yaml", self.name));
        fs::copy(cases, folder.join(CASES))?;
        Ok(true)
    }
}

/// The folder of a module, which Go downloads and verifies.
fn downloaded(module: &str) -> Result<PathBuf, Box<dyn Error>> {
    // Outside of a module, so that none is changed.
    let done = go::run(&env::temp_dir(), &["mod", "download", "-json", module])?;
    let done: Value = serde_json::from_str(&done)?;
    let folder = done["Dir"].as_str();
    Ok(folder
        .ok_or_else(|| format!("{module}: {}", done["Error"]))?
        .into())
}

/// The checkout of a repository below a folder, if there is one.
fn checkout(
    repository: &str,
    folder: Option<&Path>,
) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let (name, commit) = repository.split_once('@').unwrap_or((repository, ""));
    let Some(folder) = folder.map(|it| it.join(name)).filter(|it| it.exists()) else {
        return Ok(None);
    };
    let output = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(&folder)
        .output()?;
    let found = String::from_utf8_lossy(&output.stdout);
    if found.trim() != commit {
        let why = format!("{name} is at {}, not at {commit}", found.trim());
        return Err(why.into());
    }
    Ok(Some(folder))
}

/// The block of YAML in a page that has an object of that name.
fn block(page: &str, name: &str) -> Option<String> {
    let mut blocks = page.split("```yaml\n").skip(1);
    let names = [format!("name: {name}"), format!("name: \"{name}\"")];
    blocks.find_map(|it| {
        let block = it.split("```").next()?;
        let is_named = |line: &str| names.iter().any(|it| line.trim() == it);
        block.lines().any(is_named).then(|| block.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_page_is_found_by_the_name_of_its_object() {
        let page =
            "# A\n```yaml\nname: other\n```\ntext\n```yaml\nkind: A\nname: \"it\"\n```\n";
        assert_eq!(
            block(page, "it").as_deref(),
            Some("kind: A\nname: \"it\"\n")
        );
        assert_eq!(block(page, "nothing"), None);
    }
}
