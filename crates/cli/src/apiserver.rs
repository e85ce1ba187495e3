//! `5spot apiserver`: the embedded API server alone, for tests of other programs.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use fivespot_apiserver::{KubeVersion, Options, Server, StartError};
use fivespot_clock::Clock;
use kube::Client;
use tokio::sync::oneshot;

use crate::dev::{data_dir, kubeconfig, load, loopback};
use crate::signals::Signals;
use crate::{Failure, Outcome, cluster};

/// Run the embedded API server alone: Kubernetes' own kinds and CRDs, without 5-Spot.
///
/// For evaluation, development and tests; for production use Kubernetes. Nothing runs what is
/// stored: there are no kubelets, no scheduler, and no controllers of workloads. Ends on Ctrl-C or
/// SIGTERM (exit code 0).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot apiserver
  5spot apiserver --kubeconfig /tmp/kubeconfig --apply crds/ --apply policies/
  5spot apiserver --listen 127.0.0.1:6443 --data-dir /tmp/cluster")]
pub(crate) struct Args {
    /// Address to listen on; loopback only, port 0 selects a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = loopback
    )]
    listen: SocketAddr,
    /// Path of the kubeconfig to write, when the server accepts connections; readable only by its
    /// owner
    #[arg(long, value_name = "PATH", default_value = ".5spot/kubeconfig")]
    kubeconfig: PathBuf,
    /// Directory that stores all objects; a later run continues from it [default: in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Manifest or directory of manifests to apply (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    apply: Vec<PathBuf>,
    /// Kubernetes version to emulate, such as 1.36
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Admission plugins to enable in addition to the default ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins to disable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(serve(args, out))
}

async fn serve(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let objects = match args.apply.as_slice() {
        [] => Vec::new(),
        paths => load::read(paths)?,
    };
    let directory = args.data_dir.as_deref();
    let (storage, credentials) = data_dir::open(directory)?;
    let mut options = Options::new(Clock::system());
    options.kube = args.kube_version;
    options.storage = storage;
    options.token_key = Some(credentials.token_key());
    options.authority = Some(credentials.authority_pem().to_owned());
    options.enable_plugins = args.enable_admission_plugins;
    options.disable_plugins = args.disable_admission_plugins;
    let server = Server::new(options).map_err(refused)?;
    let client = Client::new(server.in_process(), "default");
    for object in &objects {
        load::apply(&client, object).await?;
    }
    let listener = data_dir::listen(args.listen, directory).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("reading the server's address", error))?;
    let text = credentials.kubeconfig(address, "5spot-apiserver");
    let written = kubeconfig::write(&args.kubeconfig, &text)?;
    let version = args.kube_version;
    writeln!(
        out,
        "API server at https://{address}, emulating Kubernetes {version} (for evaluation \
         and tests only)\nexport KUBECONFIG={}",
        written.display()
    )?;
    out.flush()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.serve(listener, &credentials, async { drop(stopped.await) });
    tokio::pin!(serving);
    let served = tokio::select! {
        // The listener only ends by itself if it fails.
        served = &mut serving => served,
        () = signals.received() => {
            drop(stop);
            serving.await
        }
    };
    match served {
        Ok(()) => Ok(Outcome::Yes),
        Err(error) => Err(Failure::new("serving", error)),
    }
}

fn refused(error: StartError) -> Failure {
    match error {
        StartError::Stored { .. } => Failure::new("--data-dir", error).remedy(
            "set --kube-version to the version that it was written with, or choose another --data-dir",
        ),
        _ => Failure::new(
            "--enable-admission-plugins, --disable-admission-plugins",
            error,
        )
        .remedy("correct the name, or remove it"),
    }
}
