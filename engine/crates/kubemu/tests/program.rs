//! The program, as its users start it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn kubemu(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubemu"));
    command.args(words);
    command
}

#[test]
fn an_expression_that_is_false_is_printed_and_exits_with_1() {
    let output = kubemu(&["cel", "1 == 2"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("false\ntype bool"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_error_has_a_remedy_and_exits_with_2() {
    let output = kubemu(&["serve", "--apply", "/nowhere"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: reading /nowhere: "), "{error}");
    assert!(
        error.contains("; give an existing file or directory"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_server_writes_its_kubeconfig_and_ends_with_the_reader_of_its_output() {
    let directory = std::env::temp_dir().join(format!("kubemu-{}", std::process::id()));
    let kubeconfig = directory.join("kubeconfig");
    let mut serving = kubemu(&["serve", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.strip_prefix("API server at ").unwrap();
    let address = address.split(',').next().unwrap().to_owned();
    assert!(
        lines
            .next()
            .unwrap()
            .unwrap()
            .starts_with("export KUBECONFIG=")
    );
    let written = fs::read_to_string(&kubeconfig).unwrap();
    assert!(written.contains(&address), "{address}: {written}");
    let mut second = kubemu(&["serve", "--listen", "127.0.0.1:0", "--kubeconfig"]);
    let mut second = second
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A server that serves waits for the end of its output.
    let mut output = String::new();
    let mut reader = BufReader::new(second.stdout.take().unwrap());
    reader.read_line(&mut output).unwrap();
    drop(reader);
    let refused = second.wait_with_output().unwrap();
    assert_eq!((&*output, refused.status.code()), ("", Some(2)));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("which still runs"), "{error}");
    assert_eq!(fs::read_to_string(&kubeconfig).unwrap(), written);
    drop(lines);
    assert!(serving.wait().unwrap().success());
    fs::remove_dir_all(directory).unwrap();
}

/// A folder with these files. It is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let name = format!("kubemu-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        for (file, text) in files {
            let path = folder.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: integer}
        x-kubernetes-validations: [{rule: self.size < 5, message: at most 4}]
";

#[test]
fn every_document_of_a_folder_has_the_verdict_of_a_server() {
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nsize: 5\n";
    let folder = Folder::with(
        "validate",
        &[
            ("a/broken.yaml", "a: ["),
            ("a/crd.yaml", CRD),
            ("b.yaml", thing),
            (
                "c.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: <n>}\n",
            ),
            (
                "d.yaml",
                "apiVersion: example.org/v1\nkind: Other\nmetadata: {name: c}\n",
            ),
        ],
    );
    let crd = folder.0.join("a/crd.yaml");
    let validate = |words: &[&str]| {
        let mut command = kubemu(&["validate", "-f"]);
        command.arg(&folder.0).arg("--crd").arg(&crd);
        let output = command.args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stdout).unwrap();
        text.replace(folder.0.to_str().unwrap(), "folder")
    };
    insta::assert_snapshot!(validate(&[]));
    let sarif = validate(&["-o", "sarif"]);
    assert!(sarif.contains("\"name\": \"kubemu\""), "{sarif}");
}

#[test]
fn no_line_about_an_object_is_a_workflow_command() {
    let folder = Folder::with(
        "commands",
        &[(
            "a.yaml",
            "apiVersion: example.org/v1\nkind: '::error title=x::y'\nmetadata: {name: '##[error]'}\n",
        )],
    );
    let output = kubemu(&["validate", "-f"]).arg(&folder.0).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("error title=x::y"), "{text}");
    let is_command = |it: &str| it.trim_start().starts_with("::") || it.contains("##[");
    assert!(!text.lines().any(is_command), "{text}");
}

/// An update is not created first: a policy for creations would refuse it.
#[test]
fn an_update_is_not_subject_to_policies_for_creations() {
    let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations: [{expression: \"!has(object.data)\"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
";
    let old = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let new = format!("{old}data: {{a: b}}\n");
    let files = [
        ("policy.yaml", policy),
        ("old.yaml", old),
        ("new.yaml", &new),
    ];
    let folder = Folder::with("update", &files);
    let path = |name: &str| folder.0.join(name).display().to_string();
    let (new, policy, old) = (path("new.yaml"), path("policy.yaml"), path("old.yaml"));
    let words = ["validate", "-f", &new, "--policy", &policy, "--old", &old];
    let output = kubemu(&words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("configmap/a valid"), "{text}");
    let created = kubemu(&words[..5]).output().unwrap();
    assert_eq!(created.status.code(), Some(1));
}

#[test]
fn metadata_that_is_no_object_is_refused() {
    let files = [
        ("crd.yaml", CRD),
        (
            "a.yaml",
            "apiVersion: example.com/v1\nkind: Thing\nmetadata: a\n",
        ),
        ("b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: b\n"),
    ];
    let folder = Folder::with("metadata", &files);
    let mut command = kubemu(&["validate", "-f"]);
    command
        .arg(&folder.0)
        .arg("--crd")
        .arg(folder.0.join("crd.yaml"));
    command.arg("--old").arg(&folder.0);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(", 2 invalid, "), "{text}");
}
