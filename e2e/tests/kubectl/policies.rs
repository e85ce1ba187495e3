//! The commands of Kubernetes' page about validating admission policies, run with the real kubectl.
//! `v1` replaces `v1alpha1`; everything else is as on the page.

use insta::assert_snapshot;
use serde_json::Value;

use super::session::Session;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_policy_of_the_documentation_limits_deployments)
        .with_programs(&["kubectl"])
        .disruptive(),
    promise!(a_parameter_of_the_documentation_is_the_limit)
        .with_programs(&["kubectl"])
        .disruptive(),
    promise!(whoever_names_parameters_needs_the_right_to_read_them)
        .with_programs(&["kubectl"])
        .disruptive(),
];

const NOW: &str = "2026-03-06T15:00:00Z";

const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: "demo-policy.example.com"
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups:   ["apps"]
      apiVersions: ["v1"]
      operations:  ["CREATE", "UPDATE"]
      resources:   ["deployments"]
  validations:
    - expression: "object.spec.replicas <= 5"
"#;

const BINDING: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: "demo-binding-test.example.com"
spec:
  policyName: "demo-policy.example.com"
  matchResources:
    namespaceSelector:
      matchLabels:
        environment: test
"#;

/// A field that `v1` requires and that the older page does not have.
const ACTIONS: &str = "  validationActions: [Deny]\n";

const LIMITING_POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: "replicalimit-policy.example.com"
spec:
  failurePolicy: Fail
  paramKind:
    apiVersion: rules.example.com/v1
    kind: ReplicaLimit
  matchConstraints:
    resourceRules:
    - apiGroups:   ["apps"]
      apiVersions: ["v1"]
      operations:  ["CREATE", "UPDATE"]
      resources:   ["deployments"]
  validations:
    - expression: "object.spec.replicas <= params.maxReplicas"
      reason: Invalid
"#;

const LIMITING_BINDING: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: "replicalimit-binding-test.example.com"
spec:
  policyName: "replicalimit-policy.example.com"
  paramRef:
    name: "replica-limit-test.example.com"
    parameterNotFoundAction: Deny
  matchResources:
    namespaceSelector:
      matchLabels:
        environment: test
  validationActions: [Deny]
"#;

/// The other binding of the page, for all other environments.
const OTHER_BINDING: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: "replicalimit-binding-nontest"
spec:
  policyName: "replicalimit-policy.example.com"
  paramRef:
    name: "replica-limit-clusterwide.example.com"
    parameterNotFoundAction: Deny
  matchResources:
    namespaceSelector:
      matchExpressions:
      - key: environment
        operator: NotIn
        values:
        - test
  validationActions: [Deny]
"#;

/// The binding of the page for all objects with a label, without a field that `v1` does not have.
const GLOBAL_BINDING: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: "replicalimit-binding-global"
spec:
  policyName: "replicalimit-policy.example.com"
  params: "replica-limit-clusterwide.example.com"
  matchResources:
    namespaceSelector:
      matchExpressions:
      - key: environment
        operator: Exists
  validationActions: [Deny]
"#;

const LIMIT: &str = r#"
apiVersion: rules.example.com/v1
kind: ReplicaLimit
metadata:
  name: "replica-limit-test.example.com"
maxReplicas: 3
"#;

const OTHER_LIMIT: &str = r#"
apiVersion: rules.example.com/v1
kind: ReplicaLimit
metadata:
  name: "replica-limit-clusterwide.example.com"
maxReplicas: 100
"#;

/// The CRD of the parameters, which the page does not contain.
const LIMITS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: replicalimits.rules.example.com
spec:
  group: rules.example.com
  scope: Cluster
  names:
    plural: replicalimits
    kind: ReplicaLimit
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          maxReplicas:
            type: integer
";

/// A Deployment without `replicas`.
const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: default
spec:
  selector:
    matchLabels:
      app: default
  template:
    metadata:
      labels:
        app: default
    spec:
      containers:
      - name: main
        image: example.com/main:1
";

/// The cluster-scoped objects that the promises leave in a shared cluster.
const LEFT: [&str; 5] = [
    "validatingadmissionpolicybinding demo-binding-test.example.com \
     replicalimit-binding-test.example.com replicalimit-binding-nontest",
    "validatingadmissionpolicy demo-policy.example.com replicalimit-policy.example.com",
    "crd replicalimits.rules.example.com",
    "clusterrolebinding document-policies document-limits",
    "clusterrole document-policies document-limits",
];

/// How often a command is repeated until a real server, which observes policies and roles with a
/// delay, applies them.
const MAX_ATTEMPTS: usize = 200;

fn read(manifest: &str) -> Value {
    serde_saphyr::from_str(manifest).unwrap()
}

/// A session with the namespaces of the page.
struct Documented {
    session: Session,
    /// A namespace with the label `environment: test`.
    test: String,
}

impl Documented {
    async fn start() -> Self {
        let session = Session::start(NOW).await;
        let test = session.cluster.namespace("default");
        let documented = Self { session, test };
        documented.clear().await;
        let label = format!("label namespace {} environment=test", documented.test);
        documented.session.kubectl(&label).await;
        documented
    }

    /// Deletes cluster-scoped objects, which are not deleted with the namespace of the promise.
    async fn clear(&self) {
        for names in LEFT {
            let words = format!("delete --ignore-not-found {names}");
            self.session.kubectl(&words).await;
        }
    }

    /// The output of `kubectl create` for a manifest.
    async fn creating(&self, manifest: &str) -> String {
        let words = format!("create --namespace={}", self.test);
        self.session.kubectl_reading(&words, &read(manifest)).await
    }

    /// The output of `kubectl create deployment`.
    async fn deploying(&self, name: &str, options: &str) -> String {
        let test = &self.test;
        let words = format!(
            "create deployment {name} --image=example.com/main:1 --namespace={test} {options}"
        );
        self.session.kubectl(&words).await
    }

    /// Waits until the output of `kubectl <words>` contains `expected`.
    async fn until(&self, words: &str, expected: &str) {
        let mut printed = String::new();
        for _ in 0..MAX_ATTEMPTS {
            printed = self.session.kubectl(words).await;
            if printed.contains(expected) {
                return;
            }
        }
        panic!("`kubectl {words}` prints, and not {expected:?}: {printed}");
    }

    /// Waits until a Deployment with this number of replicas is refused for this reason.
    async fn until_refused(&self, replicas: u32, why: &str) {
        let test = &self.test;
        let words = format!(
            "create deployment probe --image=example.com/main:1 --namespace={test} \
             --replicas={replicas} --dry-run=server"
        );
        self.until(&words, why).await;
    }
}

async fn a_policy_of_the_documentation_limits_deployments() {
    let page = Documented::start().await;
    assert_snapshot!(
        page.creating(POLICY).await,
        @"validatingadmissionpolicy.admissionregistration.k8s.io/demo-policy.example.com created"
    );
    assert_snapshot!(page.creating(BINDING).await, @r#"
    The ValidatingAdmissionPolicyBinding "demo-binding-test.example.com" is invalid: spec.validationActions: Required value: at least one validation action is required
    exit status: 1
    "#);
    let binding = format!("{BINDING}{ACTIONS}");
    assert_snapshot!(
        page.creating(&binding).await,
        @"validatingadmissionpolicybinding.admissionregistration.k8s.io/demo-binding-test.example.com created"
    );
    page.until_refused(6, "failed expression").await;
    assert_snapshot!(page.deploying("web", "--replicas=6").await, @r#"
    error: failed to create deployment: deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'demo-policy.example.com' with binding 'demo-binding-test.example.com' denied request: failed expression: object.spec.replicas <= 5
    exit status: 1
    "#);
    assert_snapshot!(
        page.deploying("web", "--replicas=5").await,
        @"deployment.apps/web created"
    );
    // Defaults are set before policies are evaluated.
    assert_snapshot!(page.deploying("one", "").await, @"deployment.apps/one created");
    assert_snapshot!(
        page.creating(DEPLOYMENT).await,
        @"deployment.apps/default created"
    );
    let namespace = format!("--namespace={}", page.test);
    let replicas =
        format!("get deployment default {namespace} -o jsonpath={{.spec.replicas}}");
    assert_snapshot!(page.session.kubectl(&replicas).await, @"1");
    let more = r#"{"spec":{"replicas":6}}"#;
    let patch = ["patch", "deployment", "web", &namespace, "-p", more];
    assert_snapshot!(page.session.kubectl_with(&patch).await, @r#"
    The deployments "web" is invalid: : ValidatingAdmissionPolicy 'demo-policy.example.com' with binding 'demo-binding-test.example.com' denied request: failed expression: object.spec.replicas <= 5
    exit status: 1
    "#);
    let unlabel = format!("label namespace {} environment-", page.test);
    page.session.kubectl(&unlabel).await;
    let scale = format!("patch deployment web {namespace} -p {more}");
    page.until(&scale, "deployment.apps/web patched").await;
    page.clear().await;
}

async fn a_parameter_of_the_documentation_is_the_limit() {
    let page = Documented::start().await;
    for (manifest, created) in [
        (
            LIMITS,
            "customresourcedefinition.apiextensions.k8s.io/replicalimits.rules.example.com",
        ),
        (
            LIMITING_POLICY,
            "validatingadmissionpolicy.admissionregistration.k8s.io/replicalimit-policy.example.com",
        ),
        (
            LIMITING_BINDING,
            "validatingadmissionpolicybinding.admissionregistration.k8s.io/replicalimit-binding-test.example.com",
        ),
    ] {
        assert_eq!(page.creating(manifest).await, format!("{created} created"));
    }
    page.until_refused(1, "no params found").await;
    assert_snapshot!(page.deploying("web", "--replicas=1").await, @r#"
    error: failed to create deployment: deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'replicalimit-policy.example.com' with binding 'replicalimit-binding-test.example.com' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
    exit status: 1
    "#);
    assert_snapshot!(
        page.creating(LIMIT).await,
        @"replicalimit.rules.example.com/replica-limit-test.example.com created"
    );
    page.until_refused(4, "failed expression").await;
    assert_snapshot!(page.deploying("web", "--replicas=4").await, @r#"
    error: failed to create deployment: deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'replicalimit-policy.example.com' with binding 'replicalimit-binding-test.example.com' denied request: failed expression: object.spec.replicas <= params.maxReplicas
    exit status: 1
    "#);
    assert_snapshot!(
        page.deploying("web", "--replicas=3").await,
        @"deployment.apps/web created"
    );
    assert_snapshot!(page.creating(GLOBAL_BINDING).await, @r#"
    Error from server (BadRequest): error when creating "STDIN": ValidatingAdmissionPolicyBinding in version "v1" cannot be handled as a ValidatingAdmissionPolicyBinding: strict decoding error: unknown field "spec.params"
    exit status: 1
    "#);
    let unlabel = format!(
        "label namespace {} environment=production --overwrite",
        page.test
    );
    page.session.kubectl(&unlabel).await;
    page.creating(OTHER_LIMIT).await;
    assert_snapshot!(
        page.creating(OTHER_BINDING).await,
        @"validatingadmissionpolicybinding.admissionregistration.k8s.io/replicalimit-binding-nontest created"
    );
    page.until_refused(101, "failed expression").await;
    assert_snapshot!(page.deploying("large", "--replicas=101").await, @r#"
    error: failed to create deployment: deployments.apps "large" is forbidden: ValidatingAdmissionPolicy 'replicalimit-policy.example.com' with binding 'replicalimit-binding-nontest' denied request: failed expression: object.spec.replicas <= params.maxReplicas
    exit status: 1
    "#);
    assert_snapshot!(
        page.deploying("large", "--replicas=100").await,
        @"deployment.apps/large created"
    );
    page.clear().await;
}

/// The refusal of a binding, with the user and the verb in the right places. Kubernetes 1.30 swaps
/// them.
fn in_order(refusal: &str) -> String {
    let user = "&{alice  [system:authenticated] map[]}";
    let confused = format!("user get does not have \"{user}\" permission");
    let right = format!("user {user} does not have \"get\" permission");
    refusal.replace(&confused, &right)
}

/// The section "Authorization Check" of the page.
async fn whoever_names_parameters_needs_the_right_to_read_them() {
    let page = Documented::start().await;
    page.creating(LIMITS).await;
    let policies = "--resource=validatingadmissionpolicies.admissionregistration.k8s.io,\
                    validatingadmissionpolicybindings.admissionregistration.k8s.io";
    for words in [
        format!("create clusterrole document-policies --verb=create {policies}"),
        "create clusterrolebinding document-policies --clusterrole=document-policies \
         --user=alice"
            .to_owned(),
        "create clusterrole document-limits --verb=get \
         --resource=replicalimits.rules.example.com"
            .to_owned(),
    ] {
        // kubectl finds a resource once the server serves its definition.
        page.until(&words, "created").await;
    }
    let can = "auth can-i create validatingadmissionpolicybindings --as=alice";
    page.until(can, "yes").await;
    let as_alice = async |manifest: &str| {
        let create = "create --as=alice";
        page.session.kubectl_reading(create, &read(manifest)).await
    };
    assert_snapshot!(as_alice(LIMITING_POLICY).await, @r#"
    The ValidatingAdmissionPolicy "replicalimit-policy.example.com" is invalid: spec.paramKind: Forbidden: user &{alice  [system:authenticated] map[]} must have "get" permission on all objects of the referenced paramKind (kind=ReplicaLimit, apiVersion=rules.example.com/v1)
    exit status: 1
    "#);
    page.creating(LIMITING_POLICY).await;
    assert_snapshot!(in_order(&as_alice(LIMITING_BINDING).await), @r#"
    The ValidatingAdmissionPolicyBinding "replicalimit-binding-test.example.com" is invalid: spec.paramRef: Forbidden: user &{alice  [system:authenticated] map[]} does not have "get" permission on the object referenced by paramRef
    exit status: 1
    "#);
    let binding = "create clusterrolebinding document-limits \
                   --clusterrole=document-limits --user=alice";
    page.until(binding, "created").await;
    let can = "auth can-i get replicalimits.rules.example.com --as=alice";
    page.until(can, "yes").await;
    assert_snapshot!(
        as_alice(LIMITING_BINDING).await,
        @"validatingadmissionpolicybinding.admissionregistration.k8s.io/replicalimit-binding-test.example.com created"
    );
    page.clear().await;
}
