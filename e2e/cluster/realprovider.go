package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// providers are the managers that run in addition to the core manager, in the order of their start.
// Each is in a folder with its name, as a program with its name.
var providers = []string{"kubeadm-bootstrap", "kubeadm-control-plane", "in-memory"}

// webhookKinds are the kinds that configure a manager's webhooks.
var webhookKinds = map[string]schema.GroupVersionResource{
	"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// startProviders installs the CRDs of the real providers, starts their managers, and configures
// their admission webhooks, as their releases do.
func startProviders(ctx context.Context, family *family, k *kubernetes, from binaries) error {
	for _, name := range providers {
		programs := filepath.Join(from.providers, name)
		ports, err := freePorts(3)
		if err != nil {
			return err
		}
		all, err := k.readDefinitions(programs, ports[0])
		if err != nil {
			return err
		}
		for _, definition := range all {
			if err := define(ctx, k, definition); err != nil {
				return err
			}
		}
		skip := "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields"
		if err := startManager(ctx, family, k, filepath.Join(programs, name), ports, skip); err != nil {
			return err
		}
		if err := k.callWebhooks(ctx, filepath.Join(programs, "webhooks"), name, ports[0]); err != nil {
			return err
		}
	}
	return nil
}

// callWebhooks configures the webhooks that a manager serves at a port.
func (k *kubernetes) callWebhooks(ctx context.Context, directory, name string, at int) error {
	content, err := os.ReadFile(filepath.Join(directory, "manifests.yaml"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(k.authority.path())
	if err != nil {
		return err
	}
	for _, document := range strings.Split(string(content), "\n---\n") {
		configuration, err := parse(strings.TrimPrefix(document, "---\n"))
		if err != nil {
			return err
		}
		resource, known := webhookKinds[configuration.GetKind()]
		if !known {
			return fmt.Errorf("%s: a %s", directory, configuration.GetKind())
		}
		// All of them have the same name in their source files.
		configuration.SetName(name)
		webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
		for _, each := range webhooks {
			webhook, is := each.(object)
			if !is {
				continue
			}
			path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			webhook["clientConfig"] = object{
				"url":      "https://127.0.0.1:" + port(at) + path,
				"caBundle": base64.StdEncoding.EncodeToString(authority),
			}
		}
		if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
			return err
		}
		if _, err := k.client.Resource(resource).Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: %w", directory, err)
		}
	}
	return nil
}
