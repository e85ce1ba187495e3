//! The files with cases: documents of the kind `AdmissionTest`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubemu_terminal::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::document::{Document, SourceLocation};
use crate::validate::Operation;
use crate::validate::judge::Question;

/// The kind and the version of documents with cases.
pub(super) const KIND: &str = "AdmissionTest";
pub(super) const VERSION: &str = "kubemu/v1";

/// A document with cases.
#[derive(Debug)]
pub(super) struct Sheet {
    /// The files with the CRDs, policies and other objects of the cases: without them, those that
    /// are given to the command.
    pub(super) files: Vec<PathBuf>,
    pub(super) written_files: WrittenFiles,
    pub(super) cases: Vec<Case>,
}

/// The files of cases as they are written, relative to a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenFiles {
    pub(super) folder: PathBuf,
    pub(super) files: Vec<PathBuf>,
}

impl WrittenFiles {
    /// The same files as a document in another folder has them.
    pub(super) fn in_folder(&self, folder: &Path) -> Vec<String> {
        let is_same =
            fs::canonicalize(folder).ok() == fs::canonicalize(&self.folder).ok();
        let files = self.files.iter().map(|it| {
            let absolute = fs::canonicalize(self.folder.join(it));
            let path = if is_same { None } else { absolute.ok() };
            path.unwrap_or_else(|| it.clone()).display().to_string()
        });
        files.collect()
    }
}

/// One request and the response that is expected.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) location: SourceLocation,
    /// The line of the file on which it is written.
    pub(super) line: usize,
    pub(super) question: Question,
    pub(super) operation: Option<Operation>,
    pub(super) around: Around,
    pub(super) expected: Expected,
}

/// What is around a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Around {
    /// The only policy that is asked, without its bindings.
    pub(super) policy: Option<String>,
    /// The user: without one, that of kubectl.
    pub(super) user: Option<String>,
    pub(super) groups: Vec<String>,
    /// Further attributes of the user, such as the node that a token is bound to.
    pub(super) extra: BTreeMap<String, Vec<String>>,
    /// The labels of the namespace.
    pub(super) labels: BTreeMap<String, String>,
    /// The parameters of policies.
    pub(super) parameters: Vec<Value>,
}

/// What a case expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) verdict: Verdict,
    /// A part of the message of the refusal.
    pub(super) part: Option<String>,
    /// The whole message.
    pub(super) whole: Option<String>,
    /// A part of one of the warnings.
    pub(super) warning: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum Verdict {
    #[default]
    Admitted,
    Refused,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenSheet {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: Map<String, Value>,
    #[serde(default)]
    files: Vec<PathBuf>,
    object: Option<Value>,
    old_object: Option<Value>,
    #[serde(default)]
    parameters: Vec<Value>,
    #[serde(default)]
    cases: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenCase {
    name: String,
    operation: Option<WrittenOperation>,
    object: Option<Value>,
    change: Option<Value>,
    old_object: Option<Value>,
    old_change: Option<Value>,
    user: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    namespace_labels: BTreeMap<String, String>,
    #[serde(default)]
    parameters: Vec<Value>,
    expect: Verdict,
    message: Option<String>,
    message_is: Option<String>,
    warning: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
enum WrittenOperation {
    Create,
    Update,
    Delete,
}

impl Sheet {
    /// Reads a document. `None` if it is of another kind.
    ///
    /// # Errors
    /// The document has the kind, and not its form.
    pub(super) fn of(document: &Document) -> Result<Option<Self>, Failure> {
        if document.text("/kind") != KIND {
            return Ok(None);
        }
        let failed = |line: usize, why: String| {
            let what = format!("reading {}, line {line}", document.origin);
            Failure::new(what, why).remedy("see the page about kubemu test")
        };
        let location = document.location.clone();
        let location = location.unwrap_or_else(|| {
            SourceLocation::new(document.origin.clone(), 1, String::new())
        });
        if document.text("/apiVersion") != VERSION {
            let why = format!("apiVersion of {KIND} is not {VERSION}");
            return Err(failed(location.line_of("apiVersion"), why));
        }
        let written: WrittenSheet =
            read(&document.object).map_err(|why| failed(location.line, why))?;
        let directory = Path::new(&location.file).parent().unwrap_or(Path::new(""));
        let mut sheet = Self {
            files: written.files.iter().map(|it| directory.join(it)).collect(),
            written_files: WrittenFiles {
                // The parent of a name without a folder is empty.
                folder: Path::new(".").join(directory),
                files: written.files.clone(),
            },
            cases: Vec::new(),
        };
        for (at, case) in written.cases.iter().enumerate() {
            let field = format!("cases[{at}]");
            let line = location.line_of(&field);
            let case = read(case)
                .and_then(|it| Case::of(it, (&written, &location, line)))
                .map_err(|why| failed(line, format!("{field}: {why}")))?;
            sheet.cases.push(case);
        }
        Ok(Some(sheet))
    }
}

fn read<T: DeserializeOwned>(written: &Value) -> Result<T, String> {
    T::deserialize(written).map_err(|error| error.to_string())
}

impl Case {
    fn of(
        written: WrittenCase,
        (sheet, location, line): (&WrittenSheet, &SourceLocation, usize),
    ) -> Result<Self, String> {
        let base = written.object.or_else(|| sheet.object.clone());
        let base = base.ok_or("it has no object, and neither has the document")?;
        let old = match &written.old_change {
            Some(change) => Some(changed(&base, change)),
            None => written.old_object.or_else(|| sheet.old_object.clone()),
        };
        let operation = written.operation.map(|it| match it {
            WrittenOperation::Create => Operation::Create,
            WrittenOperation::Update => Operation::Update,
            WrittenOperation::Delete => Operation::Delete,
        });
        if operation == Some(Operation::Update) && old.is_none() {
            return Err("an Update has an oldObject or an oldChange".to_owned());
        }
        let object = match &written.change {
            Some(change) => changed(&base, change),
            None => base,
        };
        let expected = Expected {
            verdict: written.expect,
            part: written.message,
            whole: written.message_is,
            warning: written.warning,
        };
        if expected.verdict == Verdict::Admitted
            && (expected.part.is_some() || expected.whole.is_some())
        {
            return Err("a request that is Admitted has no message".to_owned());
        }
        let parameters = sheet.parameters.iter().cloned();
        Ok(Self {
            name: written.name,
            location: location.clone(),
            line,
            question: Question {
                object,
                old: old.filter(|_| operation != Some(Operation::Create)),
            },
            operation,
            around: Around {
                policy: None,
                user: written.user,
                groups: written.groups,
                extra: written.extra,
                labels: written.namespace_labels,
                parameters: parameters.chain(written.parameters).collect(),
            },
            expected,
        })
    }

    /// The case as it is written in a file.
    pub(super) fn written(&self) -> Value {
        let mut case = json!({"name": self.name});
        if let (Value::Object(case), Value::Object(request)) = (&mut case, self.request())
        {
            case.extend(request);
        }
        let expected = &self.expected;
        case["expect"] = format!("{:?}", expected.verdict).into();
        let texts = [
            ("message", &expected.part),
            ("messageIs", &expected.whole),
            ("warning", &expected.warning),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                case[name] = text.as_str().into();
            }
        }
        case
    }

    /// What is asked, without what is expected.
    pub(super) fn request(&self) -> Value {
        let mut request = json!({});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                request[name] = value;
            }
        };
        let around = &self.around;
        set(
            "operation",
            self.operation.map(|it| format!("{it:?}").into()),
        );
        set("user", around.user.clone().map(Value::from));
        set(
            "groups",
            (!around.groups.is_empty()).then(|| json!(around.groups)),
        );
        set(
            "extra",
            (!around.extra.is_empty()).then(|| json!(around.extra)),
        );
        let labels = (!around.labels.is_empty()).then(|| json!(around.labels));
        set("namespaceLabels", labels);
        let parameters = &around.parameters;
        set(
            "parameters",
            (!parameters.is_empty()).then(|| json!(parameters)),
        );
        set("oldObject", self.question.old.clone());
        set("object", Some(self.question.object.clone()));
        request
    }
}

/// The object with a change, as a JSON merge patch describes it: null removes a field.
fn changed(object: &Value, change: &Value) -> Value {
    let Value::Object(fields) = change else {
        return change.clone();
    };
    let mut changed_fields = match object {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    for (name, value) in fields {
        if value.is_null() {
            changed_fields.remove(name);
        } else {
            let before = changed_fields.get(name).unwrap_or(&Value::Null);
            let after = changed(before, value);
            changed_fields.insert(name.clone(), after);
        }
    }
    Value::Object(changed_fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    fn sheet(text: &str) -> Result<Option<Sheet>, Failure> {
        Sheet::of(&parse("a.yaml", text)?[0])
    }

    #[test]
    fn a_change_is_a_merge_patch() {
        let object = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        let change = json!({"a": {"b": null, "e": {"f": null}}, "d": [2]});
        let expected = json!({"a": {"c": 2, "e": {}}, "d": [2]});
        assert_eq!(changed(&object, &change), expected);
    }

    #[test]
    fn a_case_has_the_line_on_which_it_is_written() {
        let text = "# why\nkind: AdmissionTest\napiVersion: kubemu/v1\nobject: {kind: A}\n\
                    cases:\n- name: a\n  expect: Admitted\n- expect: Refused\n  name: b\n";
        let found = sheet(text).unwrap().unwrap();
        let lines: Vec<usize> = found.cases.iter().map(|it| it.line).collect();
        assert_eq!(lines, [6, 8]);
    }

    #[test]
    fn a_field_that_no_case_has_is_refused_with_its_line() {
        let text = "kind: AdmissionTest\napiVersion: kubemu/v1\ncases:\n- name: a\n  \
                    object: {}\n  expect: Admitted\n- name: b\n  expects: Refused\n";
        let error = sheet(text).unwrap_err().to_string();
        assert!(
            error.starts_with("reading a.yaml, line 7: cases[1]: "),
            "{error}"
        );
        assert!(error.contains("unknown field `expects`"), "{error}");
    }

    #[test]
    fn a_case_that_is_written_is_read_again() {
        let text = "kind: AdmissionTest\napiVersion: kubemu/v1\ncases:\n- name: a\n  \
                    operation: Update\n  object: {kind: A}\n  oldChange: {b: 1}\n  user: u\n  \
                    groups: [g]\n  extra: {e: [f]}\n  namespaceLabels: {a: b}\n  parameters: [{kind: P}]\n  \
                    expect: Refused\n  messageIs: never\n  warning: w\n";
        let found = sheet(text).unwrap().unwrap().cases.remove(0);
        let again =
            json!({"kind": KIND, "apiVersion": VERSION, "cases": [found.written()]});
        let again = sheet(&again.to_string()).unwrap().unwrap().cases.remove(0);
        assert_eq!(again.question, found.question);
        assert_eq!(again.operation, found.operation);
        assert_eq!(again.around, found.around);
        assert_eq!(again.expected, found.expected);
    }
}
