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

// viewedFrom, a label of a Node, is the namespace whose Clusters have it.
const viewedFrom = "sim.5spot.finos.org/namespace"

// views are the workload control plane as the Clusters of a namespace have it.
//
// The in-memory provider names a host after its Machine alone, so that two namespaces have hosts
// of one providerID, as two real Clusters may. Each namespace then has a view, an address of its
// own at which only its Nodes are listed and watched.
type views struct {
	ctx      context.Context
	workload *kubernetes
	// upstream is how a view asks the server, as the user of every kubeconfig.
	upstream http.RoundTripper
	// serving is how it is asked.
	serving *tls.Config
	// urls of the views that are served, by namespace.
	urls map[string]string
}

// workloadUser is who everybody is that reaches a workload cluster by its kubeconfig.
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

// kubeconfig is the text of one for the Clusters of a namespace: to the server itself, or, if it is
// viewed, to the view of that namespace.
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

// authority is certificate and key of who signs in the workload cluster.
func (v *views) authority() (certificate, key string, err error) {
	own := v.workload.authority
	signed, err := os.ReadFile(own.path())
	if err != nil {
		return "", "", err
	}
	private, err := os.ReadFile(filepath.Join(own.directory, authorityName+".key"))
	return string(signed), string(private), err
}

// of is where the view of a namespace is served. It ends with the context.
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
			// Events of a watch are passed on as they come.
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

// selecting is the query of a request, with the Nodes of the namespace selected where it asks for
// all Nodes.
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
