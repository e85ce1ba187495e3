//! The values of optional parts, and those of every object.

use serde_json::json;

use super::{Entry, entry, flag, image, texts};

pub(super) fn monitoring() -> Vec<Entry> {
    vec![
        entry(
            "monitoring.serviceMonitor.enabled",
            json!(false),
            flag(),
            "Whether to create a ServiceMonitor (needs the CRDs of the Prometheus operator).",
        ),
        entry(
            "monitoring.podMonitor.enabled",
            json!(false),
            flag(),
            "Whether to create a PodMonitor instead; not both.",
        ),
        entry(
            "monitoring.interval",
            json!("30s"),
            json!({"type": "string", "pattern": "^[0-9]+(ms|s|m)$"}),
            "Interval between two scrapes of the ServiceMonitor or PodMonitor.",
        ),
        entry(
            "monitoring.rules.enabled",
            json!(false),
            flag(),
            "Whether to create a PrometheusRule with the alerts.",
        ),
        entry(
            "monitoring.dashboard.enabled",
            json!(false),
            flag(),
            "Whether to create a ConfigMap with the Grafana dashboard.",
        ),
        entry(
            "monitoring.labels",
            json!({}),
            texts(),
            "Additional labels of these objects, such as the one by which your Prometheus selects \
             monitors and rules.",
        ),
    ]
}

pub(super) fn optional_parts() -> Vec<Entry> {
    let mut all = vec![
        entry(
            "webhook.enabled",
            json!(false),
            flag(),
            "Whether to run the validating webhook, for clusters of Kubernetes 1.30 or later whose \
             API server has admission policies disabled. For an older Kubernetes, use `5spot \
             generate manifests` and `webhook` with --kube-version instead of the chart.",
        ),
        entry(
            "webhook.replicas",
            json!(2),
            json!({"type": "integer", "minimum": 1}),
            "Number of replicas of the webhook; all of them serve.",
        ),
        entry(
            "webhook.certManager",
            json!(false),
            flag(),
            "Whether cert-manager issues the certificate of the webhook. If false, the webhook \
             issues it itself.",
        ),
    ];
    all.extend(image("webhook.image", "the webhook", "5spot-webhook"));
    all.extend(dashboard());
    all.extend(image("dashboard.image", "the dashboard", "5spot"));
    all.extend([
        entry(
            "agent.enabled",
            json!(false),
            flag(),
            "Whether to install the agent of emergency reclaim in this cluster. Needed where \
             nodeAccess is management; workload clusters get it by `5spot generate agent`.",
        ),
        entry(
            "agent.detection",
            json!("events"),
            json!({"enum": ["events", "scan"]}),
            "How the agent detects processes: events (of the kernel, as root with NET_ADMIN in \
             the network namespace of the host) or scan (of /proc, without root).",
        ),
    ]);
    all.extend(image("agent.image", "the agent", "5spot-reclaim-agent"));
    all
}

fn dashboard() -> [Entry; 3] {
    [
        entry(
            "dashboard.enabled",
            json!(false),
            flag(),
            "Whether to run the dashboard in the cluster: a page about the machines of all \
             namespaces, for whoever the proxy lets through. It only reads, and no Secrets.",
        ),
        entry(
            "dashboard.proxy",
            json!([]),
            json!({"type": "array", "items": {"type": "object"}}),
            "Containers of your proxy, which run in the same pod, authenticate users and forward to \
             http://127.0.0.1:8080. Nobody else can connect to the dashboard. Required with \
             dashboard.enabled.",
        ),
        entry(
            "dashboard.proxyPort",
            json!(4180),
            json!({"type": "integer", "minimum": 1, "maximum": 65535}),
            "Port on which the proxy listens; the Service machines-dashboard forwards to it.",
        ),
    ]
}

pub(super) fn metadata() -> Vec<Entry> {
    let name =
        json!({"type": "string", "pattern": "^$|^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"});
    vec![
        entry(
            "fullnameOverride",
            json!(""),
            name,
            "Name of the Deployment, the ServiceAccount and the roles of the operator. Empty \
             means 5spot-controller.",
        ),
        entry(
            "commonLabels",
            json!({}),
            texts(),
            "Additional labels of every object.",
        ),
        entry(
            "commonAnnotations",
            json!({}),
            texts(),
            "Additional annotations of every object.",
        ),
    ]
}
