//! `5spot version`: the version of this program and the supported versions.

use std::io::Write;

use kubemu_admission::KubeVersion;
use serde::Serialize;

use crate::{Failure, Format, Outcome, output};

/// Show version, commit, and supported versions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  5spot version -o json")]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// The oldest and the newest supported Cluster API version.
const CLUSTER_API: Range = Range {
    oldest: "1.5",
    newest: "1.14",
};

/// The oldest Kubernetes version that supports all features.
const OLDEST_KUBERNETES: &str = "1.30";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Release {
    version: &'static str,
    /// The commit of the checkout, or `FIVESPOT_COMMIT` of the environment of the build.
    commit: &'static str,
    kubernetes: Range<String>,
    cluster_api: Range<&'static str>,
    tzdata: ZoneData,
}

/// The tz database that is in use.
#[derive(Debug, Serialize)]
struct ZoneData {
    release: &'static str,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct Range<T = &'static str> {
    oldest: T,
    newest: T,
}

impl Release {
    fn of_this() -> Self {
        let zones = fivespot_schedule::zone_data();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("FIVESPOT_COMMIT"),
            kubernetes: Range {
                oldest: OLDEST_KUBERNETES.to_owned(),
                newest: KubeVersion::NEWEST.to_string(),
            },
            cluster_api: CLUSTER_API,
            tzdata: ZoneData {
                release: zones.release(),
                source: zones.source().as_str(),
            },
        }
    }
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let this = Release::of_this();
    output::print(out, args.output, &this, |out| text(out, &this))?;
    Ok(Outcome::Yes)
}

fn text(out: &mut dyn Write, this: &Release) -> Result<(), Failure> {
    writeln!(
        out,
        "5spot        {} (commit {})",
        this.version, this.commit
    )?;
    let (kubernetes, cluster_api) = (&this.kubernetes, &this.cluster_api);
    writeln!(
        out,
        "Kubernetes   {} to {}",
        kubernetes.oldest, kubernetes.newest
    )?;
    writeln!(
        out,
        "Cluster API  {} to {}",
        cluster_api.oldest, cluster_api.newest
    )?;
    let ZoneData { release, source } = this.tzdata;
    writeln!(out, "tzdata       {release} ({source})")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_lists_supported_versions_in_every_format() {
        let printed = |output| {
            let mut out = Vec::new();
            run(Args { output }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let tzdata = fivespot_schedule::embedded_release();
        let text = printed(Format::Text);
        assert!(
            text.contains("Kubernetes   1.30 to 1.37\nCluster API  1.5 to 1.14\n"),
            "{text}"
        );
        assert!(
            text.ends_with(&format!("tzdata       {tzdata} (embedded)\n")),
            "{text}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&printed(Format::Json)).unwrap();
        assert_eq!(json["clusterApi"]["newest"], "1.14");
        assert!(
            json["commit"].as_str().is_some_and(|it| !it.is_empty()),
            "{json}"
        );
        let yaml = format!("tzdata:\n  release: {tzdata}\n  source: embedded");
        assert!(printed(Format::Yaml).contains(&yaml));
    }
}
