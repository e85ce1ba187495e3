//! The dashboard in the cluster: it reads, and listens on loopback inside its pod, so that only the
//! proxy in the same pod reaches it, which authenticates the users.

use fivespot_api::name;
use fivespot_api::resource::RESOURCES;
use serde_json::{Value, json};

use crate::controller::resources;
use crate::pod::{self, NodeFeatures};
use crate::provider::Provider;

const READ: [&str; 3] = ["get", "list", "watch"];
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The address that the proxy forwards to.
pub(crate) const ADDRESS: &str = "127.0.0.1:8080";

/// The dashboard of one installation.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The namespace of the operator, in which its Lease is.
    pub(crate) namespace: String,
    /// The image with `5spot` as its entry point.
    pub(crate) image: String,
}

/// The name of all its objects.
fn own_name() -> String {
    format!("{}-dashboard", name::CONTROLLER)
}

/// The name of the role for the objects of a provider.
fn provider_role_name(provider: &Provider) -> String {
    format!("{}-{}", own_name(), provider.name)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

impl Settings {
    fn object(&self, (version, kind): (&str, &str), name: &str) -> Value {
        let is_namespaced = !kind.starts_with("ClusterRole");
        let mut metadata = json!({"name": name, "labels": name::dashboard_labels()});
        if is_namespaced {
            metadata["namespace"] = json!(self.namespace);
        }
        json!({"apiVersion": version, "kind": kind, "metadata": metadata})
    }

    /// Binds a role to the ServiceAccount of the dashboard.
    fn binding(&self, kind: &str, (role_kind, role): (&str, &str)) -> Value {
        let mut binding = self.object((RBAC, kind), role);
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role});
        binding["subjects"] = json!([{
            "kind": "ServiceAccount", "name": own_name(), "namespace": self.namespace,
        }]);
        binding
    }

    /// What it may read, apart from the objects of providers: the objects of 5-Spot and of Cluster
    /// API, their Events, and the Lease of the operator. No Secrets.
    pub(crate) fn rights(&self) -> Vec<Value> {
        let name = own_name();
        let of_group = |group: &str| -> Vec<&str> {
            let of_group = RESOURCES.iter().filter(|it| it.group == group);
            of_group.map(|it| it.plural).collect()
        };
        let mut role = self.object((RBAC, "ClusterRole"), &name);
        role["rules"] = json!([
            rule(name::GROUP, &of_group(name::GROUP), &READ),
            rule(name::SPOT_GROUP, &of_group(name::SPOT_GROUP), &READ),
            rule("cluster.x-k8s.io", &["clusters", "machines"], &READ),
            rule("", &["events"], &READ),
        ]);
        let mut leases = self.object((RBAC, "Role"), &name);
        leases["rules"] =
            json!([rule("coordination.k8s.io", &["leases"], &["get", "list"])]);
        vec![
            role,
            self.binding("ClusterRoleBinding", ("ClusterRole", &name)),
            leases,
            self.binding("RoleBinding", ("Role", &name)),
        ]
    }

    /// The right to read the objects of a provider.
    pub(crate) fn provider_rights(&self, provider: &Provider) -> Vec<Value> {
        let name = provider_role_name(provider);
        let mut role = self.object((RBAC, "ClusterRole"), &name);
        let resources = provider.resources.iter();
        let rules: Vec<Value> = resources
            .map(|(group, plural)| rule(group, &[plural], &READ))
            .collect();
        role["rules"] = json!(rules);
        vec![
            role,
            self.binding("ClusterRoleBinding", ("ClusterRole", &name)),
        ]
    }

    /// The ServiceAccount, and the Deployment without its proxy.
    pub(crate) fn workload(&self) -> [Value; 2] {
        let name = own_name();
        let mut account = self.object(("v1", "ServiceAccount"), &name);
        account["automountServiceAccountToken"] = false.into();
        let container = json!({
            "name": "dashboard",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "args": [
                "dashboard",
                "--all-namespaces",
                "--behind-proxy",
                format!("--listen={ADDRESS}"),
                format!("--operator-namespace={}", self.namespace),
            ],
            "resources": resources(),
            "securityContext": pod::container_security_context(),
        });
        let mut deployment = self.object(("apps/v1", "Deployment"), &name);
        let labels = name::dashboard_labels();
        let features = NodeFeatures::default();
        deployment["spec"] = pod::deployment((&name, &labels), 1, features, container);
        [account, deployment]
    }

    /// The Service of the proxy, which listens on `port`.
    pub(crate) fn service(&self, port: Value) -> Value {
        // A Service name must not start with a digit.
        let mut service = self.object(("v1", "Service"), "machines-dashboard");
        service["spec"] = json!({
            "selector": name::dashboard_labels(),
            "ports": [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}],
        });
        service
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::PROVIDERS;

    fn settings() -> Settings {
        Settings {
            namespace: "5spot-system".to_owned(),
            image: "registry.example/5spot:1".to_owned(),
        }
    }

    #[test]
    fn it_may_read_and_nothing_else_and_no_secret() {
        let settings = settings();
        let providers = PROVIDERS.iter().flat_map(|of| settings.provider_rights(of));
        let all: Vec<Value> = settings.rights().into_iter().chain(providers).collect();
        let rules = all.iter().filter_map(|it| it["rules"].as_array()).flatten();
        let mut count = 0;
        for rule in rules {
            let verbs = rule["verbs"].as_array().unwrap();
            let may_read = |verb: &Value| READ.contains(&verb.as_str().unwrap());
            assert!(verbs.iter().all(may_read), "{rule}");
            for list in ["apiGroups", "resources"] {
                let names = rule[list].as_array().unwrap();
                assert!(
                    !names.iter().any(|it| it == "*" || it == "secrets"),
                    "{rule}"
                );
            }
            count += 1;
        }
        assert!(count > PROVIDERS.len());
    }

    #[test]
    fn it_may_watch_every_kind_of_ours() {
        let rights = settings().rights();
        for resource in &RESOURCES {
            let mut rules = rights[0]["rules"].as_array().unwrap().iter();
            let of_kind = |it: &&Value| {
                let plurals = it["resources"].as_array().unwrap();
                it["apiGroups"] == json!([resource.group])
                    && plurals.contains(&json!(resource.plural))
            };
            let rule = rules.find(of_kind);
            let verbs = rule.map(|rule| &rule["verbs"]);
            let watched = json!(["get", "list", "watch"]);
            assert_eq!(verbs, Some(&watched), "{}", resource.kind);
        }
    }

    #[test]
    fn its_role_names_kinds_of_ours_in_their_own_group_alone() {
        let rights = settings().rights();
        let role = rights.first().unwrap();
        for resource in &RESOURCES {
            for rule in role["rules"].as_array().unwrap() {
                let names = rule["resources"].as_array().unwrap();
                let is_named = names.iter().any(|it| *it == resource.plural);
                let is_of_group = rule["apiGroups"] == json!([resource.group]);
                assert!(!is_named || is_of_group, "{}: {rule}", resource.kind);
            }
        }
    }

    #[test]
    fn only_its_own_pod_can_connect_to_it() {
        let [_, deployment] = settings().workload();
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let args = container["args"].as_array().unwrap();
        assert!(args.contains(&json!("--listen=127.0.0.1:8080")), "{args:?}");
        assert!(args.contains(&json!("--behind-proxy")), "{args:?}");
        assert_eq!(container.get("ports"), None);
        assert_eq!(pod.get("hostNetwork"), None);
        let service = settings().service(json!(4180));
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 4180);
    }
}
