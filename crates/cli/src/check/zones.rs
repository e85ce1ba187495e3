//! Checks the release of the time zones that the operator uses.

use fivespot_schedule::{ZoneRelease, embedded_release};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::finding::Finding;

/// How long after the end of its year a release is taken for recent. Most years have several, and
/// the first comes within some months.
const RECENT: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Checks the release that an operator of this version contains, unless its Deployment mounts
/// another. `on_this_computer` is the release that this program uses: without a Deployment, the
/// operator may run on a computer with the same.
pub(super) fn check(
    deployment: Option<&Value>,
    on_this_computer: &str,
    now: Timestamp,
) -> Finding {
    const CHECK: &str = "time-zones";
    if deployment.is_some_and(mounts_zones) {
        let message = "the operator reads them from a volume; its metric fivespot_tzdata_info \
                       shows their release";
        return Finding::ok(CHECK, message);
    }
    let embedded = embedded_release();
    let remedy = "use a newer image, or mount newer time zones with `5spot generate manifests \
                  --zoneinfo-volume`";
    let recent = now.checked_sub(RECENT).unwrap_or(now);
    let recent = format!("{}a", TimeZone::UTC.to_datetime(recent).year());
    let is_newer = ZoneRelease::parse(on_this_computer) > ZoneRelease::parse(embedded);
    if deployment.is_some() && is_newer {
        let message = format!(
            "an operator of this version has release {embedded}, and this computer has \
             {on_this_computer}"
        );
        Finding::warning(CHECK, message).remedy(remedy)
    } else if ZoneRelease::parse(embedded) < ZoneRelease::parse(&recent) {
        let message = format!(
            "an operator of this version has release {embedded}, and there are newer ones"
        );
        Finding::warning(CHECK, message).remedy(remedy)
    } else {
        Finding::ok(
            CHECK,
            format!("an operator of this version has release {embedded}"),
        )
    }
}

/// Whether a Deployment names a directory of time zones.
fn mounts_zones(deployment: &Value) -> bool {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let mut containers = containers.into_iter().flatten();
    containers.any(|container| {
        let mut arguments = container["args"].as_array().into_iter().flatten();
        let mut variables = container["env"].as_array().into_iter().flatten();
        arguments.any(|of| of.as_str().is_some_and(|of| of.starts_with("--zoneinfo")))
            || variables.any(|of| of["name"] == "TZDIR")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RELEASED: &str = "2026-11-27T00:00:00Z";

    fn line(deployment: Option<&Value>, on_this_computer: &str, now: &str) -> String {
        let finding = check(deployment, on_this_computer, now.parse().unwrap());
        finding.to_string().replace(embedded_release(), "EMBEDDED")
    }

    fn deployment(container: &Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    }

    fn of_image() -> Value {
        deployment(&json!({"args": ["--enable-leader-election"]}))
    }

    #[test]
    fn the_release_that_an_operator_of_this_version_has_is_shown() {
        assert_eq!(
            line(None, embedded_release(), RELEASED),
            "ok       time-zones  an operator of this version has release EMBEDDED"
        );
        assert!(line(None, "2999a", RELEASED).starts_with("ok "));
        for on_this_computer in ["2001a", "unknown", embedded_release()] {
            let line = line(Some(&of_image()), on_this_computer, RELEASED);
            assert!(line.starts_with("ok "), "{line}");
        }
    }

    #[test]
    fn a_newer_release_on_this_computer_and_a_year_without_one_are_warnings() {
        insta::assert_snapshot!(line(Some(&of_image()), "2999a", RELEASED), @"warning  time-zones  an operator of this version has release EMBEDDED, and this computer has 2999a; use a newer image, or mount newer time zones with `5spot generate manifests --zoneinfo-volume`");
        let spring = "2998-04-02T00:00:00Z";
        insta::assert_snapshot!(line(None, embedded_release(), spring), @"warning  time-zones  an operator of this version has release EMBEDDED, and there are newer ones; use a newer image, or mount newer time zones with `5spot generate manifests --zoneinfo-volume`");
    }

    #[test]
    fn nothing_is_said_about_the_release_that_a_deployment_mounts() {
        let argument = json!({"args": ["--enable-leader-election", "--zoneinfo=/usr/share/zoneinfo"]});
        let variable = json!({"env": [{"name": "TZDIR", "value": "/zones"}]});
        for container in [argument, variable] {
            let line = line(Some(&deployment(&container)), "2999a", RELEASED);
            assert!(line.starts_with("ok ") && line.contains("volume"), "{line}");
        }
    }
}
