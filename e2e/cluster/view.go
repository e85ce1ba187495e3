package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// viewedFrom is a label of a Node with the namespace of its Cluster.
const viewedFrom = "sim.5spot.finos.org/namespace"

// views are the workload control plane for the Clusters of each namespace.
//
// The in-memory provider derives the providerID of a host only from its Machine's name, so that two
// namespaces may have hosts with the same providerID, as two real Clusters may. Each namespace
// therefore has a view: an address of its own at which only its Nodes are listed and watched.
type views struct {
	ctx      context.Context
	workload *kubernetes
	// upstream sends the requests of the views to the server, as the user of every kubeconfig.
	upstream http.RoundTripper
	// serving is the TLS configuration of the views.
	serving *tls.Config
	// urls of the running views, by namespace.
	urls map[string]string
}

// workloadUser is the user of the kubeconfig of every workload cluster.
const workloadUser = "workload-admin"

func newViews(ctx context.Context, workload *kubernetes) (*views, error) {
	user, err := workload.authority.client(workloadUser, "system:masters")
	if err != nil {
		return nil, err
	}
	asking, err := tls.LoadX509KeyPair(user.certificate, user.key)
	if err != nil {
		return nil, err
	}
	asked, err := tls.LoadX509KeyPair(workload.serving.certificate, workload.serving.key)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(workload.authority.certificate)
	return &views{
		ctx:      ctx,
		workload: workload,
		upstream: &http.Transport{
			TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{asking}, RootCAs: trusted},
			ForceAttemptHTTP2: true,
		},
		serving: &tls.Config{
			Certificates: []tls.Certificate{asked},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    trusted,
		},
		urls: map[string]string{},
	}, nil
}

// kubeconfig returns the text of a kubeconfig for the Clusters of a namespace: for the server
// itself or, if viewed, for the view of the namespace.
func (v *views) kubeconfig(namespace string, viewed bool) (string, error) {
	config, err := v.workload.config(workloadUser, "system:masters")
	if err != nil {
		return "", err
	}
	if viewed {
		at, err := v.of(namespace)
		if err != nil {
			return "", err
		}
		for _, cluster := range config.Clusters {
			cluster.Server = at
		}
	}
	text, err := clientcmd.Write(*config)
	return string(text), err
}

// authority returns the certificate and key of the workload cluster's authority.
func (v *views) authority() (certificate, key string, err error) {
	own := v.workload.authority
	signed, err := os.ReadFile(own.path())
	if err != nil {
		return "", "", err
	}
	private, err := os.ReadFile(filepath.Join(own.directory, authorityName+".key"))
	return string(signed), string(private), err
}

// of returns the address of a namespace's view, and starts it if necessary. It ends with the
// context.
func (v *views) of(namespace string) (string, error) {
	if at, served := v.urls[namespace]; served {
		return at, nil
	}
	upstream, err := url.Parse(v.workload.url)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{
		TLSConfig: v.serving.Clone(),
		Handler: &httputil.ReverseProxy{
			Transport: v.upstream,
			// Events of a watch are forwarded at once.
			FlushInterval: -1,
			Rewrite: func(request *httputil.ProxyRequest) {
				request.SetURL(upstream)
				request.Out.URL.RawQuery = selecting(request.In, namespace)
			},
		},
	}
	context.AfterFunc(v.ctx, func() { server.Close() })
	go func() { _ = server.ServeTLS(listener, "", "") }()
	v.urls[namespace] = "https://" + listener.Addr().String()
	return v.urls[namespace], nil
}

// selecting returns the query of a request. For requests of all Nodes, it adds a selector for those
// of the namespace.
func selecting(request *http.Request, namespace string) string {
	if request.Method != http.MethodGet || request.URL.Path != "/api/v1/nodes" {
		return request.URL.RawQuery
	}
	query := request.URL.Query()
	selectors := []string{viewedFrom + "=" + namespace}
	if asked := query.Get("labelSelector"); asked != "" {
		selectors = append(selectors, asked)
	}
	query.Set("labelSelector", strings.Join(selectors, ","))
	return query.Encode()
}
