//! Warnings about overlapping paths of a volume's files (`warningsForOverlappingVirtualPaths`).

use crate::kind::field::Field;

/// A file with its source.
#[derive(Clone, Copy)]
struct File<'a> {
    path: &'a str,
    /// The kind of its source in a projected volume; else empty.
    source: &'static str,
    /// The name of its source, if any.
    name: Option<&'a str>,
}

impl<'a> File<'a> {
    fn new(path: &'a str, source: &'static str, name: Option<&'a str>) -> Self {
        let path = path.trim_end_matches('/');
        Self { path, source, name }
    }

    fn text(&self) -> String {
        let Self { path, source, name } = self;
        match name {
            _ if source.is_empty() => format!("{path:?}"),
            None => format!("{path:?} ({source})"),
            Some(name) => format!("{path:?} ({source} {name:?})"),
        }
    }

    fn overlaps_with(&self, other: &File<'_>) -> bool {
        let is_below = |one: &str, other: &str| {
            let rest = one.strip_prefix(other);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        is_below(self.path, other.path) || is_below(other.path, self.path)
    }
}

/// Warns about overlapping paths in the volumes of a pod.
pub(super) fn overlapping(volumes: &Field<'_>, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        let name = volume.child("name").text();
        let mut warn = |kind: &str, of: Option<&str>, files: &[File<'_>]| {
            let of = of.map(|it| format!(" {it:?}")).unwrap_or_default();
            for overlap in overlaps(files) {
                warnings.push(format!(
                    "volume {name:?} ({kind}{of}): overlapping paths: {overlap}"
                ));
            }
        };
        let config = volume.child("configMap");
        if config.is_set() {
            let of = config.child("name").text();
            warn("ConfigMap", Some(of), &items(&config, "", None));
        }
        let secret = volume.child("secret");
        if secret.is_set() {
            let of = secret.child("secretName").text();
            warn("Secret", Some(of), &items(&secret, "", None));
        }
        let downward = volume.child("downwardAPI");
        warn("DownwardAPI", None, &items(&downward, "", None));
        let sources = volume.child("projected.sources");
        let files: Vec<File<'_>> = sources.items().flat_map(|it| source(&it)).collect();
        warn("Projected", None, &files);
        for _ in sources.items().filter(|it| it.len() == 0) {
            warnings.push(format!(
                "volume {name:?} (Projected) has no sources provided"
            ));
        }
    }
}

/// The files of a projected source: those of the first source type that is set.
fn source<'a>(source: &Field<'a>) -> Vec<File<'a>> {
    for (name, text) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let of = source.child(name);
        if of.child("items").is_set() {
            return items(&of, text, Some(of.child("name").text()));
        }
    }
    let downward = source.child("downwardAPI");
    if downward.child("items").is_set() {
        return items(&downward, "DownwardAPI", None);
    }
    let token = source.child("serviceAccountToken");
    if token.is_set() {
        let path = token.child("path").text();
        return vec![File::new(path, "ServiceAccountToken", None)];
    }
    let bundle = source.child("clusterTrustBundle");
    if bundle.is_set() {
        let names = ["name", "signerName"].map(|it| bundle.child(it));
        let named = names.iter().find(|it| it.is_set());
        let named = named.map(Field::text).unwrap_or_default();
        let path = bundle.child("path").text();
        return vec![File::new(path, "ClusterTrustBundle", Some(named))];
    }
    let certificate = source.child("podCertificate");
    let files = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let files =
        files.map(|(name, of)| File::new(certificate.child(name).text(), of, None));
    files.into_iter().filter(|it| !it.path.is_empty()).collect()
}

fn items<'a>(
    source: &Field<'a>,
    kind: &'static str,
    name: Option<&'a str>,
) -> Vec<File<'a>> {
    let items = source.child("items").items();
    items
        .map(|it| File::new(it.child("path").text(), kind, name))
        .collect()
}

fn overlaps(files: &[File<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, file) in files.iter().enumerate() {
        if !file.path.is_empty() {
            let others = files.iter().take(index).filter(|it| !it.path.is_empty());
            let others = others.filter(|it| it.overlaps_with(file));
            found.extend(others.map(|it| format!("{} with {}", file.text(), it.text())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_and_nested_paths_overlap() {
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
