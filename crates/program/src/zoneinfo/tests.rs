use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fivespot_testkit::fixed_zone;

use super::*;

/// A temporary directory of zones; removed when dropped.
struct Zones(PathBuf);

impl Zones {
    fn new(test: &str) -> Self {
        let name = format!("5spot-zones-{test}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn with(self, name: &str, bytes: &[u8]) -> Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    /// Sets Havana to a fixed number of hours east of Greenwich.
    fn with_havana_at(self, hours: i32) -> Self {
        self.with("America/Havana", &fixed_zone(hours))
    }

    fn of_release(self, release: &str) -> Self {
        let front = format!("# version {release}\n# This zic input file is ...\n");
        self.with("tzdata.zi", front.as_bytes())
    }
}

impl Drop for Zones {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named(zones: &Zones) -> (ZoneData, Option<String>) {
    choose(Some(&zones.0), None, &[]).unwrap()
}

fn hours(data: &ZoneData, zone: &str) -> i32 {
    let noon = "2026-01-15T12:00:00Z".parse().unwrap();
    data.zone(zone).unwrap().to_offset(noon).seconds() / 3600
}

#[test]
fn the_systems_data_is_used_if_it_is_newer_than_the_embedded() {
    let zones = Zones::new("newer").of_release("2999a").with_havana_at(7);
    let (data, warning) = choose(None, None, &[Path::new("/nowhere"), &zones.0]).unwrap();
    assert_eq!(
        (data.source(), data.release()),
        (ZoneSource::System, "2999a")
    );
    assert_eq!((hours(&data, "America/Havana"), warning), (7, None));
    // Zones that the system does not have are read from the embedded data.
    assert_eq!(hours(&data, "Europe/Zurich"), 1);
}

#[test]
fn the_embedded_data_is_used_if_the_systems_is_older_or_has_no_release() {
    let older = Zones::new("older").of_release("2001a").with_havana_at(7);
    let silent = Zones::new("silent").with_havana_at(7);
    let broken = Zones::new("broken").of_release("2999a");
    for zones in [&older, &silent, &broken] {
        let (data, warning) = choose(None, None, &[&zones.0]).unwrap();
        assert_eq!(data.source(), ZoneSource::Embedded, "{:?}", zones.0);
        assert_eq!((hours(&data, "America/Havana"), warning), (-5, None));
    }
}

#[test]
fn a_given_directory_is_used_and_an_older_release_causes_a_warning() {
    let zones = Zones::new("named").of_release("2001a").with_havana_at(7);
    let (data, warning) = named(&zones);
    assert_eq!(
        (data.source(), data.release()),
        (ZoneSource::Directory, "2001a")
    );
    assert_eq!(hours(&data, "America/Havana"), 7);
    let warning = warning.unwrap();
    assert!(
        warning.contains("(--zoneinfo) are release 2001a"),
        "{warning}"
    );
    assert!(warning.contains(embedded_release()), "{warning}");

    let zones = Zones::new("later").of_release("2999a").with_havana_at(7);
    assert_eq!(named(&zones).1, None);
}

#[test]
fn a_directory_without_a_release_counts_as_older() {
    let zones = Zones::new("unversioned").with_havana_at(7);
    let (data, warning) = named(&zones);
    assert_eq!(
        (data.release(), hours(&data, "America/Havana")),
        ("unknown", 7)
    );
    assert!(warning.unwrap().contains("are release unknown"));
}

#[test]
fn tzdir_is_used_unless_the_flag_is_given() {
    let zones = Zones::new("tzdir").of_release("2001a").with_havana_at(7);
    let other = Zones::new("other").of_release("2999a").with_havana_at(8);
    let tzdir = || Some(zones.0.clone().into_os_string());
    let (data, warning) = choose(None, tzdir(), &[&other.0]).unwrap();
    assert_eq!(hours(&data, "America/Havana"), 7);
    assert!(warning.unwrap().contains("($TZDIR)"));
    let (data, _) = choose(Some(&other.0), tzdir(), &[]).unwrap();
    assert_eq!(hours(&data, "America/Havana"), 8);
    let (data, _) = choose(None, Some(OsString::new()), &[]).unwrap();
    assert_eq!(data.source(), ZoneSource::Embedded);
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error_that_names_it() {
    let empty = Zones::new("empty").with("notes.txt", b"TZif, it is not");
    let error = choose(Some(&empty.0), None, &[]).unwrap_err().to_string();
    let dir = empty.0.display();
    assert_eq!(
        error,
        format!(
            "reading time zones from {dir} (--zoneinfo): it contains no compiled zone (TZif \
             file); give a directory of compiled zones, such as /usr/share/zoneinfo"
        )
    );
    let error = choose(Some(Path::new("/nowhere")), None, &[]).unwrap_err();
    assert!(
        error.to_string().contains("/nowhere (--zoneinfo)"),
        "{error}"
    );
}

#[test]
fn links_in_circles_large_files_and_other_files_are_no_zones() {
    let zones = Zones::new("odd")
        .with_havana_at(7)
        .with("America/Large", &[fixed_zone(1), vec![0; 100_000]].concat())
        .with("Asia/Text", b"not a zone")
        .with("right/America/Havana", &fixed_zone(3))
        .with("localtime", &fixed_zone(3))
        .with("bad name/Zone", &fixed_zone(3));
    symlink("nowhere", zones.0.join("Dangling")).unwrap();
    symlink("America/Havana", zones.0.join("Cuba")).unwrap();
    let mut walk = Walk::default();
    walk.directory(&zones.0, "").unwrap();
    let mut names: Vec<&str> = walk.zones.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    assert_eq!(names, ["America/Havana", "Cuba"]);

    for link in ["A", "B", "C", "D", "E", "F", "G", "H", "I"] {
        symlink(".", zones.0.join(link)).unwrap();
    }
    let error = choose(Some(&zones.0), None, &[]).unwrap_err().to_string();
    assert!(
        error.contains("it contains more than 4096 files"),
        "{error}"
    );
}

/// A kubelet writes a new version of a ConfigMap or a Secret beside the old one, and replaces a
/// link.
#[test]
fn zones_of_a_config_map_volume_are_read_once() {
    let zones = Zones::new("configmap").with("..2026_11/America/Havana", &fixed_zone(7));
    symlink("..2026_11", zones.0.join("..data")).unwrap();
    symlink("..data/America", zones.0.join("America")).unwrap();
    let mut walk = Walk::default();
    walk.directory(&zones.0, "").unwrap();
    let names: Vec<&str> = walk.zones.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["America/Havana"]);
}

#[test]
fn a_directory_without_source_text_may_name_its_release_in_a_file_of_its_own() {
    let zones = Zones::new("plus-version")
        .with("+VERSION", b"2999b\n")
        .with_havana_at(7);
    let (data, warning) = choose(None, None, &[&zones.0]).unwrap();
    assert_eq!((data.release(), warning), ("2999b", None));
}
