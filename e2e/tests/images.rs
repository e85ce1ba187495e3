//! The Containerfile makes images of one static program, that run it as nobody, and that are equal
//! wherever they are built. Built by buildah, without a registry; the program is another one that is
//! static and here.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::program;
use crate::promise::{Promise, promise};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] =
    &[promise!(an_image_is_one_program_that_runs_as_nobody)
        .with_programs(&["buildah", "actionlint"])
        .on_embedded_alone("builds without a cluster")];

const TIME: &str = "1770000000";

/// A folder of its own, and what buildah stores in it; removed at the end.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        // What is left behind is in the way of nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = format!("images-{}-{name}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(folder.join("context/amd64")).unwrap();
        Self(folder)
    }

    async fn buildah(&self, words: &[&str]) -> String {
        let done = Command::new(program::path("buildah").unwrap())
            .args(["--storage-driver", "vfs", "--root"])
            .arg(self.0.join("root"))
            .arg("--runroot")
            .arg(self.0.join("run"))
            .args(words)
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Builds both images, and returns their ids.
    async fn build(&self) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let context = self.0.join("context");
        for name in ["5spot", "5spot-reclaim-agent"] {
            std::fs::copy(
                program::path("actionlint").unwrap(),
                context.join("amd64").join(name),
            )
            .unwrap();
        }
        std::fs::copy(root.join("LICENSE"), context.join("LICENSE")).unwrap();
        let file = root.join("Containerfile");
        let (file, context) = (file.to_str().unwrap(), context.to_str().unwrap());
        let mut ids = Vec::new();
        for target in ["operator", "agent"] {
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
    let (one, other) = (Place::new("one"), Place::new("on-another-path"));
    let ids = one.build().await;
    assert_eq!(ids, other.build().await, "the bytes depend on the place");
    for (id, name) in ids.iter().zip(["5spot", "5spot-reclaim-agent"]) {
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
        assert_eq!(files, [name.to_owned(), "LICENSE".to_owned()]);
        let program = format!("/{name}");
        let words = [
            "run",
            "--isolation",
            "chroot",
            &container,
            &program,
            "-version",
        ];
        let said = one.buildah(&words).await;
        assert!(said.contains("built with go"), "{said}");
    }
}
