// Command cluster runs a real Kubernetes and a real Cluster API on this machine, without
// containers, until it is told to stop: etcd in its own process; kube-apiserver,
// kube-controller-manager and Cluster API's core manager as its children; and stand-ins
// for what cannot be real here (control plane provider, bootstrap, infrastructure, kubelet
// and Nodes).
//
// It prints one line, "ready", on standard output once everything answers. Whatever else
// there is to say is on standard error and, per child, in the state directory's log folder.
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

// binaries is where the children's programs are.
type binaries struct {
	// kubernetes holds kube-apiserver and kube-controller-manager.
	kubernetes string
	// clusterAPI holds the core manager and, in crds, its definitions.
	clusterAPI string
}

// tell writes down what runs, by the folders that it comes from.
func (b binaries) tell(path string) error {
	version := func(directory, prefix string) string {
		return strings.TrimPrefix(filepath.Base(directory), prefix)
	}
	text, err := json.Marshal(map[string]string{
		"kubernetes": version(b.kubernetes, "kubernetes-"),
		"clusterAPI": version(b.clusterAPI, "cluster-api-"),
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func main() {
	// The children die with the thread that started them (see start), so that thread
	// must live as long as the process.
	runtime.LockOSThread()
	state := flag.String("state", "", "directory for everything that is written; emptied first")
	var from binaries
	flag.StringVar(&from.kubernetes, "kubernetes", "", "directory of kube-apiserver and kube-controller-manager")
	flag.StringVar(&from.clusterAPI, "cluster-api", "", "directory of Cluster API's core manager and its crds; without it neither that nor the stand-ins run")
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
	// Last of all: whoever asked for the end hears that it has come.
	defer control.close()

	family := newFamily(filepath.Join(state, "log"))
	defer family.stop()
	kubernetes, err := startKubernetes(ctx, family, state, from.kubernetes)
	if err != nil {
		return fmt.Errorf("starting Kubernetes: %w", err)
	}
	defer kubernetes.etcd.Close()
	// Deferred calls run backwards: the children end before the etcd that they write to.
	defer family.stop()
	if from.clusterAPI != "" {
		contract, err := startClusterAPI(ctx, family, kubernetes, from.clusterAPI)
		if err != nil {
			return fmt.Errorf("starting Cluster API: %w", err)
		}
		standIns, err := startStandIns(ctx, kubernetes, contract)
		if err != nil {
			return fmt.Errorf("starting the stand-ins: %w", err)
		}
		defer standIns.Wait()
		if err := from.tell(filepath.Join(state, "versions.json")); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {
	case <-ctx.Done():
		return nil
	case child := <-family.died:
		stop()
		return fmt.Errorf("%s ended by itself: see %s", child.name, child.log)
	}
}

// prepare makes the state directory, empty, for its owner alone.
func prepare(state string) error {
	if err := os.RemoveAll(state); err != nil {
		return err
	}
	for _, directory := range []string{"", "pki", "log", "webhook"} {
		if err := os.MkdirAll(filepath.Join(state, directory), 0o700); err != nil {
			return err
		}
	}
	return nil
}
