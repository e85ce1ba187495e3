//! The images of generated manifests.

use crate::Failure;

/// A flag for an image, and a value for it as an example.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageFlag {
    flag: &'static str,
    example: &'static str,
}

/// The image of the operator.
pub(super) const IMAGE: ImageFlag = ImageFlag {
    flag: "--image",
    example: "registry.example/5spot-controller:0.1.0",
};

/// The image of the webhook, where it is the only one.
pub(super) const ONLY_WEBHOOK_IMAGE: ImageFlag = ImageFlag {
    flag: "--image",
    example: "registry.example/5spot-webhook:0.1.0",
};

/// The image of the webhook, beside that of the operator.
pub(super) const WEBHOOK_IMAGE: ImageFlag = ImageFlag {
    flag: "--webhook-image",
    ..ONLY_WEBHOOK_IMAGE
};

/// The image of the agent, where it is the only one.
pub(super) const ONLY_AGENT_IMAGE: ImageFlag = ImageFlag {
    flag: "--image",
    example: "registry.example/5spot-reclaim-agent:0.1.0",
};

/// The image of the agent, beside that of the operator.
pub(super) const AGENT_IMAGE: ImageFlag = ImageFlag {
    flag: "--agent-image",
    ..ONLY_AGENT_IMAGE
};

/// The flag that accepts every image.
#[derive(Debug, clap::Args)]
pub(super) struct ImageArgs {
    /// Accept an image without a registry, for example to let kustomize replace it
    #[arg(long)]
    allow_unqualified_image: bool,
}

impl ImageArgs {
    /// Checks that an image reference has a registry, and that it is not the image of the command
    /// line. The default registry of a reference without one has no image of 5-Spot.
    ///
    /// # Errors
    /// The image reference has no registry, and such images are not accepted; or its repository is
    /// named `5spot`.
    pub(super) fn check(&self, flag: ImageFlag, image: &str) -> Result<(), Failure> {
        let name = image.rsplit('/').next().unwrap_or(image);
        if name.split([':', '@']).next() == Some("5spot") {
            let why = format!("{image:?} is the image of the command line");
            let remedy = format!("give that of the program, such as {}", flag.example);
            return Err(Failure::new(flag.flag, why).remedy(remedy));
        }
        let is_registry = |part: &str| part == "localhost" || part.contains(['.', ':']);
        match image.split_once('/') {
            Some((registry, _)) if is_registry(registry) => Ok(()),
            _ if self.allow_unqualified_image => Ok(()),
            _ => Err(Failure::new(
                flag.flag,
                format!("{image:?} has no registry, and no node could pull it"),
            )
            .remedy(format!(
                "give the image that you have pushed, such as {}, or \
                 --allow-unqualified-image",
                flag.example
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IMAGE, ImageArgs};

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
            assert!(args.check(IMAGE, image).is_ok(), "{image}");
        }
        for image in ["5spot-controller:0.1.0", "team/controller", ""] {
            let refused = args.check(IMAGE, image).unwrap_err().to_string();
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
            let refused = args.check(IMAGE, image).unwrap_err().to_string();
            assert!(
                refused.ends_with("registry.example/5spot-controller:0.1.0"),
                "{refused}"
            );
        }
    }
}
