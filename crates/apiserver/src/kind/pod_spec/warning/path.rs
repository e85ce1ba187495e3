//! Warnings of files of a volume that get into each other's way
//! (`warningsForOverlappingVirtualPaths`).

use crate::kind::field::Field;

/// A file, and where it comes from.
#[derive(Clone, PartialEq)]
struct File<'a> {
    path: &'a str,
    source: String,
}

impl File<'_> {
    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    fn meets(&self, other: &File<'_>) -> bool {
        let is_below = |one: &str, other: &str| {
            let rest = one.strip_prefix(other);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        is_below(self.path, other.path) || is_below(other.path, self.path)
    }
}

/// The volumes of a pod.
pub(super) fn overlapping(volumes: &Field<'_>, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        let name = volume.child("name").text();
        let mut warn = |of: &str, files: Vec<File<'_>>| {
            for overlap in overlaps(files) {
                warnings.push(format!(
                    "volume {name:?} ({of}): overlapping paths: {overlap}"
                ));
            }
        };
        let config = volume.child("configMap");
        let of = format!("ConfigMap {:?}", config.child("name").text());
        warn(&of, items(&config, ""));
        let secret = volume.child("secret");
        let of = format!("Secret {:?}", secret.child("secretName").text());
        warn(&of, items(&secret, ""));
        warn("DownwardAPI", items(&volume.child("downwardAPI"), ""));
        let sources = volume.child("projected.sources");
        warn(
            "Projected",
            sources.items().flat_map(|it| source(&it)).collect(),
        );
        for _ in sources.items().filter(|it| it.len() == 0) {
            warnings.push(format!(
                "volume {name:?} (Projected) has no sources provided"
            ));
        }
    }
}

/// The files of one of several sources: the first of these that it has.
fn source<'a>(source: &Field<'a>) -> Vec<File<'a>> {
    for (name, shown) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let of = source.child(name);
        if of.child("items").is_set() {
            return items(&of, &format!("{shown} {:?}", of.child("name").text()));
        }
    }
    let downward = source.child("downwardAPI");
    if downward.child("items").is_set() {
        return items(&downward, "DownwardAPI");
    }
    let token = source.child("serviceAccountToken");
    if token.is_set() {
        return vec![file(
            token.child("path").text(),
            "ServiceAccountToken".into(),
        )];
    }
    let bundle = source.child("clusterTrustBundle");
    if bundle.is_set() {
        let names = ["name", "signerName"].map(|it| bundle.child(it));
        let named = names.iter().find(|it| it.is_set());
        let named = named.map(Field::text).unwrap_or_default();
        let of = format!("ClusterTrustBundle {named:?}");
        return vec![file(bundle.child("path").text(), of)];
    }
    let certificate = source.child("podCertificate");
    let files = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let files = files.map(|(name, of)| file(certificate.child(name).text(), of.into()));
    files.into_iter().filter(|it| !it.path.is_empty()).collect()
}

fn file(path: &str, source: String) -> File<'_> {
    let path = path.trim_end_matches('/');
    File { path, source }
}

fn items<'a>(source: &Field<'a>, of: &str) -> Vec<File<'a>> {
    let items = source.child("items").items();
    items
        .map(|it| file(it.child("path").text(), of.to_owned()))
        .collect()
}

fn overlaps(files: Vec<File<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Vec<File<'_>> = Vec::new();
    for file in files {
        if !file.path.is_empty() {
            let others = before.iter().filter(|it| !it.path.is_empty());
            let others = others.filter(|it| it.meets(&file));
            found
                .extend(others.map(|it| format!("{} with {}", file.shown(), it.shown())));
        }
        before.push(file);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_one_path_and_below_one_another_overlap() {
        let volumes = json!({"volumes": [
            {"name": "a", "configMap": {"name": "c", "items": [
                {"path": "x"}, {"path": "x/y/"}, {"path": "xy"}]}},
            {"name": "b", "projected": {"sources": [
                {"secret": {"name": "s", "items": [{"path": "x"}]}},
                {"serviceAccountToken": {"path": "x"}},
                {}]}},
        ]});
        let mut warnings = Vec::new();
        overlapping(&Field::of(&volumes, "volumes"), &mut warnings);
        let expected = [
            r#"volume "a" (ConfigMap "c"): overlapping paths: "x/y" with "x""#,
            r#"volume "b" (Projected): overlapping paths: "x" (ServiceAccountToken) with "x" (Secret "s")"#,
            r#"volume "b" (Projected) has no sources provided"#,
        ];
        assert_eq!(warnings, expected);
    }
}
