//! The images of generated manifests.

use crate::Failure;

/// The name of the agent's program.
pub(super) const AGENT: &str = "5spot-reclaim-agent";

/// The flag that accepts every image.
#[derive(Debug, clap::Args)]
pub(super) struct ImageArgs {
    /// Accept an image without a registry, for example to let kustomize replace it
    #[arg(long)]
    allow_unqualified_image: bool,
}

impl ImageArgs {
    /// Checks that an image reference, which is given by a flag and is that of `program`, has a
    /// registry, and that it is not the image of the command line. The default registry of a reference without one has no image of 5-Spot.
    ///
    /// # Errors
    /// The image reference has no registry, and such images are not accepted; or its repository is
    /// named `5spot`.
    pub(super) fn check(
        &self,
        flag: &str,
        program: &str,
        image: &str,
    ) -> Result<(), Failure> {
        let example = format!("registry.example/{program}:0.1.0");
        let name = image.rsplit('/').next().unwrap_or(image);
        if name.split([':', '@']).next() == Some("5spot") {
            let why = format!("{image:?} is the image of the command line");
            let remedy = format!("give that of the program, such as {example}");
            return Err(Failure::new(flag, why).remedy(remedy));
        }
        let is_registry = |part: &str| part == "localhost" || part.contains(['.', ':']);
        match image.split_once('/') {
            Some((registry, _)) if is_registry(registry) => Ok(()),
            _ if self.allow_unqualified_image => Ok(()),
            _ => Err(Failure::new(
                flag,
                format!("{image:?} has no registry, and no node could pull it"),
            )
            .remedy(format!(
                "give the image that you have pushed, such as {example}, or \
                 --allow-unqualified-image"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ImageArgs;

    #[test]
    fn an_image_without_a_registry_is_refused() {
        let args = ImageArgs {
            allow_unqualified_image: false,
        };
        for image in [
            "registry.example/5spot-controller:0.1.0",
            "localhost/controller",
            "127.0.0.1:5000/5spot-controller@sha256:00",
        ] {
            assert!(
                args.check("--image", "5spot-controller", image).is_ok(),
                "{image}"
            );
        }
        for image in ["5spot-controller:0.1.0", "team/controller", ""] {
            let refused = args
                .check("--image", "5spot-controller", image)
                .unwrap_err()
                .to_string();
            assert!(refused.contains("--allow-unqualified-image"), "{refused}");
        }
    }

    #[test]
    fn the_image_of_the_command_line_is_refused() {
        let args = ImageArgs {
            allow_unqualified_image: true,
        };
        for image in [
            "registry.example/5spot:0.1.0",
            "127.0.0.1:5000/5spot@sha256:00",
            "5spot",
        ] {
            let refused = args
                .check("--image", "5spot-controller", image)
                .unwrap_err()
                .to_string();
            assert!(
                refused.ends_with("registry.example/5spot-controller:0.1.0"),
                "{refused}"
            );
        }
    }
}
