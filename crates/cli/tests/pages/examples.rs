//! The examples are valid and have no lint warnings.

use super::run;

const EXAMPLES: [&str; 9] = [
    "business-hours",
    "desk",
    "every-other-minute",
    "k0smotron",
    "kubeadm",
    "overnight",
    "reclaim",
    "taints",
    "weekend",
];

#[test]
fn the_examples_are_valid_and_have_no_lint_warnings() {
    for file in EXAMPLES {
        let words = format!("validate --lint error -f examples/{file}.yaml");
        let (printed, code) = run(&words);
        assert_eq!(code, Some(0), "{printed}");
    }
}

#[test]
fn a_remote_machine_of_an_example_names_a_secret_that_stands_beside_it() {
    let path = |file: &str| format!("{}/examples/{file}.yaml", super::ROOT);
    for file in EXAMPLES.into_iter().filter(|it| *it != "kubeadm") {
        let text = std::fs::read_to_string(path(file)).unwrap();
        let all: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
        let of_kind = |kind: &str| all.iter().find(|it| it["kind"] == kind).unwrap();
        let spec = &of_kind("ScheduledMachine")["spec"]["infrastructureSpec"]["spec"];
        let secret = of_kind("Secret");
        assert_eq!(
            spec["sshKeyRef"]["name"], secret["metadata"]["name"],
            "{file}"
        );
        assert!(secret["stringData"]["value"].is_string(), "{file}");
        assert_eq!(spec["useSudo"], true, "{file}");
    }
}
