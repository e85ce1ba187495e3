//! The examples are valid and have no lint warnings.

use super::run;

const EXAMPLES: [&str; 12] = [
    "business-hours",
    "class",
    "desk",
    "every-other-minute",
    "k0smotron",
    "kubeadm",
    "nights-and-weekends",
    "overnight",
    "reclaim",
    "set",
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
fn the_forty_desks_are_valid_and_have_no_lint_warnings() {
    let (printed, code) = run("validate --lint error -q -f examples/forty-desks");
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(printed.trim_end(), "43 valid, 0 invalid, 1 skipped");
}

/// The names that a range of an inventory stands for, such as `desk-[01:20]`.
fn hosts(range: &str) -> Vec<String> {
    let (name, ends) = range.split_once('[').unwrap();
    let (first, last) = ends.strip_suffix(']').unwrap().split_once(':').unwrap();
    let [first, last]: [u32; 2] = [first, last].map(|end| end.parse().unwrap());
    (first..=last).map(|it| format!("{name}{it:02}")).collect()
}

#[test]
fn the_inventory_of_ansible_names_the_forty_desks() {
    let examples = format!("{}/examples", super::ROOT);
    let read = |path: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        serde_saphyr::from_multiple(&text).unwrap()
    };
    let inventory = read(&format!("{examples}/ansible/desks.yaml"));
    let ranges = inventory[0]["desks"]["hosts"].as_object().unwrap();
    let mut inventory: Vec<String> =
        ranges.keys().flat_map(|range| hosts(range)).collect();
    let files = std::fs::read_dir(format!("{examples}/forty-desks")).unwrap();
    let all = files.flat_map(|file| read(file.unwrap().path().to_str().unwrap()));
    let machines = all.filter(|it| it["kind"] == "ScheduledMachine");
    let mut machines: Vec<String> = machines
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    inventory.sort_unstable();
    machines.sort_unstable();
    assert_eq!(inventory, machines);
}

#[test]
fn a_remote_machine_of_an_example_names_a_secret_in_the_same_file() {
    let path = |file: &str| format!("{}/examples/{file}.yaml", super::ROOT);
    // These name no address.
    let others = ["class", "kubeadm", "set"];
    for file in EXAMPLES.into_iter().filter(|it| !others.contains(it)) {
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

#[test]
fn the_nights_and_weekends_open_and_close_at_these_instants_around_christmas() {
    let words = "preview -f examples/nights-and-weekends.yaml --from 2026-12-18T16:00:00Z \
                 --to 2026-12-29T12:00:00Z -o json";
    let (printed, code) = run(words);
    assert_eq!(code, Some(0), "{printed}");
    let preview: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let item = &preview["items"][0];
    let listed = |list: &str, members: &[&str]| -> Vec<String> {
        let rows = item[list].as_array().unwrap().iter();
        let cell = |row: &serde_json::Value, member: &str| match &row[member] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let row = |row| members.iter().map(|it| cell(row, it)).collect::<Vec<_>>();
        rows.map(|it| row(it).join(" ")).collect()
    };
    assert_eq!(
        listed("transitions", &["time", "wanted", "cause", "name"]),
        [
            // Friday evening to Monday morning is one window.
            "2026-12-18T18:00:00Z true Window night",
            "2026-12-21T06:30:00Z false Window weekend",
            "2026-12-21T18:00:00Z true Window night",
            "2026-12-22T06:30:00Z false Window night",
            "2026-12-22T18:00:00Z true Window night",
            "2026-12-23T06:30:00Z false Window night",
            "2026-12-23T18:00:00Z true Window night",
            "2026-12-24T06:30:00Z false Window night",
            "2026-12-24T18:00:00Z true Window night",
            // Christmas Day and St. Stephen's Day, from midnight to midnight.
            "2026-12-24T23:00:00Z false Exception holidays",
            "2026-12-26T23:00:00Z true Exception holidays",
            "2026-12-28T06:30:00Z false Window weekend",
            "2026-12-28T18:00:00Z true Window night",
            "2026-12-29T06:30:00Z false Window night",
        ]
    );
    assert_eq!(
        listed("needed", &["startTime", "endTime"]),
        [
            "2026-12-18T17:50:00Z 2026-12-21T06:25:00Z",
            "2026-12-21T17:50:00Z 2026-12-22T06:25:00Z",
            "2026-12-22T17:50:00Z 2026-12-23T06:25:00Z",
            "2026-12-23T17:50:00Z 2026-12-24T06:25:00Z",
            "2026-12-24T17:50:00Z 2026-12-24T22:55:00Z",
            "2026-12-26T22:50:00Z 2026-12-28T06:25:00Z",
            "2026-12-28T17:50:00Z 2026-12-29T06:25:00Z",
        ]
    );
}
