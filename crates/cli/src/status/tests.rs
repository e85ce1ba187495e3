use fivespot_testkit::{Cluster, Coordination, Lease, LeaseTiming, instant};
use kube::Client;
use kubemu_apiserver::User;

use crate::check::{Judge, Operator};

async fn warning(client: &Client, namespace: &str) -> Option<String> {
    let operator = Operator {
        namespace: namespace.to_owned(),
        account: "5spot-controller".to_owned(),
        lease: "5spot-leader".to_owned(),
    };
    Judge::read(client, &operator).await.warning(&operator)
}

#[tokio::test]
async fn a_warning_is_printed_while_no_operator_renews_its_lease() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let replica = cluster.operator_with(|options| {
        options.coordination = Coordination::Leader(Lease {
            namespace: "5spot-system".to_owned(),
            name: "5spot-leader".to_owned(),
            timing: LeaseTiming::default(),
        });
    });
    cluster.advance_until(instant("2026-03-06T15:01:00Z")).await;
    let client = cluster.client();
    assert_eq!(warning(&client, "5spot-system").await, None);
    let elsewhere = warning(&client, "platform").await.unwrap();
    assert!(elsewhere.contains("--operator-namespace"), "{elsewhere}");

    drop(replica);
    cluster.advance_until(instant("2026-03-06T15:20:00Z")).await;
    let stale = warning(&client, "5spot-system").await.unwrap();
    assert!(
        stale.starts_with("no operator runs: 5spot-controller"),
        "{stale}"
    );

    // A user who may not read Leases gets no error.
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    assert_eq!(warning(&developer, "5spot-system").await, None);
}
