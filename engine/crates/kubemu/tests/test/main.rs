//! `kubemu test`: cases beside policies and CRDs.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use kubemu::test;
use kubemu::validate::{Extension, Program};
use kubemu_terminal::{Failure, Outcome};

// Without words of its own, the command has those of its arguments.
#[derive(Parser)]
#[command(name = "kubemu test")]
struct Cli {
    #[command(flatten)]
    args: test::Args,
}

struct Kubernetes;

impl Extension for Kubernetes {
    fn program(&self) -> Program {
        Program {
            name: "kubemu",
            version: "0",
            repository: "https://example.com",
        }
    }
}

const WIDGETS: &str = include_str!("example/widgets.yaml");
const CASES: &str = include_str!("example/widgets.test.yaml");

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn of(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kubemu-test-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        for (name, text) in files {
            fs::write(folder.0.join(name), text).unwrap();
        }
        folder
    }

    /// What the command prints about the folder, with paths relative to it.
    fn test(&self, flags: &[&str]) -> (Outcome, String) {
        let mut out = Vec::new();
        let outcome = self.run(flags, &mut out).unwrap();
        (outcome, self.relative(&String::from_utf8(out).unwrap()))
    }

    /// The error of the command.
    fn error(&self) -> String {
        let error = self.run(&[], &mut Vec::new()).unwrap_err();
        self.relative(&error.to_string())
    }

    fn run(&self, flags: &[&str], out: &mut Vec<u8>) -> Result<Outcome, Failure> {
        let path = self.0.display().to_string();
        let words = ["test", path.as_str()].into_iter();
        let cli = Cli::parse_from(words.chain(flags.iter().copied()));
        test::run(&cli.args, &Kubernetes, out)
    }

    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn cases_ask_about_users_parameters_namespaces_updates_and_deletions() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let (outcome, out) = folder.test(&[]);
    assert_eq!(out, "7 passed, 0 failed\n");
    assert_eq!(outcome, Outcome::Yes);
}

#[test]
fn a_case_that_fails_says_what_was_expected_what_came_and_where_it_is() {
    let cases = CASES.replacen("expect: Admitted", "expect: Refused", 1);
    let cases = cases.replace("not one of", "none of");
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", &cases)]);
    let (outcome, out) = folder.test(&[]);
    insta::assert_snapshot!(out, @r#"
    FAIL a.yaml:16: a tier of the parameters is admitted
      expected: refused
      got: admitted
    FAIL a.yaml:18: another tier is refused
      expected: refused, with "the tier is none of the parameters" in the message
      got: refused: widgets.example.com "a" is forbidden: ValidatingAdmissionPolicy 'tiers' with binding 'tiers' denied request: the tier is not one of the parameters
    5 passed, 2 failed
    "#);
    assert_eq!(outcome, Outcome::No);
}

#[test]
fn each_form_of_output_has_the_place_of_each_failure() {
    let cases = CASES.replacen("expect: Admitted", "expect: Refused", 1);
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", &cases)]);
    let (_, json) = folder.test(&["-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cases"][0]["line"], 16);
    assert_eq!(json["cases"][0]["got"], "admitted");
    assert_eq!(json["cases"][1]["passed"], true);
    let (_, junit) = folder.test(&["-o", "junit"]);
    let failure = "<testcase name=\"a tier of the parameters is admitted\" \
                   classname=\"a.yaml:16\">\n    <failure>expected refused\ngot \
                   admitted</failure>";
    assert!(junit.contains(failure), "{junit}");
    assert!(junit.contains("tests=\"7\" failures=\"1\""), "{junit}");
}

const ENTRIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [configmaps]}
  validations:
  - expression: "request.operation == 'DELETE' || object.data.size() < 2 || (oldObject != null && oldObject.data.size() >= 2)"
    message: at most one entry
  - expression: "request.operation != 'DELETE' || size(oldObject.data) < 3"
    message: large ones stay
---
apiVersion: kubemu/v1
kind: AdmissionTest
object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}}
cases:
- {name: two entries, expect: Refused, message: at most one entry}
- {name: a field that is unknown, change: {dat: {}}, expect: Refused, message: unknown field "dat"}
- {name: two entries that were there, oldChange: {}, expect: Admitted}
- {name: a deletion, operation: Delete, expect: Admitted}
- {name: a deletion of three, operation: Delete, change: {data: {c: "3"}}, expect: Refused, message: large ones stay}
"#;

#[test]
fn an_old_object_of_a_built_in_kind_may_violate_the_policies() {
    let folder = Folder::of(&[("a.yaml", ENTRIES)]);
    let (_, out) = folder.test(&[]);
    assert_eq!(out, "5 passed, 0 failed\n");
}

const NODES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nodes}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["", example.com], apiVersions: [v1], operations: [CREATE], resources: [configmaps, widgets]}
  validations:
  - expression: request.userInfo.extra[?'example.com/node'][0].orValue('') == object.metadata.name
    message: of another node
---
apiVersion: kubemu/v1
kind: AdmissionTest
object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
cases:
- {name: its own node, user: u, extra: {example.com/node: [a]}, expect: Admitted}
- {name: another node, user: u, extra: {example.com/node: [b]}, expect: Refused, message: of another node}
- {name: no node, expect: Refused, message: "no such key: extra"}
- name: its own widget
  user: u
  extra: {example.com/node: [a]}
  object: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, labels: {}}, spec: {}}
  expect: Admitted
"#;

#[test]
fn the_user_has_extra_attributes_whoever_answers() {
    let definition = WIDGETS.split("---").next().unwrap();
    let folder = Folder::of(&[("a.yaml", NODES), ("widgets.yaml", definition)]);
    let (_, out) = folder.test(&["-v"]);
    assert!(out.ends_with("4 passed, 0 failed\n"), "{out}");
}

#[test]
fn json_has_the_whole_request_of_each_case() {
    let folder = Folder::of(&[("a.yaml", NODES)]);
    let (_, json) = folder.test(&["-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let request = &json["cases"][1]["request"];
    assert_eq!(request["object"]["metadata"]["name"], "a");
    assert_eq!(request["user"], "u");
    assert_eq!(request["extra"]["example.com/node"][0], "b");
    assert_eq!(json["cases"][0]["message"], serde_json::Value::Null);
    let message = json["cases"][1]["message"].as_str().unwrap();
    assert!(
        message.ends_with("denied request: of another node"),
        "{message}"
    );
}

#[test]
fn files_without_cases_are_an_error() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS)]);
    let error = folder.error();
    assert!(error.contains("no AdmissionTest with cases"), "{error}");
}

#[test]
fn a_policy_that_a_server_refuses_is_an_error() {
    let widgets = WIDGETS
        .replace("!('admins'", "!!('admins'")
        .replace("'DELETE' ||", "");
    let folder = Folder::of(&[("widgets.yaml", &widgets), ("a.yaml", CASES)]);
    let error = folder.error();
    assert!(error.contains("widgets.yaml, document 2"), "{error}");
}

#[test]
fn the_coverage_lists_what_no_case_reaches() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let (outcome, out) = folder.test(&["--coverage"]);
    insta::assert_snapshot!(out, @r"
    7 passed, 0 failed
    coverage: 21 of 24 results of 5 expressions
      widgets.yaml:24: !has(self.max) is never true
      widgets.yaml:26: self.min == oldSelf.min is never true
      widgets.yaml:45: !has(object.spec.tier) is never true
    ");
    assert_eq!(outcome, Outcome::Yes);
}

#[test]
fn what_a_server_answers_is_covered_too() {
    let folder = Folder::of(&[("a.yaml", ENTRIES)]);
    let (_, out) = folder.test(&["--coverage"]);
    insta::assert_snapshot!(out, @r"
    5 passed, 0 failed
    coverage: 16 of 18 results of 2 expressions
      a.yaml:10: object.data.size() < 2 is never true
      a.yaml:10: oldObject.data.size() >= 2 is never false
    ");
}

#[test]
fn mutants_that_no_case_detects_are_listed_with_their_change() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let (outcome, out) = folder.test(&["--mutants"]);
    insta::assert_snapshot!(out, @r"
    7 passed, 0 failed
    mutants: 46 of 52 detected
      widgets.yaml:24: without !has(self.max) ||
      widgets.yaml:24: max -> min
      widgets.yaml:24: <= -> <
      widgets.yaml:45: without || !has(object.spec.tier)
      widgets.yaml:47: without request.operation != 'DELETE' ||
      widgets.yaml:47: '' -> 'x'
    ");
    assert_eq!(outcome, Outcome::Yes);
}

#[test]
fn variables_are_changed_too_and_only_the_rules_that_are_asked_for() {
    let policy = SIZES.replace("size(object.data) <= 2", "variables.size <= 2");
    let variables = "  variables: [{name: size, expression: 'size(object.data) + 0'}]\n";
    let policy = policy.replace("  validations:", &format!("{variables}  validations:"));
    let folder = Folder::of(&[("a.yaml", &policy), ("widgets.yaml", WIDGETS)]);
    let rules = folder.0.join("a.yaml").display().to_string();
    let (_, out) = folder.test(&["--coverage", "--mutants", "--rules", &rules]);
    insta::assert_snapshot!(out);
    let flags = ["--mutants", "--rules", "missing.yaml"];
    let error = folder.run(&flags, &mut Vec::new()).unwrap_err();
    assert!(
        error.to_string().contains("reading missing.yaml"),
        "{error}"
    );
}

#[test]
fn sarif_has_what_fails_what_is_not_reached_and_what_is_not_detected() {
    let failing = CASES.replacen("expect: Admitted", "expect: Refused", 1);
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a b.yaml", &failing)]);
    let (outcome, failures) = folder.test(&["-o", "sarif"]);
    assert_eq!(outcome, Outcome::No);
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let (_, gaps) = folder.test(&["--coverage", "--mutants", "-o", "sarif"]);
    insta::assert_snapshot!(format!("{failures}{gaps}"));
}

#[test]
fn mutants_are_bounded_in_number_and_time_and_need_cases_that_pass() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let (_, few) = folder.test(&["--mutants", "--mutant-limit", "1"]);
    assert!(few.contains("not tried, because of the limits"), "{few}");
    let (_, none) = folder.test(&["--mutants", "--mutant-seconds", "0"]);
    assert!(none.contains("mutants: 0 of 0 detected; "), "{none}");
    let cases = CASES.replacen("expect: Admitted", "expect: Refused", 1);
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", &cases)]);
    let (_, failing) = folder.test(&["--mutants"]);
    assert!(
        failing.contains("; cases fail without a mutant"),
        "{failing}"
    );
}

#[test]
fn cases_are_proposed_that_detect_mutants_and_pass() {
    let folder = Folder::of(&[("widgets.yaml", WIDGETS), ("a.yaml", CASES)]);
    let file = folder.0.join("missing.yaml").display().to_string();
    let flags = ["--mutants", "--write-missing", &file];
    let (outcome, out) = folder.test(&flags);
    assert_eq!(outcome, Outcome::Yes);
    let written = fs::read_to_string(&file).unwrap();
    insta::assert_snapshot!(format!("{out}{written}"), @r"
    7 passed, 0 failed
    mutants: 46 of 52 detected
      widgets.yaml:24: without !has(self.max) ||; proposed: line 24, without !has(self.max) ||
      widgets.yaml:24: max -> min; proposed: line 24, without !has(self.max) ||
      widgets.yaml:24: <= -> <; proposed: line 24, <= -> <
      widgets.yaml:45: without || !has(object.spec.tier); proposed: line 24, without !has(self.max) ||
      widgets.yaml:47: without request.operation != 'DELETE' ||; proposed: line 47, without request.operation != 'DELETE' ||
      widgets.yaml:47: '' -> 'x'
    ---
    apiVersion: kubemu/v1
    kind: AdmissionTest
    files:
    - widgets.yaml
    cases:
    - name: line 24, without !has(self.max) ||
      parameters:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: tiers
          namespace: shop
        data:
          tiers: small,large
      object:
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          name: a
          namespace: shop
        spec: {}
      expect: Admitted
    - name: line 24, <= -> <
      parameters:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: tiers
          namespace: shop
        data:
          tiers: small,large
      object:
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          name: a
          namespace: shop
        spec:
          max: 5
          min: 5
      expect: Admitted
    - name: line 47, without request.operation != 'DELETE' ||
      namespaceLabels:
        stage: prod
      parameters:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: tiers
          namespace: shop
        data:
          tiers: small,large
      object:
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          name: a
          namespace: shop
        spec: {}
      expect: Admitted
    ");
    let (_, out) = folder.test(&["--mutants"]);
    insta::assert_snapshot!(out, @r"
    10 passed, 0 failed
    mutants: 51 of 52 detected
      widgets.yaml:47: '' -> 'x'
    ");
    let error = folder.run(&flags, &mut Vec::new()).unwrap_err().to_string();
    assert!(
        error.contains("give the path of a file that does not exist"),
        "{error}"
    );
}

const SIZES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - expression: size(object.data) <= 2
---
apiVersion: kubemu/v1
kind: AdmissionTest
object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1"}}
cases:
- {name: one entry, expect: Admitted}
- {name: four entries, change: {data: {b: "2", c: "3", d: "4"}}, expect: Refused}
"#;

#[test]
fn cases_about_built_in_kinds_are_proposed() {
    let folder = Folder::of(&[("a.yaml", SIZES)]);
    let file = folder.0.join("missing.yaml").display().to_string();
    let (_, before) = folder.test(&["--mutants", "--write-missing", &file]);
    let (_, after) = folder.test(&["--mutants"]);
    insta::assert_snapshot!(format!("{before}{after}"), @r"
    2 passed, 0 failed
    mutants: 4 of 7 detected
      a.yaml:10: <= -> <; proposed: line 10, <= -> <
      a.yaml:10: 2 -> 3; proposed: line 10, 2 -> 3
      a.yaml:10: 2 -> 1; proposed: line 10, <= -> <
    4 passed, 0 failed
    mutants: 7 of 7 detected
    ");
    // The message has the expression, which no mutant has.
    let written = fs::read_to_string(&file).unwrap();
    assert!(!written.contains("messageIs"), "{written}");
}

/// A user whom the condition leaves out may have as many entries as there are.
#[test]
fn a_proposed_case_does_not_expect_the_text_of_another_rule() {
    let condition =
        "  matchConditions: [{name: a, expression: request.userInfo.username == 'u'}]\n";
    let policy = SIZES.replace("  validations:", &format!("{condition}  validations:"));
    let policy = policy.replace("expect: Admitted", "expect: Admitted, user: u");
    let policy = policy.split("- {name: four").next().unwrap().to_owned();
    let folder = Folder::of(&[("a.yaml", &policy)]);
    let file = folder.0.join("missing.yaml").display().to_string();
    folder.test(&["--mutants", "--write-missing", &file]);
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("expect: Refused"), "{written}");
    assert!(!written.contains("messageIs"), "{written}");
}

const KAPTEST: &str = r"
policies: [policies.yml]
resources: [resources.yml]
vapTestSuites:
- policy: one
  tests:
  - object: {kind: ConfigMap, name: small}
    param: {name: limits, namespace: other}
    expect: admit
  - object: {kind: ConfigMap, name: large}
    param: {name: limits, namespace: other}
    expect: deny
    deniedMessage: more than the limit
  - object: {kind: ConfigMap, name: large}
    param: {name: limits, namespace: other}
    userInfo: {username: root}
    expect: skip
  - object: {kind: ConfigMap, name: empty}
    param: {name: limits, namespace: other}
    expect: error
  - oldObject: {kind: ConfigMap, name: large}
    param: {name: limits, namespace: other}
    expect: deny
- policy: two
  tests:
  - object: {kind: ConfigMap, name: large}
    expect: admit
";

const KAPTEST_POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: one}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}
  matchConditions:
  - {name: not-root, expression: request.userInfo.username != 'root'}
  validations:
  - expression: "(object == null ? oldObject : object).data.size() <= int(params.data.limit)"
    message: more than the limit
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: two}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - expression: object.metadata.name == 'large'
"#;

const KAPTEST_RESOURCES: &str = r#"
{apiVersion: v1, kind: ConfigMap, metadata: {name: small}, data: {a: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {a: "1", b: "2"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: empty}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: other}, data: {limit: "1"}}
"#;

#[test]
fn a_manifest_of_kaptest_asks_one_policy_with_one_parameter() {
    let folder = Folder::of(&[
        ("kaptest.yaml", KAPTEST),
        ("policies.yml", KAPTEST_POLICIES),
        ("resources.yml", KAPTEST_RESOURCES),
    ]);
    let (_, out) = folder.test(&["-v"]);
    insta::assert_snapshot!(out, @r"
    pass kaptest.yaml:7: one: small: admit
    pass kaptest.yaml:10: one: large: deny
    pass kaptest.yaml:14: one: large: skip
    pass kaptest.yaml:18: one: empty: error
    pass kaptest.yaml:21: one: large: deny
    pass kaptest.yaml:26: two: large: admit
    6 passed, 0 failed
    ");
}
