//! How `managedFields` records updates.

use super::*;

#[test]
fn updates_are_recorded_by_manager_and_move_ownership() {
    let mut server = Server::new();
    server.write(
        "creator",
        "",
        widget(json!({"priority": 1, "colour": "red"})),
    );
    server.edit("editor", |it| it["spec"]["colour"] = "blue".into());
    server.edit("editor", |it| {
        it["spec"].as_object_mut().unwrap().shift_remove("priority");
    });
    insta::assert_snapshot!(server.managers(), @r#"
    creator Update 2026-03-06T21:30:00Z -: {"f:spec":{}}
    editor Update 2026-03-06T21:31:00Z -: {"f:spec":{"f:colour":{}}}
    "#);
}

#[test]
fn an_update_without_changes_leaves_managed_fields_unchanged() {
    let mut server = Server::new();
    server.write("creator", "", widget(json!({"priority": 1})));
    let before = server.object.clone();
    server.edit("editor", |_| {});
    assert_eq!(server.object, before);
}

#[test]
fn status_and_spec_have_separate_managers_per_subresource() {
    let mut server = Server::new();
    let mut object = widget(json!({"priority": 1}));
    object["status"] = json!({"phase": "ignored"});
    server.write("creator", "", object);
    let mut object = server.object.clone().unwrap();
    object["status"] = json!({"phase": "Active"});
    object["spec"]["priority"] = 2.into();
    server.write("controller", "status", object);
    insta::assert_snapshot!(server.managers(), @r#"
    creator Update 2026-03-06T21:30:00Z -: {"f:spec":{".":{},"f:priority":{}}}
    controller Update 2026-03-06T21:31:00Z status: {"f:status":{"f:phase":{}}}
    "#);
}

#[test]
fn reset_managed_fields_stay_empty_until_the_next_apply() {
    let mut server = Server::new();
    server.write(
        "creator",
        "",
        widget(json!({"priority": 1, "colour": "red"})),
    );
    server.edit("any", |it| it["metadata"]["managedFields"] = json!([{}]));
    assert_eq!(server.managers(), "");
    server.edit("any", |it| it["spec"]["priority"] = 2.into());
    assert_eq!(server.managers(), "");
    let refused = server.conflict("me", json!({"priority": 3}));
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using \
         example.com/v1: .spec.priority"
    );
    server.apply("me", json!({"priority": 2}));
    insta::assert_snapshot!(server.managers(), @r#"
    me Apply - -: {"f:spec":{"f:priority":{}}}
    before-first-apply Update 2026-03-06T21:33:00Z -: {"f:spec":{".":{},"f:colour":{},"f:priority":{}}}
    "#);
}

#[test]
fn sent_managed_fields_replace_the_stored_ones_for_kubectl_migration() {
    let mut server = Server::new();
    server.write(
        "kubectl-client-side-apply",
        "",
        widget(json!({"priority": 1})),
    );
    server.edit("kubectl", |it| {
        let entry = &mut it["metadata"]["managedFields"][0];
        entry["manager"] = "kubectl".into();
        entry["operation"] = "Apply".into();
    });
    server.apply("kubectl", json!({"priority": 2}));
    assert_eq!(server.spec()["priority"], 2);
    assert!(server.managers().starts_with("kubectl Apply"));
}

#[test]
fn fields_of_client_side_apply_are_no_conflict_for_kubectl() {
    let mut server = Server::new();
    let mut object = widget(json!({"priority": 1, "colour": "red"}));
    let last = object.to_string();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    server.write("kubectl-client-side-apply", "", object);
    let refused = server.conflict("other", json!({"priority": 2}));
    assert_eq!(refused.code, 409);
    server.apply("kubectl", json!({"priority": 2}));
    let object = server.object.clone().unwrap();
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(
        annotations["kubectl.kubernetes.io/last-applied-configuration"],
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\",\
         \"namespace\":\"default\"},\"spec\":{\"priority\":2}}\n"
    );
    server.edit("hand", |it| it["spec"]["colour"] = "blue".into());
    let refused = server.conflict("kubectl", json!({"priority": 2, "colour": "green"}));
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"hand\" using example.com/v1: \
         .spec.colour"
    );
}

#[test]
fn the_eleventh_update_manager_merges_the_two_oldest() {
    let mut server = Server::new();
    server.write("m00", "", widget(json!({"limits": {"k00": 0}})));
    for at in 1..12 {
        server.edit(&format!("m{at:02}"), |it| {
            it["spec"]["limits"][format!("k{at:02}")] = at.into();
        });
    }
    let managers = server.managers();
    let names: Vec<_> = managers
        .lines()
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert_eq!(
        names,
        [
            "ancient-changes",
            "m03",
            "m04",
            "m05",
            "m06",
            "m07",
            "m08",
            "m09",
            "m10",
            "m11"
        ]
    );
    for key in ["k00", "k01", "k02"] {
        assert!(managers.lines().next().unwrap().contains(key), "{managers}");
    }
}
