package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// upgrade is the requested set of programs for a running cluster. Empty fields stay as they are.
type upgrade struct {
	// Kubernetes is a directory with kube-apiserver and kube-controller-manager.
	Kubernetes string `json:"kubernetes"`
	// ClusterAPI is a directory with the core manager and its CRDs.
	ClusterAPI string `json:"clusterAPI"`
}

// parseUpgrade parses the text of a caller.
func parseUpgrade(text string) (upgrade, error) {
	var u upgrade
	err := json.Unmarshal([]byte(text), &u)
	return u, err
}

// upgrade performs an upgrade, and records the running versions. etcd stays as it is.
func (c *cluster) upgrade(ctx context.Context, to upgrade) error {
	if to.Kubernetes != "" {
		if err := c.upgradeKubernetes(ctx, to.Kubernetes); err != nil {
			return fmt.Errorf("upgrading Kubernetes: %w", err)
		}
	}
	if to.ClusterAPI != "" {
		if c.hasRealProviders() {
			return fmt.Errorf("real providers are not upgraded")
		}
		if err := c.upgradeClusterAPI(ctx, to.ClusterAPI); err != nil {
			return fmt.Errorf("upgrading Cluster API: %w", err)
		}
	}
	return c.from.write(filepath.Join(c.state, "versions.json"))
}

// upgradeKubernetes replaces the programs of every control plane, the servers first, as required by
// the version skew policy.
func (c *cluster) upgradeKubernetes(ctx context.Context, programs string) error {
	c.from.kubernetes = programs
	for _, k := range c.planes {
		server, err := c.family.replace(k.of("kube-apiserver"), filepath.Join(programs, "kube-apiserver"))
		if err != nil {
			return err
		}
		if err := server.ready(ctx, k.url+"/readyz"); err != nil {
			return err
		}
	}
	for _, k := range c.planes {
		if _, err := c.family.replace(k.of("kube-controller-manager"), filepath.Join(programs, "kube-controller-manager")); err != nil {
			return err
		}
	}
	return nil
}

// upgradeClusterAPI replaces the core manager and its CRDs, and the contract of the stand-ins. The
// new manager migrates the stored objects.
func (c *cluster) upgradeClusterAPI(ctx context.Context, programs string) error {
	c.from.clusterAPI = programs
	c.stopStandIns()
	c.family.end(coreManager)
	return c.startProvided(ctx, true)
}
