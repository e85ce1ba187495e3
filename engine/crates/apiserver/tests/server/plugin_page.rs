//! docs/admission-plugins.md lists every plugin, and each of its examples is run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use kubemu_apiserver::{
    Client, KubeVersion, Options, Patch, Plugin, Server, User, builtin_plugins,
};
use serde_json::Value;

use crate::fixture::options;

fn page() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/admission-plugins.md"
    );
    fs::read_to_string(path).unwrap()
}

/// Whether a plugin is enabled by default, and the flag that changes it.
fn default(plugin: &dyn Plugin) -> (&'static str, String) {
    let name = plugin.name();
    if let Some(removal) = plugin.removal() {
        let flags =
            format!("`--removed-admission-plugins --enable-admission-plugins={name}`");
        let release = removal.release;
        return ("removed", format!("{flags} (removed in {release})"));
    }
    if plugin.is_on_by_default(KubeVersion::default()) {
        return ("on", format!("`--disable-admission-plugins={name}`"));
    }
    ("off", format!("`--enable-admission-plugins={name}`"))
}

#[test]
fn the_page_lists_every_plugin_in_order() {
    let mut table =
        "| plugin | what it does here | default | flag |\n|---|---|---|---|\n".to_owned();
    for plugin in builtin_plugins() {
        let (on, flag) = default(&*plugin);
        let (name, does) = (plugin.name(), plugin.description());
        let anchor = name.to_lowercase();
        writeln!(table, "| [{name}](#{anchor}) | {does} | {on} | {flag} |").unwrap();
    }
    assert!(
        page().contains(&table),
        "the page lacks this table:\n{table}"
    );
}

/// The plugins of the document about admission controllers, in its order, without the two of
/// [`WITHDRAWN`].
const DOCUMENTED: [&str; 30] = [
    "AlwaysAdmit",
    "AlwaysPullImages",
    "AlwaysDeny",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyExecOnPrivileged",
    "DenyEscalatingExec",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeLabel",
    "PodNodeSelector",
    "PersistentVolumeClaimResize",
    "PodPreset",
    "PodSecurityPolicy",
    "PodTolerationRestriction",
    "Priority",
    "ResourceQuota",
    "SecurityContextDeny",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "ValidatingAdmissionWebhook",
];

/// Plugins of the document that Kubernetes withdrew as alphas. They have no section, because they
/// cannot be enabled.
const WITHDRAWN: [&str; 2] = ["Initializers", "InitialResources"];

#[test]
fn every_plugin_of_the_document_is_on_the_page() {
    let page = page();
    let rows: Vec<&str> = page
        .lines()
        .filter_map(|it| it.strip_prefix("| [")?.split(']').next())
        .collect();
    let missing: Vec<_> = DOCUMENTED.iter().filter(|it| !rows.contains(it)).collect();
    assert!(missing.is_empty(), "{missing:?} have no row");
    for name in WITHDRAWN {
        assert!(page.contains(&format!("| {name} |")), "{name} has no row");
    }
    assert_eq!(DOCUMENTED.len() + WITHDRAWN.len(), 32);
}

/// An example: the configuration, the applied objects with their user, and the expected output.
#[derive(Debug, Default)]
struct Example {
    configuration: Option<Value>,
    user: Option<User>,
    objects: Vec<Value>,
    /// The command to run after the objects are applied.
    command: Option<Command>,
    /// The fields that are shown if the last object is accepted.
    shown: Vec<String>,
    expected: String,
}

/// A kubectl command.
#[derive(Debug)]
enum Command {
    /// `kubectl exec POD -- COMMAND`.
    Exec(String),
    /// `kubectl patch PLURAL.VERSION.GROUP NAME --subresource=SUBRESOURCE -p PATCH`, optionally as
    /// another user.
    Patch {
        path: String,
        patch: Value,
        user: Option<User>,
    },
}

impl Command {
    fn read(text: &str) -> Self {
        if let Some(command) = text.strip_prefix("kubectl exec ") {
            let (pod, _) = command.split_once(" -- ").unwrap();
            return Self::Exec(pod.to_owned());
        }
        let (user, text) = match text.strip_prefix("# as ") {
            None => (None, text),
            Some(rest) => {
                let (user, text) = rest.split_once('\n').unwrap();
                (Some(read_user(user)), text)
            }
        };
        let command = text.strip_prefix("kubectl patch ").unwrap();
        let (target, patch) = command.split_once(" -p ").unwrap();
        let words: Vec<&str> = target.split(' ').collect();
        let [what, name, subresource] = <[&str; 3]>::try_from(words).unwrap();
        let subresource = subresource.strip_prefix("--subresource=").unwrap();
        let roots = [
            ("pod", "/api/v1/namespaces/default/pods"),
            (
                "csr",
                "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            ),
        ];
        let (_, root) = roots.into_iter().find(|(of, _)| *of == what).unwrap();
        Self::Patch {
            path: format!("{root}/{name}/{subresource}"),
            patch: serde_json::from_str(patch.trim().trim_matches('\'')).unwrap(),
            user,
        }
    }

    /// Runs the command, which must be rejected. Returns the output.
    async fn run(&self, server: &Server, client: &Client) -> String {
        let refused = match self {
            Self::Exec(pod) => {
                let path = format!("/api/v1/namespaces/default/pods/{pod}/exec");
                client.create(&path, Value::Null).await
            }
            Self::Patch { path, patch, user } => {
                let client = match user {
                    Some(user) => server.client_as(user.clone()),
                    None => client.clone(),
                };
                client.patch(path, Patch::Merge(patch.clone())).await
            }
        };
        format!("{}\n", refused.unwrap_err().message)
    }
}

/// The examples by plugin.
fn examples() -> BTreeMap<String, Example> {
    let mut all: BTreeMap<String, Example> = BTreeMap::new();
    let page = page();
    for section in page.split("\n## ").skip(1) {
        let (name, rest) = section.split_once('\n').unwrap();
        let mut fences = rest.split("```");
        let mut example = Example::default();
        while let (Some(_), Some(fence)) = (fences.next(), fences.next()) {
            let (info, text) = fence.split_once('\n').unwrap();
            match info.split_once(' ').unwrap_or((info, "")) {
                ("yaml", "configuration") => {
                    example.configuration = Some(serde_saphyr::from_str(text).unwrap());
                }
                ("yaml", _) => {
                    let user = text.strip_prefix("# as ");
                    example.user = user.map(|it| read_user(it.lines().next().unwrap()));
                    let documents = text.split("---\n");
                    example.objects = documents
                        .map(|it| serde_saphyr::from_str(it).unwrap())
                        .collect();
                }
                ("sh", _) => {
                    example.command = Some(Command::read(text));
                }
                (_, pointers) => {
                    let pointers = pointers.split_whitespace();
                    example.shown = pointers.map(str::to_owned).collect();
                    text.clone_into(&mut example.expected);
                }
            }
        }
        if !example.objects.is_empty() {
            all.insert(name.to_owned(), example);
        }
    }
    all
}

/// Parses `name of group and group`.
fn read_user(text: &str) -> User {
    let (name, groups) = text.split_once(" of ").unwrap();
    let groups: Vec<&str> = groups.split(" and ").collect();
    User::new(name, &groups)
}

/// Creates an object, or patches an existing one.
async fn apply(server: &Server, client: &Client, object: Value) -> Result<Value, String> {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, number) = version.rsplit_once('/').unwrap_or(("", &version));
    let registry = server.registry();
    let Some(resource) = registry.of_kind(group, number, &kind) else {
        // The message of kubectl, which reads discovery.
        return Err(format!(
            "no matches for kind {kind:?} in version {version:?}"
        ));
    };
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let namespace = match text("/metadata/namespace").as_str() {
        _ if !resource.namespaced => String::new(),
        "" => "/namespaces/default".to_owned(),
        named => format!("/namespaces/{named}"),
    };
    let path = format!("{root}/{version}{namespace}/{}", resource.plural);
    let object_path = format!("{path}/{}", text("/metadata/name"));
    let done = if client.get(&object_path).await.is_ok() {
        client.patch(&object_path, Patch::Merge(object)).await
    } else {
        client.create(&path, object).await
    };
    server.clock().wait_until_idle().await;
    done.map(|it| Value::clone(&it)).map_err(|it| it.message)
}

async fn run(name: &str, example: &Example) -> String {
    let known = builtin_plugins();
    let plugin = known.iter().find(|it| it.name() == name).unwrap();
    let removed = plugin.removal().is_some();
    let is_on = !removed && plugin.is_on_by_default(KubeVersion::default());
    let configuration = example.configuration.clone();
    let server = Server::new(Options {
        enable_plugins: (!is_on).then(|| name.to_owned()).into_iter().collect(),
        removed_plugins: removed,
        plugin_configurations: configuration
            .map(|it| (name.to_owned(), it))
            .into_iter()
            .collect(),
        ..options()
    });
    let server = match server {
        Ok(server) => server,
        Err(why) => return format!("{why}\n"),
    };
    let user = example.user.clone();
    let client = server.client_as(user.unwrap_or_else(User::admin));
    let mut result = Ok(Value::Null);
    for object in &example.objects {
        if let Err(why) = &result {
            return format!("too early: {why}\n");
        }
        result = apply(&server, &client, object.clone()).await;
    }
    if let (Some(command), Ok(_)) = (&example.command, &result) {
        return command.run(&server, &client).await;
    }
    match result {
        Err(why) => format!("{why}\n"),
        Ok(object) => {
            let lines = example.shown.iter().map(|pointer| {
                let found = object.pointer(pointer).unwrap_or(&Value::Null);
                format!("{pointer}: {found}\n")
            });
            lines.collect()
        }
    }
}

#[tokio::test]
async fn every_example_of_the_page_has_the_output_of_the_page() {
    let examples = examples();
    let mut wrong = String::new();
    for (name, example) in &examples {
        let printed = run(name, example).await;
        if printed != example.expected {
            writeln!(wrong, "## {name}\n{printed}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "the page lacks:\n{wrong}");
    for plugin in builtin_plugins() {
        let name = plugin.name();
        assert!(examples.contains_key(name), "there is no example of {name}");
    }
}
