//! The bounds of every field: the last value within them and the first beyond.

use fivespot_api::resource::SCHEDULED_MACHINE;
use serde_json::{Value, json};

use super::evaluator::Evaluator;

/// An acceptable object with one member of its spec set.
pub(super) fn with(field: &str, value: Value) -> Value {
    let mut object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                "kind": "K0sWorkerConfig",
                "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "RemoteMachine",
                "spec": {},
            },
        },
    });
    if field == "schedule.cron" {
        object["spec"]["schedule"] = json!({});
    }
    let mut at = &mut object["spec"];
    for member in field.split('.') {
        at = &mut at[member];
    }
    *at = value;
    object
}

fn texts(count: usize, text: &str) -> Value {
    json!(vec![text; count])
}

fn entries(count: usize, value: &str) -> Value {
    let all = (0..count).map(|place| (format!("key-{place}"), json!(value)));
    Value::Object(all.collect())
}

fn taints(count: usize) -> Value {
    let all = (0..count)
        .map(|place| json!({"key": format!("key-{place}"), "effect": "NoSchedule"}));
    Value::Array(all.collect())
}

/// A field, a value within its bounds and one beyond them.
type Row = (&'static str, Value, Value);

fn rows() -> Vec<Row> {
    let long = |length: usize| json!("a".repeat(length));
    let minutes = |count: usize| json!(format!("{} * * * *", vec!["0"; count].join(",")));
    let days = |count: usize| json!([vec!["mon"; count].join(",")]);
    let version = |length: usize| json!(format!("v1.31.2+{}", "a".repeat(length - 8)));
    vec![
        ("schedule.daysOfWeek", texts(32, "mon"), texts(33, "mon")),
        ("schedule.daysOfWeek", days(16), days(17)),
        ("schedule.hoursOfDay", texts(32, "9"), texts(33, "9")),
        ("schedule.cron", minutes(60), minutes(61)),
        ("schedule.cron", json!("0 9 * * *"), json!("")),
        ("schedule.timezone", long(64), long(65)),
        ("clusterName", long(63), long(64)),
        ("clusterName", json!("a"), json!("")),
        ("bootstrapSpec.kind", json!("K"), json!("K".repeat(64))),
        ("infrastructureSpec.kind", json!("K"), json!("K".repeat(64))),
        ("machineTemplate.version", version(64), version(65)),
        ("machineTemplate.version", json!("1.31.2"), json!("latest")),
        ("machineTemplate.failureDomain", long(256), long(257)),
        ("machineTemplate.failureDomain", json!("zone-1"), json!("")),
        ("machineTemplate.labels", entries(64, ""), entries(65, "")),
        (
            "machineTemplate.labels",
            entries(1, &"a".repeat(63)),
            entries(1, &"a".repeat(64)),
        ),
        (
            "machineTemplate.annotations",
            entries(64, ""),
            entries(65, ""),
        ),
        (
            "machineTemplate.annotations",
            entries(1, &"a".repeat(4096)),
            entries(1, &"a".repeat(4097)),
        ),
        (
            // Keys of five bytes, and letters of two bytes in the values.
            "machineTemplate.annotations",
            entries(8, &"é".repeat(4093)),
            entries(8, &"é".repeat(4094)),
        ),
        ("priority", json!(0), json!(-1)),
        ("priority", json!(255), json!(256)),
        ("gracefulShutdownTimeout", json!("0s"), json!("86401s")),
        ("nodeDrainTimeout", json!("24h"), json!("1441m")),
        ("killIfCommands", texts(100, "game"), texts(101, "game")),
        ("killIfCommands", texts(1, "g"), texts(1, "")),
        (
            "killIfCommands",
            texts(1, &"g".repeat(256)),
            texts(1, &"g".repeat(257)),
        ),
        ("nodeTaints", taints(64), taints(65)),
    ]
}

#[test]
fn the_last_value_within_each_bound_is_admitted_and_the_first_beyond_rejected() {
    let evaluator = Evaluator::shipped();
    for (field, within, beyond) in rows() {
        assert_eq!(evaluator.create(with(field, within)), [""; 0], "{field}");
        let refused = evaluator.create(with(field, beyond));
        assert_ne!(refused, [""; 0], "{field}");
    }
}

#[test]
fn one_object_cannot_be_both_bootstrap_and_infrastructure() {
    for evaluator in [
        Evaluator::shipped(),
        Evaluator::crd_alone(),
        Evaluator::old_crd_alone_of(SCHEDULED_MACHINE),
        Evaluator::policy_alone(),
    ] {
        let mut object = with("clusterName", json!("prod"));
        for (role, version) in [
            ("bootstrapSpec", "v1beta1"),
            ("infrastructureSpec", "v1beta2"),
        ] {
            object["spec"][role]["apiVersion"] = json!(format!("k0smotron.io/{version}"));
            object["spec"][role]["kind"] = json!("RemoteMachine");
        }
        let errors = evaluator.create(object).join("\n");
        assert!(
            errors.contains("bootstrapSpec and infrastructureSpec"),
            "{errors}"
        );
    }
}

#[test]
fn the_cluster_can_change_only_while_no_object_of_the_machine_exists() {
    let of = |cluster: &str, status: &Value| {
        let mut object = with("clusterName", json!(cluster));
        object["status"] = status.clone();
        object
    };
    let reference = |uid: Option<&str>| {
        let mut reference = json!({"apiVersion": "g/v1", "kind": "K", "name": "worker"});
        if let Some(uid) = uid {
            reference["uid"] = json!(uid);
        }
        reference
    };
    for evaluator in [
        Evaluator::shipped(),
        Evaluator::crd_alone(),
        Evaluator::policy_alone(),
    ] {
        for field in ["machineRef", "bootstrapRef", "infrastructureRef"] {
            let made = json!({ field: reference(Some("u-1")) });
            let refused = evaluator.update(of("prod", &made), of("staging", &made));
            assert_ne!(refused, [""; 0], "{field}");
            let planned = json!({ field: reference(None) });
            let admitted =
                evaluator.update(of("prod", &planned), of("staging", &planned));
            assert_eq!(admitted, [""; 0], "{field}");
        }
    }
}
