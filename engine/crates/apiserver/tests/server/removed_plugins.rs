//! Plugins that Kubernetes has removed, with their behaviour and their kinds.

use kubemu_apiserver::{Client, Options, Server, StartError, Status, User};
use serde_json::{Value, json};

use crate::fixture::{PODS, options, send_json};

const PRESETS: &str = "/apis/settings.k8s.io/v1alpha1/namespaces/default/podpresets";
const POLICIES: &str = "/apis/policy/v1beta1/podsecuritypolicies";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// The recommended list of the document about admission controllers.
const RECOMMENDED: &str = "NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,\
    DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,Priority,\
    ResourceQuota,PodSecurityPolicy";

fn with(names: &str) -> Options {
    Options {
        enable_plugins: names.split(',').map(str::to_owned).collect(),
        removed_plugins: true,
        ..options()
    }
}

fn server(names: &str) -> Server {
    Server::new(with(names)).unwrap()
}

/// A pod with additional fields in its spec and container.
fn pod(name: &str, spec: Value, container: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i"}]}});
    json_patch::merge(&mut pod["spec"], &spec);
    json_patch::merge(&mut pod["spec"]["containers"][0], &container);
    pod
}

fn privileged(name: &str) -> Value {
    pod(
        name,
        json!({}),
        json!({"securityContext": {"privileged": true}}),
    )
}

/// The error of a connection.
async fn connect(client: &Client, pod: &str, how: &str) -> Status {
    let path = format!("{PODS}/{pod}/{how}");
    client.create(&path, Value::Null).await.unwrap_err()
}

async fn rejection(client: &Client, path: &str, object: Value) -> String {
    client.create(path, object).await.unwrap_err().message
}

#[tokio::test]
async fn the_server_starts_with_the_recommended_list() {
    let refused = Server::new(Options {
        removed_plugins: false,
        ..with(RECOMMENDED)
    });
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, StartError::RemovedPlugin { name, .. } if name == "PodSecurityPolicy"),
        "{refused}"
    );
    let client = server(RECOMMENDED).client();
    assert_eq!(
        rejection(&client, PODS, pod("p", json!({}), json!({}))).await,
        "pods \"p\" is forbidden: PodSecurityPolicy: no providers available to validate pod \
         request"
    );
    client
        .create(POLICIES, policy("all", json!({})))
        .await
        .unwrap();
    let created = client
        .create(PODS, pod("p", json!({}), json!({})))
        .await
        .unwrap();
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/psp"],
        "all"
    );
}

#[tokio::test]
async fn connections_to_pods_with_escalated_privileges_are_rejected() {
    let client = server("DenyEscalatingExec").client();
    client.create(PODS, privileged("root")).await.unwrap();
    for (field, name) in [("hostPID", "pid"), ("hostIPC", "ipc")] {
        let sharing = pod(name, json!({field: true}), json!({}));
        client.create(PODS, sharing).await.unwrap();
    }
    for (name, how, expected) in [
        (
            "root",
            "exec",
            "cannot exec into or attach to a privileged container",
        ),
        (
            "pid",
            "attach",
            "cannot exec into or attach to a container using host pid",
        ),
        (
            "ipc",
            "exec",
            "cannot exec into or attach to a container using host ipc",
        ),
        ("none", "exec", "pods \"none\" not found"),
    ] {
        let refused = connect(&client, name, how).await;
        let expected = format!("pods {name:?} is forbidden: {expected}");
        assert_eq!((refused.code, refused.message), (403, expected));
    }
    let ports = connect(&client, "root", "portforward").await;
    assert_eq!(ports.message, "pod root does not have a host assigned");
}

#[tokio::test]
async fn deny_exec_on_privileged_rejects_only_privileged_containers() {
    let client = server("DenyExecOnPrivileged").client();
    client.create(PODS, privileged("root")).await.unwrap();
    let sharing = pod("pid", json!({"hostPID": true}), json!({}));
    client.create(PODS, sharing).await.unwrap();
    assert_eq!(
        connect(&client, "root", "exec").await.message,
        "pods \"root\" is forbidden: cannot exec into or attach to a privileged container"
    );
    let passed = connect(&client, "pid", "exec").await;
    assert_eq!(
        (passed.code, passed.message.as_str()),
        (400, "pod pid does not have a host assigned")
    );
}

#[tokio::test]
async fn an_admitted_connection_fails_without_a_kubelet() {
    let server = Server::new(options()).unwrap();
    let client = server.client();
    let two = json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]);
    let placed = pod("p", json!({"nodeName": "n", "containers": two}), json!({}));
    client.create(PODS, placed).await.unwrap();
    let at = |query: &str| format!("{PODS}/p/exec?command=ls{query}");
    for (query, code, expected) in [
        (
            "",
            400,
            "a container name must be specified for pod p, choose one of: [a b]",
        ),
        ("&container=x", 400, "container x is not valid for pod p"),
        ("&container=a", 404, "nodes \"n\" not found"),
        ("&dryRun=All", 400, "dryRun is not supported"),
    ] {
        for method in ["GET", "POST"] {
            let (found, body) = send_json(&server, method, &at(query), Value::Null).await;
            assert_eq!(
                (found, &body["message"]),
                (code, &json!(expected)),
                "{body}"
            );
        }
    }
    let node = json!({"metadata": {"name": "n"}});
    client.create("/api/v1/nodes", node).await.unwrap();
    let (code, body) = send_json(&server, "GET", &at("&container=a"), Value::Null).await;
    let expected = "error dialing backend: node \"n\" has no kubelet here";
    assert_eq!((code, &body["message"]), (500, &json!(expected)));
    let (code, _) = send_json(&server, "PUT", &at("&container=a"), Value::Null).await;
    assert_eq!(code, 405);
}

#[tokio::test]
async fn the_object_of_a_connection_has_its_options() {
    let server = Server::new(options()).unwrap();
    let client = server.client();
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "no-shell"}, "spec": {
        "matchConstraints": {"resourceRules": [{"operations": ["CONNECT"], "apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["pods/exec"]}]},
        "validations": [{"expression": "!('sh' in object.command) && object.stdin == true",
            "messageExpression": "'not ' + object.command.join(' ')"}]}});
    let path = format!("{group}/validatingadmissionpolicies");
    client.create(&path, policy).await.unwrap();
    let binding = json!({"metadata": {"name": "no-shell"}, "spec": {
        "policyName": "no-shell", "validationActions": ["Deny"]}});
    let path = format!("{group}/validatingadmissionpolicybindings");
    client.create(&path, binding).await.unwrap();
    client
        .create(PODS, pod("p", json!({}), json!({})))
        .await
        .unwrap();
    let shell = format!("{PODS}/p/exec?command=sh&command=-c&stdin=true");
    let (code, body) = send_json(&server, "POST", &shell, Value::Null).await;
    assert_eq!(
        (code, &body["message"]),
        (
            422,
            &json!(
                "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'no-shell' with binding \
                 'no-shell' denied request: not sh -c"
            )
        )
    );
    let other = format!("{PODS}/p/exec?command=ls&stdin=1");
    let (_, body) = send_json(&server, "POST", &other, Value::Null).await;
    assert_eq!(body["message"], "pod p does not have a host assigned");
}

fn preset(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn presets_are_applied_to_the_pods_that_they_select() {
    let client = server("PodPreset").client();
    let database = json!({"selector": {"matchLabels": {"role": "web"}},
        "env": [{"name": "PORT", "value": "5432"}],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "volumes": [{"name": "cache"}],
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]});
    let created = client
        .create(PRESETS, preset("database", database))
        .await
        .unwrap();
    assert_eq!(created["spec"]["volumes"][0]["emptyDir"], json!({}));
    let mut web = pod(
        "web",
        json!({}),
        json!({"env": [{"name": "A", "value": "1"}]}),
    );
    web["metadata"]["labels"] = json!({"role": "web"});
    let found = client.create(PODS, web.clone()).await.unwrap();
    let container = &found["spec"]["containers"][0];
    assert_eq!(
        container["env"][1],
        json!({"name": "PORT", "value": "5432"})
    );
    assert_eq!(container["envFrom"][0]["configMapRef"]["name"], "settings");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/cache");
    assert_eq!(found["spec"]["volumes"][0]["name"], "cache");
    let key = "podpreset.admission.kubernetes.io/podpreset-database";
    let version = &created["metadata"]["resourceVersion"];
    assert_eq!(&found["metadata"]["annotations"][key], version);
    let other = pod("other", json!({}), json!({}));
    let found = client.create(PODS, other).await.unwrap();
    assert_eq!(found["spec"]["containers"][0]["env"], Value::Null);
    web["metadata"]["name"] = "excluded".into();
    let excluded = "podpreset.admission.kubernetes.io/exclude";
    web["metadata"]["annotations"] = json!({excluded: "true"});
    let found = client.create(PODS, web).await.unwrap();
    assert_eq!(found["spec"]["containers"][0]["envFrom"], Value::Null);
}

#[tokio::test]
async fn conflicting_presets_are_not_applied_and_cause_a_warning() {
    let server = server("PodPreset");
    let client = server.client();
    for (name, value) in [("a", "1"), ("b", "2")] {
        let spec = json!({"env": [{"name": "PORT", "value": value}]});
        client.create(PRESETS, preset(name, spec)).await.unwrap();
    }
    let request = http::Request::post(PODS)
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(bytes::Bytes::from(
            pod("p", json!({}), json!({})).to_string(),
        )))
        .unwrap();
    let service = server.in_process();
    let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
    assert_eq!(response.status(), 201);
    let warning = response.headers()["warning"].to_str().unwrap();
    assert!(
        warning.contains("conflict occurred while applying podpresets: a,b on pod: p"),
        "{warning}"
    );
    let found = client.get(&format!("{PODS}/p")).await.unwrap();
    assert_eq!(found["spec"]["containers"][0]["env"], Value::Null);
}

#[tokio::test]
async fn a_preset_is_validated_and_is_not_served_without_the_plugin() {
    let client = server("PodPreset").client();
    assert_eq!(
        rejection(&client, PRESETS, preset("p", json!({}))).await,
        "PodPreset.settings.k8s.io \"p\" is invalid: spec.volumes.env.envFrom.volumeMounts: \
         Required value: must specify at least one"
    );
    let mount = json!({"volumeMounts": [{"name": "x", "mountPath": "/x"}]});
    assert_eq!(
        rejection(&client, PRESETS, preset("p", mount)).await,
        "PodPreset.settings.k8s.io \"p\" is invalid: spec.volumeMounts[0].name: Not found: \"x\""
    );
    let without = Server::new(options()).unwrap().client();
    let missing = without.create(PRESETS, preset("p", json!({}))).await;
    assert_eq!(missing.unwrap_err().code, 404);
}

/// A policy that allows everything, with the changes of `change`.
fn policy(name: &str, change: Value) -> Value {
    let any = json!({"rule": "RunAsAny"});
    let mut policy = json!({"metadata": {"name": name}, "spec": {"volumes": ["*"],
        "privileged": true, "hostPID": true, "hostIPC": true, "hostNetwork": true,
        "allowedCapabilities": ["*"], "hostPorts": [{"min": 1, "max": 65535}],
        "runAsUser": any, "seLinux": any, "fsGroup": any, "supplementalGroups": any}});
    json_patch::merge(&mut policy["spec"], &change);
    policy
}

#[tokio::test]
async fn each_field_of_a_security_policy_rejects_violations() {
    let row = |change, spec, container, expected| (change, spec, container, expected);
    let security = |it: Value| json!({ "securityContext": it });
    let range = |rule: &str| json!({"rule": rule, "ranges": [{"min": 10, "max": 20}]});
    let volume = |it: Value| json!({"volumes": [it]});
    let none = json!({});
    let rows = [
        row(
            json!({"privileged": false}),
            none.clone(),
            security(json!({"privileged": true})),
            "spec.containers[0].securityContext.privileged: Invalid value: true: Privileged \
             containers are not allowed",
        ),
        row(
            json!({"hostPID": false}),
            json!({"hostPID": true}),
            none.clone(),
            "spec.securityContext.hostPID: Invalid value: true: Host PID is not allowed to be \
             used",
        ),
        row(
            json!({"hostPorts": [{"min": 80, "max": 80}, {"min": 1, "max": 9}]}),
            none.clone(),
            json!({"ports": [{"containerPort": 443, "hostPort": 443}]}),
            "spec.containers[0].hostPort: Invalid value: 443: Host port 443 is not allowed to be \
             used. Allowed ports: [80,1-9]",
        ),
        row(
            json!({"volumes": ["secret"]}),
            volume(json!({"name": "v", "hostPath": {"path": "/"}})),
            none.clone(),
            "spec.volumes[0]: Invalid value: \"hostPath\": hostPath volumes are not allowed to be \
             used",
        ),
        row(
            json!({"allowedHostPaths": [{"pathPrefix": "/var"}]}),
            volume(json!({"name": "v", "hostPath": {"path": "/variant"}})),
            none.clone(),
            "spec.volumes[0].hostPath.pathPrefix: Invalid value: \"/variant\": is not allowed to \
             be used",
        ),
        row(
            json!({"allowedHostPaths": [{"pathPrefix": "/var", "readOnly": true}]}),
            volume(json!({"name": "v", "hostPath": {"path": "/var/log"}})),
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
            "spec.containers[0].volumeMounts[0].readOnly: Invalid value: false: must be \
             read-only",
        ),
        row(
            json!({"runAsUser": range("MustRunAs")}),
            none.clone(),
            security(json!({"runAsUser": 5})),
            "spec.containers[0].securityContext.runAsUser: Invalid value: 5: must be in the \
             ranges: [{10 20}]",
        ),
        row(
            json!({"runAsUser": {"rule": "MustRunAsNonRoot"}}),
            none.clone(),
            security(json!({"runAsUser": 0})),
            "spec.containers[0].securityContext.runAsUser: Invalid value: 0: running with the \
             root UID is forbidden",
        ),
        row(
            json!({"fsGroup": range("MayRunAs")}),
            security(json!({"fsGroup": 1})),
            none.clone(),
            "spec.securityContext.fsGroup: Invalid value: [1]: group 1 must be in the ranges: \
             [{10 20}]",
        ),
        row(
            json!({"seLinux": {"rule": "MustRunAs", "seLinuxOptions": {"level": "s0"}}}),
            security(json!({"seLinuxOptions": {"level": "s1"}})),
            security(json!({"seLinuxOptions": {"level": "s0"}})),
            "spec.securityContext.seLinuxOptions.level: Invalid value: \"s1\": must be s0",
        ),
        row(
            json!({"allowedCapabilities": ["CHOWN"]}),
            none.clone(),
            security(json!({"capabilities": {"add": ["CHOWN", "KILL"]}})),
            "spec.containers[0].securityContext.capabilities.add: Invalid value: \"KILL\": \
             capability may not be added",
        ),
        row(
            json!({"readOnlyRootFilesystem": true}),
            none.clone(),
            security(json!({"readOnlyRootFilesystem": false})),
            "spec.containers[0].securityContext.readOnlyRootFilesystem: Invalid value: false: \
             ReadOnlyRootFilesystem must be set to true",
        ),
        row(
            json!({"allowPrivilegeEscalation": false}),
            none.clone(),
            security(json!({"allowPrivilegeEscalation": true})),
            "spec.containers[0].securityContext.allowPrivilegeEscalation: Invalid value: true: \
             Allowing privilege escalation for containers is not allowed",
        ),
        row(
            json!({"allowedUnsafeSysctls": ["net.core.*"]}),
            security(json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
            none.clone(),
            "spec.securityContext.sysctls[0]: Forbidden: unsafe sysctl \"kernel.msgmax\" is not \
             allowed",
        ),
    ];
    for (change, spec, container, expected) in rows {
        let client = server("PodSecurityPolicy").client();
        let policy = policy("p", change.clone());
        client.create(POLICIES, policy).await.unwrap();
        let found = rejection(&client, PODS, pod("x", spec, container)).await;
        let expected = format!(
            "pods \"x\" is forbidden: PodSecurityPolicy: unable to admit pod: [{expected}]"
        );
        assert_eq!(found, expected, "{change}");
    }
}

#[tokio::test]
async fn a_security_policy_defaults_required_fields() {
    let client = server("PodSecurityPolicy").client();
    let range = json!({"rule": "MustRunAs", "ranges": [{"min": 10, "max": 20}]});
    let strict = policy(
        "strict",
        json!({"runAsUser": range, "fsGroup": range, "supplementalGroups": range,
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "requiredDropCapabilities": ["ALL"], "allowedCapabilities": null}),
    );
    client.create(POLICIES, strict).await.unwrap();
    let created = client
        .create(PODS, pod("p", json!({}), json!({})))
        .await
        .unwrap();
    assert_eq!(
        created["spec"]["securityContext"],
        json!({"supplementalGroups": [10], "fsGroup": 10})
    );
    assert_eq!(
        created["spec"]["containers"][0]["securityContext"],
        json!({"runAsUser": 10, "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
    );
    // Of two policies that allow a pod, the one that does not change it is used.
    client
        .create(POLICIES, policy("wide", json!({})))
        .await
        .unwrap();
    let created = client
        .create(PODS, pod("q", json!({}), json!({})))
        .await
        .unwrap();
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/psp"],
        "wide"
    );
}

#[tokio::test]
async fn a_security_policy_requires_the_use_permission() {
    let server = server("PodSecurityPolicy");
    let admin = server.client();
    admin
        .create(POLICIES, policy("all", json!({})))
        .await
        .unwrap();
    let rule = |groups: &str, resources: &str, verb: &str| json!({"apiGroups": [groups], "resources": [resources], "verbs": [verb]});
    for (role, rules, subject) in [
        (
            "writer",
            rule("", "pods", "create"),
            json!({"kind": "User", "name": "ann"}),
        ),
        (
            "user",
            rule("policy", "podsecuritypolicies", "use"),
            json!({"kind": "ServiceAccount", "name": "trusted", "namespace": "default"}),
        ),
    ] {
        let rules = json!({"metadata": {"name": role}, "rules": [rules]});
        admin.create(ROLES, rules).await.unwrap();
        let binding = json!({"metadata": {"name": role}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": role}});
        admin.create(BINDINGS, binding).await.unwrap();
    }
    server.clock().wait_until_idle().await;
    let account = json!({"metadata": {"name": "trusted"}});
    let path = "/api/v1/namespaces/default/serviceaccounts";
    admin.create(path, account).await.unwrap();
    let ann = server.client_as(User::new("ann", &["system:authenticated"]));
    assert_eq!(
        rejection(&ann, PODS, pod("p", json!({}), json!({}))).await,
        "pods \"p\" is forbidden: PodSecurityPolicy: unable to admit pod: []"
    );
    let trusted = pod("p", json!({"serviceAccountName": "trusted"}), json!({}));
    ann.create(PODS, trusted).await.unwrap();
}

#[tokio::test]
async fn a_security_policy_is_validated() {
    let client = server("PodSecurityPolicy").client();
    for (change, expected) in [
        (
            json!({"runAsUser": {"rule": "Any"}}),
            "spec.runAsUser.rule: Unsupported value: \"Any\": supported values: \"MustRunAs\", \
             \"MustRunAsNonRoot\", \"RunAsAny\"",
        ),
        (
            json!({"fsGroup": {"rule": "MustRunAs", "ranges": [{"min": 2, "max": 1}]}}),
            "spec.fsGroup.ranges[0].min: Invalid value: 2: min cannot be greater than max",
        ),
        (
            json!({"requiredDropCapabilities": ["KILL"], "allowedCapabilities": ["KILL"]}),
            "spec.allowedCapabilities: Invalid value: \"KILL\": capability is listed in \
             allowedCapabilities and requiredDropCapabilities",
        ),
        (
            json!({"defaultAllowPrivilegeEscalation": true, "allowPrivilegeEscalation": false}),
            "spec.defaultAllowPrivilegeEscalation: Invalid value: true: Cannot set \
             DefaultAllowPrivilegeEscalation to true without also setting \
             AllowPrivilegeEscalation to true",
        ),
    ] {
        assert_eq!(
            rejection(&client, POLICIES, policy("p", change)).await,
            format!("PodSecurityPolicy.policy \"p\" is invalid: {expected}")
        );
    }
    let mut annotated = policy("p", json!({}));
    let key = "seccomp.security.alpha.kubernetes.io/allowedProfileNames";
    annotated["metadata"]["annotations"] = json!({key: "*"});
    let refused = rejection(&client, POLICIES, annotated).await;
    assert!(
        refused.contains("profiles in annotations are not supported"),
        "{refused}"
    );
}
