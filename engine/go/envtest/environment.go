package envtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	existingClusterVariable = "USE_EXISTING_CLUSTER"
	startTimeoutVariable    = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"
	stopTimeoutVariable     = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT"
	attachOutputVariable    = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"

	defaultTimeout = 20 * time.Second

	// As in controller-runtime: tests do not limit their own requests.
	queriesPerSecond = 1000
	burst            = 2000
)

// Environment starts and stops a server, and installs CRDs and webhooks. Its fields have the meaning
// that they have in controller-runtime.
type Environment struct {
	// ControlPlane is the server.
	ControlPlane ControlPlane

	// Scheme says which types have conversion webhooks; scheme.Scheme if it is nil.
	Scheme *runtime.Scheme

	// Config is how the administrator reaches the server. Start sets it, unless an existing cluster
	// is used and it is set.
	Config *rest.Config

	// KubeConfig is a kubeconfig with the content of Config. Start sets it if it is empty.
	KubeConfig []byte

	// CRDInstallOptions say which CRDs are installed, and how.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions say which webhooks are installed, and where they are served.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing makes Start fail if one of the paths of CRDs does not exist.
	ErrorIfCRDPathMissing bool

	// CRDs are installed, with those of CRDInstallOptions. Start sets it to all that it has installed.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are folders and files of CRDs, with those of CRDInstallOptions.
	CRDDirectoryPaths []string

	// DownloadBinaryAssets has no effect: kubemu is not downloaded.
	DownloadBinaryAssets bool

	// DownloadBinaryAssetsVersion is the version of Kubernetes that kubemu emulates, such as "v1.35.0".
	DownloadBinaryAssetsVersion string

	// BinaryAssetsDirectory is a folder in which the program kubemu may be.
	BinaryAssetsDirectory string

	// UseExistingCluster makes Start use a cluster that runs. The variable USE_EXISTING_CLUSTER
	// decides if it is nil.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout is how long the server may take to start; by default the duration of
	// the variable KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, or 20 seconds.
	ControlPlaneStartTimeout time.Duration

	// ControlPlaneStopTimeout is how long the server may take to stop; by default the duration of
	// the variable KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT, or 20 seconds.
	ControlPlaneStopTimeout time.Duration

	// AttachControlPlaneOutput prints what the server prints. So does the variable
	// KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT, if it is "true".
	AttachControlPlaneOutput bool
}

// Start starts a server, installs CRDs and webhooks, and returns the administrator's configuration.
// If CRDs or webhooks are refused, the server runs until Stop is called.
func (te *Environment) Start() (*rest.Config, error) {
	if !te.usesExistingCluster() {
		if err := te.startServer(); err != nil {
			return nil, fmt.Errorf("unable to start control plane itself: %w", err)
		}
	}
	// An environment of controller-runtime, for which the server is a cluster that exists.
	inner := te.inner()
	config, err := inner.Start()
	te.Config = inner.Config
	te.KubeConfig = inner.KubeConfig
	te.Scheme = inner.Scheme
	te.CRDs = inner.CRDs
	te.CRDInstallOptions = inner.CRDInstallOptions
	te.WebhookInstallOptions = inner.WebhookInstallOptions
	return config, err
}

// Stop ends the server and removes its files and those of the webhooks. CRDs are deleted if
// CRDInstallOptions say so.
func (te *Environment) Stop() error {
	cleaned := te.inner().Stop()
	if te.usesExistingCluster() {
		return cleaned
	}
	if err := te.ControlPlane.stop(te.ControlPlaneStopTimeout); err != nil {
		return err
	}
	return cleaned
}

// AddUser returns a user of the server with the settings of a configuration, which may be nil. The
// user is authenticated only once the server has been started.
func (te *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	return te.ControlPlane.AddUser(user, base)
}

func (te *Environment) inner() *envtest.Environment {
	exists := true
	return &envtest.Environment{
		Scheme:                te.Scheme,
		Config:                te.Config,
		KubeConfig:            te.KubeConfig,
		CRDInstallOptions:     te.CRDInstallOptions,
		WebhookInstallOptions: te.WebhookInstallOptions,
		ErrorIfCRDPathMissing: te.ErrorIfCRDPathMissing,
		CRDs:                  te.CRDs,
		CRDDirectoryPaths:     te.CRDDirectoryPaths,
		UseExistingCluster:    &exists,
	}
}

func (te *Environment) startServer() error {
	if err := te.readTimeouts(); err != nil {
		return err
	}
	server := te.ControlPlane.GetAPIServer()
	path, err := te.program()
	if err != nil {
		return err
	}
	if te.AttachControlPlaneOutput || os.Getenv(attachOutputVariable) == "true" {
		if server.Out == nil {
			server.Out = os.Stdout
		}
		if server.Err == nil {
			server.Err = os.Stderr
		}
	}
	defaults, err := te.defaultFlags()
	if err != nil {
		return err
	}
	process, kubeconfig, err := start(path, server.Configure().AsStrings(defaults), server,
		te.ControlPlaneStartTimeout)
	if err != nil {
		return err
	}
	te.ControlPlane.process = process
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	// Like an administrator of controller-runtime, with a certificate alone.
	config.BearerToken = ""
	te.ControlPlane.admin = config
	te.Config = rest.CopyConfig(config)
	te.Config.QPS, te.Config.Burst = queriesPerSecond, burst
	return nil
}

var minorVersion = regexp.MustCompile(`^v?(\d+\.\d+)(\.|$)`)

// defaultFlags are those that Configure may replace.
func (te *Environment) defaultFlags() (map[string][]string, error) {
	// As in controller-runtime, where no kube-controller-manager creates ServiceAccounts.
	defaults := map[string][]string{
		"bare-namespaces":           {"true"},
		"disable-admission-plugins": {"ServiceAccount"},
	}
	if version := te.DownloadBinaryAssetsVersion; version != "" {
		found := minorVersion.FindStringSubmatch(version)
		if found == nil {
			return nil, fmt.Errorf("DownloadBinaryAssetsVersion %q is not a version such as v1.35.0", version)
		}
		defaults["kube-version"] = []string{found[1]}
	}
	return defaults, nil
}

// program is the path of kubemu.
func (te *Environment) program() (string, error) {
	for _, path := range []string{te.ControlPlane.GetAPIServer().Path, os.Getenv(programVariable)} {
		if path != "" {
			return path, nil
		}
	}
	for _, folder := range []string{te.BinaryAssetsDirectory, os.Getenv("KUBEBUILDER_ASSETS")} {
		path := filepath.Join(folder, programName)
		if info, err := os.Stat(path); folder != "" && err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return onPath()
}

func (te *Environment) readTimeouts() error {
	for variable, timeout := range map[string]*time.Duration{
		startTimeoutVariable: &te.ControlPlaneStartTimeout,
		stopTimeoutVariable:  &te.ControlPlaneStopTimeout,
	} {
		if *timeout != 0 {
			continue
		}
		*timeout = defaultTimeout
		if text := os.Getenv(variable); text != "" {
			given, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("%s: %w", variable, err)
			}
			*timeout = given
		}
	}
	return nil
}

func (te *Environment) usesExistingCluster() bool {
	if te.UseExistingCluster == nil {
		return strings.EqualFold(os.Getenv(existingClusterVariable), "true")
	}
	return *te.UseExistingCluster
}
