package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// controllers are those of kube-controller-manager that run. Node lifecycle is left out
// deliberately: it would declare Nodes without a kubelet dead. The others are not needed.
var controllers = []string{
	"garbage-collector-controller",
	"namespace-controller",
	"disruption-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller",
	"validatingadmissionpolicy-status-controller",
}

// auditPolicy logs requests and their results, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: ["RequestReceived", "ResponseStarted"]
rules:
- level: Metadata
`

// workload is the name of the control plane that Nodes join.
const workload = "workload"

// kubernetes is a running control plane.
type kubernetes struct {
	// name is empty for the one with Cluster API.
	name      string
	state     string
	url       string
	authority *authority
	client    dynamic.Interface
	// at is the port of the server.
	at      int
	serving pair
}

// store is the etcd of all control planes. Each has its own prefix.
type store struct {
	etcd *embed.Etcd
	// authority signs the certificates of its clients.
	authority *authority
}

// newKubernetes prepares a control plane with its own certificates, so that credentials of one are
// not valid for another.
func newKubernetes(state, name string, at int) (*kubernetes, error) {
	k := &kubernetes{name: name, state: state, url: "https://127.0.0.1:" + port(at), at: at}
	var err error
	if k.authority, err = newAuthority(filepath.Join(state, k.of("pki"))); err != nil {
		return nil, err
	}
	k.serving, err = k.authority.serving("serving")
	return k, err
}

// of returns the name of a file or process that each control plane has.
func (k *kubernetes) of(what string) string {
	if k.name == "" {
		return what
	}
	return k.name + "-" + what
}

// startKubernetes starts etcd and, concurrently, the control planes with it. It returns when their
// servers are ready, and the namespace default of each has its service account.
func startKubernetes(ctx context.Context, family *family, state string, from binaries, names ...string) (*store, []*kubernetes, error) {
	ports, err := freePorts(2 + 2*len(names))
	if err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(auditLog(state), nil, 0o600); err != nil {
		return nil, nil, err
	}
	var all []*kubernetes
	for at, name := range names {
		k, err := newKubernetes(state, name, ports[2+at])
		if err != nil {
			return nil, nil, err
		}
		all = append(all, k)
	}
	s := &store{authority: all[0].authority}
	if s.etcd, err = startEtcd(ctx, state, ports[0], ports[1], s.authority.path(), all[0].serving); err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	if err := s.startAll(ctx, family, from, all, ports[2+len(names):]); err != nil {
		family.stop()
		s.etcd.Close()
		return nil, nil, err
	}
	return s, all, nil
}

// startAll starts all servers, and then their controllers.
func (s *store) startAll(ctx context.Context, family *family, from binaries, all []*kubernetes, ports []int) error {
	var servers []*child
	for _, k := range all {
		server, err := k.startServer(family, from, s)
		if err != nil {
			return err
		}
		servers = append(servers, server)
	}
	for at, k := range all {
		if err := k.awaitServer(ctx, servers[at]); err != nil {
			return err
		}
	}
	var managers []*child
	for at, k := range all {
		manager, err := k.startControllers(family, from.kubernetes, ports[at])
		if err != nil {
			return err
		}
		managers = append(managers, manager)
	}
	for at, k := range all {
		if err := k.awaitControllers(ctx, managers[at]); err != nil {
			return err
		}
	}
	return nil
}

// auditLog is the file that every server appends to. It is created before the servers start,
// because they would overwrite a file that they create.
func auditLog(state string) string { return filepath.Join(state, "audit.log") }

func startEtcd(ctx context.Context, state string, clients, peers int, authority string, serving pair) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(state, "etcd")
	config.LogLevel = "warn"
	config.LogOutputs = []string{filepath.Join(state, "log", "etcd.log")}
	// The data need not survive a power failure.
	config.UnsafeNoFsync = true
	config.ClientTLSInfo = transport.TLSInfo{
		CertFile:       serving.certificate,
		KeyFile:        serving.key,
		TrustedCAFile:  authority,
		ClientCertAuth: true,
	}
	forClients := url.URL{Scheme: "https", Host: "127.0.0.1:" + port(clients)}
	forPeers := url.URL{Scheme: "http", Host: "127.0.0.1:" + port(peers)}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{forClients}, []url.URL{forClients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{forPeers}, []url.URL{forPeers}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(patience):
		err = fmt.Errorf("not ready after %s", patience)
	}
	etcd.Close()
	return nil, err
}

func (k *kubernetes) startServer(family *family, from binaries, store *store) (*child, error) {
	toEtcd, err := store.authority.client(k.of("kube-apiserver-etcd-client"))
	if err != nil {
		return nil, err
	}
	_, tokens, err := newKey(k.authority.directory, "service-accounts")
	if err != nil {
		return nil, err
	}
	policy := filepath.Join(k.state, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	flags := []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port(k.at),
		// A host without a default route has no other address to advertise.
		"--advertise-address=127.0.0.1",
		// The server is not used through a Service, and loopback is no valid endpoint.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + store.etcd.Config().ListenClientUrls[0].String(),
		"--etcd-prefix=/" + k.of("registry"),
		"--etcd-cafile=" + store.authority.path(),
		"--etcd-certfile=" + toEtcd.certificate,
		"--etcd-keyfile=" + toEtcd.key,
		"--tls-cert-file=" + k.serving.certificate,
		"--tls-private-key-file=" + k.serving.key,
		"--client-ca-file=" + k.authority.path(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + tokens,
		"--service-account-signing-key-file=" + tokens,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + auditLog(k.state),
		// In megabytes, so that a whole run is in one file.
		"--audit-log-maxsize=4096",
	}
	if from.plugins != "" {
		flags = append(flags, "--enable-admission-plugins="+from.plugins)
	}
	// Memory is not what a run lacks: fewer collections leave more of two cores to the promises.
	collections := []string{"GOGC=400"}
	return family.start(k.of("kube-apiserver"), filepath.Join(from.kubernetes, "kube-apiserver"), collections, flags...)
}

// awaitServer waits until the server is ready, and creates the administrator's client.
func (k *kubernetes) awaitServer(ctx context.Context, server *child) error {
	if err := server.ready(ctx, k.url+"/readyz"); err != nil {
		return err
	}
	admin, err := k.kubeconfig("admin", "system:masters")
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", admin)
	if err != nil {
		return err
	}
	// The stand-ins send many requests, which do not slow down other clients.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	k.client, err = dynamic.NewForConfig(config)
	return err
}

func (k *kubernetes) startControllers(family *family, programs string, at int) (*child, error) {
	kubeconfig, err := k.kubeconfig("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return family.start(k.of("kube-controller-manager"), filepath.Join(programs, "kube-controller-manager"), nil,
		"--bind-address=127.0.0.1",
		"--secure-port="+port(at),
		"--tls-cert-file="+k.serving.certificate,
		"--tls-private-key-file="+k.serving.key,
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+filepath.Join(k.authority.directory, "service-accounts.key"),
		"--root-ca-file="+k.authority.path(),
		"--controllers="+strings.Join(controllers, ","),
	)
}

// awaitControllers waits until the namespace default has its service account.
func (k *kubernetes) awaitControllers(ctx context.Context, manager *child) error {
	return manager.until(ctx, "the service account of namespace default", func() bool {
		_, err := k.client.Resource(serviceAccounts).Namespace("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// kubeconfig creates a user and returns the path of its kubeconfig.
func (k *kubernetes) kubeconfig(user string, groups ...string) (string, error) {
	path := filepath.Join(k.state, k.of(user+".kubeconfig"))
	config, err := k.config(user, groups...)
	if err != nil {
		return "", err
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// config creates a kubeconfig for a user.
func (k *kubernetes) config(user string, groups ...string) (*clientcmdapi.Config, error) {
	signed, err := k.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = user
	config.Contexts[user] = &clientcmdapi.Context{Cluster: "5spot-e2e", AuthInfo: user}
	config.Clusters["5spot-e2e"] = &clientcmdapi.Cluster{
		Server:               k.url,
		CertificateAuthority: k.authority.path(),
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificate: signed.certificate,
		ClientKey:         signed.key,
	}
	return config, clientcmdapi.FlattenConfig(config)
}
