//! The program as a user observes it: the time zones that it uses, and the commands that moved.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use fivespot_testkit::fixed_zone;

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/business-hours.yaml"
);

/// A directory of release 2999a in which New York has the offset of Tokyo; removed when dropped.
struct Zones(PathBuf);

impl Zones {
    fn new(test: &str) -> Self {
        let name = format!("5spot-tz-{test}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("America")).unwrap();
        fs::write(dir.join("America/New_York"), fixed_zone(9)).unwrap();
        fs::write(dir.join("tzdata.zi"), "# version 2999a\n").unwrap();
        Self(dir)
    }
}

impl Drop for Zones {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fivespot(zones: &Zones, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(args)
        .env("TZDIR", &zones.0)
        .output()
        .unwrap()
}

#[test]
fn a_command_that_moved_names_its_program_in_one_line_and_still_runs() {
    for (command, flags) in [
        ("controller", &["--kubeconfig=/nowhere"][..]),
        ("webhook", &["--port=0", "--certificate-dir=/nowhere"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_5spot"))
            .args([command, "--bind-address=127.0.0.1"])
            .args(flags)
            .args(["--metrics-port=0", "--health-port=0"])
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let (first, rest) = error.split_once('\n').unwrap();
        let expected = format!("warning: `5spot {command}` will be removed");
        assert!(first.starts_with(&expected), "{error}");
        assert!(first.contains(&format!("`5spot-{command}`")), "{error}");
        // What the command itself says about its flag.
        assert!(
            rest.starts_with("error: ") && rest.contains("/nowhere"),
            "{error}"
        );
        assert_eq!(output.status.code(), Some(2));
    }
}

/// The preview of the example, which opens on Monday 2026-03-09 at nine in New York.
fn opening(zones: &Zones, more: &[&str]) -> String {
    let span = [
        "--from",
        "2026-03-08T20:00:00Z",
        "--to",
        "2026-03-09T20:00:00Z",
    ];
    let args = [&["preview", "-f", EXAMPLE, "-o", "json"][..], &span, more].concat();
    let output = fivespot(zones, &args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_preview_is_computed_with_the_zones_of_tzdir() {
    let zones = Zones::new("preview");
    assert!(opening(&zones, &[]).contains("2026-03-09T00:00:00Z"));
    let system = "/usr/share/zoneinfo";
    if fs::exists(format!("{system}/America/New_York")).unwrap() {
        let named = opening(&zones, &["--zoneinfo", system]);
        assert!(named.contains("2026-03-09T13:00:00Z"), "{named}");
    }
}

#[test]
fn version_shows_the_zones_in_use_and_an_invalid_directory_is_an_error() {
    let zones = Zones::new("version");
    let output = fivespot(&zones, &["version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("tzdata       2999a (directory)\n"), "{text}");

    let output = fivespot(&zones, &["version", "--zoneinfo", EXAMPLE]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("error: reading time zones from"),
        "{error}"
    );
    assert!(error.contains("(--zoneinfo): Not a directory"), "{error}");
}
