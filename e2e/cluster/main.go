// Command cluster runs a real Kubernetes and a real Cluster API on this computer, without
// containers, until it is stopped. etcd runs in this process. Its child processes are two control
// planes of kube-apiserver and kube-controller-manager: one runs Cluster API's core manager, and
// Nodes join the other. The control plane provider, bootstrap, infrastructure, kubelet and Nodes
// are either stand-ins or Cluster API's kubeadm providers with its in-memory infrastructure
// provider.
//
// It prints one line, "ready", on standard output once everything is available. All other output is
// on standard error and, per child, in the state directory's log folder.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// binaries has the folders of the children's programs, and their options.
type binaries struct {
	// kubernetes has kube-apiserver and kube-controller-manager.
	kubernetes string
	// clusterAPI has the core manager and, in crds, its CRDs.
	clusterAPI string
	// providers has the managers of real providers, each in a folder of its own with its CRDs and
	// webhooks. It is empty if stand-ins run instead.
	providers string
	// plugins are admission plugins of kube-apiserver in addition to the default ones.
	plugins string
	// kwok is the program that acts as the kubelet of every Node.
	kwok string
	// cluster is a file with a Cluster for real providers.
	cluster string
}

// write writes the running versions to a file, derived from their folders.
func (b binaries) write(path string) error {
	version := func(directory, prefix string) string {
		return strings.TrimPrefix(filepath.Base(directory), prefix)
	}
	text, err := json.Marshal(map[string]string{
		"kubernetes": version(b.kubernetes, "kubernetes-"),
		"clusterAPI": version(b.clusterAPI, "cluster-api-"),
		"providers":  b.kind(),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// kind returns whether the providers are real or stand-ins.
func (b binaries) kind() string {
	if b.providers == "" {
		return "stand-in"
	}
	return "real"
}

func main() {
	// The children are killed when the thread that started them ends (see start), so the main thread
	// must run as long as the process.
	runtime.LockOSThread()
	state := flag.String("state", "", "directory for everything that is written; emptied first")
	var from binaries
	flag.StringVar(&from.kubernetes, "kubernetes", "", "directory of kube-apiserver and kube-controller-manager")
	flag.StringVar(&from.clusterAPI, "cluster-api", "", "directory of Cluster API's core manager and its crds; without it neither that nor the stand-ins run")
	flag.StringVar(&from.plugins, "plugins", "", "admission plugins to switch on beside the default ones, separated by commas")
	flag.StringVar(&from.providers, "providers", "", "directory of real providers; without it stand-ins take their place")
	flag.StringVar(&from.kwok, "kwok", "", "kwok, the kubelet of every Node; runs with Cluster API")
	flag.StringVar(&from.cluster, "cluster", "", "file with a Cluster for real providers, which is made in the namespace "+conformance)
	flag.Parse()
	if *state == "" || from.kubernetes == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*state, from); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(state string, from binaries) error {
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	state, err := filepath.Abs(state)
	if err != nil {
		return err
	}
	if err := prepare(state); err != nil {
		return err
	}
	control, err := listen(filepath.Join(state, "control"), stop)
	if err != nil {
		return err
	}
	// Deferred first, so that a caller of "stop" is notified last.
	defer control.close()

	c := &cluster{state: state, from: from, family: newFamily(filepath.Join(state, "log"))}
	defer c.family.stop()
	names := []string{""}
	if from.clusterAPI != "" {
		names = append(names, workload)
	}
	store, planes, err := startKubernetes(ctx, c.family, state, from, names...)
	if err != nil {
		return fmt.Errorf("starting Kubernetes: %w", err)
	}
	defer store.etcd.Close()
	// Deferred calls run in reverse order: the children end before etcd, which they write to.
	defer c.family.stop()
	c.planes = planes
	if from.clusterAPI != "" {
		if err := c.startManagement(ctx); err != nil {
			return err
		}
		defer func() { c.stopStandIns() }()
		if err := from.write(filepath.Join(state, "versions.json")); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for {
		select {
		case <-ctx.Done():
			return nil
		case asked := <-control.requests:
			asked.answer(asked.do(ctx, c))
		case child := <-c.family.died:
			stop()
			return fmt.Errorf("%s exited unexpectedly: see %s", child.name, child.log)
		}
	}
}

// cluster has the running components.
type cluster struct {
	state  string
	from   binaries
	family *family
	// planes are the control plane of Cluster API and, with it, the one for Nodes.
	planes []*kubernetes
	// contract is the newest that Cluster API supports.
	contract contract
	// stopStandIns stops the stand-ins, and waits until they have ended.
	stopStandIns func()
}

// startManagement starts Cluster API and the providers in one control plane, with the other one for
// Nodes.
func (c *cluster) startManagement(ctx context.Context) error {
	if err := startKubelets(ctx, c.family, c.planes[1], c.from.kwok); err != nil {
		return fmt.Errorf("starting kwok: %w", err)
	}
	if err := c.startProvided(ctx, false); err != nil {
		return err
	}
	if c.from.cluster == "" {
		return nil
	}
	return addCluster(ctx, c.planes[0], c.from.cluster)
}

// startProvided starts Cluster API and either real providers or stand-ins.
func (c *cluster) startProvided(ctx context.Context, isUpgrade bool) error {
	management := c.planes[0]
	var err error
	c.contract, err = startClusterAPI(ctx, c.family, management, c.from.clusterAPI, isUpgrade)
	if err != nil {
		return fmt.Errorf("starting Cluster API: %w", err)
	}
	if c.hasRealProviders() {
		if err := startProviders(ctx, c.family, management, c.from); err != nil {
			return fmt.Errorf("starting the providers: %w", err)
		}
	}
	if err := defineStandIns(ctx, management, c.contract, c.hasRealProviders()); err != nil {
		return err
	}
	return c.startStandIns(ctx)
}

// startStandIns starts the stand-ins for what the running providers do not include.
func (c *cluster) startStandIns(ctx context.Context) error {
	var err error
	c.stopStandIns, err = startStandIns(ctx, c.planes[0], c.planes[1], c.contract, c.hasRealProviders())
	return err
}

func (c *cluster) hasRealProviders() bool { return c.from.providers != "" }

// restartProviders ends the processes of real providers, starts them again and waits until they are
// ready. Stand-ins have no process of their own: they drop their caches and list everything again.
func restartProviders(ctx context.Context, c *cluster) error {
	if !c.hasRealProviders() {
		c.stopStandIns()
		return c.startStandIns(ctx)
	}
	for _, name := range providers {
		manager, err := c.family.replace(name, filepath.Join(c.from.providers, name, name))
		if err != nil {
			return err
		}
		if err := manager.ready(ctx, manager.health); err != nil {
			return err
		}
	}
	return nil
}

// prepare creates the state directory, empty and accessible only to its owner.
func prepare(state string) error {
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	for _, directory := range []string{"", "log", "webhook"} {
		if err := os.MkdirAll(filepath.Join(state, directory), 0o700); err != nil {
			return err
		}
	}
	return nil
}
