package envtest

import (
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// What is controller-runtime's own, under its own names.
type (
	// CRDInstallOptions say which CRDs are installed, and how.
	CRDInstallOptions = envtest.CRDInstallOptions

	// WebhookInstallOptions say which webhooks are installed, and where they are served.
	WebhookInstallOptions = envtest.WebhookInstallOptions

	// User is a user of the server.
	User = envtest.User

	// Arguments are the flags of a program.
	Arguments = envtest.Arguments

	// Arg is one flag with its values.
	Arg = envtest.Arg
)

// What is controller-runtime's own, under its own names.
var (
	// SetupEnvtestDefaultBinaryAssetsDirectory is the folder in which setup-envtest keeps programs.
	SetupEnvtestDefaultBinaryAssetsDirectory = envtest.SetupEnvtestDefaultBinaryAssetsDirectory

	// EmptyArguments has no flags.
	EmptyArguments = envtest.EmptyArguments

	// InstallCRDs creates or updates CRDs, and waits until they are served.
	InstallCRDs = envtest.InstallCRDs

	// UninstallCRDs deletes CRDs.
	UninstallCRDs = envtest.UninstallCRDs

	// ReadCRDFiles reads the CRDs of the paths of options into them.
	ReadCRDFiles = envtest.ReadCRDFiles

	// CreateCRDs creates or updates CRDs, and does not wait.
	CreateCRDs = envtest.CreateCRDs

	// WaitForCRDs waits until CRDs are served.
	WaitForCRDs = envtest.WaitForCRDs

	// WaitForWebhooks waits until webhook configurations can be read.
	WaitForWebhooks = envtest.WaitForWebhooks
)
