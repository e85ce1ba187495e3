//! Custom plugins and kinds.

use std::sync::Arc;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_apiserver::{
    Attributes, BuiltinKind, Cluster, Column, FieldSelector, GroupResource, KubeVersion,
    Operation, Options, Patch, Plugin, Resource, Selector, Server, StartError, Status,
    User, Write,
};
use serde_json::{Value, json};

use crate::fixture::{MAPS, at, map, options, send_json};

/// Records the creator of config maps, and limits their number in a namespace.
#[derive(Debug)]
struct MapQuota {
    limit: usize,
}

impl Plugin for MapQuota {
    fn name(&self) -> &'static str {
        "MapQuota"
    }

    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        kube.is_at_least(31)
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let limit = configuration["limit"]
            .as_u64()
            .ok_or("limit is not a number")?;
        let limit = usize::try_from(limit).map_err(|error| error.to_string())?;
        Ok(Arc::new(Self { limit }))
    }

    fn admit(
        &self,
        _cluster: &mut Cluster,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if let Some(map) = object.filter(|_| attributes.is_about("", "configmaps")) {
            map["metadata"]["annotations"]["made-by"] =
                attributes.user().name.as_str().into();
        }
        Ok(())
    }

    fn validate(
        &self,
        cluster: &Cluster,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        if !creates || !attributes.is_about("", "configmaps") {
            return Ok(());
        }
        let maps = GroupResource::new("", "configmaps");
        let there = cluster.objects(&maps, Some(attributes.namespace())).len();
        if there >= self.limit {
            return Err(attributes.forbidden("the namespace has enough of them"));
        }
        if there + 1 == self.limit {
            attributes.warn("this is the last one");
        }
        Ok(())
    }
}

fn quota(limit: usize) -> Vec<Arc<dyn Plugin>> {
    vec![Arc::new(MapQuota { limit })]
}

#[tokio::test]
async fn a_custom_plugin_mutates_warns_and_rejects() {
    let plugins = quota(1);
    let server = Server::new(Options {
        plugins,
        ..options()
    })
    .unwrap();
    let ann = server.client_as(User::new("ann", &["system:masters"]));
    let created = ann.create(MAPS, map("x")).await.unwrap();
    assert_eq!(created["metadata"]["annotations"]["made-by"], "ann");
    let refused = ann.create(MAPS, map("y")).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            403,
            "configmaps \"y\" is forbidden: the namespace has enough of them"
        )
    );
    // An update does not count against the limit.
    let patch = Patch::Merge(json!({"data": {"a": "2"}}));
    ann.patch(&at("x"), patch).await.unwrap();
}

#[tokio::test]
async fn a_custom_plugin_is_enabled_and_configured_by_name() {
    let name = || "MapQuota".to_owned();
    let off = Server::new(Options {
        plugins: quota(0),
        disable_plugins: vec![name()],
        ..options()
    });
    off.unwrap().client().create(MAPS, map("x")).await.unwrap();
    let older = Server::new(Options {
        plugins: quota(0),
        kube: "1.30".parse().unwrap(),
        ..options()
    });
    older
        .unwrap()
        .client()
        .create(MAPS, map("x"))
        .await
        .unwrap();
    let configured = Server::new(Options {
        plugins: quota(0),
        plugin_configurations: [(name(), json!({"limit": 1}))].into(),
        ..options()
    });
    let client = configured.unwrap().client();
    client.create(MAPS, map("x")).await.unwrap();
    client.create(MAPS, map("y")).await.unwrap_err();
}

#[test]
fn duplicate_plugins_and_kinds_and_invalid_configurations_are_rejected() {
    let why = |options: Options| Server::new(options).unwrap_err();
    let twice = quota(1).into_iter().chain(quota(2)).collect();
    let twice = why(Options {
        plugins: twice,
        ..options()
    });
    assert_eq!(twice, StartError::DuplicatePlugin("MapQuota".to_owned()));
    let configured = |name: &str| {
        let configuration = json!({"limit": "many"});
        why(Options {
            plugins: quota(1),
            plugin_configurations: [(name.to_owned(), configuration)].into(),
            ..options()
        })
        .to_string()
    };
    assert_eq!(
        configured("MapQuota"),
        "configuration of admission plugin 'MapQuota': limit is not a number"
    );
    assert_eq!(
        configured("Priority"),
        "configuration of admission plugin 'Priority': the plugin does not accept a \
         configuration"
    );
    assert!(configured("Nonsense").contains("is not known"));
    let twice = why(Options {
        kinds: vec![Arc::new(Widget), Arc::new(Widget)],
        ..options()
    });
    let name = "widgets.example.com".to_owned();
    assert_eq!(twice, StartError::DuplicateKind(name));
}

/// A kind that is compiled into the server.
#[derive(Debug)]
struct Widget;

impl BuiltinKind for Widget {
    fn resource(&self) -> Resource {
        Resource::new("example.com", "v1", "Widget", "widgets")
            .with_short_names(&["wi"])
            .with_columns(vec![Column::new("Size", "integer", "How large it is.")])
            .with_schema(json!({"type": "object", "properties": {"spec": {
                "type": "object", "properties": {"size": {"type": "integer"}}}}}))
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const { &[FieldSelector::new("spec.size")] }
    }

    fn default(&self, object: &mut Value) {
        if object["spec"]["size"].is_null() {
            object["spec"]["size"] = 3.into();
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let size = &write.object["spec"]["size"];
        let large = size.as_i64().is_some_and(|it| it > 9);
        let error =
            || FieldError::invalid("spec.size", size.clone(), "must be at most 9");
        large.then(error).into_iter().collect()
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![
            object["metadata"]["name"].clone(),
            object["spec"]["size"].clone(),
        ]
    }
}

#[tokio::test]
async fn a_custom_kind_is_served_like_built_in_kinds() {
    let kinds: Vec<Arc<dyn BuiltinKind>> = vec![Arc::new(Widget)];
    let server = Server::new(Options { kinds, ..options() }).unwrap();
    let client = server.client();
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = |size: Value| json!({"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"size": size}});
    let refused = client.create(path, widget(json!(10))).await.unwrap_err();
    assert_eq!(
        refused.message,
        "Widget.example.com \"w\" is invalid: spec.size: Invalid value: 10: must be at most 9"
    );
    let refused = client
        .create(path, widget(json!("large")))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 400, "{refused}");
    let mut unknown = widget(Value::Null);
    unknown["spec"]["colour"] = "red".into();
    let created = client.create(path, unknown).await.unwrap();
    assert_eq!(created["spec"], json!({"size": 3}));
    assert_eq!(created["metadata"]["labels"]["a"], "b");
    let by_size = |fields: &str| Selector {
        fields: fields.to_owned(),
        ..Selector::default()
    };
    let found = client.list(path, &by_size("spec.size=3")).await.unwrap();
    assert_eq!(found.items.len(), 1);
    let found = client.list(path, &by_size("spec.size=4")).await.unwrap();
    assert_eq!(found.items.len(), 0);
    let document = "/openapi/v3/apis/example.com/v1";
    let (code, document) = send_json(&server, "GET", document, Value::Null).await;
    assert_eq!(code, 200);
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["type"], "object");
}
