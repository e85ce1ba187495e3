//! The table of services (pkg/printers/internalversion/printers.go).

use jiff::Timestamp;
use serde_json::Value;

use crate::kind::{column, items, load_balancer, text};
use crate::resource::Column;

const TYPE: &str = "type determines how the Service is exposed. Defaults to ClusterIP. Valid options \
     are ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates a \
     cluster-internal IP address for load-balancing to endpoints. Endpoints are \
     determined by the selector or if that is not specified, by manual construction of \
     an Endpoints object or EndpointSlice objects. If clusterIP is \"None\", no virtual \
     IP is allocated and the endpoints are published as a set of endpoints rather than \
     a virtual IP. \"NodePort\" builds on ClusterIP and allocates a port on every node \
     which routes to the same endpoints as the clusterIP. \"LoadBalancer\" builds on \
     NodePort and creates an external load-balancer (if supported in the current cloud) \
     which routes to the same endpoints as the clusterIP. \"ExternalName\" aliases this \
     service to the specified externalName. Several other fields do not apply to \
     ExternalName services. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types";
const CLUSTER_IP: &str = "clusterIP is the IP address of the service and is usually assigned randomly. If an \
     address is specified manually, is in-range (as per system configuration), and is \
     not in use, it will be allocated to the service; otherwise creation of the service \
     will fail. This field may not be changed through updates unless the type field is \
     also being changed to ExternalName (which requires this field to be blank) or the \
     type field is being changed from ExternalName (in which case this field may \
     optionally be specified, as describe above).  Valid values are \"None\", empty \
     string (\"\"), or a valid IP address. Setting this to \"None\" makes a \"headless \
     service\" (no virtual IP), which is useful when direct endpoint connections are \
     preferred and proxying is not required.  Only applies to types ClusterIP, \
     NodePort, and LoadBalancer. If this field is specified when creating a Service of \
     type ExternalName, creation will fail. This field will be wiped when updating a \
     Service to type ExternalName. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
const EXTERNAL_IP: &str = "externalIPs is a list of IP addresses for which nodes in the cluster will also \
     accept traffic for this service.  These IPs are not managed by Kubernetes.  The \
     user is responsible for ensuring that traffic arrives at a node with this IP.  A \
     common example is external load-balancers that are not part of the Kubernetes \
     system.";
const PORTS: &str = "The list of ports that are exposed by this service. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies";
const SELECTOR: &str = "Route service traffic to pods with label keys and values matching this selector. \
     If empty or not present, the service is assumed to have an external process \
     managing its endpoints, which Kubernetes will not modify. Only applies to types \
     ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: \
     https://kubernetes.io/docs/concepts/services-networking/service/";

const NONE: &str = "<none>";

/// The columns after the name.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::new("Type", "string", TYPE),
        Column::new("Cluster-IP", "string", CLUSTER_IP),
        Column::new("External-IP", "string", EXTERNAL_IP),
        Column::new("Port(s)", "string", PORTS),
        Column::age(),
        Column::new("Selector", "string", SELECTOR).wide(),
    ]
}

/// The cells of a row.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let address = spec["clusterIPs"].get(0).and_then(Value::as_str);
    let ports = items(spec, "ports").map(|(_, port)| {
        let protocol = text(port, "protocol");
        match port["nodePort"].as_i64() {
            Some(node) => format!("{}:{node}/{protocol}", port["port"]),
            None => format!("{}/{protocol}", port["port"]),
        }
    });
    let ports: Vec<String> = ports.collect();
    vec![
        column::name(object),
        column::string(&spec["type"]),
        address.unwrap_or(NONE).into(),
        external_address(object).into(),
        if ports.is_empty() {
            NONE.into()
        } else {
            ports.join(",").into()
        },
        column::age(object, now),
        column::labels(&spec["selector"]),
    ]
}

/// The external addresses.
fn external_address(object: &Value) -> String {
    let spec = &object["spec"];
    let given = column::list(&spec["externalIPs"]).iter();
    let given: Vec<&str> = given.filter_map(Value::as_str).collect();
    match text(spec, "type") {
        "ClusterIP" | "NodePort" if given.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => given.join(","),
        "LoadBalancer" => {
            let own = load_balancer::addresses_text(&object["status"]["loadBalancer"]);
            let own = (!own.is_empty()).then_some(own.as_str());
            let all: Vec<&str> = own.into_iter().chain(given).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => text(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}
