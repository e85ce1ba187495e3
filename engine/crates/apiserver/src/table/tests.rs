use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::kind::builtin;

fn now() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

fn resource(kind: &str) -> Resource {
    let all = builtin::resources();
    all.into_iter().find(|it| it.kind == kind).unwrap()
}

/// The table as `kubectl get -o wide` prints it.
fn print(resource: &Resource, items: &[Value]) -> String {
    let printer = TablePrinter::new(resource, IncludeObject::Metadata, now());
    let table = printer.table(&json!({}), items);
    let heading = |it: &Value| it["name"].as_str().unwrap().to_uppercase();
    let mut lines: Vec<Vec<String>> = vec![
        table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(heading)
            .collect(),
    ];
    for row in table["rows"].as_array().unwrap() {
        let cells = row["cells"].as_array().unwrap().iter();
        lines.push(
            cells
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect(),
        );
    }
    let width = |at: usize| lines.iter().map(|it| it[at].len()).max().unwrap();
    let mut text = String::new();
    for line in &lines {
        assert_eq!(line.len(), lines[0].len(), "a cell for each heading");
        let mut row = String::new();
        for (at, cell) in line.iter().enumerate() {
            let width = width(at) + 3;
            write!(row, "{cell:<width$}").unwrap();
        }
        writeln!(text, "{}", row.trim_end()).unwrap();
    }
    text
}

#[test]
fn nodes_have_readiness_roles_and_addresses() {
    let ready = json!({"metadata": {"name": "node-0",
            "creationTimestamp": "2026-03-06T21:00:00Z",
            "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/db": ""}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Linux"}}});
    let fresh = json!({"metadata": {"name": "node-1"}});
    insta::assert_snapshot!(print(&resource("Node"), &[ready, fresh]), @"
    NAME     STATUS                     ROLES       AGE         VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE    KERNEL-VERSION   CONTAINER-RUNTIME
    node-0   Ready,SchedulingDisabled   db,worker   30m         v1.36.2   10.0.0.7      <none>        Linux       <unknown>        <unknown>
    node-1   Unknown                    <none>      <unknown>             <none>        <none>        <unknown>   <unknown>        <unknown>
    ");
}

#[test]
fn pods_show_the_reason_of_their_status() {
    let pod = |name: &str, spec: Value, status: Value| {
        json!({"metadata": {"name": name, "creationTimestamp": "2026-03-04T17:00:00Z"},
            "spec": spec, "status": status})
    };
    let one = json!({"nodeName": "node-0", "containers": [{"name": "c"}]});
    let state = |state: Value, ready: bool| {
        json!({"phase": "Running", "podIP": "10.1.0.3", "containerStatuses": [{"name": "c",
            "ready": ready, "restartCount": 2, "state": state,
            "lastState": {"terminated": {"finishedAt": "2026-03-06T21:25:00Z"}}}]})
    };
    let mut leaving = pod("leaving", one.clone(), state(json!({"running": {}}), true));
    leaving["metadata"]["deletionTimestamp"] = "2026-03-06T21:29:50Z".into();
    let pods = [
        pod("running", one.clone(), state(json!({"running": {}}), true)),
        pod(
            "crashing",
            one.clone(),
            state(json!({"waiting": {"reason": "CrashLoopBackOff"}}), false),
        ),
        pod(
            "failed",
            one.clone(),
            json!({"phase": "Failed", "containerStatuses": [
                {"state": {"terminated": {"exitCode": 3}}}]}),
        ),
        pod(
            "initialising",
            json!({"containers": [{}, {}], "initContainers": [{}, {}]}),
            json!({"phase": "Pending", "initContainerStatuses": [
                {"state": {"terminated": {"exitCode": 0}}}, {"state": {"waiting": {}}}]}),
        ),
        pod("pending", one, json!({"phase": "Pending"})),
        leaving,
    ];
    insta::assert_snapshot!(print(&resource("Pod"), &pods), @"
    NAME           READY   STATUS             RESTARTS     AGE    IP         NODE     NOMINATED NODE   READINESS GATES
    running        1/1     Running            2 (5m ago)   2d4h   10.1.0.3   node-0   <none>           <none>
    crashing       0/1     CrashLoopBackOff   2 (5m ago)   2d4h   10.1.0.3   node-0   <none>           <none>
    failed         0/1     ExitCode:3         0            2d4h   <none>     node-0   <none>           <none>
    initialising   0/2     Init:1/2           0            2d4h   <none>     <none>   <none>           <none>
    pending        0/1     Pending            0            2d4h   <none>     node-0   <none>           <none>
    leaving        1/1     Terminating        2 (5m ago)   2d4h   10.1.0.3   node-0   <none>           <none>
    ");
}

#[test]
fn both_event_versions_have_the_same_cells() {
    let core = json!({"metadata": {"name": "e.1"}, "type": "Warning", "reason": "Late",
        "involvedObject": {"kind": "Machine", "name": "m"}, "message": "it is late\n",
        "source": {"component": "controller"}, "count": 4,
        "firstTimestamp": "2026-03-06T20:30:00Z", "lastTimestamp": "2026-03-06T21:29:00Z"});
    let series = json!({"metadata": {"name": "e.2"}, "type": "Normal", "reason": "Again",
        "regarding": {"kind": "Machine", "name": "m"}, "note": "again and again",
        "reportingController": "controller", "eventTime": "2026-03-06T21:00:00.000000Z",
        "series": {"count": 7, "lastObservedTime": "2026-03-06T21:28:30.000000Z"}});
    insta::assert_snapshot!(print(&resource("Event"), &[core, series]), @"
    LAST SEEN   TYPE      REASON   OBJECT      SUBOBJECT   SOURCE       MESSAGE           FIRST SEEN   COUNT   NAME
    60s         Warning   Late     machine/m               controller   it is late        60m          4       e.1
    90s         Normal    Again    machine/m               controller   again and again   30m          7       e.2
    ");
}

#[test]
fn policies_and_bindings_show_their_references() {
    let created = json!({"name": "p", "creationTimestamp": "2026-03-06T21:20:00Z"});
    let policy = json!({"metadata": created, "spec": {"validations": [{}, {}],
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    let binding = json!({"metadata": created, "spec": {"policyName": "p",
        "paramRef": {"name": "settings"}}});
    let bare = json!({"metadata": created, "spec": {"policyName": "p"}});
    let policies = print(&resource("ValidatingAdmissionPolicy"), &[policy]);
    let bindings = print(
        &resource("ValidatingAdmissionPolicyBinding"),
        &[binding, bare],
    );
    insta::assert_snapshot!(format!("{policies}\n{bindings}"), @"
    NAME   VALIDATIONS   PARAMKIND      AGE
    p      2             v1/ConfigMap   10m

    NAME   POLICYNAME   PARAMREF     AGE
    p      p            */settings   10m
    p      p            <unset>      10m
    ");
}

#[test]
fn mutating_policies_show_their_number_of_mutations() {
    let created = json!({"name": "p", "creationTimestamp": "2026-03-06T21:20:00Z"});
    let policy = json!({"metadata": created, "spec": {"mutations": [{}, {}]}});
    let binding = json!({"metadata": created, "spec": {"policyName": "p"}});
    let policies = print(&resource("MutatingAdmissionPolicy"), &[policy]);
    let bindings = print(&resource("MutatingAdmissionPolicyBinding"), &[binding]);
    insta::assert_snapshot!(format!("{policies}\n{bindings}"), @"
    NAME   MUTATIONS   PARAMKIND   AGE
    p      2           <unset>     10m

    NAME   POLICYNAME   PARAMREF   AGE
    p      p            <unset>    10m
    ");
}

fn custom(columns: Vec<Column>) -> Resource {
    let mut resource = Resource::new("example.com", "v1", "Thing", "things");
    resource.custom = true;
    resource.columns = columns;
    resource
}

fn column(name: &str, kind: &str, json_path: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        json_path: json_path.to_owned(),
        ..Column::default()
    }
}

#[test]
fn custom_resources_show_their_printer_columns() {
    let things = custom(vec![
        column("Phase", "string", ".status.phase"),
        column("Tags", "string", ".spec.tags"),
        column("Size", "integer", ".spec.size"),
        column("On", "boolean", ".spec.on"),
        column("Due", "date", ".status.due"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let full = json!({"metadata": {"name": "a", "creationTimestamp": "2026-03-06T21:24:30Z"},
        "spec": {"tags": ["x", "y"], "size": 3.0, "on": true},
        "status": {"phase": "Active", "due": "not a date"}});
    let bare = json!({"metadata": {"name": "b"}, "spec": {"size": "3", "on": "yes"}});
    insta::assert_snapshot!(print(&things, &[full, bare]), @r#"
    NAME   PHASE    TAGS        SIZE   ON     DUE         AGE
    a      Active   ["x","y"]   3      true   <invalid>   5m30s
    b      null     null        null   null   null        null
    "#);
}

#[test]
fn age_is_shown_only_if_no_column_is_declared() {
    let object =
        json!({"metadata": {"name": "a", "creationTimestamp": "2026-03-06T21:20:00Z"}});
    let names = |resource: &Resource| {
        let printer = TablePrinter::new(resource, IncludeObject::None, now());
        let table = printer.table(&json!({}), std::slice::from_ref(&object));
        (
            table["rows"][0]["cells"].clone(),
            table["rows"][0]["object"].clone(),
        )
    };
    assert_eq!(names(&custom(vec![])), (json!(["a", "10m"]), Value::Null));
    let one = custom(vec![column("Phase", "string", ".status.phase")]);
    assert_eq!(names(&one).0, json!(["a", null]));
}

#[test]
fn a_table_has_list_metadata_and_a_watch_event_object_metadata() {
    let resource = custom(vec![]);
    let printer = TablePrinter::new(&resource, IncludeObject::Object, now());
    let list = json!({"metadata": {"resourceVersion": "7", "continue": "", "remainingItemCount": 2}});
    let table = printer.table(&list, &[]);
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "7", "remainingItemCount": 2})
    );
    let object = json!({"metadata": {"name": "a", "resourceVersion": "9"}, "spec": 1});
    let event = printer.event(&object, Event::Later);
    assert_eq!(event["metadata"]["resourceVersion"], "9");
    assert_eq!(event["columnDefinitions"], Value::Null);
    assert_eq!(event["rows"][0]["object"], object);
}
