package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// standIns act as the components that do not exist here. On every change, they process all objects,
// take each step at once and keep no state. A step that was decided from a stale object is rejected
// by the server, and the event of the newer version triggers another round.
type standIns struct {
	resources
	contract contract
	// management is the control plane of Cluster API. Nodes join workload.
	management, workload site
	// views are the workload cluster's addresses for the Clusters of each namespace.
	views *views
	// besideReal is set if bootstrap and infrastructure providers are real.
	besideReal bool
	// reported failures, so that each is reported once.
	reported map[string]bool
	// waited is the total duration of requests.
	waited time.Duration
}

// shareOfACore limits the CPU usage of the stand-ins to one core divided by this. With tens of
// thousands of objects, one round takes a while, and the measured programs need the core.
const shareOfACore = 10

// longestPause is the maximum time between two rounds. On a busy machine a round takes long, and promises have deadlines.
const longestPause = 5 * time.Second

// site is a control plane with the stand-ins' client and informers.
type site struct {
	client    dynamic.Interface
	informers dynamicinformer.DynamicSharedInformerFactory
}

func siteOf(k *kubernetes) site {
	return site{client: k.client, informers: dynamicinformer.NewDynamicSharedInformerFactory(k.client, 0)}
}

// of returns the control plane with the objects of a resource.
func (s *standIns) of(resource schema.GroupVersionResource) site {
	if resource == nodes {
		return s.workload
	}
	return s.management
}

// step is the action of a stand-in for one object.
type step struct {
	resource schema.GroupVersionResource
	take     func(*standIns, context.Context, *unstructured.Unstructured) error
}

func (s *standIns) steps() []step {
	steps := []step{
		{s.clusters, (*standIns).provideControlPlane},
		{s.controlPlanes, (*standIns).initialise},
		{s.machines, (*standIns).join},
		{nodes, (*standIns).admit},
	}
	if s.besideReal {
		return steps
	}
	return append(steps,
		step{s.bootstraps, (*standIns).bootstrap},
		step{s.infrastructures, (*standIns).provision},
		step{nodes, (*standIns).identify},
	)
}

// startStandIns returns once the informers have synced, with a function that stops the stand-ins.
func startStandIns(ctx context.Context, management, workload *kubernetes, contract contract, besideReal bool) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	views, err := newViews(ctx, workload)
	if err != nil {
		return cancel, err
	}
	s := &standIns{
		resources:  contract.resources(),
		contract:   contract,
		management: siteOf(management),
		workload:   siteOf(workload),
		views:      views,
		besideReal: besideReal,
		reported:   map[string]bool{},
	}
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { note() },
		UpdateFunc: func(any, any) { note() },
		DeleteFunc: func(any) { note() },
	}
	// Secrets with keys and kubeconfigs are created and deleted without a change of other objects.
	watched := []schema.GroupVersionResource{secrets}
	for _, step := range s.steps() {
		watched = append(watched, step.resource)
	}
	for _, resource := range watched {
		if _, err := s.of(resource).informers.ForResource(resource).Informer().AddEventHandler(handler); err != nil {
			return cancel, err
		}
	}
	for _, site := range []site{s.management, s.workload} {
		site.informers.Start(ctx.Done())
		for resource, synced := range site.informers.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return cancel, fmt.Errorf("%s cannot be watched", resource.Resource)
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx, changed) })
	return func() {
		cancel()
		running.Wait()
	}, nil
}

func (s *standIns) run(ctx context.Context, changed <-chan struct{}) {
	for {
		var again <-chan time.Time
		begun, waited := time.Now(), s.waited
		if !s.round(ctx) {
			again = time.After(time.Second)
		}
		looked := time.Since(begun) - (s.waited - waited)
		select {
		case <-time.After(min((shareOfACore-1)*looked, longestPause)):
		case <-ctx.Done():
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			s.management.informers.Shutdown()
			s.workload.informers.Shutdown()
			return
		}
	}
}

// round takes every step for every object. It reports whether none failed.
func (s *standIns) round(ctx context.Context) bool {
	clean := true
	for _, step := range s.steps() {
		all, err := s.of(step.resource).informers.ForResource(step.resource).Lister().List(labels.Everything())
		if err != nil {
			return false
		}
		for _, each := range all {
			if err := step.take(s, ctx, each.(*unstructured.Unstructured)); err != nil && ctx.Err() == nil {
				clean = false
				s.report(step.resource, each, err)
			}
		}
	}
	return clean
}

func (s *standIns) report(resource schema.GroupVersionResource, about any, err error) {
	name := ""
	if accessor, failed := meta.Accessor(about); failed == nil {
		name = accessor.GetName()
	}
	line := fmt.Sprintf("stand-in for %s %s: %v", resource.Resource, name, err)
	if !s.reported[line] {
		s.reported[line] = true
		fmt.Fprintln(os.Stderr, line)
	}
}

// seen returns an object from the cache, or nil.
func (s *standIns) seen(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	lister := s.of(resource).informers.ForResource(resource).Lister()
	if namespace != "" {
		found, _ := lister.ByNamespace(namespace).Get(name)
		of, _ := found.(*unstructured.Unstructured)
		return of
	}
	found, _ := lister.Get(name)
	of, _ := found.(*unstructured.Unstructured)
	return of
}

// create creates an object that does not exist yet.
func (s *standIns) create(ctx context.Context, resource schema.GroupVersionResource, content object) error {
	made := &unstructured.Unstructured{Object: content}
	defer s.waits(time.Now())
	_, err := s.of(resource).client.Resource(resource).Namespace(made.GetNamespace()).Create(ctx, made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// waits adds the duration of a request.
func (s *standIns) waits(since time.Time) {
	s.waited += time.Since(since)
}

// patch patches an object unless it has changed since it was read.
func (s *standIns) patch(ctx context.Context, resource schema.GroupVersionResource, seen *unstructured.Unstructured, change object, subresources ...string) error {
	metadata, _ := change["metadata"].(object)
	if metadata == nil {
		metadata = object{}
	}
	metadata["resourceVersion"] = seen.GetResourceVersion()
	change["metadata"] = metadata
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	defer s.waits(time.Now())
	_, err = s.of(resource).client.Resource(resource).Namespace(seen.GetNamespace()).
		Patch(ctx, seen.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
