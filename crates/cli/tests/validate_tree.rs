//! `5spot validate` over a tree in which much is wrong: each document has its verdict.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// How many files there are of each sort.
const EACH: usize = 10;

const MACHINE: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: NAME}
spec:
  clusterName: production
  schedule: {daysOfWeek: [mon-fri], hoursOfDay: ['9-17']}
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  gracefulShutdownTimeout: 5m
";

const TEMPLATE: &[u8] = b"{{- if .Values.enabled }}\nkind: ConfigMap\n{{- end }}\n";

/// A definition of a kind of its own.
fn definition(number: usize) -> String {
    let name = format!("x{number}s");
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {{name: {name}.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  \
         names: {{plural: {name}, singular: x{number}, kind: X{number}}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    \
         schema: {{openAPIV3Schema: {{type: object}}}}\n"
    )
}

/// A folder that is removed at the end.
struct Tree(PathBuf);

impl Drop for Tree {
    fn drop(&mut self) {
        // Errors of the cleanup are ignored.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Tree {
    /// Files of every sort in nested folders. The name of each begins with its sort.
    fn new(test: &str) -> Self {
        let name = format!("5spot-validate-tree-{test}-{}", std::process::id());
        let tree = Self(std::env::temp_dir().join(name));
        for number in 0..EACH {
            let folder = tree.0.join(format!("team-{}/apps", number % 3));
            fs::create_dir_all(&folder).unwrap();
            let machine = MACHINE.replace("NAME", &format!("m-{number}"));
            let write = |name: &OsStr, text: &[u8]| {
                fs::write(folder.join(name), text).unwrap();
            };
            let named = |name: &str, text: &[u8]| {
                write(OsStr::new(&format!("{name}-{number}.yaml")), text);
            };
            named("good", machine.as_bytes());
            named("bad", machine.replace("5m", "five").as_bytes());
            named("template", TEMPLATE);
            named("broken", b"a: [1,\n b: {");
            named("kustomization", b"resources: [a.yaml]\n");
            named("latin1", b"kind: caf\xe9\n");
            named("crd", definition(number).as_bytes());
            named("empty", b"# nothing\n---\n");
            named("odd\n\x1b[31m name", machine.as_bytes());
            let raw = format!("raw-{number}-");
            let raw = [raw.as_bytes(), b"\xff.yaml"].concat();
            write(OsStr::from_bytes(&raw), machine.as_bytes());
            let link = folder.join(format!("dangling-{number}.yaml"));
            symlink("/nonexistent", link).unwrap();
        }
        tree
    }

    fn validate(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_5spot"))
            .args(["validate", "-f"])
            .arg(&self.0)
            .args(words)
            .output()
            .unwrap()
    }
}

/// The sort of the file of a document.
fn sort_of(item: &Value) -> String {
    let origin = Path::new(item["origin"].as_str().unwrap());
    let name = origin.file_name().unwrap().to_str().unwrap();
    let is_end = |letter: char| !letter.is_ascii_alphanumeric();
    name.split(is_end).next().unwrap().to_owned()
}

#[test]
fn every_document_of_a_tree_has_its_verdict_whatever_is_beside_it() {
    let tree = Tree::new("verdicts");
    let output = tree.validate(&["-o", "json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for item in report["items"].as_array().unwrap() {
        let result = item["result"].as_str().unwrap().to_owned();
        *found.entry((sort_of(item), result)).or_default() += 1;
    }
    let expected = [
        ("bad", "invalid"),
        ("broken", "invalid"),
        ("crd", "valid"),
        ("dangling", "invalid"),
        ("good", "valid"),
        ("kustomization", "invalid"),
        ("latin1", "invalid"),
        ("odd", "valid"),
        ("raw", "valid"),
        ("template", "invalid"),
    ];
    let expected =
        expected.map(|(sort, result)| ((sort.to_owned(), result.to_owned()), EACH));
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn no_name_in_a_tree_puts_control_characters_into_the_text() {
    let tree = Tree::new("names");
    let output = tree.validate(&[]);
    assert_eq!(output.status.code(), Some(1));
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    let is_control = |letter: char| letter.is_control() && letter != '\n';
    assert!(!printed.contains(is_control), "{printed:?}");
    let counts = printed.lines().next_back().unwrap();
    assert!(counts.contains(" valid, "), "{counts}");
    assert!(!printed.contains("\n name-"), "a name is on one line");
}
