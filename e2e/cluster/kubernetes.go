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

// controllers of kube-controller-manager that run. Left out on purpose is node lifecycle,
// which would declare Nodes without a kubelet dead; nobody needs the rest.
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

// auditPolicy logs who asked for what and what came of it; bodies are not kept.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: ["RequestReceived", "ResponseStarted"]
rules:
- level: Metadata
`

// kubernetes is a control plane that answers.
type kubernetes struct {
	state     string
	url       string
	authority *authority
	etcd      *embed.Etcd
	client    dynamic.Interface
}

// startKubernetes returns when the API server is ready and the namespace default has what
// the controllers put into every namespace.
func startKubernetes(ctx context.Context, family *family, state string, from binaries) (*kubernetes, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	authority, err := newAuthority(filepath.Join(state, "pki"))
	if err != nil {
		return nil, err
	}
	k := &kubernetes{
		state:     state,
		url:       "https://127.0.0.1:" + port(ports[2]),
		authority: authority,
	}
	serving, err := authority.serving("serving")
	if err != nil {
		return nil, err
	}
	if k.etcd, err = startEtcd(ctx, state, ports[0], ports[1], authority.path(), serving); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if err := k.startServer(ctx, family, from, serving, ports[2]); err != nil {
		k.etcd.Close()
		return nil, err
	}
	if err := k.startControllers(ctx, family, from.kubernetes, serving, ports[3]); err != nil {
		family.stop()
		k.etcd.Close()
		return nil, err
	}
	return k, nil
}

func startEtcd(ctx context.Context, state string, clients, peers int, authority string, serving pair) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(state, "etcd")
	config.LogLevel = "warn"
	config.LogOutputs = []string{filepath.Join(state, "log", "etcd.log")}
	// What is written here need not outlive a loss of power.
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

func (k *kubernetes) startServer(ctx context.Context, family *family, from binaries, serving pair, at int) error {
	toEtcd, err := k.authority.client("kube-apiserver-etcd-client")
	if err != nil {
		return err
	}
	_, tokens, err := newKey(k.authority.directory, "service-accounts")
	if err != nil {
		return err
	}
	policy := filepath.Join(k.state, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	flags := []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + port(at),
		// A machine without a default route has no other address to offer.
		"--advertise-address=127.0.0.1",
		// Nobody looks for the server behind a Service, and loopback is no valid endpoint.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + k.etcd.Config().ListenClientUrls[0].String(),
		"--etcd-cafile=" + k.authority.path(),
		"--etcd-certfile=" + toEtcd.certificate,
		"--etcd-keyfile=" + toEtcd.key,
		"--tls-cert-file=" + serving.certificate,
		"--tls-private-key-file=" + serving.key,
		"--client-ca-file=" + k.authority.path(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + tokens,
		"--service-account-signing-key-file=" + tokens,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + filepath.Join(k.state, "audit.log"),
		// In megabytes: the whole of a run is in one file.
		"--audit-log-maxsize=4096",
	}
	if from.plugins != "" {
		flags = append(flags, "--enable-admission-plugins="+from.plugins)
	}
	server, err := family.start(filepath.Join(from.kubernetes, "kube-apiserver"), nil, flags...)
	if err != nil {
		return err
	}
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
	// The stand-ins ask often, and nobody else pays for it.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	k.client, err = dynamic.NewForConfig(config)
	return err
}

func (k *kubernetes) startControllers(ctx context.Context, family *family, programs string, serving pair, at int) error {
	kubeconfig, err := k.kubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	manager, err := family.start(filepath.Join(programs, "kube-controller-manager"), nil,
		"--bind-address=127.0.0.1",
		"--secure-port="+port(at),
		"--tls-cert-file="+serving.certificate,
		"--tls-private-key-file="+serving.key,
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+filepath.Join(k.authority.directory, "service-accounts.key"),
		"--root-ca-file="+k.authority.path(),
		"--controllers="+strings.Join(controllers, ","),
	)
	if err != nil {
		return err
	}
	return manager.until(ctx, "the service account of namespace default", func() bool {
		_, err := k.client.Resource(serviceAccounts).Namespace("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// kubeconfig makes a user and returns the path of its kubeconfig.
func (k *kubernetes) kubeconfig(user string, groups ...string) (string, error) {
	path := filepath.Join(k.state, user+".kubeconfig")
	config, err := k.config(user, groups...)
	if err != nil {
		return "", err
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// config makes a user's kubeconfig that holds everything itself.
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
