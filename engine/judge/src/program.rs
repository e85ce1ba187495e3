//! Programs that run beside the judge, and the server that they talk to.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubemu_judge::record::BoxError;

use crate::wait;

/// The pause between two looks at what others do.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// A program that ends when it is dropped.
pub(crate) struct Program {
    /// The process.
    pub(crate) child: Child,
}

impl Program {
    /// Starts a program whose output goes to a file.
    ///
    /// # Errors
    /// The program is missing, or the file cannot be written.
    pub(crate) fn start(
        path: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let output = File::create(log)?;
        let child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { child })
    }

    /// A process that ends when this is dropped.
    pub(crate) fn of(child: Child) -> Self {
        Self { child }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A program that has ended already needs no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the server, which writes the kubeconfig when it listens.
///
/// # Errors
/// The server does not answer within [`START`].
pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client, BoxError> {
    let end = Instant::now() + START;
    loop {
        if let Ok(read) = Kubeconfig::read_from(kubeconfig) {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(read, &options).await?;
            let client = Client::try_from(config)?;
            if client.apiserver_version().await.is_ok() {
                return Ok(client);
            }
        }
        if Instant::now() > end {
            return Err("the API server does not answer".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Starts `kubemu serve`, and waits until it answers.
///
/// # Errors
/// It is not built, or does not answer.
pub(crate) fn serve(folder: &Path, kubeconfig: &Path) -> Result<Program, Box<dyn Error>> {
    if kubeconfig.exists() {
        fs::remove_file(kubeconfig)?;
    }
    let program = env::current_exe()?.with_file_name("kubemu");
    let arguments = ["serve".to_owned(), flag("kubeconfig", kubeconfig)];
    let server = Program::start(&program, &arguments, &folder.join("kubemu.log"))?;
    wait(connect(kubeconfig))?;
    Ok(server)
}

/// A flag with a path.
pub(crate) fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// The program to run for Cargo.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// A command that runs in a folder, and whose errors are shown.
pub(crate) fn command(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stderr(Stdio::inherit());
    command
}

/// Runs a command, and returns what it has printed.
///
/// # Errors
/// It cannot be started, fails, or prints what is not UTF-8.
pub(crate) fn run(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
