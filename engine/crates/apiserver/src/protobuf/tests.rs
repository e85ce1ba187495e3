use proptest::prelude::*;

use super::*;

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 128, "one byte of length is written here");
    [&[number << 3 | 2, length], bytes].concat()
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn whole(version: &str, kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    let body = [field(1, &meta), field(2, &fields.concat())].concat();
    [MAGIC, &body].concat()
}

#[test]
fn empty_fields_are_omitted() {
    let name = [field(1, b"x"), field(2, b""), field(8, b"")].concat();
    let bytes = whole("v1", "Namespace", &[field(1, &name), field(2, b"")]);
    assert_eq!(
        read(&bytes).unwrap(),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"},
            "spec": {}})
    );
}

#[test]
fn an_explicit_zero_is_kept() {
    let options = whole("policy/v1", "DeleteOptions", &[number(1, 0), number(3, 0)]);
    assert_eq!(
        read(&options).unwrap(),
        json!({"apiVersion": "policy/v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "orphanDependents": false})
    );
}

#[test]
fn maps_bytes_and_lists_are_decoded_as_in_json() {
    let entry = [field(1, b"key"), field(2, b"\x00\xff")].concat();
    let secret = whole("v1", "Secret", &[field(2, &entry), field(3, b"t")]);
    assert_eq!(
        read(&secret).unwrap(),
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "AP8="},
            "type": "t"})
    );
    let rule = [field(1, b"get"), field(1, b"list"), field(3, b"pods")].concat();
    let role = whole(
        "rbac.authorization.k8s.io/v1",
        "Role",
        &[field(2, &rule), field(2, b"")],
    );
    assert_eq!(
        read(&role).unwrap()["rules"],
        json!([{"verbs": ["get", "list"], "resources": ["pods"]}, {}])
    );
}

#[test]
fn times_numbers_and_inlined_messages_are_decoded() {
    let time = [number(1, 60), number(2, 5)].concat();
    let lease = [field(1, b"a"), field(3, &time)].concat();
    let lease = whole("coordination.k8s.io/v1", "Lease", &[field(2, &lease)]);
    assert_eq!(
        read(&lease).unwrap()["spec"]["acquireTime"],
        "1970-01-01T00:01:00.000000Z"
    );
    // A named port in a probe, whose handler is inlined.
    let port = [number(1, 1), field(3, b"web")].concat();
    let action = field(2, &field(2, &port));
    let container = [field(1, b"c"), field(10, &field(1, &action))].concat();
    let pod = whole("v1", "Pod", &[field(2, &field(2, &container))]);
    assert_eq!(
        read(&pod).unwrap()["spec"]["containers"][0]["livenessProbe"],
        json!({"httpGet": {"port": "web"}})
    );
}

#[test]
fn an_invalid_message_is_rejected_with_a_message() {
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(error(b"{}").starts_with("provided data does not appear to be"));
    assert_eq!(
        error(&whole("v1", "Thing", &[])),
        "no kind \"Thing\" is registered for version \"v1\""
    );
    let torn = whole("v1", "Secret", &[vec![3 << 3 | 2, 9]]);
    assert_eq!(error(&torn), "unexpected EOF");
    let wrong = whole("v1", "Secret", &[number(3, 1)]);
    assert_eq!(error(&wrong), "proto: wrong wireType for field type");
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = read(&[MAGIC, &bytes].concat());
        let body = field(2, &bytes);
        let meta = field(1, &[field(1, b"v1"), field(2, b"Pod")].concat());
        let _ = read(&[MAGIC, &meta[..], &body].concat());
    }
}

#[test]
fn every_served_kind_can_be_decoded() {
    for resource in crate::kind::builtin::resources() {
        let own = (resource.api_version(), resource.kind.clone());
        let below = resource
            .subresources
            .iter()
            .filter(|it| !it.is_connection())
            .filter_map(crate::Subresource::kind);
        let below = below.map(|(group, version, kind)| {
            (
                crate::resource::api_version(group, version),
                kind.to_owned(),
            )
        });
        for (version, kind) in below.chain([own]) {
            let read = read(&whole(&version, &kind, &[]));
            assert!(read.is_ok(), "{kind} of {version}: {read:?}");
        }
    }
}
