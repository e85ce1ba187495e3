//! `5spot apiserver`: the embedded API server alone, for tests of other programs.

use std::io::Write;
use std::path::PathBuf;

use kube::Client;
use kubemu_clock::Clock;
use tokio::sync::oneshot;

use crate::dev::{data_dir, kubeconfig, load};
use crate::server_flag::{self, ServerFlags};
use crate::signals::Signals;
use crate::{Failure, Outcome, cluster, output};

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
    #[command(flatten)]
    server: ServerFlags,
    /// Manifest or directory of manifests to apply (repeatable)
    #[arg(long, value_name = "FILE|DIR")]
    apply: Vec<PathBuf>,
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
    let directory = args.server.data_dir.as_deref();
    let (storage, credentials) = data_dir::open(directory)?;
    let options = args
        .server
        .options(Clock::system(), storage, &credentials)?;
    let server = server_flag::start(options)?;
    let client = Client::new(server.in_process(), "default");
    for object in &objects {
        load::apply(&client, object).await?;
    }
    let listener = data_dir::listen(args.server.listen, directory).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("reading the server's address", error))?;
    let text = credentials.kubeconfig(address, "5spot-apiserver");
    let written = kubeconfig::write(&args.server.kubeconfig, &text)?;
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
