use kubemu_https::Detail;

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
fn a_certificate_is_for_the_service_and_for_additional_names() {
    let args = parse(&[
        "--namespace",
        "ops",
        "--serving-name",
        "127.0.0.1,admission.example",
    ]);
    assert_eq!(
        args.certificate_settings().names,
        [
            "webhook.ops.svc",
            "webhook.ops.svc.cluster.local",
            "127.0.0.1",
            "admission.example"
        ]
    );
}

#[tokio::test]
async fn the_webhook_is_not_ready_without_a_certificate_or_after_shutdown() {
    let probes = Probes::default();
    let answer = probes.on_health_port("/readyz", Detail::Verbose);
    let expected = "[-]certificate failed: no certificate yet\n";
    assert_eq!((answer.code, answer.body.as_str()), (503, expected));
    assert_eq!(probes.on_health_port("/healthz", Detail::Brief).code, 200);
    probes.shut_down();
    let answer = probes.on_health_port("/readyz", Detail::Verbose);
    let expected = "[-]certificate failed: shutting down\n";
    assert_eq!((answer.code, answer.body.as_str()), (503, expected));
}

#[tokio::test]
async fn the_reason_for_not_being_ready_is_only_reported_in_detail() {
    let answer = Probes::default().on_health_port("/readyz", Detail::Brief);
    assert_eq!((answer.code, answer.body.as_str()), (503, "not ready\n"));
}
