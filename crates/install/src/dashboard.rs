//! The dashboard in the cluster: it reads, and listens on loopback inside its pod, so that only the
//! proxy in the same pod reaches it, which authenticates the users.

use fivespot_api::name;
use fivespot_api::resource::RESOURCES;
use serde_json::{Value, json};

use crate::component::Component;
use crate::controller::resources;
use crate::pod::{self, NodeFeatures};
use crate::provider::Provider;

const READ: [&str; 3] = ["get", "list", "watch"];

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
    fn component(&self) -> Component {
        Component {
            namespace: self.namespace.clone(),
            labels: name::dashboard_labels(),
        }
    }

    /// A role with these rules, and its binding to the ServiceAccount of the dashboard.
    fn role(&self, kind: &str, name: &str, rules: &[Value]) -> [Value; 2] {
        let component = self.component();
        let subject = component.subject(&own_name());
        let binding = format!("{kind}Binding");
        [
            component.role(kind, name, rules),
            component.binding(&binding, (kind, name), &[subject]),
        ]
    }

    /// What it may read, apart from the objects of providers: the objects of 5-Spot and of Cluster
    /// API, their Events, and the Lease of the operator. No Secrets.
    pub(crate) fn rights(&self) -> Vec<Value> {
        let name = own_name();
        let of_group = |group: &str| -> Vec<&str> {
            let of_group = RESOURCES.iter().filter(|it| it.group == group);
            of_group.map(|it| it.plural).collect()
        };
        let rules = [
            rule(name::GROUP, &of_group(name::GROUP), &READ),
            rule(name::SPOT_GROUP, &of_group(name::SPOT_GROUP), &READ),
            rule("cluster.x-k8s.io", &["clusters", "machines"], &READ),
            rule("", &["events"], &READ),
        ];
        let leases = rule("coordination.k8s.io", &["leases"], &["get", "list"]);
        [
            self.role("ClusterRole", &name, &rules),
            self.role("Role", &name, &[leases]),
        ]
        .concat()
    }

    /// The right to read the objects of a provider.
    pub(crate) fn provider_rights(&self, provider: &Provider) -> Vec<Value> {
        let name = provider_role_name(provider);
        let resources = provider.resources.iter();
        let rules: Vec<Value> = resources
            .map(|(group, plural)| rule(group, &[plural], &READ))
            .collect();
        self.role("ClusterRole", &name, &rules).to_vec()
    }

    /// The ServiceAccount, and the Deployment without its proxy.
    pub(crate) fn workload(&self) -> [Value; 2] {
        let name = own_name();
        let component = self.component();
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
        let identity = (&component, name.as_str());
        [
            component.service_account(&name),
            pod::deployment(identity, 1, NodeFeatures::default(), container),
        ]
    }

    /// The Service of the proxy, which listens on `port`.
    pub(crate) fn service(&self, port: Value) -> Value {
        let spec = json!({
            "selector": name::dashboard_labels(),
            "ports": [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}],
        });
        // A Service name must not start with a digit.
        let name = "machines-dashboard";
        self.component()
            .object("Service", name, json!({"spec": spec}))
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
