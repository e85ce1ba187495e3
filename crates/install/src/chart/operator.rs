//! The operator in the chart.

use serde_json::json;

use super::capacity::HAS_TARGETS;
use super::template::{self, Block};
use super::{allow_egress_ports, pod};
use crate::controller::{Part, Settings};

/// The arguments of all controllers that are set by values.
const COMMON_ARGUMENTS: &str = r#"- --log-level={{ $.Values.log.level }}
- --log-format={{ $.Values.log.format }}
- --lease-duration-secs={{ int $.Values.leaderElection.leaseDurationSeconds }}
- --lease-renew-deadline-secs={{ int $.Values.leaderElection.renewDeadlineSeconds }}
- --lease-retry-period-secs={{ int $.Values.leaderElection.retryPeriodSeconds }}
{{- with $.Values.namespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- if $.Values.zoneinfo.volume }}
- --zoneinfo=/usr/share/zoneinfo
{{- end }}"#;

/// Those of the operator alone.
const OPERATOR_ARGUMENTS: &str = r#"{{- if $.Values.capacity.targets }}
- --controllers=machines
{{- end }}
{{- if eq $.Values.nodeAccess "management" }}
- --node-access=management
{{- end }}
{{- with $.Values.reclaimByOverride }}
- --reclaim-by-override={{ . }}
{{- end }}"#;

/// The Deployments of the operator, and the objects around them.
pub(super) fn blocks(settings: &Settings) -> Vec<Block> {
    let arguments = [OPERATOR_ARGUMENTS, COMMON_ARGUMENTS].join("\n");
    let operator = part(&settings.operator(), &arguments);
    let capacity = part(&settings.capacity_controller(), COMMON_ARGUMENTS);
    let capacity = capacity.into_iter().map(|it| it.within(HAS_TARGETS));
    operator.into_iter().chain(capacity).collect()
}

/// A Deployment of the operator and the objects around it. `arguments` are those that are set by
/// values.
fn part(part: &Part<'_>, arguments: &str) -> [Block; 2] {
    let mut account = part.service_account();
    account["metadata"]["annotations"] =
        json!({template::entries("$.Values.serviceAccount.annotations"): true});
    let mut deployment = part.deployment();
    pod(&mut deployment, "int $.Values.replicas", "image");
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod[template::included("5spot.zoneinfoVolumes")] = true.into();
    let container = &mut pod["containers"][0];
    container[template::included("5spot.zoneinfoMounts")] = true.into();
    container["resources"] = template::bare("toJson $.Values.resources").into();
    for (list, mark) in [
        ("args", template::lines(arguments)),
        ("args", template::entries("$.Values.extraArgs")),
        ("env", template::entries("$.Values.extraEnv")),
    ] {
        if let Some(list) = container[list].as_array_mut() {
            list.push(mark.into());
        }
    }
    let mut policy = part.allowed_traffic();
    allow_egress_ports(&mut policy);
    let others = vec![
        account,
        deployment,
        part.service(),
        part.disruption_budget(),
    ];
    [
        Block::always(others),
        Block::when("if $.Values.networkPolicy.enabled", vec![policy]),
    ]
}
