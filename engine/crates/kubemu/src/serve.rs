//! `kubemu serve`: the API server, for tests of other programs.

use std::io::Write;
use std::path::PathBuf;

use kube::Client;
use kubemu_clock::Clock;
use kubemu_terminal::signals::Signals;
use kubemu_terminal::{Failure, Outcome};
use tokio::sync::oneshot;

use crate::server_flag::{self, ServerFlags};
use crate::{apply, data_dir, document, kubeconfig, output};

/// The examples of the command's help.
pub const EXAMPLES: &str = "\
Examples:
  kubemu serve
  kubemu serve --kubeconfig /tmp/kubeconfig --apply crds/ --apply policies/
  kubemu serve --listen 127.0.0.1:6443 --data-dir /tmp/cluster";

/// The field manager of the applied objects.
const FIELD_MANAGER: &str = "kubemu";

/// Run an API server: Kubernetes' own kinds, and CRDs.
///
/// For evaluation, development and tests; for production use Kubernetes. Nothing runs what is
/// stored: there are no kubelets, no scheduler, and no controllers of workloads. Ends on Ctrl-C or
/// SIGTERM (exit code 0).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    server: ServerFlags,
    /// Path of the kubeconfig to write; readable only by its owner
    #[arg(long, value_name = "PATH", default_value = ".kubemu/kubeconfig")]
    kubeconfig: PathBuf,
    /// Manifest or directory of manifests to apply (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    apply: Vec<PathBuf>,
}

/// Serves until a signal, or until nobody reads the output.
///
/// # Errors
/// A flag, a manifest or the address cannot be used.
pub fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    kubemu_terminal::block_on(serve(args, out))
}

async fn serve(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let objects = document::read(&args.apply)?;
    let directory = args.server.data_dir.as_deref();
    let (storage, credentials) = data_dir::open(directory)?;
    // Before this server listens, because it may use the port in its data directory.
    kubeconfig::check_unused(&args.kubeconfig).await?;
    let options = args
        .server
        .options(Clock::system(), storage, &credentials)?;
    let server = server_flag::start(options)?;
    let client = Client::new(server.in_process(), "default");
    for object in &objects {
        apply::apply(&client, object, FIELD_MANAGER).await?;
    }
    let listener = data_dir::listen(args.server.listen, directory).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("reading the server's address", error))?;
    let text = credentials.kubeconfig(address, "kubemu");
    let written = kubeconfig::write(&args.kubeconfig, &text)?;
    let version = args.server.kube_version;
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
    let stopped = async {
        tokio::select! {
            () = signals.received() => {}
            () = output::closed() => {}
        }
    };
    let served = tokio::select! {
        // The listener ends without a signal only if it fails.
        served = &mut serving => served,
        () = stopped => {
            drop(stop);
            serving.await
        }
    };
    match served {
        Ok(()) => Ok(Outcome::Yes),
        Err(error) => Err(Failure::new("serving", error)),
    }
}
