use clap::Parser;
use insta::assert_snapshot;

use super::*;

#[derive(Debug, Parser)]
#[command(name = "5spot-controller", term_width = 100)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// The settings of a command line, or the error message of clap or of the checks.
fn settings_text(words: &str, pod: Option<&str>) -> String {
    let command = ["5spot-controller"]
        .into_iter()
        .chain(words.split_whitespace());
    let pod = Pod {
        name: pod.map(str::to_owned),
    };
    match Command::try_parse_from(command) {
        Ok(command) => match command.args.settings(pod) {
            Ok(settings) => format!("{} {:?}", settings.identity, settings.coordination),
            Err(failure) => format!("error: {failure}"),
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn leader_election_is_enabled_by_default() {
    assert_snapshot!(settings_text("", None), @r#"5spot-0 Leader(Lease { namespace: "5spot-system", name: "5spot-leader", timing: LeaseTiming { duration: 15s, renew_deadline: 10s, retry_period: 2s } })"#);
    assert_snapshot!(
        settings_text("--enable-leader-election=false", Some("pod-a")),
        @r#"pod-a Unelected(Lease { namespace: "5spot-system", name: "5spot-leader", timing: LeaseTiming { duration: 15s, renew_deadline: 10s, retry_period: 2s } })"#
    );
}

#[test]
fn leader_election_can_be_set_by_flag() {
    assert_snapshot!(
        settings_text("--enable-leader-election --lease-namespace ops", Some("pod-a")),
        @r#"pod-a Leader(Lease { namespace: "ops", name: "5spot-leader", timing: LeaseTiming { duration: 15s, renew_deadline: 10s, retry_period: 2s } })"#
    );
}

#[test]
fn more_than_one_instance_enables_shards_and_disables_leader_election() {
    assert_snapshot!(
        settings_text("--instance-count 3 --instance-id 2 --enable-leader-election", None),
        @r#"5spot-2 Shards { lease: Lease { namespace: "5spot-system", name: "5spot-leader", timing: LeaseTiming { duration: 15s, renew_deadline: 10s, retry_period: 2s } }, count: 3 }"#
    );
}

#[test]
fn invalid_values_are_refused_with_the_name_of_the_flag() {
    let rows = [
        "--enable-leader-election --lease-duration-secs 12",
        "--enable-leader-election --lease-duration-secs 7200",
        "--instance-count 2 --lease-renew-deadline-secs 2",
        "--instance-count 2 --lease-retry-period-secs 0",
        "--enable-leader-election --lease-name Leader",
        "--enable-leader-election --lease-namespace 5spot_system",
        "--namespaces team-a,Team-B",
        "--instance-id a/b",
        "--instance-count 0",
        "--max-concurrent 0",
        "--metrics-port 70000",
        "--bind-address localhost",
        "--enable-leader-election=perhaps",
    ];
    let all: Vec<String> = rows.iter().map(|row| settings_text(row, None)).collect();
    assert_snapshot!(all.join("\n\n"), @r#"
    error: --lease-duration-secs: 12 is not at least 5 seconds more than --lease-renew-deadline-secs 10; give at least 15

    error: --lease-duration-secs: 7200 exceeds one hour; give at most 3600

    error: --lease-renew-deadline-secs: 2 leaves no time for a second attempt after --lease-retry-period-secs 2; give more than 2

    error: --lease-retry-period-secs: 0 is too often; give at least 1

    error: --lease-name: "Leader" is not a valid Kubernetes name; use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends

    error: --lease-namespace: "5spot_system" is not a valid Kubernetes name; use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends

    error: --namespaces: "Team-B" is not a valid Kubernetes name; use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends

    error: --instance-id: "a/b" is not a valid Kubernetes name; use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends

    error: invalid value '0' for '--instance-count <NUMBER>': number would be zero for non-zero type

    For more information, try '--help'.


    error: invalid value '0' for '--max-concurrent <NUMBER>': number would be zero for non-zero type

    For more information, try '--help'.


    error: invalid value '70000' for '--metrics-port <PORT>': 70000 is not in 0..=65535

    For more information, try '--help'.


    error: invalid value 'localhost' for '--bind-address <IP>': invalid IP address syntax

    For more information, try '--help'.


    error: invalid value 'perhaps' for '--enable-leader-election[=<BOOL>]'
      [possible values: true, false]

    For more information, try '--help'.
    "#);
    assert_snapshot!(settings_text("", Some("Not A Pod")), @r#"error: POD_NAME: "Not A Pod" is not a valid pod name; set it from the field metadata.name, or leave it unset"#);
}

#[test]
fn a_reclaim_stops_a_machine_for_a_minute_to_two_weeks() {
    for (text, is_valid) in [
        ("59s", false),
        ("1m", true),
        ("336h", true),
        ("337h", false),
    ] {
        assert_eq!(reclaim_override(text).is_ok(), is_valid, "{text}");
    }
}
