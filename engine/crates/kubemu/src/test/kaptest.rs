//! The manifests of kaptest: tests of ValidatingAdmissionPolicies, with the objects in other files.

use std::path::{Path, PathBuf};

use kubemu_terminal::Failure;
use serde::Deserialize;
use serde_json::Value;

use super::sheet::{Around, Case, Expected, Sheet, Verdict, WrittenFiles};
use crate::document::{self, Document, SourceLocation};
use crate::validate::Operation;
use crate::validate::judge::Question;

/// A manifest. Fields without a meaning here are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default, alias = "validatingAdmissionPolicies")]
    policies: Vec<PathBuf>,
    #[serde(default)]
    resources: Vec<PathBuf>,
    #[serde(default)]
    crds: Vec<PathBuf>,
    #[serde(default, alias = "testSuites")]
    vap_test_suites: Vec<Tests>,
    #[serde(default)]
    map_test_suites: Vec<Value>,
}

#[derive(Deserialize)]
struct Tests {
    policy: String,
    #[serde(default)]
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    object: Option<Reference>,
    old_object: Option<Reference>,
    param: Option<Reference>,
    #[serde(default)]
    user_info: UserInfo,
    expect: Expect,
    denied_message: Option<String>,
}

/// An object in the files of resources. Fields that are missing may have any value.
#[derive(Deserialize)]
struct Reference {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
}

#[derive(Default, Deserialize)]
struct UserInfo {
    #[serde(alias = "user", alias = "name")]
    username: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Admit,
    Deny,
    /// A condition does not match: the request is admitted.
    Skip,
    /// An expression fails: the request is refused.
    Error,
}

/// Reads a manifest. `None` if the document is none.
///
/// # Errors
/// The document does not have the form, or names files or objects that cannot be found.
pub(super) fn sheet(document: &Document) -> Result<Option<Sheet>, Failure> {
    let has = |name: &str| document.object.get(name).is_some();
    let is_one = ["vapTestSuites", "testSuites", "mapTestSuites"]
        .into_iter()
        .any(has);
    if !is_one || has("kind") {
        return Ok(None);
    }
    let failed = |why: String| {
        Failure::new(format!("reading {}", document.origin), why)
            .remedy("see the page about kubemu test")
    };
    let manifest = Manifest::deserialize(&document.object);
    let manifest = manifest.map_err(|error| failed(error.to_string()))?;
    if !manifest.map_test_suites.is_empty() {
        return Err(failed("mapTestSuites are not supported".to_owned()));
    }
    let location = document.location.clone();
    let location = location.unwrap_or_else(|| {
        SourceLocation::new(document.origin.clone(), 1, String::new())
    });
    let folder = Path::new(&location.file).parent().unwrap_or(Path::new(""));
    let in_folder = |it: &PathBuf| folder.join(it);
    let resources: Vec<PathBuf> = manifest.resources.iter().map(in_folder).collect();
    let resources = document::read(&resources)?;
    let namespaces = manifest.resources.iter();
    let files: Vec<PathBuf> = manifest
        .policies
        .iter()
        .chain(&manifest.crds)
        .chain(namespaces)
        .cloned()
        .collect();
    let mut cases = Vec::new();
    let suites = ["vapTestSuites", "testSuites"]
        .into_iter()
        .find(|it| has(it));
    let suites = suites.unwrap_or_default();
    for (suite, tests) in manifest.vap_test_suites.iter().enumerate() {
        for (index, test) in tests.tests.iter().enumerate() {
            let line = location.line_of(&format!("{suites}[{suite}].tests[{index}]"));
            let case = case((&tests.policy, test), &resources, (&location, line));
            cases.push(case.map_err(|why| failed(format!("line {line}: {why}")))?);
        }
    }
    Ok(Some(Sheet {
        files: files.iter().map(in_folder).collect(),
        written_files: WrittenFiles {
            folder: Path::new(".").join(folder),
            files,
        },
        cases,
    }))
}

fn case(
    (policy, test): (&str, &Test),
    resources: &[Document],
    (location, line): (&SourceLocation, usize),
) -> Result<Case, String> {
    let find =
        |name: &Option<Reference>| name.as_ref().map(|it| it.find(resources)).transpose();
    let (object, old) = (find(&test.object)?, find(&test.old_object)?);
    let (object, old, operation) = match (object, old) {
        (Some(object), old) => (object, old, None),
        (None, Some(old)) => (old, None, Some(Operation::Delete)),
        (None, None) => return Err("it has no object and no oldObject".to_owned()),
    };
    let name = test.object.as_ref().or(test.old_object.as_ref());
    let name = name.map_or("", |it| it.name.as_str());
    let (verdict, part) = match test.expect {
        Expect::Admit | Expect::Skip => (Verdict::Admitted, None),
        Expect::Deny => (Verdict::Refused, test.denied_message.clone()),
        Expect::Error => (Verdict::Refused, Some("resulted in error".to_owned())),
    };
    Ok(Case {
        name: format!("{policy}: {name}: {:?}", test.expect).to_lowercase(),
        location: location.clone(),
        line,
        question: Question { object, old },
        operation,
        around: Around {
            policy: Some(policy.to_owned()),
            user: test.user_info.username.clone(),
            groups: test.user_info.groups.clone(),
            parameters: find(&test.param)?.into_iter().collect(),
            ..Around::default()
        },
        expected: Expected {
            verdict,
            part,
            ..Expected::default()
        },
    })
}

impl Reference {
    fn find(&self, resources: &[Document]) -> Result<Value, String> {
        let mut found = resources.iter().filter(|it| {
            let api_version = it.text("/apiVersion");
            let (group, version) =
                api_version.split_once('/').unwrap_or(("", api_version));
            let is = |wanted: &Option<String>, text: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted == text)
            };
            is(&self.group, group)
                && is(&self.version, version)
                && is(&self.kind, it.text("/kind"))
                && self.namespace.as_deref().unwrap_or_default()
                    == it.text("/metadata/namespace")
                && self.name == it.text("/metadata/name")
        });
        let found = found.next().map(|it| it.object.clone());
        found.ok_or_else(|| format!("the resources have no object named {:?}", self.name))
    }
}
