//! The flags of the commands that start an API server.

use std::net::SocketAddr;
use std::path::PathBuf;

use kubemu_apiserver::{Credentials, KubeVersion, Options, Server, StartError, Storage};
use kubemu_clock::Clock;
use kubemu_terminal::Failure;

/// Where the server listens, what it keeps, and which admission plugins it has.
#[derive(Debug, clap::Args)]
pub struct ServerFlags {
    /// Address to listen on; loopback only, port 0 selects a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = loopback
    )]
    pub listen: SocketAddr,
    /// Directory that stores all objects; a later run continues from it [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Kubernetes version to emulate, such as 1.36
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub kube_version: KubeVersion,
    /// Admission plugins to enable in addition to the default ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins to disable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// Allow --enable-admission-plugins to name plugins that Kubernetes has removed
    #[arg(long)]
    removed_admission_plugins: bool,
    /// Create no ServiceAccount and no kube-root-ca.crt in namespaces, like a kube-apiserver without
    /// kube-controller-manager
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value_t = false,
        action = clap::ArgAction::Set,
        hide_possible_values = true,
        hide_default_value = true
    )]
    bare_namespaces: bool,
    /// Read the configurations of admission plugins from this AdmissionConfiguration
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
}

impl ServerFlags {
    /// The options of a server that stores its objects in `storage`.
    ///
    /// # Errors
    /// The configuration of the admission plugins cannot be read.
    pub fn options(
        &self,
        clock: Clock,
        storage: Option<Storage>,
        credentials: &Credentials,
    ) -> Result<Options, Failure> {
        let mut options = Options::new(clock);
        options.kube = self.kube_version;
        options.storage = storage;
        options.token_key = Some(credentials.token_key());
        options.authority = Some(credentials.authority_pem().to_owned());
        options.client_authority = credentials.client_authority_pem();
        options
            .enable_plugins
            .clone_from(&self.enable_admission_plugins);
        options
            .disable_plugins
            .clone_from(&self.disable_admission_plugins);
        options.removed_plugins = self.removed_admission_plugins;
        options.bare_namespaces = self.bare_namespaces;
        if let Some(path) = &self.admission_control_config_file {
            let read = kubemu_apiserver::read_admission_configuration(path);
            options.plugin_configurations = read.map_err(|error| {
                Failure::new("--admission-control-config-file", error)
                    .remedy("correct the file, or choose another")
            })?;
        }
        Ok(options)
    }
}

/// Starts the server.
///
/// # Errors
/// Stored objects or a flag are not valid. The failure names the flag.
pub fn start(options: Options) -> Result<Server, Failure> {
    Server::new(options).map_err(|error| match error {
        StartError::Stored { .. } => Failure::new("--data-dir", error).remedy(
            "set --kube-version to the version that it was written with, or choose another --data-dir",
        ),
        StartError::PluginConfiguration { .. } | StartError::UnusedConfiguration(_) => {
            Failure::new("--admission-control-config-file", error)
                .remedy("correct the configuration, or enable the plugin")
        }
        _ => Failure::new(
            "--enable-admission-plugins, --disable-admission-plugins",
            error,
        )
        .remedy("correct the name, or remove it"),
    })
}

/// Parses a loopback address with a port.
pub fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        "must be an address and a port, such as 127.0.0.1:6443".to_owned()
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("must be a loopback address, such as 127.0.0.1:6443".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        flags: ServerFlags,
    }

    #[test]
    fn a_server_tells_both_authorities_of_its_credentials() {
        let flags = Words::parse_from(["serve"]).flags;
        let credentials = Credentials::generate().expect("credentials");
        let options = flags.options(Clock::system(), None, &credentials);
        let options = options.expect("options");
        let of_server = options.authority.expect("that of the server");
        assert_eq!(of_server, credentials.authority_pem());
        let of_clients = options.client_authority.expect("that of clients");
        assert_eq!(Some(of_clients), credentials.client_authority_pem());
    }
}
