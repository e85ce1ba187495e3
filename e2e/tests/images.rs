//! The Containerfile builds images of one static program that runs as an unprivileged user. The
//! images are the same wherever they are built. buildah builds them, without a registry.
//!
//! If `RELEASE_BINARIES` names the output folder of `cargo xtask release --dry-run`
//! (`target/release-binaries`), its images are run as their pods run them. Otherwise, the image
//! contains another static program that is available here.

pub(crate) mod installed;
mod pod;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::folder::Folder;
use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(an_image_is_one_program_that_runs_as_nobody)
        .with_programs(&["buildah", "actionlint"])
        .on_embedded_alone("builds without a cluster"),
    promise!(the_operator_s_image_reaches_its_server_by_name_and_by_address)
        .with_programs(&["buildah", "runc", "kubectl"])
        .with_variable(BINARIES)
        .on_embedded_alone("runs what a release contains"),
    promise!(the_agent_s_image_sees_the_programs_of_its_host)
        .with_programs(&["buildah", "runc", "kubectl"])
        .with_variable(BINARIES)
        .on_embedded_alone("runs what a release contains"),
];

/// The variable with the folder of a release's binaries.
const BINARIES: &str = "RELEASE_BINARIES";

const TIME: &str = "1770000000";

/// The files next to the program.
const NOTICES: [&str; 3] = ["LICENSE", "RUST-LICENSES.html", "THIRD-PARTY-LICENSES"];

/// The images by their targets, with their programs, in the order in which they are built.
const IMAGES: [(&str, &str); 4] = [
    ("controller", "5spot-controller"),
    ("agent", "5spot-reclaim-agent"),
    ("webhook", "5spot-webhook"),
    ("cli", "5spot"),
];

/// A folder of its own with buildah's storage. Both are removed at the end.
struct BuildahFolder(Folder);

impl BuildahFolder {
    fn new(name: &str) -> Self {
        let folder = Folder::new(&format!("images-{name}"));
        std::fs::create_dir_all(folder.path().join("context/amd64")).unwrap();
        Self(folder)
    }

    async fn buildah(&self, words: &[&str]) -> String {
        let mut buildah = Command::new(program::path("buildah").unwrap());
        buildah
            .args(["--storage-driver", "vfs", "--root"])
            .arg(self.0.path().join("root"))
            .arg("--runroot")
            .arg(self.0.path().join("run"))
            .args(words);
        program::output(&mut buildah).await.trim().to_owned()
    }

    /// Builds all images, and returns their ids.
    async fn build(&self, program: impl Fn(&str) -> PathBuf) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let context = self.0.path().join("context");
        for (_, name) in IMAGES {
            let to = context.join("amd64").join(name);
            std::fs::copy(program(name), to).unwrap();
        }
        for name in NOTICES {
            std::fs::copy(root.join("LICENSE"), context.join(name)).unwrap();
        }
        let file = root.join("Containerfile");
        let (file, context) = (file.to_str().unwrap(), context.to_str().unwrap());
        let mut ids = Vec::new();
        for (target, _) in IMAGES {
            let words = [
                "build",
                "--quiet",
                "--isolation",
                "chroot",
                "--layers=false",
                "--timestamp",
                TIME,
                "--target",
                target,
                "--file",
                file,
                context,
            ];
            ids.push(self.buildah(&words).await);
        }
        ids
    }
}

async fn an_image_is_one_program_that_runs_as_nobody() {
    let (one, other) = (
        BuildahFolder::new("one"),
        BuildahFolder::new("on-another-path"),
    );
    let program = |_: &str| program::path("actionlint").unwrap();
    let ids = one.build(program).await;
    let again = other.build(program).await;
    assert_eq!(ids, again, "the bytes depend on the place");
    for (id, (_, name)) in ids.iter().zip(IMAGES) {
        let config = one.buildah(&["inspect", "--type", "image", id]).await;
        let config: Value = serde_json::from_str(&config).unwrap();
        let config = &config["OCIv1"]["config"];
        assert_eq!(config["User"], "65532:65532");
        assert_eq!(config["Entrypoint"], json!([format!("/{name}")]));
        let container = one.buildah(&["from", id]).await;
        let root = one.buildah(&["mount", &container]).await;
        let mut files: Vec<String> = std::fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| !["dev", "proc", "sys", "run", "etc"].contains(&file.as_str()))
            .collect();
        files.sort();
        let mut expected = vec![name];
        expected.extend(NOTICES);
        assert_eq!(files, expected);
        let program = format!("/{name}");
        let words = [
            "run",
            "--isolation",
            "chroot",
            &container,
            &program,
            "-version",
        ];
        let printed = one.buildah(&words).await;
        assert!(printed.contains("built with go"), "{printed}");
    }
}

/// The images of a release, and the place with their storage.
async fn released(name: &str) -> (BuildahFolder, Vec<String>) {
    let buildah_folder = BuildahFolder::new(name);
    let folder = PathBuf::from(std::env::var(BINARIES).unwrap()).join("amd64");
    let ids = buildah_folder.build(|name| folder.join(name)).await;
    (buildah_folder, ids)
}

async fn the_operator_s_image_reaches_its_server_by_name_and_by_address() {
    let (buildah_folder, ids) = released("operator").await;
    let dev = pod::Dev::start(buildah_folder.0.path());
    let resolver = pod::Resolver::start().await;
    let pod = pod::Pod::of_operator(&buildah_folder, &ids[0]).await;
    for (way, host) in [("address", "127.0.0.1"), ("name", pod::NAME)] {
        let server = format!("https://{host}:{}", dev.port());
        let words = [
            "--bind-address=127.0.0.1".to_owned(),
            format!("--metrics-port={}", pod::free_port()),
            format!("--health-port={}", pod::free_port()),
        ];
        let running = pod.run(way, &dev.kubeconfig(&server), &words);
        let machine = dev.create_machine(way).await;
        // It was created by an operator that has reached its server. There are no Nodes here.
        dev.wait(&machine, "jsonpath={.status.machineRef.name}")
            .await;
        drop(running);
    }
    assert!(resolver.queries() > 0, "the name was not resolved");
}

async fn the_agent_s_image_sees_the_programs_of_its_host() {
    let (buildah_folder, ids) = released("agent").await;
    let dev = pod::Dev::start(buildah_folder.0.path());
    let server = format!("https://127.0.0.1:{}", dev.port());
    // This program runs outside of the container.
    let own = std::env::current_exe().unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    dev.create_node("workstation", own).await;
    let pod = pod::Pod::of_agent(&buildah_folder, &ids[1]).await;
    // The Node has no kubelet, and the user is not the agent's account.
    let words = [
        "--node-name=workstation",
        "--skip-host-id-check",
        "--skip-policy-check",
    ]
    .map(str::to_owned);
    let running = pod.run("agent", &dev.kubeconfig(&server), &words);
    let requested =
        "jsonpath={.metadata.annotations.5spot\\.finos\\.org/reclaim-requested}=true";
    dev.wait("node/workstation", requested).await;
    drop(running);
}
