package envtest

import (
	"errors"
	"io"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ControlPlane is the server of an environment.
type ControlPlane struct {
	// APIServer says how the server is started; GetAPIServer sets it if it is nil.
	APIServer *APIServer

	process *process
	admin   *rest.Config
}

// APIServer says how kubemu is started.
type APIServer struct {
	// Path of the program; empty to look for it.
	Path string

	// Out receives what the server prints on standard output, if it is set.
	Out io.Writer

	// Err receives what the server prints on standard error, if it is set.
	Err io.Writer

	arguments *Arguments
}

// Configure returns the flags of `kubemu serve`, to be changed before the server is started.
func (s *APIServer) Configure() *Arguments {
	if s.arguments == nil {
		s.arguments = EmptyArguments()
	}
	return s.arguments
}

// GetAPIServer returns how the server is started.
func (f *ControlPlane) GetAPIServer() *APIServer {
	if f.APIServer == nil {
		f.APIServer = &APIServer{}
	}
	return f.APIServer
}

// AddUser returns a user of the server with the settings of a configuration, which may be nil.
func (f *ControlPlane) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	if user.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	if base == nil {
		base = &rest.Config{}
	}
	return &AuthenticatedUser{user: user, base: rest.CopyConfig(base), plane: f}, nil
}

func (f *ControlPlane) stop(timeout time.Duration) error {
	if f.process == nil {
		return nil
	}
	process := f.process
	f.process = nil
	return process.stop(timeout)
}

// AuthenticatedUser is a user of the server.
type AuthenticatedUser struct {
	user  User
	base  *rest.Config
	plane *ControlPlane
}

// Config is how the user reaches the server. It panics before the server has been started.
func (u *AuthenticatedUser) Config() *rest.Config {
	admin := u.plane.admin
	if admin == nil {
		panic("the API server has not yet been started, please do that before accessing connection details")
	}
	config := rest.CopyConfig(u.base)
	config.Host = admin.Host
	config.TLSClientConfig = *admin.TLSClientConfig.DeepCopy()
	config.Impersonate = rest.ImpersonationConfig{UserName: u.user.Name, Groups: slices.Clone(u.user.Groups)}
	return config
}

// KubeConfig is a kubeconfig with the content of Config. It panics before the server has been
// started.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) {
	const name = "kubemu"
	config := u.Config()
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.Write(*file)
}
