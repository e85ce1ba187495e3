//! The CRDs and policies of cases, and the responses to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::User;
use kubemu_terminal::Failure;
use serde_json::{Value, json};

use super::kaptest;
use super::rule::Rule;
use super::sheet::{Around, Case, Expected, KIND, Sheet, Verdict, WrittenFiles};
use crate::document::{self, Document};
use crate::parallel;
use crate::validate::judge::{Answer, Cast, Judge};
use crate::validate::precompiled::Precompiled;
use crate::validate::prepared::Prepared;
use crate::validate::{Extension, Operation};

const POLICIES: [&str; 2] = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
const DEFINITION: &str = "CustomResourceDefinition";

/// Cases about the same CRDs and policies.
#[derive(Debug)]
pub(super) struct Suite {
    /// The files of the cases: empty for what is given to the command.
    files: Vec<PathBuf>,
    pub(super) written_files: WrittenFiles,
    pub(super) subjects: Vec<Document>,
    pub(super) cases: Vec<Case>,
    /// How many documents of other kinds there are.
    pub(super) unused: usize,
    /// The files and folders whose rules are covered and changed: all, if there are none.
    measured: Vec<PathBuf>,
}

/// A case with its response.
#[derive(Clone, Debug)]
pub(super) struct Tested {
    pub(super) answer: Answer,
    pub(super) passes: bool,
}

impl Suite {
    /// Reads the documents of the paths. Cases with the same files are in one suite.
    ///
    /// # Errors
    /// A file cannot be read, or has no case, or a document with cases does not have its form; a
    /// path of `measured` does not exist.
    pub(super) fn read(
        paths: &[PathBuf],
        measured: &[PathBuf],
    ) -> Result<Vec<Self>, Failure> {
        let measured: Vec<PathBuf> = (measured.iter())
            .map(|it| canonical(it))
            .collect::<Result<_, _>>()?;
        let mut given = Vec::new();
        let mut suites: Vec<Self> = Vec::new();
        for document in document::read(paths)? {
            let sheet = match Sheet::of(&document)? {
                Some(sheet) => Some(sheet),
                None => kaptest::sheet(&document)?,
            };
            let Some(sheet) = sheet else {
                given.push(document);
                continue;
            };
            match suites.iter_mut().find(|it| it.files == sheet.files) {
                Some(suite) => suite.cases.extend(sheet.cases),
                None => suites.push(Self {
                    files: sheet.files,
                    written_files: sheet.written_files,
                    subjects: Vec::new(),
                    cases: sheet.cases,
                    unused: 0,
                    measured: measured.clone(),
                }),
            }
        }
        if suites.iter().all(|it| it.cases.is_empty()) {
            let why = format!("the files contain no {KIND} with cases");
            return Err(Failure::new("test", why).remedy(
                "give files with cases; the page about kubemu test has an example",
            ));
        }
        for suite in &mut suites {
            suite.subjects = match suite.files.as_slice() {
                [] => given.clone(),
                files => document::read(files)?,
            };
            suite.sort_out();
        }
        Ok(suites)
    }

    /// The expressions that are covered and changed.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut rules = Rule::all(&self.subjects, &self.cases);
        if !self.measured.is_empty() {
            rules.retain(|rule| {
                let file = canonical(Path::new(&rule.file));
                file.is_ok_and(|file| self.measured.iter().any(|it| file.starts_with(it)))
            });
        }
        rules
    }

    /// Leaves out the documents that no request concerns.
    fn sort_out(&mut self) {
        let params: Vec<Value> = self
            .subjects
            .iter()
            .map(|it| it.object["spec"]["paramKind"].clone())
            .filter(|it| !it.is_null())
            .collect();
        let before = self.subjects.len();
        self.subjects.retain(|it| {
            let kind = it.text("/kind");
            let is_param = params.iter().any(|param| {
                param["kind"] == kind && param["apiVersion"] == it.text("/apiVersion")
            });
            is_policy(it)
                || is_binding(it)
                || [DEFINITION, "Namespace"].contains(&kind)
                || is_param
        });
        self.unused = before - self.subjects.len();
    }

    /// The CRDs and policies, to be compiled once for several benches.
    pub(super) fn precompiled(&self, version: KubeVersion) -> Arc<Precompiled> {
        Arc::new(Precompiled::of(&self.subjects, version))
    }

    /// The responses to the cases, in their order. What they evaluate can be recorded.
    ///
    /// # Errors
    /// A server would refuse a CRD or a policy.
    pub(super) fn test(
        &self,
        with: (KubeVersion, &dyn Extension),
    ) -> Result<Vec<Tested>, Failure> {
        let precompiled = self.precompiled(with.0);
        let mut bench = Bench::of(&self.subjects, with, &precompiled);
        self.cases.iter().map(|case| bench.test(case)).collect()
    }

    /// The same on all processors, where what threads evaluate is not recorded.
    ///
    /// # Errors
    /// As for [`test`](Self::test).
    pub(super) fn test_in_parallel(
        &self,
        with: (KubeVersion, &dyn Extension),
    ) -> Result<Vec<Tested>, Failure> {
        let precompiled = self.precompiled(with.0);
        let tested = parallel::map_shares(self.cases.iter().collect(), |cases| {
            let mut bench = Bench::of(&self.subjects, with, &precompiled);
            cases.into_iter().map(|case| bench.test(case)).collect()
        });
        tested.into_iter().collect()
    }
}

fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(path).map_err(|error| {
        Failure::new(format!("reading {}", path.display()), error)
            .remedy("give files or folders with CRDs or policies to --rules")
    })
}

pub(super) fn is_policy(document: &Document) -> bool {
    POLICIES.contains(&document.text("/kind"))
}

fn is_binding(document: &Document) -> bool {
    let kind = document.text("/kind").strip_suffix("Binding");
    kind.is_some_and(|it| POLICIES.contains(&it))
}

/// Judges of the same CRDs and policies, one for each of what is around requests.
pub(super) struct Bench<'e> {
    subjects: &'e [Document],
    with: (KubeVersion, &'e dyn Extension),
    precompiled: Arc<Precompiled>,
    prepared: Arc<Prepared>,
    judges: Vec<(Surroundings, Judge<'e>)>,
    /// How many judges were made.
    pub(super) created: usize,
}

/// How many judges are kept.
const MAX_JUDGES: usize = 64;

/// What a judge is made for: with the stored object, if a server answers.
type Surroundings = (Around, String, Option<Value>);

impl<'e> Bench<'e> {
    pub(super) fn of(
        subjects: &'e [Document],
        with: (KubeVersion, &'e dyn Extension),
        precompiled: &Arc<Precompiled>,
    ) -> Self {
        Self {
            subjects,
            with,
            precompiled: Arc::clone(precompiled),
            prepared: Arc::default(),
            judges: Vec::new(),
            created: 0,
        }
    }

    /// The response to a case.
    ///
    /// # Errors
    /// A server would refuse a CRD or a policy.
    pub(super) fn test(&mut self, case: &Case) -> Result<Tested, Failure> {
        let answer = self.answer(case)?;
        let passes = passes(&case.expected, &answer);
        Ok(Tested { answer, passes })
    }

    pub(super) fn answer(&mut self, case: &Case) -> Result<Answer, Failure> {
        let stored = self.stored(case);
        let namespace = namespace_of(case);
        let is_it = |it: &Surroundings| {
            it.0 == case.around && it.1 == namespace && it.2 == stored
        };
        if !self.judges.iter().any(|(it, _)| is_it(it)) {
            let (version, extension) = self.with;
            let cast = self.cast(case, stored.clone());
            let judge = Judge::new(&cast, version, extension)?;
            self.created += 1;
            let around = (case.around.clone(), namespace.clone(), stored.clone());
            if self.judges.len() >= MAX_JUDGES {
                self.judges.remove(0);
            }
            self.judges.push((around, judge));
        }
        let Some((_, judge)) = self.judges.iter().find(|(it, _)| is_it(it)) else {
            return Ok(Answer::None("there is no judge".to_owned()));
        };
        let answer = judge.answer(&case.question, case.operation);
        Ok(answer.unwrap_or_else(|failure| Answer::None(failure.to_string())))
    }

    /// The object that a server has, if a server answers: the rules alone are given it.
    fn stored(&self, case: &Case) -> Option<Value> {
        let object = &case.question.object;
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, _) = api_version.split_once('/').unwrap_or_default();
        let is_defined = self.subjects.iter().any(|it| {
            it.text("/kind") == DEFINITION
                && it.text("/spec/group") == group
                && it.text("/spec/names/kind") == object["kind"]
        });
        let is_mutated = self
            .subjects
            .iter()
            .any(|it| it.text("/kind") == POLICIES[1]);
        if is_defined && (!is_mutated || case.operation == Some(Operation::Delete)) {
            return None;
        }
        let deleted = (case.operation == Some(Operation::Delete)).then(|| object.clone());
        deleted.or_else(|| case.question.old.clone())
    }

    fn cast(&self, case: &Case, stored: Option<Value>) -> Cast {
        let mut cast = Cast {
            stored: stored.map(|it| beside(it, "stored")).into_iter().collect(),
            user: user(&case.around),
            precompiled: Arc::clone(&self.precompiled),
            prepared: Arc::clone(&self.prepared),
            ..Cast::default()
        };
        for document in self.subjects {
            match document.text("/kind") {
                DEFINITION => cast.definitions.push(document.clone()),
                "Namespace" => cast.namespaces.push(document.clone()),
                _ if is_policy(document) || is_binding(document) => {
                    cast.policies.push(document.clone());
                }
                _ => cast.params.push(document.clone()),
            }
        }
        let given = cast.params.len();
        let parameter = case.around.parameters.first();
        let parameters = case.around.parameters.iter().cloned();
        cast.params
            .extend(parameters.map(|it| beside(it, "a parameter")));
        if let Some(policy) = &case.around.policy {
            cast.policies
                .retain(|it| is_policy(it) && it.text("/metadata/name") == policy);
            cast.params.drain(..given);
        }
        let only = case.around.policy.as_ref().and(parameter);
        cast.policies
            .extend(bindings_of_unbound(&cast.policies, only));
        // A request in a namespace that does not exist would be refused.
        let name = namespace_of(case);
        let labels = &case.around.labels;
        let is_it = |it: &Document| it.text("/metadata/name") == name;
        if !labels.is_empty() || !cast.namespaces.iter().any(is_it) {
            cast.namespaces.retain(|it| !is_it(it));
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": labels},
            });
            cast.namespaces.push(beside(namespace, "the namespace"));
        }
        cast
    }
}

fn user(around: &Around) -> Option<User> {
    let groups = &around.groups;
    if around.user.is_none() && groups.is_empty() && around.extra.is_empty() {
        return None;
    }
    let name = around.user.clone();
    let authenticated = "system:authenticated".to_owned();
    Some(User {
        name: name.unwrap_or_else(|| "kubernetes-admin".to_owned()),
        groups: groups.iter().cloned().chain([authenticated]).collect(),
        extra: around.extra.clone(),
        ..User::default()
    })
}

fn namespace_of(case: &Case) -> String {
    let namespace = case.question.object["metadata"]["namespace"].as_str();
    namespace.unwrap_or("default").to_owned()
}

fn beside(object: Value, origin: &str) -> Document {
    Document {
        origin: origin.to_owned(),
        object,
        location: None,
    }
}

/// Bindings for policies without one, to everything that they match, with one of their parameters or
/// all.
fn bindings_of_unbound(policies: &[Document], only: Option<&Value>) -> Vec<Document> {
    let mut bindings = Vec::new();
    for policy in policies.iter().filter(|it| is_policy(it)) {
        let name = policy.text("/metadata/name");
        let kind = format!("{}Binding", policy.text("/kind"));
        let is_its = |it: &Document| {
            it.text("/kind") == kind && it.text("/spec/policyName") == name
        };
        if policies.iter().any(is_its) {
            continue;
        }
        let mut binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"policyName": name},
        });
        if policy.text("/kind") == POLICIES[0] {
            binding["spec"]["validationActions"] = json!(["Deny"]);
        }
        if !policy.object["spec"]["paramKind"].is_null() {
            binding["spec"]["paramRef"] = param_ref(only);
        }
        bindings.push(beside(binding, "the binding"));
    }
    bindings
}

/// The reference to one parameter, or to all.
fn param_ref(only: Option<&Value>) -> Value {
    let mut reference = json!({"parameterNotFoundAction": "Deny"});
    match only.map(|it| &it["metadata"]) {
        Some(metadata) => {
            for field in ["name", "namespace"] {
                if !metadata[field].is_null() {
                    reference[field] = metadata[field].clone();
                }
            }
        }
        None => reference["selector"] = json!({}),
    }
    reference
}

/// Whether a response is the expected one.
pub(super) fn passes(expected: &Expected, answer: &Answer) -> bool {
    let (verdict, message, warnings) = match answer {
        Answer::Admitted(warnings) => (Verdict::Admitted, "", warnings),
        Answer::Refused(message, warnings) => {
            (Verdict::Refused, message.as_str(), warnings)
        }
        Answer::None(_) => return false,
    };
    let has = |part: &String| message.contains(part.as_str());
    let is = |whole: &String| message == whole;
    let warns = |part: &String| warnings.iter().any(|it| it.contains(part.as_str()));
    verdict == expected.verdict
        && expected.part.as_ref().is_none_or(has)
        && expected.whole.as_ref().is_none_or(is)
        && expected.warning.as_ref().is_none_or(warns)
}
