use serde_json::{Value, json};

use super::*;

fn base64(pem: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(pem)
}

/// A certificate and its key, each base64 of PEM.
fn pair() -> (String, String) {
    let signed = rcgen::generate_simple_self_signed(["workload".to_owned()]).unwrap();
    (
        base64(&signed.cert.pem()),
        base64(&signed.signing_key.serialize_pem()),
    )
}

pub(crate) fn kubeconfig() -> Value {
    let (certificate, key) = pair();
    json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {},
        "current-context": "admin@prod",
        "contexts": [{"name": "admin@prod", "context": {"cluster": "prod", "user": "admin"}}],
        "clusters": [{"name": "prod", "cluster": {
            "server": "https://10.0.0.1:6443",
            "certificate-authority-data": certificate,
        }}],
        "users": [{"name": "admin", "user": {
            "client-certificate-data": certificate, "client-key-data": key,
        }}],
    })
}

fn parse(kubeconfig: &Value) -> Result<Access, Error> {
    Access::parse(kubeconfig.to_string().as_bytes(), Allowed::default())
}

/// The result of parsing a kubeconfig in which the field at `pointer` was set.
fn with(pointer: &str, value: Value) -> Result<Access, Error> {
    let mut kubeconfig = kubeconfig();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    kubeconfig.pointer_mut(parent).unwrap()[field] = value;
    parse(&kubeconfig)
}

fn without(pointer: &str) -> Result<Access, Error> {
    let mut kubeconfig = kubeconfig();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = kubeconfig.pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().remove(field);
    parse(&kubeconfig)
}

#[test]
fn a_client_certificate_is_accepted() {
    let access = parse(&kubeconfig()).unwrap();
    assert_eq!(access.server(), "https://10.0.0.1:6443/");
    assert_eq!(access.authorities().len(), 1);
    assert!(access.auth_info().client_key_data.is_some());
}

#[test]
fn a_token_is_accepted_and_never_printed() {
    let access = with("/users/0/user", json!({"token": "s3cret"})).unwrap();
    assert!(access.auth_info().token.is_some());
    assert!(!format!("{access:?}").contains("s3cret"));
}

#[test]
fn yaml_is_parsed_too() {
    let (certificate, _) = pair();
    let access = Access::parse(
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts:\n- name: c\n  context: {{cluster: k, user: u, namespace: x}}\n\
             clusters:\n- name: k\n  cluster:\n    server: https://k:6443\n    \
             certificate-authority-data: {certificate}\n\
             users:\n- name: u\n  user:\n    token: abc\n"
        )
        .as_bytes(),
        Allowed::default(),
    );
    assert!(access.is_ok(), "{access:?}");
}

#[test]
fn fields_that_would_act_for_the_author_are_rejected_by_name() {
    let rows = [
        ("/users/0/user/exec", json!({"command": "sh"})),
        ("/users/0/user/auth-provider", json!({"name": "gcp"})),
        ("/users/0/user/tokenFile", json!("/var/run/token")),
        ("/users/0/user/client-certificate", json!("/etc/cert")),
        ("/users/0/user/client-key", json!("/etc/key")),
        ("/users/0/user/username", json!("admin")),
        ("/users/0/user/password", json!("admin")),
        ("/users/0/user/as", json!("system:admin")),
        ("/users/0/user/as-groups", json!(["system:masters"])),
        ("/users/0/user/as-uid", json!("0")),
        ("/users/0/user/as-user-extra", json!({"a": ["b"]})),
        (
            "/clusters/0/cluster/certificate-authority",
            json!("/etc/ca"),
        ),
        ("/clusters/0/cluster/proxy-url", json!("http://proxy")),
        ("/clusters/0/cluster/insecure-skip-tls-verify", json!(true)),
        ("/clusters/0/cluster/extensions", json!([])),
        ("/clusters/0/cluster/from-the-future", json!(1)),
    ];
    for (pointer, value) in rows {
        let field = pointer
            .trim_start_matches("/users/0/")
            .trim_start_matches("/clusters/0/")
            .replace('/', ".");
        let Err(error) = with(pointer, value) else {
            unreachable!("{pointer} was accepted");
        };
        assert_eq!(error, Error::Forbidden(field), "{pointer}");
    }
}

#[test]
fn the_server_must_be_https_and_name_only_a_host() {
    for server in [
        "http://10.0.0.1:6443",
        "10.0.0.1:6443",
        "/path",
        "https://user@host",
        "https://host/?x=1",
        "unix:///run/api.sock",
        "",
    ] {
        let refused = with("/clusters/0/cluster/server", json!(server));
        assert!(
            matches!(
                refused,
                Err(Error::Unusable {
                    field: "cluster.server",
                    ..
                })
            ),
            "{server}: {refused:?}"
        );
    }
}

fn server(server: &str, allowed: Allowed) -> Result<Access, Error> {
    let mut kubeconfig = kubeconfig();
    kubeconfig["clusters"][0]["cluster"]["server"] = json!(server);
    Access::parse(kubeconfig.to_string().as_bytes(), allowed)
}

#[test]
fn a_path_in_the_server_is_refused_unless_that_is_allowed() {
    let rancher = "https://rancher.example/k8s/clusters/c-1";
    let refused = server(rancher, Allowed::default()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "cluster.server must not have a path; the operator allows one with \
         --allow-workload-server-path"
    );
    let allowed = Allowed {
        path: true,
        ..Allowed::default()
    };
    assert!(server(rancher, allowed).is_ok());
    assert!(server("https://10.0.0.1:6443/", Allowed::default()).is_ok());
}

#[test]
fn an_address_of_this_host_or_its_link_is_refused_unless_that_is_allowed() {
    let local = Allowed {
        local: true,
        ..Allowed::default()
    };
    for host in [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.1.1]",
        "localhost",
        "LocalHost.",
        "api.localhost",
    ] {
        let address = format!("https://{host}:6443");
        let refused = server(&address, Allowed::default());
        let refused = refused.expect_err(host).to_string();
        assert!(
            refused.contains("--allow-loopback-workload-server"),
            "{refused}"
        );
        assert!(server(&address, local).is_ok(), "{host}");
    }
    for host in ["10.0.0.1", "[fd00::1]", "128.0.0.1", "localhost.example"] {
        let accepted = server(&format!("https://{host}:6443"), Allowed::default());
        assert!(accepted.is_ok(), "{host}: {accepted:?}");
    }
}

#[test]
fn a_missing_field_is_named() {
    for (pointer, missing) in [
        ("/current-context", "current-context"),
        ("/clusters/0/cluster/server", "cluster.server"),
        (
            "/clusters/0/cluster/certificate-authority-data",
            "cluster.certificate-authority-data",
        ),
        ("/users/0/user/client-key-data", "user.client-key-data"),
        (
            "/users/0/user/client-certificate-data",
            "user.client-certificate-data",
        ),
        ("/users/0/user", "user of the current context"),
    ] {
        assert_eq!(without(pointer), Err(Error::Missing(missing)), "{pointer}");
    }
}

#[test]
fn two_credentials_are_rejected() {
    let refused = with("/users/0/user/token", json!("abc"));
    assert!(matches!(
        refused,
        Err(Error::Unusable { field: "user", .. })
    ));
}

#[test]
fn credentials_that_are_not_pem_are_rejected() {
    for pointer in [
        "/clusters/0/cluster/certificate-authority-data",
        "/users/0/user/client-certificate-data",
        "/users/0/user/client-key-data",
    ] {
        for value in ["%%%", &base64("no pem"), ""] {
            assert!(with(pointer, json!(value)).is_err(), "{pointer} {value}");
        }
    }
    assert!(with("/users/0/user", json!({"token": "a b"})).is_err());
}

#[test]
fn a_kubeconfig_over_the_limit_is_not_parsed() {
    let size = MAX_BYTES + 1;
    assert_eq!(
        Access::parse(&vec![b' '; size], Allowed::default()),
        Err(Error::TooLarge(size))
    );
}

#[test]
fn malformed_input_is_rejected() {
    for garbage in [&b"\xff\xfe"[..], b"[]", b"a: [", b"users: {}", b""] {
        assert!(
            Access::parse(garbage, Allowed::default()).is_err(),
            "{garbage:?}"
        );
    }
}
