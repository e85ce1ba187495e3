use clap::Parser;
use insta::assert_snapshot;

use super::*;

#[derive(Debug, Parser)]
#[command(name = "5spot controller", term_width = 100)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// What is said to a command line, by clap or by us.
fn said(words: &str, pod: Option<&str>) -> String {
    let command = ["5spot controller"]
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
fn an_instance_is_alone_unless_told_otherwise() {
    assert_snapshot!(said("", None), @"");
    assert_snapshot!(said("--enable-leader-election=false", Some("pod-a")), @"");
}

#[test]
fn leader_election_is_asked_for_by_flag() {
    assert_snapshot!(said("--enable-leader-election --lease-namespace ops", Some("pod-a")), @"");
}

#[test]
fn more_than_one_instance_means_shards_and_no_leader() {
    assert_snapshot!(
        said("--instance-count 3 --instance-id 2 --enable-leader-election", None),
        @""
    );
}

#[test]
fn what_cannot_be_meant_is_refused_by_the_name_of_its_flag() {
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
    let all: Vec<String> = rows.iter().map(|row| said(row, None)).collect();
    assert_snapshot!(all.join("\n\n"), @"");
    assert_snapshot!(said("", Some("Not A Pod")), @"");
}
