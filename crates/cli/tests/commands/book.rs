//! Checks that `5spot` prints what pages show.

mod examples;
mod images;
mod pages;
mod provider_fields;
mod readme;
mod reasons;
mod run;
mod security;

use std::process::Command;
use std::sync::Arc;

use fivespot_api::{name, vap};
use fivespot_testkit::Page;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::{Binding, GroupVersionKind, Policies, Policy, Request};
use serde_json::Value;

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The output and the exit code of `5spot <words>` in the root of the source tree.
fn run(words: &str) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(words.split_whitespace())
        .current_dir(ROOT)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (String::from_utf8(printed).unwrap(), output.status.code())
}

#[tokio::test]
async fn the_page_about_admission_shows_what_is_printed() {
    let page = Page::open("how-to/admission.md");
    page.run("5spot", async |words| run(words).0).await;
}

#[test]
fn every_command_of_the_page_about_admission_is_run_somewhere() {
    for command in Page::open("how-to/admission.md").commands() {
        let program = command.split_whitespace().next().unwrap();
        assert!(["5spot", "kubectl"].contains(&program), "{command}");
        assert!(!command.contains(['|', '>', '\'', '"']), "{command}");
    }
}

/// The annotation on the page is the one in the audit log.
#[test]
fn the_page_about_admission_shows_the_annotation_of_an_audit() {
    let read = |file: &str| std::fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
    let example = read("examples/admission/reserved-label.yaml");
    let object: Value = serde_saphyr::from_str(&example).unwrap();
    let policy = Policy::compile(&vap::policy(), KubeVersion::default()).unwrap();
    let binding = Binding::compile(&vap::binding(vap::Action::Audit)).unwrap();
    let policies = Policies::new([Arc::new(policy)], [Arc::new(binding)]);
    let kind = GroupVersionKind {
        group: name::GROUP,
        version: name::VERSION,
        kind: name::KIND,
    };
    let request = Request::create(kind, name::PLURAL, &object);
    let annotations = policies.decide(&request, &()).audit_annotations;
    let annotation =
        &annotations["validation.policy.admission.k8s.io/validation_failure"];
    let page = read("docs/how-to/admission.md");
    assert!(
        page.contains(&format!("```json\n{annotation}\n```\n")),
        "{annotation}"
    );
}

/// The file on the page is the file in the source tree.
#[test]
fn the_page_about_admission_shows_the_example_quota() {
    let read = |file: &str| std::fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
    let shipped = read("examples/policies/tenant-quota.yaml");
    let (_, manifest) = shipped.split_at(shipped.find("apiVersion").unwrap());
    let page = read("docs/how-to/admission.md");
    assert!(page.contains(&format!("```yaml\n{manifest}```\n")));
}
