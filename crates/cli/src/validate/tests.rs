use insta::assert_snapshot;
use kubemu::validate::Given;
use serde_json::Value;

use super::{Args, EXAMPLES, FiveSpot, run};
use crate::document::{self, Document, Documents};
use crate::{Failure, Outcome};

const MACHINE: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: worker}
spec:
  clusterName: production
  schedule: {daysOfWeek: [mon-fri], hoursOfDay: ['9-17']}
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  gracefulShutdownTimeout: 5m
";

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    use clap::Parser as _;
    let line = ["validate", "-f", "machine.yaml"].iter().chain(words);
    Line::try_parse_from(line).unwrap().args
}

fn read(text: &str) -> Vec<Document> {
    document::parse("machine.yaml", text).unwrap()
}

/// The output for `text` over the stored `old`, and the outcome.
fn validate(text: &str, old: &str, words: &[&str]) -> Result<(String, Outcome), Failure> {
    validate_with(text, old, (words, &OtherObjects::default()))
}

/// The other given objects.
#[derive(Default)]
struct OtherObjects {
    policies: Vec<Document>,
    params: Vec<Document>,
    namespaces: Vec<Document>,
}

fn validate_with(
    text: &str,
    old: &str,
    (words, others): (&[&str], &OtherObjects),
) -> Result<(String, Outcome), Failure> {
    let mut given = given(text);
    given.policies.clone_from(&others.policies);
    given.params.clone_from(&others.params);
    given.namespaces.clone_from(&others.namespaces);
    given.old = read(old);
    let (text, outcome) = print(given, words);
    // The counts are tested separately.
    let text = match text.trim_end().rsplit_once('\n') {
        Some((before, last)) if is_count(last) => format!("{before}\n"),
        None if is_count(&text) => String::new(),
        _ => text,
    };
    Ok((text, outcome?))
}

fn given(text: &str) -> Given {
    Given {
        documents: Documents {
            items: read(text).into_iter().map(Ok).collect(),
            has_list: false,
        },
        ..Given::default()
    }
}

/// What is printed about the given objects, and the outcome.
fn print(given: Given, words: &[&str]) -> (String, Result<Outcome, Failure>) {
    // 2026-01-05, a Monday.
    let now = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(20_458 * 24);
    let args = args(words);
    let five_spot = FiveSpot::new(&args, now);
    let mut out = Vec::new();
    let outcome =
        kubemu::validate::validate(given, (&args.manifests, &five_spot), &mut out);
    (String::from_utf8_lossy(&out).into_owned(), outcome)
}

fn is_count(line: &str) -> bool {
    line.ends_with(" skipped") && line.contains(" valid, ")
}

#[test]
fn the_last_line_counts_and_quiet_leaves_out_what_is_well() {
    let unknown =
        "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n---\n";
    let broken = MACHINE.replace("worker", "broken").replace("5m", "soon");
    let nowhere = MACHINE.replace("{daysOfWeek", "{timezone: Europe/Zurch, daysOfWeek");
    let text = [MACHINE, unknown, &broken, "---\n", &nowhere].concat();
    let printed = |words: &[&str]| {
        let (printed, outcome) = print(given(&text), words);
        assert_eq!(outcome.unwrap(), Outcome::No);
        printed
    };
    assert_snapshot!([printed(&[]), printed(&["--quiet"])].join("----\n"));
}

fn validate_new(text: &str) -> (String, Outcome) {
    validate(text, "", &[]).unwrap()
}

#[test]
fn a_machine_without_violations_is_valid() {
    let (text, outcome) = validate_new(MACHINE);
    assert_eq!(text, "scheduledmachine.5spot.finos.org/worker valid\n");
    assert_eq!(outcome, Outcome::Yes);
}

#[test]
fn a_single_error_is_printed_on_the_same_line() {
    let (text, outcome) = validate_new(&MACHINE.replace("5m", "five minutes"));
    assert_snapshot!(text, @r#"The ScheduledMachine "worker" is invalid: spec.gracefulShutdownTimeout: Invalid value: "five minutes": must be a duration string such as '5m', '30s', or '1h'"#);
    assert_eq!(outcome, Outcome::No);
}

#[test]
fn several_errors_are_printed_below_the_line() {
    let text = MACHINE
        .replace("5m", "five minutes")
        .replace("k0smotron.io/v1beta1", "rbac.authorization.k8s.io/v1");
    assert_snapshot!(validate_new(&text).0, @r#"
    The ScheduledMachine "worker" is invalid: 
    * spec.bootstrapSpec.apiVersion: Invalid value: "rbac.authorization.k8s.io/v1": must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io
    * spec.gracefulShutdownTimeout: Invalid value: "five minutes": must be a duration string such as '5m', '30s', or '1h'
    "#);
}

#[test]
fn a_field_that_does_not_exist_is_a_bad_request() {
    let (text, outcome) =
        validate_new(&MACHINE.replace("clusterName:", "color: red\n  clusterName:"));
    assert_snapshot!(text, @r#"Error from server (BadRequest): error when creating "machine.yaml": ScheduledMachine in version "v1alpha1" cannot be handled as a ScheduledMachine: strict decoding error: unknown field "spec.color""#);
    assert_eq!(outcome, Outcome::No);
}

#[test]
fn the_policy_rejects_what_the_schema_accepts() {
    let text = MACHINE.replace("{name: worker}", "{name: worker.a}");
    assert!(
        validate_new(&text).0.contains("worker.a"),
        "{}",
        validate_new(&text).0
    );
    assert_eq!(validate_new(&text).1, Outcome::No);
}

#[test]
fn all_failures_lists_the_policies_too() {
    let text = MACHINE.replace("5m", "five minutes");
    let (text, _) = validate(&text, "", &["--all-failures"]).unwrap();
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("The ScheduledMachine \"worker\" is invalid: ")
    );
    assert!(lines.next().unwrap().starts_with(
        "The scheduledmachines \"worker\" is invalid: : ValidatingAdmissionPolicy \
         'scheduledmachine-validation' with binding \
         'scheduledmachine-validation-binding' denied request: "
    ));
}

#[test]
fn an_update_is_not_refused_for_an_existing_violation() {
    let old = MACHINE.replace("5m", "five minutes");
    let new = old.replace("mon-fri", "mon-sat");
    let (text, outcome) = validate(&new, &old, &[]).unwrap();
    assert_eq!(outcome, Outcome::Yes, "{text}");
    let (_, outcome) = validate(&new, &old, &["--operation", "create"]).unwrap();
    assert_eq!(outcome, Outcome::No);
}

#[test]
fn an_update_without_a_stored_object_is_an_error() {
    let failure = validate(MACHINE, "", &["--operation", "update"]).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "updating machine.yaml: --old does not contain scheduledmachine.5spot.finos.org/worker; \
         give \
         the stored object with --old"
    );
}

#[test]
fn the_oldest_api_group_is_accepted() {
    let text = MACHINE.replace("5spot.finos.org", "capi.5spot.io");
    assert_eq!(
        validate_new(&text),
        (
            "scheduledmachine.5spot.finos.org/worker valid\n".to_owned(),
            Outcome::Yes
        )
    );
}

#[test]
fn a_version_that_is_not_served_is_refused_as_by_kubectl() {
    assert_snapshot!(validate_new(&MACHINE.replace("v1alpha1", "v9")).0, @r#"
    error: resource mapping not found for name: "worker" namespace: "default" from "machine.yaml": no matches for kind "ScheduledMachine" in version "5spot.finos.org/v9"
    ensure CRDs are installed first
    "#);
}

#[test]
fn kinds_without_a_schema_are_skipped() {
    let config = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n";
    let (text, outcome) = validate_new(config);
    assert_eq!(
        text,
        "thing.example.com/a skipped: no schema for Thing of example.com/v1, give its CRD \
         with --crd\n"
    );
    assert_eq!(outcome, Outcome::NoResult);
    assert_eq!(
        validate_new(&format!("{config}---\n{MACHINE}")).1,
        Outcome::Yes
    );
}

#[test]
fn a_kind_that_its_group_does_not_have_is_refused_as_by_kubectl() {
    let misspelt = MACHINE.replace("kind: ScheduledMachine", "kind: ScheduledMachin");
    let (text, outcome) = validate_new(&format!("{misspelt}---\n{MACHINE}"));
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text, @r#"
    error: resource mapping not found for name: "worker" namespace: "" from "machine.yaml, document 1": no matches for kind "ScheduledMachin" in version "5spot.finos.org/v1alpha1"
    ensure CRDs are installed first
    scheduledmachine.5spot.finos.org/worker valid
    "#);
    // Without the CRD, the group is unknown.
    let alone = validate(&misspelt, "", &["--no-builtin"]).unwrap();
    assert_eq!(alone.1, Outcome::NoResult, "{}", alone.0);
}

#[test]
fn an_object_without_kind_or_api_version_is_refused_with_its_line() {
    let machine = "metadata: {name: worker}\nkind: ScheduledMachine\n";
    let version = "apiVersion: 5spot.finos.org/v1alpha1\n";
    let nothing = "metadata: {name: worker}\n";
    let (text, outcome) = validate_new(&format!(
        "{version}{nothing}---\n{machine}---\n{nothing}---\n{MACHINE}"
    ));
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text, @r#"
    error: unable to decode "machine.yaml, document 1": line 1: Object 'Kind' is missing
    error: unable to decode "machine.yaml, document 2": line 4: Object 'apiVersion' is missing
    error: unable to decode "machine.yaml, document 3": line 7: Object 'Kind' is missing
    scheduledmachine.5spot.finos.org/worker valid
    "#);
}

#[test]
fn json_contains_the_status_of_each_refusal() {
    let text = format!("{MACHINE}---\n{}", MACHINE.replace("5m", "five minutes"));
    let (text, outcome) = validate(&text, "", &["-o", "json"]).unwrap();
    assert_eq!(outcome, Outcome::No);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["valid"], 1);
    assert_eq!(report["invalid"], 1);
    assert_eq!(report["items"][0]["result"], "valid");
    let status = &report["items"][1]["rejections"][0];
    assert_eq!(status["code"], 422);
    assert_eq!(status["details"]["kind"], "ScheduledMachine");
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "spec.gracefulShutdownTimeout"
    );
}

#[test]
fn the_built_in_policies_compile_for_every_supported_version() {
    for minor in 30..=37 {
        let version = format!("1.{minor}");
        let (text, outcome) =
            validate(MACHINE, "", &["--kube-version", &version]).unwrap();
        assert_eq!(outcome, Outcome::Yes, "{version}: {text}");
    }
}

#[test]
fn the_examples_of_the_help_are_parsed() {
    use clap::Parser as _;
    let lines = EXAMPLES.lines().skip(1);
    for line in lines {
        let words = line.split_whitespace().skip(1);
        assert!(Line::try_parse_from(words).is_ok(), "{line}");
    }
}

const REGIONS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: clusters-of-a-team}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - apiGroups: [5spot.finos.org]
      apiVersions: ['*']
      resources: [scheduledmachines]
      operations: [CREATE]
  validations:
  - expression: object.spec.clusterName == params.data[namespaceObject.metadata.labels.team]
    messageExpression: \"request.userInfo.username + ' of ' + request.userInfo.groups[0] + ' may not use ' + object.spec.clusterName\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec:
  policyName: clusters-of-a-team
  validationActions: [Deny]
  paramRef: {name: clusters, namespace: policies, parameterNotFoundAction: Deny}
";

fn other_objects(cluster: &str) -> OtherObjects {
    let param = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: clusters, namespace: policies}}\n\
         data: {{blue: {cluster}}}\n"
    );
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: blue}}\n";
    OtherObjects {
        policies: read(REGIONS),
        params: read(&param),
        namespaces: read(namespace),
    }
}

#[test]
fn policies_see_their_parameters_the_namespace_and_the_user() {
    let (text, outcome) =
        validate_with(MACHINE, "", (&[], &other_objects("production"))).unwrap();
    assert_eq!(outcome, Outcome::Yes, "{text}");
    let words: &[&str] = &["--user", "jane", "--group", "blue"];
    let (text, outcome) =
        validate_with(MACHINE, "", (words, &other_objects("test"))).unwrap();
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

#[test]
fn a_parameter_without_a_file_is_not_found() {
    let other_objects = OtherObjects {
        params: Vec::new(),
        ..other_objects("production")
    };
    let (text, outcome) = validate_with(MACHINE, "", (&[], &other_objects)).unwrap();
    assert_eq!(outcome, Outcome::No);
    assert!(text.contains("no params found"), "{text}");
}

const ODD: &str = "\
# two machines
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata: {name: night-shift}
spec:
  clusterName: production
  schedule:
    daysOfWeek: [fri]
    hoursOfDay: ['22-6']
    timezone: EST
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachine
metadata:
  name: broken
spec:
  clusterName: production
  schedule:
    daysOfWeek: [mon-fri]
    hoursOfDay: ['9-17']
  bootstrapSpec: {apiVersion: k0smotron.io/v1beta1, kind: K0sWorkerConfig, spec: {}}
  infrastructureSpec:
    {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RemoteMachine, spec: {}}
  gracefulShutdownTimeout: five <minutes>, 100%
  nodeDrainTimeout: 5 m
";

#[test]
fn lint_warnings_follow_the_result_and_are_errors_only_with_lint_error() {
    let night = ODD.split("---").nth(1).unwrap();
    let (text, outcome) = validate(night, "", &[]).unwrap();
    assert_eq!(outcome, Outcome::Yes);
    assert_snapshot!(text);
    assert_eq!(
        validate(night, "", &["--lint", "error"]).unwrap().1,
        Outcome::No
    );
    let (text, _) = validate(night, "", &["--lint", "off"]).unwrap();
    assert_eq!(text, "scheduledmachine.5spot.finos.org/night-shift valid\n");
}

#[test]
fn the_template_of_a_set_is_validated_as_a_machine_is() {
    let set = |hours: &str, more: &str| {
        format!(
            "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineSet
metadata: {{name: desks}}
spec:
  template:
    spec:
      schedule: {{daysOfWeek: [fri], hoursOfDay: [{hours}]}}
      classRef: {{name: desks}}
{more}"
        )
    };
    let (text, outcome) = validate(&set("9-17", ""), "", &[]).unwrap();
    assert_eq!(text, "scheduledmachineset.5spot.finos.org/desks valid\n");
    assert_eq!(outcome, Outcome::Yes);
    let (text, _) = validate(&set("22-6", ""), "", &[]).unwrap();
    assert!(text.contains("spec.template.spec.schedule"), "{text}");
    let (text, outcome) = validate(&set("25", ""), "", &[]).unwrap();
    assert!(
        text.contains("spec.template.spec.schedule.hoursOfDay[0]"),
        "{text}"
    );
    assert_eq!(outcome, Outcome::No);
    let inline = "      bootstrapSpec: {apiVersion: a/v1, kind: B, spec: {}}\n";
    let (text, outcome) = validate(&set("9-17", inline), "", &[]).unwrap();
    assert!(text.contains("spec.template.spec.bootstrapSpec"), "{text}");
    assert_eq!(outcome, Outcome::No);
}

#[test]
fn machines_of_several_files_with_the_same_host_are_reported() {
    let machine = |name: &str, address: &str| {
        let spec = format!("{{address: {address}, sshKeyRef: {{name: key}}}}");
        MACHINE
            .replace("name: worker", &format!("name: {name}"))
            .replace(
                "RemoteMachine, spec: {}",
                &format!("RemoteMachine, spec: {spec}"),
            )
    };
    let all = [
        machine("first", "192.0.2.7"),
        machine("another", "192.0.2.8"),
        machine("second", "192.0.2.7"),
    ];
    let (text, outcome) = validate(&all.join("---\n"), "", &[]).unwrap();
    assert_eq!(outcome, Outcome::Yes);
    assert_snapshot!(text);
    let (text, _) = validate(&all.join("---\n"), "", &["--lint", "off"]).unwrap();
    assert!(!text.contains("SL010"), "{text}");
}

#[test]
fn missing_provider_fields_are_reported_beside_schedule_warnings() {
    let text = MACHINE
        .replace("9-17", "22-6")
        .replace("K0sWorkerConfig", "KubeadmConfig")
        .replace(
            "RemoteMachine, spec: {}",
            "RemoteMachine, spec: {address: 192.0.2.7}",
        );
    assert_snapshot!(validate_new(&text).0);
}

#[test]
fn an_explanation_shows_each_step_and_its_cost() {
    let text = format!("{MACHINE}---\n{}", MACHINE.replace("5m", "five minutes"));
    let (text, _) = validate(&text, "", &["--explain", "--all-failures"]).unwrap();
    assert_snapshot!(text);
}

#[test]
fn github_annotations_have_lines() {
    let (text, outcome) = validate(ODD, "", &["-o", "github"]).unwrap();
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

#[test]
fn junit_has_a_case_for_each_object() {
    assert_snapshot!(validate(ODD, "", &["-o", "junit"]).unwrap().0);
}

#[test]
fn sarif_names_rules_and_lines() {
    assert_snapshot!(validate(ODD, "", &["-o", "sarif"]).unwrap().0);
}

/// The output in every format, and the outcome, which is the same in all of them.
fn in_every_form(text: &str, words: &[&str], others: &OtherObjects) -> (String, Outcome) {
    let forms = ["text", "json", "sarif", "junit", "github"].map(|form| {
        let words = [words, &["-o", form]].concat();
        let (text, outcome) = validate_with(text, "", (&words, others)).unwrap();
        (format!("== {form}\n{text}"), outcome)
    });
    let outcome = forms[0].1;
    assert!(forms.iter().all(|(_, it)| *it == outcome), "{forms:?}");
    (forms.map(|(text, _)| text).concat(), outcome)
}

#[test]
fn a_lint_error_is_a_failure_in_every_format() {
    let night = MACHINE.replace("9-17", "22-6");
    let words = ["--lint", "error"];
    let (text, outcome) = in_every_form(&night, &words, &OtherObjects::default());
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

#[test]
fn a_warning_of_the_server_is_a_warning_in_every_form() {
    let mut binding = fivespot_api::vap::binding(fivespot_api::vap::Action::Deny);
    binding["spec"]["validationActions"] = serde_json::json!(["Warn"]);
    let others = OtherObjects {
        policies: vec![Document {
            origin: "binding.yaml".to_owned(),
            object: binding,
            location: None,
        }],
        ..OtherObjects::default()
    };
    let dotted = MACHINE.replace("{name: worker}", "{name: worker.a}");
    let (text, outcome) = in_every_form(&dotted, &[], &others);
    assert_eq!(outcome, Outcome::Yes);
    assert_snapshot!(text);
}

#[test]
fn what_is_skipped_is_a_note_in_every_format() {
    let config = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n";
    let (text, outcome) = in_every_form(config, &[], &OtherObjects::default());
    assert_eq!(outcome, Outcome::NoResult);
    assert_snapshot!(text);
}

/// A common mistake: the policy uses a field that the kind does not have.
const ILL_TYPED: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: misfit}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [5spot.finos.org]
      apiVersions: [v1alpha1]
      resources: [scheduledmachines]
      operations: [CREATE]
  variables:
  - {name: schedule, expression: object.spec.schedule}
  validations:
  - expression: object.metadata.labels['team'] == object.spec.clusterName
  - expression: object.spec.replicas > 1
    messageExpression: \"'at ' + object.metadata.creationTimestamp\"
";

#[test]
fn a_policy_with_type_errors_is_rejected_with_type_check() {
    let checked = |policies: &str| {
        let given = Given {
            policies: read(policies),
            ..Given::default()
        };
        print(given, &["--type-check"]).0
    };
    // The built-in policy has no type errors.
    assert_eq!(checked(""), "0 valid, 0 invalid, 0 skipped\n");
    assert_snapshot!(checked(ILL_TYPED));
}

#[test]
fn requests_have_options_and_namespaces_a_spec_and_a_status() {
    let rows = [
        ("has(request.options)", "", Outcome::Yes),
        ("request.options.kind == 'CreateOptions'", "", Outcome::Yes),
        ("request.options.kind == 'UpdateOptions'", "", Outcome::No),
        (
            "request.options.kind == 'UpdateOptions'",
            MACHINE,
            Outcome::Yes,
        ),
        (
            "has(namespaceObject.spec) && has(namespaceObject.status)",
            "",
            Outcome::Yes,
        ),
    ];
    for (expression, old, expected) in rows {
        let policy = REGIONS
            .replace("  paramKind: {apiVersion: v1, kind: ConfigMap}\n", "")
            .replace("operations: [CREATE]", "operations: ['*']")
            .replace(
                "object.spec.clusterName == params.data[namespaceObject.metadata.labels.team]",
                expression,
            );
        let (policy, _) = policy.split_once("  paramRef").unwrap();
        let others = OtherObjects {
            policies: read(policy),
            ..other_objects("prod")
        };
        let (text, outcome) = validate_with(MACHINE, old, (&[], &others)).unwrap();
        assert_eq!(outcome, expected, "{expression}: {text}");
    }
}

/// The output of `kubectl create deployment`, without replicas.
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

#[test]
fn built_in_kinds_are_refused_with_the_messages_of_kubernetes() {
    let (text, outcome) = validate_new(DEPLOYMENT);
    assert_eq!(text, "deployment.apps/web valid\n");
    assert_eq!(outcome, Outcome::Yes);
    let broken = DEPLOYMENT
        .replace(
            "{labels: {app: web}}\n    spec",
            "{labels: {app: other}}\n    spec",
        )
        .replace(
            "image: nginx",
            "image: nginx, ports: [{containerPort: 99999}]",
        );
    assert_snapshot!(validate_new(&broken).0, @r#"
    The Deployment "web" is invalid: 
    * spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`
    * spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive
    "#);
    let unknown = DEPLOYMENT.replace("containers:", "container:");
    assert_snapshot!(validate_new(&unknown).0, @r#"Error from server (BadRequest): error when creating "machine.yaml": Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.template.spec.container""#);
}

#[test]
fn an_update_of_a_built_in_kind_is_compared_with_the_stored_object() {
    let new = DEPLOYMENT.replace("app: web}", "app: new}");
    let (text, outcome) = validate(&new, DEPLOYMENT, &[]).unwrap();
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text, @r#"The Deployment "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"new"}}: field is immutable"#);
    assert_eq!(
        validate(&new, DEPLOYMENT, &["--operation", "create"])
            .unwrap()
            .1,
        Outcome::Yes
    );
}

#[test]
fn policies_decide_about_built_in_kinds() {
    let policies = document::parse("policy.yaml", LIMIT).unwrap();
    let others = OtherObjects {
        policies,
        ..OtherObjects::default()
    };
    let (text, outcome) = in_every_form(DEPLOYMENT, &[], &others);
    assert_eq!(outcome, Outcome::Yes, "{text}");
    let many = DEPLOYMENT.replace("selector:", "replicas: 6\n  selector:");
    let (text, outcome) = in_every_form(&many, &[], &others);
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

/// Policies are evaluated after defaulting: omitted replicas are one.
const LIMIT: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: demo-policy.example.com}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 5
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: demo-binding-test.example.com}
spec: {policyName: demo-policy.example.com, validationActions: [Deny]}
";

/// A directory with these files. It is removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let id = std::process::id();
        let path = std::env::temp_dir().join(format!("5spot-validate-{name}-{id}"));
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        Self(path)
    }

    /// What `5spot validate -f` prints for the directory, and the outcome.
    fn validate(&self, form: &str) -> (String, Outcome) {
        self.validate_with(&["-o", form])
    }

    fn validate_with(&self, words: &[&str]) -> (String, Outcome) {
        use clap::Parser as _;
        let path = self.0.to_str().unwrap();
        let line = ["validate", "-f", path, "--lint", "off"];
        let line = line.iter().chain(words);
        let mut out = Vec::new();
        let outcome = run(Line::try_parse_from(line).unwrap().args, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        (text.replace(path, "machines"), outcome.unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_that_cannot_be_parsed_is_invalid_and_the_others_are_validated() {
    let invalid = MACHINE.replace("5m", "soon");
    let folder = Folder::with(
        "broken",
        &[
            (
                "a-broken.yaml",
                "kind: ScheduledMachine\nmetadata:\n  name: [\n",
            ),
            ("b-invalid.yaml", &invalid),
            (
                "c-twice.yaml",
                "kind: A\nmetadata: {name: a}\nmetadata: {name: b}\n",
            ),
            ("d-valid.yaml", MACHINE),
        ],
    );
    let printed = ["text", "json", "sarif", "junit", "github"].map(|form| {
        let (text, outcome) = folder.validate(form);
        assert_eq!(outcome, Outcome::No, "{form}");
        format!("== {form}\n{text}")
    });
    assert_snapshot!(printed.concat());
}

#[test]
fn a_list_without_items_has_no_invalid_object() {
    let list = "apiVersion: v1\nitems: []\nkind: List\nmetadata: {resourceVersion: ''}\n";
    let folder = Folder::with("list", &[("list.yaml", list)]);
    let (text, outcome) = folder.validate("text");
    assert_eq!(text, "0 valid, 0 invalid, 0 skipped\n");
    assert_eq!(outcome, Outcome::Yes);
}

/// Manifests in which everything that can be named has a name that begins a line of its own, with
/// the escapes of a terminal.
fn hostile_manifests() -> String {
    let hostile = r#""a\n::add-mask::b\u001b]0;c\u0007\u009b\u2028::d""#;
    let thing = |group: &str, kind: &str, more: &str| {
        format!(
            "apiVersion: {group}\nkind: {kind}\nmetadata: {{name: {hostile}, namespace: \
             {hostile}}}\n{more}\n---\n"
        )
    };
    [
        MACHINE.replace("worker", hostile).as_str(),
        "---\n",
        &MACHINE.replace(
            "{name: worker}",
            &format!("{{name: worker, namespace: {hostile}}}"),
        ),
        "---\n",
        &MACHINE.replace("{daysOfWeek", &format!("{{timezone: {hostile}, daysOfWeek")),
        "---\n",
        &MACHINE.replace("schedule:", &format!("{hostile}: 1\n  schedule:")),
        "---\n",
        &thing("example.com/v1", hostile, ""),
        &thing(hostile, "Thing", ""),
        &thing("5spot.finos.org/v1alpha1", hostile, ""),
        &thing(hostile, r#""""#, ""),
        &thing("v1", "ConfigMap", ""),
        &thing("v1", "ConfigMap", &format!("{hostile}: 1")),
        &thing("v1", "ConfigMap", &format!("data: {{{hostile}: b}}")),
    ]
    .concat()
}

#[test]
fn no_name_of_a_manifest_begins_a_line_or_moves_the_cursor() {
    let text = hostile_manifests();
    for form in ["text", "junit", "github"] {
        let words = ["-o", form, "--explain", "--all-failures"];
        let (printed, outcome) = validate(&text, "", &words).unwrap();
        assert_eq!(outcome, Outcome::No);
        assert!(printed.contains("add-mask"), "{printed}");
        for line in printed.lines() {
            let is_command = line.trim_start().starts_with("::");
            let is_own = ["::error file=", "::warning file=", "::notice file="]
                .iter()
                .any(|own| form == "github" && line.starts_with(own));
            assert!(!is_command || is_own, "{form}: {line}\n{printed}");
            let is_plain = |it: char| !fivespot_capi::is_active_character(it);
            assert!(line.chars().all(is_plain), "{form}: {line:?}");
        }
    }
}

#[test]
fn an_update_of_a_hostile_name_is_an_error_on_one_line() {
    let hostile = MACHINE.replace("worker", r#""a\n::add-mask::b""#);
    let failure = validate(&hostile, "", &["--operation", "update"]).unwrap_err();
    let failure = failure.to_string();
    assert!(!failure.contains('\n'), "{failure}");
}

#[test]
fn a_namespace_that_is_no_part_of_a_path_has_its_own_verdict() {
    let config = |namespace: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {namespace:?}}}\n\
             ---\n"
        )
    };
    let all = ["my ns", "a?b", "a/b", "a%2Fb", "..", "#", "good"].map(config);
    let (text, outcome) = validate_new(&all.concat());
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

#[test]
fn a_cluster_scoped_object_with_a_namespace_loses_it_as_in_a_server() {
    let folder = Folder::with(
        "scope",
        &[("crd.yaml", CLUSTER_CRD), ("thing.yaml", CLUSTER_THING)],
    );
    let crd = folder.0.join("crd.yaml");
    let words = ["--no-builtin", "--crd", crd.to_str().unwrap(), "--quiet"];
    let (text, outcome) = folder.validate_with(&words);
    assert_eq!(
        (text.as_str(), outcome),
        ("2 valid, 0 invalid, 0 skipped\n", Outcome::Yes)
    );
}

const CLUSTER_CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
";

const CLUSTER_THING: &str = "\
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, namespace: b}
";

#[test]
fn a_crd_that_cannot_be_used_has_its_own_result_and_the_others_are_used() {
    let broken = CLUSTER_CRD
        .replace("thing", "other")
        .replace("Thing", "Other")
        .replace("type: object, properties", "properties");
    let objects = Folder::with("crd-objects", &[("thing.yaml", CLUSTER_THING)]);
    let definitions = Folder::with(
        "crd-definitions",
        &[
            ("a-template.yaml", "{{- if .Values.crds }}\nkind: [\n"),
            (
                "b-namespace.yaml",
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
            ),
            ("c-broken.yaml", &broken),
            ("d-good.yaml", CLUSTER_CRD),
            ("e-again.yaml", CLUSTER_CRD),
        ],
    );
    let path = definitions.0.to_str().unwrap();
    let (text, outcome) = objects.validate_with(&["--crd", path]);
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text.replace(path, "definitions"));
}

#[test]
fn nothing_of_a_file_that_is_no_manifest_is_printed() {
    let files = [
        ("a.yaml", "root:$y$secret:19000:0:99999:7:::\n"),
        ("b.yaml", "password: secret\n"),
        ("c.yaml", "[secret]\n"),
        ("d.yaml", "secret: 1\nsecret: 2\n"),
        ("e.yaml", "a: !secret b\n"),
        ("f.yaml", "a: [secret\n"),
        ("g.yaml", MACHINE),
    ];
    let folder = Folder::with("no-manifest", &files);
    for form in ["text", "json"] {
        let (text, outcome) = folder.validate(form);
        assert_eq!(outcome, Outcome::No, "{text}");
        assert!(text.contains("f.yaml"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

/// Two Things get a label by a policy that changes objects; a policy that validates needs it.
const MUTATION: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: owner.example.com}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  matchConditions:
  - {name: has-owner, expression: \"object.metadata.name == 'a'\"}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: \"Object{metadata: Object.metadata{labels: {'owner': 'a-team'}}}\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: owner.example.com}
spec: {policyName: owner.example.com}
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingAdmissionPolicy
metadata: {name: owned.example.com}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - {expression: \"has(object.metadata.labels) && 'owner' in object.metadata.labels\", message: has no owner}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owned.example.com}
spec: {policyName: owned.example.com, validationActions: [Deny]}
";

#[test]
fn policies_that_change_objects_come_before_those_that_validate() {
    let folder = Folder::with(
        "mutation",
        &[
            ("a-crd.yaml", CLUSTER_CRD),
            ("b-thing.yaml", CLUSTER_THING),
            (
                "c-other.yaml",
                &CLUSTER_THING.replace("name: a,", "name: b,"),
            ),
            (
                "d-map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            ),
            (
                "e-map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
            ),
            ("f-machine.yaml", MACHINE),
        ],
    );
    let policies = Folder::with("mutating-policies", &[("policies.yaml", MUTATION)]);
    let words = ["--policy", policies.0.to_str().unwrap()];
    let (text, outcome) = folder.validate_with(&words);
    assert_eq!(outcome, Outcome::No);
    assert_snapshot!(text);
}

#[test]
fn a_crd_among_the_objects_defines_their_kind_and_one_that_is_given_goes_first() {
    let thing =
        "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {b: 1}\n";
    let folder = Folder::with(
        "own-crd",
        &[("crd.yaml", CLUSTER_CRD), ("thing.yaml", thing)],
    );
    let (text, outcome) = folder.validate_with(&["--quiet"]);
    assert_eq!(outcome, Outcome::No);
    assert!(text.contains("unknown field \"spec.b\""), "{text}");
    let newer = CLUSTER_CRD.replace(
        "spec: {type: object}",
        "spec: {type: object, properties: {b: {type: integer}}}",
    );
    let given = Folder::with("given-crd", &[("crd.yaml", &newer)]);
    let words = ["--quiet", "--crd", given.0.to_str().unwrap()];
    let (text, outcome) = folder.validate_with(&words);
    assert_eq!(
        (text.as_str(), outcome),
        ("2 valid, 0 invalid, 0 skipped\n", Outcome::Yes)
    );
}

#[test]
fn webhooks_among_the_policies_are_named_as_not_called() {
    let folder = Folder::with("beside-webhooks", &[("machine.yaml", MACHINE)]);
    let webhooks = Folder::with(
        "webhooks",
        &[(
            "webhooks.yaml",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
             metadata: {name: w}\nwebhooks: [{name: a.example.com}, {name: b.example.com}]\n",
        )],
    );
    let path = webhooks.0.to_str().unwrap();
    let (text, outcome) = folder.validate_with(&["--policy", path]);
    assert_eq!(outcome, Outcome::Yes);
    assert_snapshot!(text.replace(path, "policies"));
}
