//! What a release relies on in the workflows of `.github/workflows`.

use std::fs;

use serde_json::Value;

use super::image;

/// The workflows: the name and the content of each file.
fn workflows() -> Vec<(String, Value)> {
    let folder = crate::root().join(".github/workflows");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .map(|file| {
            let text = fs::read_to_string(file.path()).unwrap();
            let name = file.file_name().to_string_lossy().into_owned();
            (name, serde_saphyr::from_str(&text).unwrap())
        })
        .collect()
}

fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().unwrap().iter()
}

fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().unwrap().iter()
}

#[test]
fn every_action_is_named_by_its_digest() {
    for (file, workflow) in workflows() {
        for (name, job) in jobs(&workflow) {
            for action in steps(job).filter_map(|step| step["uses"].as_str()) {
                let digest = action.split_once('@').map_or("", |(_, digest)| digest);
                let is_digest = digest.len() == 40
                    && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_digest, "{file}, job {name}: {action}");
            }
        }
    }
}

#[test]
fn a_pull_request_may_write_nothing_and_keeps_no_credentials() {
    for (file, workflow) in workflows() {
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({"contents": "read"}),
            "{file}"
        );
        let events = workflow["on"].to_string();
        assert!(!events.contains("pull_request_target"), "{file}: {events}");
        for (name, job) in jobs(&workflow) {
            let is_for_pull_requests = events.contains("pull_request");
            assert!(
                !is_for_pull_requests || job["permissions"].is_null(),
                "{file}, job {name}"
            );
            let checkouts = steps(job).filter(|step| {
                let action = step["uses"].as_str().unwrap_or_default();
                action.starts_with("actions/checkout@")
            });
            for checkout in checkouts {
                assert_eq!(
                    checkout["with"]["persist-credentials"], false,
                    "{file}, job {name}"
                );
            }
        }
    }
}

#[test]
fn the_job_that_publishes_runs_nothing_of_the_source_tree() {
    let all = workflows();
    let mut publishing = 0;
    for (file, workflow) in &all {
        for (name, job) in jobs(workflow) {
            let permissions = job["permissions"].to_string();
            if !permissions.contains("write") {
                continue;
            }
            publishing += 1;
            for step in steps(job) {
                let (action, run) = (step["uses"].as_str(), step["run"].as_str());
                let runs =
                    format!("{} {}", action.unwrap_or_default(), run.unwrap_or_default());
                for word in ["actions/checkout", "cargo", "xtask", "target/"] {
                    assert!(!runs.contains(word), "{file}, job {name}: {runs}");
                }
            }
        }
    }
    assert_eq!(publishing, 1, "the job `publish`");
}

#[test]
fn each_image_and_the_chart_are_signed_and_attested_by_digest() {
    let all = workflows();
    let (_, release) = all.iter().find(|(file, _)| file == "release.yml").unwrap();
    let job = &release["jobs"]["publish"];
    let attested = |name: &str| {
        steps(job).any(|step| {
            let with = &step["with"];
            let subject = with["subject-name"].as_str().unwrap_or_default();
            subject.ends_with(&format!("/{name}")) && with["subject-digest"].is_string()
        })
    };
    let scripts: String = steps(job).filter_map(|step| step["run"].as_str()).collect();
    for (_, image) in image::TARGETS {
        assert!(attested(image), "{image}");
        let is_pushed = scripts.lines().any(|line| {
            line.starts_with("for image in") && words(line).any(|it| it == image)
        });
        assert!(is_pushed, "{image}");
    }
    assert!(attested("charts/5spot"));
    let signatures: Vec<&str> = scripts
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("cosign sign "))
        .collect();
    assert_eq!(signatures.len(), 2, "the images, and the chart");
    for line in signatures {
        assert!(line.contains("@$digest"), "{line}");
    }
}

/// The words of a line of a shell script.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', ';'])
}
