use serde_json::json;

use super::*;

const ALL: Part = None;

/// A target that an object affects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    One(Key),
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn object(name: &str, version: &str, content: &str) -> Object<Target> {
    let value = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version},
        "content": content,
    });
    Object::new(
        value,
        vec![Target::One(key(name))],
        vec![content.to_owned()],
    )
}

fn listed(objects: Vec<Object<Target>>) -> Store<Target> {
    let store = Store::<Target>::default();
    relist(&store, objects);
    store
}

fn relist(store: &Store<Target>, objects: Vec<Object<Target>>) -> Vec<Target> {
    store.begin(&ALL);
    for object in objects {
        let name = object.value()["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        store.list(&ALL, key(&name), object);
    }
    store.end(&ALL).into_iter().collect()
}

fn written(store: &Store<Target>, version: &str) -> Expectation {
    Expectation {
        uid: "uid-a".to_owned(),
        version: Some(Version::new(version)),
        lists_begun: store.lists_begun("default"),
    }
}

/// How many copies of an object the budget of a cluster has room for.
fn fitting(make: impl Fn() -> Object<Target>, name: &str) -> usize {
    let budget = Arc::default();
    let mut all = Vec::new();
    loop {
        let mut object = make();
        if object.count(&key(name), &budget).is_err() {
            return all.len();
        }
        all.push(object);
    }
}

#[test]
fn every_text_of_an_object_takes_room_in_the_budget() {
    let long = "x".repeat(1 << 20);
    assert_eq!(fitting(|| object("a", "1", "x"), &long), 63, "the key");
    assert_eq!(fitting(|| object("a", &long, "x"), "a"), 63, "the version");
    // Its text, and the term by which it is found.
    assert_eq!(fitting(|| object("a", "1", &long), "a"), 31);
    let name_only = || {
        let mut object = object(&long, "1", "x");
        object.keep_name_only();
        object
    };
    assert_eq!(fitting(name_only, "a"), 63, "the uid");
}

#[test]
fn an_object_is_returned_as_it_was_stored() {
    let store = listed(vec![object("a", "5", "x")]);
    let value = store.get(&key("a")).unwrap().value();
    assert_eq!(value["metadata"]["resourceVersion"], "5");
    assert_eq!(value["content"], "x");
}

#[test]
fn a_list_affects_only_objects_that_were_added_changed_or_removed() {
    let store = listed(vec![
        object("a", "1", "x"),
        object("b", "2", "x"),
        object("c", "3", "x"),
    ]);
    let affected = relist(
        &store,
        vec![
            object("a", "1", "x"),
            object("b", "9", "y"),
            object("d", "8", "x"),
        ],
    );
    let names = ["b", "c", "d"].map(|name| Target::One(key(name)));
    assert_eq!(affected, names);
    assert!(store.get(&key("c")).is_none());
}

#[test]
fn a_list_of_one_namespace_does_not_change_the_others() {
    let store = Store::<Target>::default();
    for namespace in ["n", "m"] {
        let part = Some(namespace.to_owned());
        store.begin(&part);
        store.list(&part, Key::new(namespace, "a"), object("a", "1", "x"));
        store.end(&part);
    }
    let part = Some("n".to_owned());
    store.begin(&part);
    store.end(&part);
    assert!(store.get(&Key::new("n", "a")).is_none());
    assert!(store.get(&Key::new("m", "a")).is_some());
    assert!(store.is_synced("m") && !store.is_synced("elsewhere"));
}

#[test]
fn a_change_of_only_the_version_affects_no_target_and_is_stored() {
    let store = listed(vec![object("a", "1", "x")]);
    let affected = store.put(&ALL, &key("a"), object("a", "2", "x"));
    assert!(affected.is_empty());
    assert_eq!(store.get(&key("a")).unwrap().version, Version::new("2"));
}

#[test]
fn the_index_follows_the_object() {
    let store = listed(vec![object("a", "1", "x"), object("b", "2", "x")]);
    assert_eq!(store.found_by("x"), [key("a"), key("b")]);
    store.put(&ALL, &key("a"), object("a", "3", "y"));
    store.remove(&ALL, &key("b"), &Version::new("4"));
    assert_eq!(store.found_by("x"), []);
    assert_eq!(store.found_by("y"), [key("a")]);
}

#[test]
fn a_write_is_seen_when_its_version_or_a_later_one_has_arrived() {
    let store = listed(vec![object("a", "5", "x")]);
    let write = written(&store, "7");
    assert!(!store.has_seen(&key("a"), &write));
    store.put(&ALL, &key("a"), object("a", "6", "y"));
    assert!(!store.has_seen(&key("a"), &write));
    // Events of one watch come in order, whichever object they are about.
    store.put(&ALL, &key("b"), object("b", "8", "y"));
    assert!(store.has_seen(&key("a"), &write));
}

#[test]
fn a_write_is_seen_only_by_a_list_that_began_after_it() {
    let store = listed(vec![object("a", "5", "x")]);
    store.begin(&ALL);
    let write = written(&store, "7");
    store.list(&ALL, key("a"), object("a", "5", "x"));
    store.end(&ALL);
    assert!(!store.has_seen(&key("a"), &write));
    relist(&store, Vec::new());
    assert!(store.has_seen(&key("a"), &write));
}

#[test]
fn an_opaque_version_is_seen_when_the_object_has_it() {
    let store = listed(vec![object("a", "v-five", "x")]);
    let write = written(&store, "v-seven");
    assert!(!store.has_seen(&key("a"), &write));
    store.put(&ALL, &key("a"), object("a", "v-seven", "y"));
    assert!(store.has_seen(&key("a"), &write));
}

#[test]
fn a_removal_is_seen_when_no_object_of_that_uid_is_left() {
    let store = listed(vec![object("a", "5", "x")]);
    let gone = Expectation {
        uid: "uid-a".to_owned(),
        version: None,
        lists_begun: store.lists_begun("default"),
    };
    assert!(!store.has_seen(&key("a"), &gone));
    store.remove(&ALL, &key("a"), &Version::new("6"));
    assert!(store.has_seen(&key("a"), &gone));
}

#[test]
fn the_event_of_a_write_whose_response_is_cached_affects_nothing() {
    let store = listed(vec![object("a", "1", "before")]);
    store.wrote(&key("a"), &Version::new("1"), object("a", "2", "after"));
    let event = store.put(&ALL, &key("a"), object("a", "2", "after"));
    assert_eq!(event, BTreeSet::new());
    // Somebody else's change affects its targets.
    let event = store.put(&ALL, &key("a"), object("a", "3", "other"));
    assert_eq!(event, BTreeSet::from([Target::One(key("a"))]));
}

#[test]
fn a_response_that_arrives_after_later_events_changes_nothing() {
    let store = listed(vec![object("a", "1", "before")]);
    store.put(&ALL, &key("a"), object("a", "3", "later"));
    store.wrote(&key("a"), &Version::new("1"), object("a", "2", "after"));
    assert_eq!(store.get(&key("a")).unwrap().version.as_str(), "3");
    store.remove(&ALL, &key("a"), &Version::new("4"));
    store.wrote(&key("a"), &Version::new("3"), object("a", "4", "after"));
    assert!(store.get(&key("a")).is_none());
}

#[test]
fn an_event_shows_nothing_new_if_its_version_is_cached_whole() {
    let store = listed(vec![object("a", "1", "before")]);
    store.wrote(&key("a"), &Version::new("1"), object("a", "2", "after"));
    let shows = |uid: &str, version: &str| {
        store.shows(&ALL, &key("a"), uid, &Version::new(version))
    };
    let write = written(&store, "2");
    assert!(!store.has_seen(&key("a"), &write));
    assert!(!shows("uid-a", "1") && !shows("uid-a", "3") && !shows("uid-b", "2"));
    assert!(!store.has_seen(&key("a"), &write));
    assert!(shows("uid-a", "2"));
    assert!(store.has_seen(&key("a"), &write));
    let mut name_only = object("a", "4", "other");
    name_only.keep_name_only();
    store.put(&ALL, &key("a"), name_only);
    assert!(!shows("uid-a", "4"));
    store.put(&ALL, &key("a"), object("a", "", "without a version"));
    assert!(!shows("uid-a", ""));
}
