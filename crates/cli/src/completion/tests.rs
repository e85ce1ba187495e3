use super::*;

fn completed(words: &[&str]) -> Vec<String> {
    let args = Args {
        words: words.iter().map(OsString::from).collect(),
    };
    let mut out = Vec::new();
    assert_eq!(run(args, &mut out).unwrap(), Outcome::Yes);
    let text = String::from_utf8(out).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split_whitespace().map(str::to_owned)
}

#[test]
fn commands_are_completed_with_their_description() {
    assert_eq!(
        completed(&["hol"]),
        [
            "hold\tKeep a machine as it is for a limited time: nothing is created or shut down",
            ":4"
        ]
    );
    let all = completed(&[""]);
    assert!(all.iter().any(|it| it.starts_with("dev\t")), "{all:?}");
    assert!(!all.iter().any(|it| it.starts_with("__")), "{all:?}");
}

#[test]
fn the_ids_of_rules_and_lints_are_completed() {
    assert_eq!(
        completed(&["explain", "rule", "SM00"]).len(),
        10,
        "SM001 to SM009"
    );
    assert_eq!(completed(&["explain", "rule", "SL001"]), ["SL001", ":4"]);
}

#[test]
fn nothing_is_completed_after_an_unknown_command_or_kind() {
    assert_eq!(completed(&["nonsense", "wor"]), [":4"]);
    assert_eq!(completed(&["explain", "pod/wor"]), [":4"]);
    assert_eq!(completed(&[]), completed(&[""]));
}

#[test]
fn the_flags_on_the_command_line_select_the_cluster() {
    let line = "explain -n team-a --context=prod --at now --kubeconfig /k wor";
    assert_eq!(
        access_flags(words(line)).join(" "),
        "-n team-a --context=prod --kubeconfig /k"
    );
    let access = selected_access(words(line));
    assert_eq!(access.namespace.as_deref(), Some("team-a"));
    // A flag without its value selects nothing.
    assert_eq!(selected_access(words("explain -n")).namespace, None);
}
