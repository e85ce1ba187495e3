//! Generated files: manifests and pages under a header that says where they come from.

use std::fmt::Write as _;

use serde_json::Value;

use crate::vap::{self, Action};
use crate::{crd, reference};

/// What a cluster is given before the first ScheduledMachine, in this order: the definition for
/// Kubernetes 1.`kube_minor` and later, the policy, and the binding that denies.
pub fn installed(kube_minor: u32) -> [Value; 3] {
    [
        crd::render(kube_minor),
        vap::policy(),
        vap::binding(Action::Deny),
    ]
}

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its path below the directory of its group, e.g. `scheduledmachines.5spot.finos.org.yaml`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Why a manifest could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The YAML emitter refused the value.
    #[error("writing {path} as YAML")]
    Emit {
        /// The file.
        path: String,
        /// What the emitter says.
        #[source]
        source: serde_saphyr::ser::Error,
    },
}

/// A group of generated files that live in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The CustomResourceDefinition.
    Crd,
    /// The admission policy and its bindings.
    Admission,
    /// The reference pages.
    Docs,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 3] = [Self::Crd, Self::Admission, Self::Docs];

    /// The name by which `5spot generate` knows the group.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crd => "crd",
            Self::Admission => "admission",
            Self::Docs => "docs",
        }
    }

    /// The directory of the group in the source tree.
    pub fn directory(self) -> &'static str {
        match self {
            Self::Crd => "deploy/crds",
            Self::Admission => "deploy/admission",
            Self::Docs => "docs/reference",
        }
    }

    /// The files of the group, the CRD for Kubernetes 1.`kube_minor` and later.
    ///
    /// # Errors
    /// None is known; the YAML emitter could refuse.
    pub fn files(self, kube_minor: u32) -> Result<Vec<GeneratedFile>, Error> {
        match self {
            Self::Crd => Ok(vec![file(
                "scheduledmachines.5spot.finos.org.yaml",
                self,
                &crd::render(kube_minor),
            )?]),
            Self::Admission => [
                ("validatingadmissionpolicy.yaml", vap::policy()),
                (
                    "validatingadmissionpolicybinding.yaml",
                    vap::binding(Action::Deny),
                ),
                (
                    "audit/validatingadmissionpolicybinding.yaml",
                    vap::binding(Action::Audit),
                ),
            ]
            .into_iter()
            .map(|(path, manifest)| file(path, self, &manifest))
            .collect(),
            Self::Docs => Ok(reference::pages()),
        }
    }
}

impl GeneratedFile {
    /// What would change if the file were written where `found` is, line by line; none if nothing
    /// would. An absent file is an empty one.
    ///
    /// Lines that are equal at the beginning and at the end are left out.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::manifest::GeneratedFile;
    /// let file = GeneratedFile { path: "a".into(), text: "1\n2\n3\n".into() };
    /// assert_eq!(file.difference(Some("1\n2\n3\n")), None);
    /// let shown = "--- a\n+++ a (generated)\n@@ line 2 @@\n-5\n+2\n";
    /// assert_eq!(file.difference(Some("1\n5\n3\n")).as_deref(), Some(shown));
    /// ```
    pub fn difference(&self, found: Option<&str>) -> Option<String> {
        if found == Some(self.text.as_str()) {
            return None;
        }
        let old: Vec<&str> = found.unwrap_or_default().lines().collect();
        let new: Vec<&str> = self.text.lines().collect();
        let start = old
            .iter()
            .zip(&new)
            .take_while(|(old, new)| old == new)
            .count();
        let (old, new) = (old.get(start..)?, new.get(start..)?);
        let end = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(|(old, new)| old == new)
            .count();
        let mut shown = format!("--- {path}\n+++ {path} (generated)\n", path = self.path);
        let _ = writeln!(shown, "@@ line {} @@", start + 1);
        for (sign, lines) in [('-', old), ('+', new)] {
            for line in lines.iter().take(lines.len() - end) {
                let _ = writeln!(shown, "{sign}{line}");
            }
        }
        Some(shown)
    }
}

fn file(path: &str, group: Group, manifest: &Value) -> Result<GeneratedFile, Error> {
    let yaml = serde_saphyr::to_string(manifest).map_err(|source| Error::Emit {
        path: path.to_owned(),
        source,
    })?;
    Ok(GeneratedFile {
        path: path.to_owned(),
        text: format!(
            "# Generated by `5spot generate {}`; do not edit.\n{yaml}",
            group.as_str()
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Action, GeneratedFile, Group, crd, vap};

    #[test]
    fn what_is_written_as_yaml_reads_back_as_it_was_rendered() {
        let read = |group: Group| -> Vec<Value> {
            let files = group.files(crd::SHIPPED_MINOR).unwrap();
            files
                .iter()
                .map(|file| serde_saphyr::from_str(&file.text).unwrap())
                .collect()
        };
        assert_eq!(read(Group::Crd), [crd::render(crd::SHIPPED_MINOR)]);
        let admission = [
            vap::policy(),
            vap::binding(Action::Deny),
            vap::binding(Action::Audit),
        ];
        assert_eq!(read(Group::Admission), admission);
    }

    #[test]
    fn a_file_that_is_not_there_is_shown_whole() {
        let file = GeneratedFile {
            path: "a".to_owned(),
            text: "1\n2\n".to_owned(),
        };
        let shown = "--- a\n+++ a (generated)\n@@ line 1 @@\n+1\n+2\n";
        assert_eq!(file.difference(None).as_deref(), Some(shown));
    }
}
