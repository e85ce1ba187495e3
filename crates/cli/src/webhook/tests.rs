use fivespot_controller::Detail;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn parse(words: &[&str]) -> Args {
    let words = ["webhook"].into_iter().chain(words.iter().copied());
    <Line as clap::Parser>::try_parse_from(words).unwrap().args
}

#[test]
fn actions_that_no_binding_may_have_are_refused_by_the_name_of_the_flag() {
    let error = |actions: &str| {
        let refused = run(&parse(&["--validation-actions", actions]));
        refused.unwrap_err().to_string()
    };
    insta::assert_snapshot!([error("Deny,Warn"), error("AuditAndDeny")].join("\n"));
}

#[test]
fn a_certificate_is_for_the_service_and_for_what_is_said_besides() {
    let args = parse(&[
        "--namespace",
        "ops",
        "--serving-name",
        "127.0.0.1,admission.example",
    ]);
    assert_eq!(
        args.upkeep().names,
        [
            "webhook.ops.svc",
            "webhook.ops.svc.cluster.local",
            "127.0.0.1",
            "admission.example"
        ]
    );
}

#[tokio::test]
async fn it_is_ready_with_a_certificate_and_until_it_leaves() {
    let probes = Probes::default();
    let answer = probes.on_health_port("/readyz", Detail::Verbose);
    let said = "[-]certificate failed: no certificate yet\n";
    assert_eq!((answer.code, answer.body.as_str()), (503, said));
    assert_eq!(probes.on_health_port("/healthz", Detail::Brief).code, 200);
    probes.shut_down();
    let answer = probes.on_health_port("/readyz", Detail::Verbose);
    let said = "[-]certificate failed: shutting down\n";
    assert_eq!((answer.code, answer.body.as_str()), (503, said));
}

#[tokio::test]
async fn why_it_is_not_ready_is_said_only_where_details_are() {
    let answer = Probes::default().on_health_port("/readyz", Detail::Brief);
    assert_eq!((answer.code, answer.body.as_str()), (503, "not ready\n"));
}
