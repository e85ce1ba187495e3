//! Putting the parts together and letting them run.

use std::sync::Arc;
use std::time::Duration;

use fivespot_api::name;
use fivespot_apiserver::{Credentials, GroupAlias, Server, StartError, Storage, User};
use fivespot_clock::Clock;
use jiff::SignedDuration;
use kube::Client;
use tokio::sync::oneshot;

use super::neighbour::Neighbour;
use super::story::{Story, instant};
use super::until::Lookout;
use super::{Args, keep, kubeconfig, load, record};
use crate::document::Document;
use crate::signals::Signals;
use crate::{Failure, Outcome};

/// Who the operator and the simulator are in the audit log.
const OPERATOR: &str = "system:serviceaccount:5spot-system:5spot-controller";
const SIMULATOR: &str = "system:serviceaccount:capi-system:capi-manager";

/// How the run ended.
enum End {
    /// By a signal, before these goals were reached.
    Stopped(Vec<String>),
    Reached,
    /// By `--timeout`, before these goals were reached.
    Missed(Vec<String>),
}

/// Starts everything, tells the story, and ends on a signal, a goal or a timeout.
pub(crate) async fn play(args: Args) -> Result<Outcome, Failure> {
    // Before anything is printed: whoever reads a line may send a signal.
    let signals = Signals::listen()?;
    let story = Arc::new(Story::on_stdout());
    let objects = load::read(&args.apply)?;
    let clock = clock(&args);
    let data_dir = args.data_dir.as_deref();
    let (storage, credentials) = keep::open(data_dir)?;
    let server = server(&args, clock.clone(), (storage, &credentials))?;
    let listener = keep::listen(args.listen, data_dir).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("asking for the server's address", error))?;
    let kubeconfig = credentials.kubeconfig(address, "5spot-dev");
    let written = kubeconfig::write(&args.kubeconfig, &kubeconfig)?;

    let client = Client::new(server.in_process(), "default");
    install(&client, args.kube_version.minor()).await?;
    if !args.no_simulator {
        let workload = credentials.certificate_kubeconfig(address, "5spot-dev");
        let simulation = simulation(&server, clock.clone(), workload);
        fivespot_sim::install(&simulation).await.map_err(|status| {
            Failure::new("installing the simulated Cluster API", status)
                .remedy("name another --data-dir, or do without by --no-simulator")
        })?;
        tokio::spawn(fivespot_sim::run(simulation));
    }
    if !args.no_controller {
        start_controller(&server, &clock, address, &story);
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = {
        let (server, credentials) = (server.clone(), credentials);
        tokio::spawn(async move {
            server
                .serve(listener, &credentials, async { drop(stopped.await) })
                .await
        })
    };
    greet(&story, &args, &clock, &format!("https://{address}"));
    story.say(&format!("export KUBECONFIG={}", written.display()));
    apply(&story, &args, &server, objects).await?;

    if clock.is_virtual() {
        let (clock, speed) = (clock.clone(), args.speed.unwrap_or(1));
        tokio::spawn(async move { clock.run(speed).await });
    }
    let end = tokio::select! {
        end = wait(&server, &args, signals) => end?,
        // Only a listener that fails ends before it is told to.
        served = &mut serving => return Err(failed_to_serve(served)),
    };
    // The listener may have failed this very moment.
    let _ = stop.send(());
    if !matches!(serving.await, Ok(Ok(()))) {
        tracing::debug!("the listener did not end in order");
    }
    Ok(say_goodbye(&story, &clock, end))
}

/// Applies what was asked for, or the examples as far as their kinds are served.
async fn apply(
    story: &Story,
    args: &Args,
    server: &Server,
    mut objects: Vec<Document>,
) -> Result<(), Failure> {
    if args.apply.is_empty() {
        let others = load::take_unserved(&mut objects, &server.registry());
        if !others.is_empty() {
            let titles = load::titles(&others);
            story.say(&format!("left out what is not served: {titles}"));
        }
    }
    let client = Client::new(server.in_process(), "default");
    for object in &objects {
        load::apply(&client, object).await?;
    }
    story.say(&format!("applied {}", load::titles(&objects)));
    Ok(())
}

fn failed_to_serve(
    served: Result<Result<(), fivespot_apiserver::serve::Error>, tokio::task::JoinError>,
) -> Failure {
    match served {
        Ok(Ok(())) => Failure::new("serving", "the listener has ended"),
        Ok(Err(error)) => Failure::new("serving", error),
        Err(error) => Failure::new("serving", error),
    }
    .remedy("start it again; what is in --data-dir is kept")
}

/// The machine's own clock, unless a start or a speed is asked for.
#[expect(
    clippy::disallowed_methods,
    reason = "where a virtual clock starts by default"
)]
fn clock(args: &Args) -> Clock {
    match (args.start, args.speed) {
        (None, None) => Clock::system(),
        (start, _) => Clock::stopped_at(start.unwrap_or_else(jiff::Timestamp::now)),
    }
}

fn server(
    args: &Args,
    clock: Clock,
    (storage, credentials): (Option<Storage>, &Credentials),
) -> Result<Server, Failure> {
    let mut options = fivespot_apiserver::Options::new(clock);
    options.kube = args.kube_version;
    let alias = |group: &str| GroupAlias {
        group: group.to_owned(),
        of: name::GROUP.to_owned(),
    };
    options.aliases = name::OLDER_GROUPS.map(alias).to_vec();
    options.storage = storage;
    options.token_key = Some(credentials.token_key());
    options.authority = Some(credentials.authority_pem().to_owned());
    options
        .enable_plugins
        .clone_from(&args.enable_admission_plugins);
    options
        .disable_plugins
        .clone_from(&args.disable_admission_plugins);
    options.audit = args.audit_log.as_deref().map(record::to_file).transpose()?;
    Server::new(options).map_err(|error| match error {
        StartError::Stored { .. } => Failure::new("--data-dir", error).remedy(
            "name the release that it was written with by --kube-version, or another \
             --data-dir",
        ),
        _ => Failure::new(
            "--enable-admission-plugins, --disable-admission-plugins",
            error,
        )
        .remedy("correct the name, or leave it out"),
    })
}

/// Installs what a production cluster is given.
async fn install(client: &Client, kube_minor: u32) -> Result<(), Failure> {
    for object in fivespot_api::manifest::installed(kube_minor) {
        let origin = "the built-in manifests".to_owned();
        load::apply(
            client,
            &Document {
                origin,
                object,
                place: None,
            },
        )
        .await
        // Nobody wrote them; only what is stored can stand against them.
        .map_err(|failure| failure.remedy("name another --data-dir, or an empty one"))?;
    }
    Ok(())
}

fn simulation(
    server: &Server,
    clock: Clock,
    kubeconfig: String,
) -> fivespot_sim::Options {
    fivespot_sim::Options {
        client: server.client_as(User::new(SIMULATOR, &["system:masters"])),
        clock,
        contract: fivespot_sim::Contract::V1Beta2,
        kubeconfig: Some(kubeconfig),
    }
}

fn start_controller(
    server: &Server,
    clock: &Clock,
    address: std::net::SocketAddr,
    story: &Arc<Story>,
) {
    let service = server.in_process_as(User::new(OPERATOR, &["system:masters"]));
    let client = Client::new(service, "default");
    let mut options = fivespot_controller::Options::new(client.clone(), clock.clone());
    options.connect = Arc::new(Neighbour { address, client });
    options.workload_servers.local = true;
    options.observe = story.clone();
    tokio::spawn(fivespot_controller::run(options));
}

fn greet(story: &Story, args: &Args, clock: &Clock, url: &str) {
    story.say(&format!(
        "API server at {url}, answering as Kubernetes {} (for development; production is Kubernetes)",
        args.kube_version
    ));
    if clock.is_virtual() {
        let speed = args.speed.unwrap_or(1);
        let now = instant(clock.now());
        story.say(&format!(
            "virtual clock from {now}, {speed} seconds a second"
        ));
    }
}

async fn wait(
    server: &Server,
    args: &Args,
    mut signals: Signals,
) -> Result<End, Failure> {
    let mut lookout = match &args.until {
        Some(goals) => Some(Lookout::new(
            &server.client(),
            &server.registry(),
            goals.clone(),
        )?),
        None => None,
    };
    let reached = async {
        match &mut lookout {
            Some(lookout) => lookout.reached().await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        () = signals.heard() => End::Stopped,
        () = reached => return Ok(End::Reached),
        () = patience(args) => End::Missed,
    };
    Ok(end(lookout.map_or_else(Vec::new, |it| it.missed())))
}

/// `--timeout`, on the machine's own clock.
async fn patience(args: &Args) {
    match args.timeout {
        Some(timeout) => {
            let timeout = SignedDuration::from(timeout);
            tokio::time::sleep(Duration::try_from(timeout).unwrap_or(Duration::MAX))
                .await;
        }
        None => std::future::pending().await,
    }
}

fn say_goodbye(story: &Story, clock: &Clock, end: End) -> Outcome {
    let now = instant(clock.now());
    match end {
        End::Stopped(goals) if goals.is_empty() => {
            story.say(&format!("{now}  stopped"));
            Outcome::Yes
        }
        End::Stopped(goals) => {
            story.say(&format!("{now}  stopped before: {}", goals.join(", ")));
            Outcome::No
        }
        End::Reached => {
            story.say(&format!("{now}  reached"));
            Outcome::Yes
        }
        End::Missed(goals) => {
            story.say(&format!("{now}  not reached in time: {}", goals.join(", ")));
            Outcome::No
        }
    }
}
