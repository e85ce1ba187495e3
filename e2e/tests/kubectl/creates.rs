//! Objects that kubectl sends in protobuf, and the identity that it prints.

use insta::assert_snapshot;

use super::session::Session;

use crate::promise::{Promise, promise};

/// A real cluster has other roles and accounts.
const WHY: &str = "is about the roles and accounts that the embedded server starts with";

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(what_kubectl_create_generates_is_created)
        .with_kubectl()
        .on_embedded_alone(WHY),
    promise!(kubectl_auth_answers_whoami_and_can_i)
        .with_kubectl()
        .on_embedded_alone(WHY),
    promise!(a_token_that_kubectl_creates_authenticates_its_account)
        .with_kubectl()
        .on_embedded_alone(WHY),
];

const NOW: &str = "2026-03-06T15:00:00Z";

async fn what_kubectl_create_generates_is_created() {
    let session = Session::start(NOW).await;
    let create = async |words: &str| session.kubectl(&format!("create {words}")).await;
    assert_snapshot!(create("namespace team").await, @"namespace/team created");
    assert_snapshot!(
        create("configmap colors -n team --from-literal=sky=blue").await,
        @"configmap/colors created"
    );
    assert_snapshot!(
        create("secret generic keys -n team --from-literal=door=open").await,
        @"secret/keys created"
    );
    assert_snapshot!(create("serviceaccount bot -n team").await, @"serviceaccount/bot created");
    assert_snapshot!(
        create("role reader -n team --verb=get,list --resource=configmaps").await,
        @"role.rbac.authorization.k8s.io/reader created"
    );
    assert_snapshot!(
        create("rolebinding readers -n team --role=reader --serviceaccount=team:bot").await,
        @"rolebinding.rbac.authorization.k8s.io/readers created"
    );
    assert_snapshot!(
        create("namespace team").await,
        @r#"
    Error from server (AlreadyExists): namespaces "team" already exists
    exit status: 1
    "#
    );
    let data = "get secret keys -n team -o jsonpath={.data.door}{.type}";
    assert_snapshot!(session.kubectl(data).await, @"b3Blbg==Opaque");
    assert_snapshot!(session.kubectl("describe role reader -n team").await, @r"
    Name:         reader
    Labels:       <none>
    Annotations:  <none>
    PolicyRule:
      Resources   Non-Resource URLs  Resource Names  Verbs
      ---------   -----------------  --------------  -----
      configmaps  []                 []              [get list]
    ");
    assert_snapshot!(session.kubectl("describe rolebinding readers -n team").await, @r"
    Name:         readers
    Labels:       <none>
    Annotations:  <none>
    Role:
      Kind:  Role
      Name:  reader
    Subjects:
      Kind            Name  Namespace
      ----            ----  ---------
      ServiceAccount  bot   team
    ");
    assert_snapshot!(session.kubectl("describe configmap colors -n team").await, @r"
    Name:         colors
    Namespace:    team
    Labels:       <none>
    Annotations:  <none>

    Data
    ====
    sky:
    ----
    blue


    BinaryData
    ====

    Events:  <none>
    ");
    assert_snapshot!(
        session.kubectl("delete namespace team").await,
        @r#"namespace "team" deleted"#
    );
}

async fn kubectl_auth_answers_whoami_and_can_i() {
    let session = Session::start(NOW).await;
    for words in [
        "create role reader --verb=get,list --resource=configmaps",
        "create rolebinding readers --role=reader --serviceaccount=default:default",
    ] {
        session.kubectl(words).await;
    }
    assert_snapshot!(session.kubectl("auth whoami").await, @r"
    ATTRIBUTE   VALUE
    Username    kubernetes-admin
    Groups      [system:masters system:authenticated]
    ");
    assert_snapshot!(session.kubectl("auth can-i delete nodes").await, @r"
    yes
    Warning: resource 'nodes' is not namespace scoped
    ");
    let bot = "--as=system:serviceaccount:default:default";
    let may = async |words: &str| session.kubectl(&format!("auth {words} {bot}")).await;
    assert_snapshot!(may("whoami").await, @r"
    ATTRIBUTE   VALUE
    Username    system:serviceaccount:default:default
    Groups      [system:serviceaccounts system:serviceaccounts:default system:authenticated]
    ");
    assert_snapshot!(may("can-i list configmaps").await, @"yes");
    assert_snapshot!(may("can-i list secrets").await, @r"
    no
    exit status: 1
    ");
    assert_snapshot!(may("can-i --list").await, @r"
    Resources                                       Non-Resource URLs                      Resource Names   Verbs
    selfsubjectreviews.authentication.k8s.io        []                                     []               [create]
    selfsubjectaccessreviews.authorization.k8s.io   []                                     []               [create]
    selfsubjectrulesreviews.authorization.k8s.io    []                                     []               [create]
    configmaps                                      []                                     []               [get list]
                                                    [/.well-known/openid-configuration/]   []               [get]
                                                    [/.well-known/openid-configuration]    []               [get]
                                                    [/api/*]                               []               [get]
                                                    [/api]                                 []               [get]
                                                    [/apis/*]                              []               [get]
                                                    [/apis]                                []               [get]
                                                    [/healthz]                             []               [get]
                                                    [/healthz]                             []               [get]
                                                    [/livez]                               []               [get]
                                                    [/livez]                               []               [get]
                                                    [/openapi/*]                           []               [get]
                                                    [/openapi]                             []               [get]
                                                    [/openid/v1/jwks/]                     []               [get]
                                                    [/openid/v1/jwks]                      []               [get]
                                                    [/readyz]                              []               [get]
                                                    [/readyz]                              []               [get]
                                                    [/version/]                            []               [get]
                                                    [/version/]                            []               [get]
                                                    [/version]                             []               [get]
                                                    [/version]                             []               [get]
    ");
    assert_snapshot!(
        session.kubectl(&format!("get secrets {bot}")).await,
        @r#"
        Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:default:default" cannot list resource "secrets" in API group "" in the namespace "default"
        exit status: 1
        "#
    );
}

async fn a_token_that_kubectl_creates_authenticates_its_account() {
    let session = Session::start(NOW).await;
    let token = session.kubectl("create token default --duration=20m").await;
    assert_eq!(token.split('.').count(), 3, "{token}");
    let config = async |words: &str| session.kubectl(&format!("config {words}")).await;
    assert_snapshot!(
        config(&format!("set-credentials bot --token={token}")).await,
        @r#"User "bot" set."#
    );
    assert_snapshot!(
        config("set-context --current --user=bot").await,
        @r#"Context "test" modified."#
    );
    assert_snapshot!(session.kubectl("auth whoami -o jsonpath={.status.userInfo.username}").await, @"system:serviceaccount:default:default");
    assert_snapshot!(session.kubectl("get nodes").await, @r#"
    Error from server (Forbidden): nodes is forbidden: User "system:serviceaccount:default:default" cannot list resource "nodes" in API group "" at the cluster scope
    exit status: 1
    "#);
}
